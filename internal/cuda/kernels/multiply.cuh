// Tiles of weights times rows of activations, as one warp computes them. There is one arithmetic
// for 16-bit activations and one for float32, for any number of rows.
#pragma once
#include "activation.cuh"
#include "formats.cuh"
#include "forms.cuh"
#include "mma.cuh"

constexpr int segments = 8;

template <class A, class B> struct SameFormat { static constexpr bool yes = false; };
template <class A> struct SameFormat<A, A> { static constexpr bool yes = true; };
template <class A, class B> INLINE constexpr bool sameFormat() { return SameFormat<A, B>::yes; }

struct Product {
  const u8 *w;         // tiles
  const float *powers; // [rows] what the weights of each row are divided by, or 0
  float *y;            // [count, stride]
  const float *bias;   // [rows] or 0
  s32 rows, stride;
};

constexpr int mostProducts = 6; // of one input; package lower has the same

struct LinearArgs {
  // Products of one input and one format. Gated: the gate and the up projection, the latter without
  // tiles if nothing is gated.
  Product p[mostProducts];
  // Units of all products: tiles of rows, or what a block has of them at a time. Kernels of gates
  // count theirs themselves.
  s32 units;
  s32 colTiles; // tiles in a row of tiles
  s32 cols, inStride;
  // The form of the input that the kernel reads; with norm, the input of the norm.
  const float *x;
  const u16 *h16;
  const float *residual; // [count, residualStride] added to the first product, or 0
  s32 residualStride;
  // The product with its bias is multiplied by this before the residual is added. Gated kernels
  // ignore it.
  float scale;
  float divided;     // the 16-bit input is divided by this
  // Segments of the columns: 8, or fewer if the columns are those of one of several parts. A block of
  // linear.cuh has a warp for each.
  s32 segments;
  const s32 *count;  // rows of x in this step
  // Gated: the unit's values, or the activation's alone if nothing is gated.
  Forms out;
  const float *scales; // [count] of the rows of a float8 input
  const float *norm; // [cols] weights of the RMS norm of one row, if the kernel computes it, or 0
  const s32 *row;    // that row's index, or 0: the first row
  float eps;
  Unit unit; // gated
  // 1: the kernel before has products of the same input. When it lets this one begin, all kernels
  // before both have ended, so this one waits for it only as it ends.
  s32 late;
  s32 pad;
};

// multiplyStep adds the products of a step of 16 columns to c: in bfloat16 for BF16, in float16 for
// all other formats.
template <class F> INLINE void multiplyStep(float *c, uint4 a, u32 b0, u32 b1) { addHalfProducts(c, a, b0, b1); }
template <> METHOD void multiplyStep<BF16>(float *c, uint4 a, u32 b0, u32 b1) { addBfloatProducts(c, a, b0, b1); }

// Words multiplies tiles by 8*NT rows of a 16-bit input, from first on. Rows from count on repeat
// the last one. If rows is not 0, it gives the row at each place. acc[n] has the results of rows g
// and g+8 of weights with two rows of the input: (g, 0), (g, 1), (g+8, 0), (g+8, 1).
template <class F, int NT> struct Words {
  const u16 *x[NT]; // chunk 0 of each row
  int turn[NT];     // each row modulo 8, which swizzles its pieces
  template <class A> METHOD Words(const A &a, int first, int count, int lane, const s32 *rows = nullptr) {
    UNROLL for (int n = 0; n < NT; n++) {
      const int place = minOf(first + 8 * n + lane / 4, count - 1), row = rows ? rows[place] : place;
      x[n] = a.h16 + chunkOf(row, 0, a.inStride) + 2 * (lane & 3);
      turn[n] = row % 8;
    }
  }
  METHOD void multiply(float (*acc)[4], const F &w, int kt) const {
    UNROLL for (int step = 0; step < F::tileK / 16; step++) {
      const uint4 a = w.operand(step);
      UNROLL for (int n = 0; n < NT; n++) {
        const u16 *chunk = x[n] + s64(kt * (F::tileK / chunkCols) + step / 4) * (chunkRows * chunkCols);
        const auto two = [&](int piece) ALWAYS { return *reinterpret_cast<const u32 *>(chunk + (piece ^ turn[n]) * 8); };
        multiplyStep<F>(acc[n], a, two(step % 4 * 2), two(step % 4 * 2 + 1));
      }
    }
  }
};

// WordsOne does the same for one row of the input, repeated eight times. The row is in shared
// memory in lane order: of every 32 columns, those of a lane's two steps are adjacent.
template <class F> struct WordsOne {
  const uint4 *x;
  METHOD WordsOne(const u16 *row, int lane) : x(reinterpret_cast<const uint4 *>(row) + (lane & 3)) {}
  METHOD void multiply(float (*acc)[4], const F &w, int kt) const {
    UNROLL for (int b = 0; b < F::blocks; b++) multiplyBlock(acc, w, kt, b);
  }
  METHOD void multiplyBlock(float (*acc)[4], const F &w, int kt, int b) const {
    const uint4 v = x[4 * (kt * F::blocks + b)];
    multiplyStep<F>(acc[0], w.operand(2 * b), v.x, v.y);
    multiplyStep<F>(acc[0], w.operand(2 * b + 1), v.z, v.w);
  }
  METHOD void multiplyQuarter(float (&acc)[1][1][4], const F (&w)[1], int kt, int q) const {
    UNROLL for (int b = 2 * q; b < 2 * q + 2; b++) multiplyBlock(acc[0], w[0], kt, b);
  }
};

// weightsOf sets v to a lane's weights of a step in float32, without the divisors of their rows:
// two for each word of an operand.
template <class F> INLINE void weightsOf(float (&v)[4][2], const F &w, int step) {
  u32 c[4];
  w.codes(c, step);
  UNROLL for (int r = 0; r < 4; r++) {
    const Line l = w.line(step, r & 1);
    const float by = l.d * (r & 1 && F::lift ? 0x1p-20f : 0x1p-24f);
    UNROLL for (int e = 0; e < 2; e++) {
      v[r][e] = by * float(w.codeOf(c, r, e));
      if constexpr (F::minimum) v[r][e] = v[r][e] + l.low;
    }
  }
}
template <class F> INLINE void wordsOf(float (&v)[4][2], const F &w, int step) {
  UNROLL for (int r = 0; r < 4; r++) {
    const u32 q = wordOf(w.w[step], r);
    v[r][0] = F::value(u16(q)), v[r][1] = F::value(u16(q >> 16));
  }
}
template <> METHOD void weightsOf<F16>(float (&v)[4][2], const F16 &w, int step) { wordsOf(v, w, step); }
template <> METHOD void weightsOf<BF16>(float (&v)[4][2], const BF16 &w, int step) { wordsOf(v, w, step); }
template <> METHOD void weightsOf<F32>(float (&v)[4][2], const F32 &w, int step) {
  UNROLL for (int r = 0; r < 4; r++) {
    UNROLL for (int e = 0; e < 2; e++) v[r][e] = w.w[step][e][r];
  }
}

// Floats multiplies tiles of any format by N rows of float32 input, at most 8. A lane sums its own
// columns of a tile; the sums of the four lanes of a row are then added to the accumulators. With
// GATHERED, rows gives the row at each place.
template <class F, int N, bool GATHERED = false> struct Floats {
  const float *x;
  s64 stride;
  int cols, first, count, lane;
  int place[GATHERED ? N : 1];
  template <class A> METHOD Floats(const A &a, int first, int count, int lane, const s32 *rows = nullptr)
      : x(a.x), stride(a.inStride), cols(a.cols), first(first), count(count), lane(lane) {
    if constexpr (GATHERED) {
      UNROLL for (int i = 0; i < N; i++) {
        place[i] = minOf(first + i, count - 1);
        if (rows) place[i] = rows[place[i]];
      }
    }
  }
  METHOD void multiply(float (*acc)[4], const F &w, int kt) const {
    float own[2][N];
    UNROLL for (int r = 0; r < 2; r++) {
      UNROLL for (int i = 0; i < N; i++) own[r][i] = 0;
    }
    UNROLL for (int step = 0; step < F::tileK / 16; step++) {
      float v[4][2];
      weightsOf(v, w, step);
      const int k = kt * F::tileK + columnOf(lane & 3, step, 0, 0);
      UNROLL for (int i = 0; i < N; i++) {
        const float *row = x + s64(GATHERED ? place[GATHERED ? i : 0] : minOf(first + i, count - 1)) * stride;
        UNROLL for (int r = 0; r < 4; r++) {
          UNROLL for (int e = 0; e < 2; e++) {
            const float u = row[minOf(k + 8 * (r >> 1) + e, cols - 1)]; // weights beyond are 0
            own[r & 1][i] = fma(v[r][e], u, own[r & 1][i]);
          }
        }
      }
    }
    UNROLL for (int r = 0; r < 2; r++) {
      UNROLL for (int i = 0; i < N; i++) {
        float v = own[r][i];
        v = v + shuffleXor(v, 1);
        v = v + shuffleXor(v, 2);
        if (lane % 4 == i / 2) acc[0][2 * r + (i & 1)] = acc[0][2 * r + (i & 1)] + v;
      }
    }
  }
};
