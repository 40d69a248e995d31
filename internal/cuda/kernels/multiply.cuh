// Tiles of weights times rows of activations: what a warp does with a tile, for every kind
// of product. Of each kind there is one arithmetic, whatever the number of rows.
#pragma once
#include "activation.cuh"
#include "formats.cuh"
#include "forms.cuh"

constexpr int segments = 8;

struct Product {
  const u8 *w;       // tiles
  float *y;          // [count, stride]
  const float *bias; // [rows] or 0
  s32 rows, stride;
};

struct LinearArgs {
  Product p[4]; // of one input and one format; gated: the gate and what it gates, or without tiles nothing
  s32 units;    // of work: tiles of rows of all products; gated: two of the gate's, with those that it gates
  s32 colTiles; // tiles of a row
  s32 cols, inStride;
  const float *x; // what is read of the input, by kind of kernel; with a norm, what that reads
  const s8 *q8;
  const uint2 *meta;
  const u16 *h16;
  const float *residual; // [count, residualStride] added to the first product, or 0
  s32 residualStride;
  float scale;       // of a product with its bias, before anything is added; gated ones have none
  const s32 *count;  // rows of x in this step
  Forms out;         // gated: where the unit's values go; those of its activation alone, where nothing is gated
  const float *norm; // [cols] weights of an RMS norm of one row, where the kernel does it
  const s32 *row;    // which row that is, or 0: the first
  float eps;
  Unit unit; // gated
};

INLINE void mmaBytes(int *c, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
INLINE void mmaHalfBytes(int *c, u32 a0, u32 a1, u32 b0) {
  asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3]) : "r"(a0), "r"(a1), "r"(b0));
}
INLINE void mma16(const F16 *, float *c, uint4 a, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}
INLINE void mma16(const BF16 *, float *c, uint4 a, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}

// A Tokens knows which rows of the input a lane takes part in: of each 8 one as an
// operand and two as results. Beyond count it is the last. Where there are rows, they say
// which one stands at each place.
template <int NT> struct Tokens {
  int operand[NT], result[NT][2];
  METHOD Tokens(int first, int count, int lane, const s32 *rows = nullptr) {
    const auto at = [=](int i) ALWAYS {
      const int place = minOf(i, count - 1);
      return rows ? int(rows[place]) : place;
    };
    UNROLL for (int n = 0; n < NT; n++) {
      operand[n] = at(first + 8 * n + lane / 4);
      UNROLL for (int i = 0; i < 2; i++) result[n][i] = at(first + 8 * n + lane % 4 * 2 + i);
    }
  }
};

// addBlock adds a block's share of an output to sum. For formats with one scale, c is the
// block's integer sum as the bits of a float that is 12582912 more, and c2 means
// nothing; for the others c and c2 are those of its halves.
constexpr int sumBase = 0x4b400000; // 12582912.0f, whose last place is 1
template <class F> INLINE void addBlock(float &sum, int c, int, const Scale &s, uint2 meta) {
  const float d = asFloat(meta.x);
  sum = fma(asFloat(c) - 12582912.0f, s.d * d, sum);
  if constexpr (F::minimum) sum = fma(float(s16(meta.y) + s16(meta.y >> 16)) * d, -s.low, sum);
}
template <class F> INLINE void addBlock(float &sum, int c, int c2, const HalfScales &s, uint2 meta) {
  const float d = asFloat(meta.x);
  sum = fma(float(c * s.s0 + c2 * s.s1), s.d * d, sum);
  if constexpr (F::minimum) sum = fma(float(s16(meta.y) * s.m0 + s16(meta.y >> 16) * s.m1), -(s.low * d), sum);
}

// What the integer sums of a block begin at: codes have an offset.
template <class F> INLINE int firstSum(uint2 meta, int half) {
  const int low = s16(meta.y), high = s16(meta.y >> 16);
  if constexpr (F::halves) return -F::offset * (half ? high : low);
  return F::offset ? sumBase - F::offset * (low + high) : sumBase;
}

// multiplyBlock adds the products of block b, for 16 rows of weights and the 8 rows of the
// input of which a lane has x, to c (and c2).
template <class F> INLINE void multiplyBlock(int *c, int *c2, const F &w, int b, uint2 x) {
  if constexpr (F::halves) {
    mmaHalfBytes(c, w.values(b, 0), w.values(b, 1), x.x);
    mmaHalfBytes(c2, w.values(b, 2), w.values(b, 3), x.y);
  } else {
    mmaBytes(c, w.values(b, 0), w.values(b, 1), w.values(b, 2), w.values(b, 3), x.x, x.y);
  }
}

// A tile of a quantised format has 8 blocks. The shares of blocks 2t and 2t+1 are added to
// 0, the four sums of two are added as (0+1)+(2+3), and that to the accumulator.

// Bytes multiplies tiles of a quantised format with 8 rows of the input and more. acc[n]
// are the results of rows g and g+8 and of two rows of the input: (g, 0), (g, 1),
// (g+8, 0), (g+8, 1).
template <class F, int NT> struct Bytes {
  const s8 *x[NT];
  const uint2 *meta[NT][2];
  template <class A> METHOD Bytes(const A &a, int first, int count, int lane, const s32 *rows = nullptr) {
    const Tokens<NT> tk(first, count, lane, rows);
    UNROLL for (int n = 0; n < NT; n++) {
      x[n] = a.q8 + s64(tk.operand[n]) * a.inStride + 8 * (lane & 3);
      UNROLL for (int i = 0; i < 2; i++) meta[n][i] = a.meta + s64(tk.result[n][i]) * (a.inStride / 32);
    }
  }
  METHOD void multiply(float (*acc)[4], const F &w, int kt) const {
    float first[NT][4], second[NT][4], pair[NT][4];
    UNROLL for (int b = 0; b < F::blocks; b++) {
      const int block = kt * F::blocks + b;
      const auto s0 = w.scale(b, 0), s1 = w.scale(b, 1);
      UNROLL for (int n = 0; n < NT; n++) {
        uint2 m[2];
        UNROLL for (int i = 0; i < 2; i++) m[i] = meta[n][i][block];
        int c[4], c2[4];
        UNROLL for (int i = 0; i < 4; i++) {
          c[i] = firstSum<F>(m[i & 1], 0);
          c2[i] = F::halves ? firstSum<F>(m[i & 1], 1) : 0;
        }
        multiplyBlock(c, c2, w, b, *reinterpret_cast<const uint2 *>(x[n] + 32 * block));
        UNROLL for (int i = 0; i < 4; i++) {
          if (b % 2 == 0) pair[n][i] = 0;
          addBlock<F>(pair[n][i], c[i], c2[i], i < 2 ? s0 : s1, m[i & 1]);
          if (b == 1) first[n][i] = pair[n][i];
          if (b == 3) first[n][i] = first[n][i] + pair[n][i];
          if (b == 5) second[n][i] = pair[n][i];
          if (b == 7) acc[n][i] = acc[n][i] + (first[n][i] + (second[n][i] + pair[n][i]));
        }
      }
    }
  }
};

// BytesOne does the same for one row of the input. The columns of the instructions'
// operand B, which are rows of the input elsewhere, are the blocks: the lanes of column b
// alone give block b to it, so that one set of integers takes the sums of all blocks, and
// lane t has those of blocks 2t and 2t+1.
template <class F> struct BytesOne {
  const s8 *x;
  const uint4 *meta;
  int lane;
  METHOD BytesOne(const s8 *q8, const uint2 *meta, int lane)
      : x(q8 + 8 * lane), meta(reinterpret_cast<const uint4 *>(meta) + (lane & 3)), lane(lane) {}
  METHOD void multiply(float (*acc)[4], const F &w, int kt) const {
    const uint2 mine = *reinterpret_cast<const uint2 *>(x + 256 * kt);
    const uint4 both = meta[4 * kt];
    const uint2 m[2] = {uint2{both.x, both.y}, uint2{both.z, both.w}};
    int c[4], c2[4];
    UNROLL for (int i = 0; i < 4; i++) {
      c[i] = firstSum<F>(m[i & 1], 0);
      c2[i] = F::halves ? firstSum<F>(m[i & 1], 1) : 0;
    }
    UNROLL for (int b = 0; b < F::blocks; b++) {
      const bool own = lane / 4 == b;
      multiplyBlock(c, c2, w, b, uint2{own ? mine.x : 0, own ? mine.y : 0});
    }
    UNROLL for (int r = 0; r < 2; r++) {
      float v = 0;
      UNROLL for (int i = 0; i < 2; i++) addBlock<F>(v, c[2 * r + i], c2[2 * r + i], w.scale(2 * (lane & 3) + i, r), m[i]);
      v = v + shuffleXor(v, 1);
      v = v + shuffleXor(v, 2);
      acc[0][2 * r] = acc[0][2 * r] + v;
    }
  }
};

// Words multiplies tiles of 16-bit numbers.
template <class F, int NT> struct Words {
  const u16 *x[NT];
  template <class A> METHOD Words(const A &a, int first, int count, int lane, const s32 *rows = nullptr) {
    const Tokens<NT> tk(first, count, lane, rows);
    UNROLL for (int n = 0; n < NT; n++) x[n] = a.h16 + s64(tk.operand[n]) * a.inStride + 8 * (lane & 3);
  }
  METHOD void multiply(float (*acc)[4], const F &w, int kt) const {
    UNROLL for (int b = 0; b < F::blocks; b++) {
      UNROLL for (int n = 0; n < NT; n++) {
        const uint4 v = *reinterpret_cast<const uint4 *>(x[n] + kt * F::tileK + 32 * b);
        mma16(static_cast<const F *>(nullptr), acc[n], w.w[2 * b], v.x, v.y);
        mma16(static_cast<const F *>(nullptr), acc[n], w.w[2 * b + 1], v.z, v.w);
      }
    }
  }
};
template <class F> struct WordsOne {
  const u16 *x;
  METHOD WordsOne(const u16 *h16, int lane) : x(h16 + 8 * (lane & 3)) {}
  METHOD void multiply(float (*acc)[4], const F &w, int kt) const {
    UNROLL for (int b = 0; b < F::blocks; b++) {
      const uint4 v = *reinterpret_cast<const uint4 *>(x + kt * F::tileK + 32 * b);
      mma16(static_cast<const F *>(nullptr), acc[0], w.w[2 * b], v.x, v.y);
      mma16(static_cast<const F *>(nullptr), acc[0], w.w[2 * b + 1], v.z, v.w);
    }
  }
};

// Multiplied is what multiplies tiles of F with 8*NT rows of the input.
template <class F, int NT> struct MultipliedBy { using Type = Bytes<F, NT>; };
template <int NT> struct MultipliedBy<F16, NT> { using Type = Words<F16, NT>; };
template <int NT> struct MultipliedBy<BF16, NT> { using Type = Words<BF16, NT>; };
template <class F, int NT> using Multiplied = typename MultipliedBy<F, NT>::Type;

// Divided says whether rows of the input are divided, see Forms. A variable would lie in
// the module's constants, with which every launch takes longer.
template <class F> struct Divided { static constexpr bool rows = false; };
template <> struct Divided<F16> { static constexpr bool rows = true; };

// weightsOf are the eight weights of a block that a lane has: four of row g and four of
// row g+8 for each half of the block, by word.
template <class F> INLINE void weightsOf(float (*v)[4], const F &w, int b) {
  UNROLL for (int r = 0; r < 4; r++) {
    const u32 codes = w.values(b, r);
    const auto s = w.scale(b, r & 1);
    UNROLL for (int j = 0; j < 4; j++) {
      const float q = float(int(s8(codes >> (8 * j))) - F::offset);
      if constexpr (F::halves) {
        const float d = s.d * float(r < 2 ? s.s0 : s.s1);
        v[r][j] = d * q;
        if constexpr (F::minimum) v[r][j] = v[r][j] - s.low * float(r < 2 ? s.m0 : s.m1);
      } else {
        v[r][j] = s.d * q;
        if constexpr (F::minimum) v[r][j] = v[r][j] - s.low;
      }
    }
  }
}
template <class F> INLINE void wordsOf(float (*v)[4], const F &w, int b) {
  UNROLL for (int half = 0; half < 2; half++) {
    const uint4 q = w.w[2 * b + half];
    UNROLL for (int r = 0; r < 2; r++) {
      const u32 first = r ? q.y : q.x, second = r ? q.w : q.z;
      float *to = v[2 * half + r];
      to[0] = F::value(u16(first)), to[1] = F::value(u16(first >> 16));
      to[2] = F::value(u16(second)), to[3] = F::value(u16(second >> 16));
    }
  }
}
template <> METHOD void weightsOf<F16>(float (*v)[4], const F16 &w, int b) { wordsOf(v, w, b); }
template <> METHOD void weightsOf<BF16>(float (*v)[4], const BF16 &w, int b) { wordsOf(v, w, b); }
template <> METHOD void weightsOf<F32>(float (*v)[4], const F32 &w, int) {
  UNROLL for (int r = 0; r < 4; r++) v[r][0] = w.w[r].x, v[r][1] = w.w[r].y, v[r][2] = w.w[r].z, v[r][3] = w.w[r].w;
}

// Floats multiplies tiles of any format by float32, for N rows of the input, up to 8. A lane
// adds up its own columns of a tile, and its four lanes' sums are added to the accumulators.
// Where rows are GATHERED, they stand where rows says, see Tokens.
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
    UNROLL for (int b = 0; b < F::blocks; b++) {
      float v[4][4];
      weightsOf(v, w, b);
      const int k = kt * F::tileK + 32 * b + 4 * (lane & 3);
      UNROLL for (int i = 0; i < N; i++) {
        const float *row = x + s64(GATHERED ? place[GATHERED ? i : 0] : minOf(first + i, count - 1)) * stride;
        UNROLL for (int half = 0; half < 2; half++) {
          UNROLL for (int j = 0; j < 4; j++) {
            const float u = row[minOf(k + 16 * half + j, cols - 1)]; // beyond, weights are 0
            own[0][i] = fma(v[2 * half][j], u, own[0][i]);
            own[1][i] = fma(v[2 * half + 1][j], u, own[1][i]);
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
