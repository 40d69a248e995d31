// Products of rows of activations with weights in tiles, for one row and for many, by
// one arithmetic for each format: whatever the number of rows, an output is the same
// sum in the same order.
//
// The columns are cut into 8 segments of whole tiles, one for each warp of a block;
// each is summed from 0 and the sums are added in ascending order.
//
//   q8   weights in blocks times bytes: the sum over 32 columns (or twice 16, where there
//        are scales for 16) is an exact integer; it is multiplied by both scales and added
//        to the sum of the blocks before it.
//   h16  weights of 16 bits times numbers of the same type: matrix instructions of 16
//        columns, accumulated in float32.
//   f32  any weights times float32: a lane's columns one by one, then the four lanes of
//        a row.
#pragma once
#include "activation.cuh"
#include "formats.cuh"
#include "norm.cuh"

constexpr int segments = 8;

struct Product {
  const u8 *w;       // tiles
  float *y;          // [count, yStride]
  const float *bias; // [rows] or 0
  s32 rows, yStride;
};

struct LinearArgs {
  Product p[4]; // of one input and one format; gated: the gate and what it gates
  s32 units;  // tiles of rows of all products; gated: twice two
  s32 kTiles; // tiles of a row
  s32 cols, xStride;
  const float *x; // what is read of the input, by kind of kernel; with a norm, what that reads
  const s8 *q8;
  const uint2 *meta;
  const u16 *h16;
  const float *residual; // [count, residualStride] added to the first product, or 0
  s32 residualStride;
  s32 act;          // gated: the activation
  const s32 *count; // rows of x in this step
  Forms out;        // gated: where act(gate)*up goes
  const float *norm; // [cols] weights of an RMS norm of one row, where the kernel does it
  const s32 *row;    // which row that is, or 0: the first
  float eps;
  s32 pad;
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
// operand and two as results. Beyond count it is the last.
template <int NT> struct Tokens {
  int operand[NT], result[NT][2];
  METHOD Tokens(int first, int count, int lane) {
    UNROLL for (int n = 0; n < NT; n++) {
      operand[n] = minOf(first + 8 * n + lane / 4, count - 1);
      UNROLL for (int i = 0; i < 2; i++) result[n][i] = minOf(first + 8 * n + lane % 4 * 2 + i, count - 1);
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
  METHOD Bytes(const LinearArgs &a, int first, int count, int lane) {
    const Tokens<NT> tk(first, count, lane);
    UNROLL for (int n = 0; n < NT; n++) {
      x[n] = a.q8 + s64(tk.operand[n]) * a.xStride + 8 * (lane & 3);
      UNROLL for (int i = 0; i < 2; i++) meta[n][i] = a.meta + s64(tk.result[n][i]) * (a.xStride / 32);
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
  METHOD Words(const LinearArgs &a, int first, int count, int lane) {
    const Tokens<NT> tk(first, count, lane);
    UNROLL for (int n = 0; n < NT; n++) x[n] = a.h16 + s64(tk.operand[n]) * a.xStride + 8 * (lane & 3);
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

// Floats multiplies tiles of any format by float32, for 8 rows of the input. A lane adds
// up its own columns of a tile, and its four lanes' sums are added to the accumulators.
template <class F> struct Floats {
  const float *x;
  s64 stride;
  int cols, first, count, lane;
  METHOD Floats(const LinearArgs &a, int first, int count, int lane) : x(a.x), stride(a.xStride), cols(a.cols), first(first), count(count), lane(lane) {}
  METHOD void multiply(float (*acc)[4], const F &w, int kt) const {
    float own[2][8];
    UNROLL for (int r = 0; r < 2; r++) {
      UNROLL for (int i = 0; i < 8; i++) own[r][i] = 0;
    }
    UNROLL for (int b = 0; b < F::blocks; b++) {
      float v[4][4];
      weightsOf(v, w, b);
      const int k = kt * F::tileK + 32 * b + 4 * (lane & 3);
      UNROLL for (int i = 0; i < 8; i++) {
        const float *row = x + s64(minOf(first + i, count - 1)) * stride;
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
      UNROLL for (int i = 0; i < 8; i++) {
        float v = own[r][i];
        v = v + shuffleXor(v, 1);
        v = v + shuffleXor(v, 2);
        if (lane % 4 == i / 2) acc[0][2 * r + (i & 1)] = acc[0][2 * r + (i & 1)] + v;
      }
    }
  }
};

// --- One row, normalised by the block that multiplies it

// A Row is one in the form that products read: of the step's memory or, where the block
// normalises it, of shared memory. Every warp writes its own segment there and reads
// nothing else.
template <class F> struct Row {
  s8 *q8;      // [cols]
  uint2 *meta; // [cols/32]
  METHOD explicit Row(const LinearArgs &a) : q8(const_cast<s8 *>(a.q8)), meta(const_cast<uint2 *>(a.meta)) {}
  METHOD Row(u8 *at, int cols) : q8(reinterpret_cast<s8 *>(at)), meta(reinterpret_cast<uint2 *>(at + cols)) {}
  METHOD BytesOne<F> operand(int lane) const { return BytesOne<F>(q8, meta, lane); }
  // put writes the eight columns of a lane, of block b, which its four lanes have. All
  // lanes of a warp take part.
  METHOD void put(int b, int lane, const float (&v)[8]) const {
    float top = 0;
    UNROLL for (int i = 0; i < 8; i++) top = maxOf(top, absOf(v[i]));
    top = maxOf(top, shuffleXor(top, 1));
    top = maxOf(top, shuffleXor(top, 2));
    const float inverse = top > 0 ? divide(127.0f, top) : 0.0f;
    u32 words[2] = {0, 0};
    int sums[2] = {0, 0};
    bool finite = true;
    UNROLL for (int i = 0; i < 8; i++) {
      const int q = minOf(127, maxOf(-127, roundToInt(v[i] * inverse)));
      words[i / 4] |= u32(q & 0xff) << (8 * (i & 3));
      sums[i / 4] += q;
      finite = finite && isFinite(v[i]);
    }
    UNROLL for (int i = 0; i < 2; i++) {
      sums[i] += shuffleXor(sums[i], 1);
      sums[i] += shuffleXor(sums[i], 2);
    }
    const bool good = (ballot(finite) >> (lane & 28) & 15) == 15;
    *reinterpret_cast<uint2 *>(q8 + 32 * b + 8 * (lane & 3)) = uint2{words[0], words[1]};
    if ((lane & 3) == 0) meta[b] = uint2{good ? asBits(divide(top, 127.0f)) : 0x7fc00000u, u32(sums[0] & 0xffff) | u32(sums[1]) << 16};
  }
};
template <class F> struct RowOfWords {
  u16 *h16; // [cols]
  METHOD explicit RowOfWords(const LinearArgs &a) : h16(const_cast<u16 *>(a.h16)) {}
  METHOD RowOfWords(u8 *at, int) : h16(reinterpret_cast<u16 *>(at)) {}
  METHOD WordsOne<F> operand(int lane) const { return WordsOne<F>(h16, lane); }
  METHOD void putWords(int b, int lane, const u32 (&w)[4]) const { *reinterpret_cast<uint4 *>(h16 + 32 * b + 8 * (lane & 3)) = uint4{w[0], w[1], w[2], w[3]}; }
};
template <> struct Row<BF16> : RowOfWords<BF16> {
  using RowOfWords<BF16>::RowOfWords;
  METHOD void put(int b, int lane, const float (&v)[8]) const {
    u32 w[4];
    UNROLL for (int i = 0; i < 4; i++) w[i] = wordOf(floatToBfloat(v[2 * i]), floatToBfloat(v[2 * i + 1]));
    putWords(b, lane, w);
  }
};
template <> struct Row<F16> : RowOfWords<F16> {
  using RowOfWords<F16>::RowOfWords;
  METHOD void put(int b, int lane, const float (&v)[8]) const {
    u32 w[4];
    UNROLL for (int i = 0; i < 4; i++) w[i] = wordOf(floatToHalf(v[2 * i] * halfScale), floatToHalf(v[2 * i + 1] * halfScale));
    putWords(b, lane, w);
  }
};

INLINE float4 fourOf(const float *p, int i, int n) { return i < n ? *reinterpret_cast<const float4 *>(p + i) : float4{}; }

// normalizeRow does what the kernel norm does for a row of a.cols columns, a multiple
// of 4, and writes columns from to end of it, multiples of 32, for the calling warp.
template <class F> INLINE void normalizeRow(const LinearArgs &a, const Row<F> &to, int from, int end, int warp, int lane) {
  alignas(16) __shared__ float sums[normParts];
  const float *x = a.x + s64(a.row ? *a.row : 0) * a.xStride;
  const int column = 32 * (lane / 4) + 4 * (lane & 3); // of the eight blocks that a warp does together
  float4 v[2], w[2]; // of the first
  UNROLL for (int i = 0; i < 2; i++) {
    v[i] = fourOf(x, from + column + 16 * i, a.cols);
    w[i] = fourOf(a.norm, from + column + 16 * i, a.cols);
  }
  UNROLL for (int p = 0; p < 2; p++) {
    const int part = 2 * warp + p;
    float4 squares = {};
    for (int i = 128 * part + 4 * lane; i < a.cols; i += normColumns) squares = squaresAdded(squares, fourOf(x, i, a.cols));
    float s = sumOf(squares);
    UNROLL for (int m = 16; m; m >>= 1) s = s + shuffleXor(s, m);
    if (lane == 0) sums[part] = s;
  }
  syncBlock();
  const float scale = scaleOf(sumOfParts(sums), divide(1.0f, float(a.cols)), a.eps);
  for (int first = from; first < end; first += 256) {
    float y[8];
    UNROLL for (int i = 0; i < 8; i++) y[i] = v[i / 4][i & 3] * scale * w[i / 4][i & 3];
    UNROLL for (int i = 0; i < 2; i++) { // the next, while this one is written
      v[i] = fourOf(x, first + 256 + column + 16 * i, a.cols);
      w[i] = fourOf(a.norm, first + 256 + column + 16 * i, a.cols);
    }
    const int b = first / 32 + lane / 4;
    if (32 * b < end) to.put(b, lane, y);
  }
  syncWarp();
}

// --- The kernels

// Linear is what a block does: units blockX, blockX+gridX and so on, each of R tiles of
// rows; gated ones have 4, of which the first two are the gate's. M multiplies. ONE is for one row
// of the input, which the block may normalise itself.
template <class F, class M, int NT, bool ONE, bool GATED, bool SCALED> INLINE void linear(const LinearArgs &a) {
  constexpr int R = GATED ? 4 : 1, columns = ONE ? 1 : 8 * NT;
  // Of a unit, and where there is room of the one before it, so that fast warps need not
  // wait for slow ones twice.
  constexpr int turns = segments * R * tileRows * columns * 8 > 32768 ? 1 : 2;
  __shared__ float part[turns][segments][R * tileRows][columns];
  const int lane = tidX() & 31, warp = tidX() >> 5;
  const int from = a.kTiles * warp / segments, tiles = a.kTiles * (warp + 1) / segments - from;
  const s64 rowBytes = s64(a.kTiles) * F::tileBytes;
  const int gateTiles = (a.p[0].rows + tileRows - 1) / tileRows;

  // productOf makes unit a tile of rows of one product.
  auto productOf = [&](int &unit) ALWAYS {
    int which = 0;
    for (; which < 3 && unit >= (a.p[which].rows + tileRows - 1) / tileRows; which++) unit -= (a.p[which].rows + tileRows - 1) / tileRows;
    return which;
  };
  // rowOf is where the warp's segment begins in tile r of a unit. A second tile of rows
  // that is not there is the first again, and its results are not used.
  auto rowOf = [&](int unit, int r) ALWAYS -> const u8 * {
    if constexpr (GATED) return (r < 2 ? a.p[0].w : a.p[1].w) + minOf(2 * unit + (r & 1), gateTiles - 1) * rowBytes + s64(from) * F::tileBytes;
    const int which = productOf(unit);
    return a.p[which].w + unit * rowBytes + s64(from) * F::tileBytes;
  };

  // What is loaded next: two tiles are on their way while one is worked on.
  int ahead = blockX(), aheadR = 0, aheadK = 0;
  const u8 *next = rowOf(ahead, 0);
  auto load = [&](F &w) ALWAYS {
    if (ahead >= a.units) return;
    w.load(next, lane);
    next += F::tileBytes;
    if (++aheadK < tiles) return;
    aheadK = 0;
    if (++aheadR == R) aheadR = 0, ahead += gridX();
    if (ahead < a.units) next = rowOf(ahead, aheadR);
  };
  F one, two;
  if (tiles > 0) {
    load(one);
    load(two);
  }

  waitForPrevious();
  allowNext();
  const int count = *a.count, first = blockY() * 8 * NT;
  if (first >= count) return;

  float acc[NT][4];
  auto clear = [&]() ALWAYS {
    UNROLL for (int n = 0; n < NT; n++) {
      UNROLL for (int i = 0; i < 4; i++) acc[n][i] = 0;
    }
  };
  auto keep = [&](int r, int turn) ALWAYS {
    UNROLL for (int n = 0; n < NT; n++) {
      UNROLL for (int i = 0; i < 4; i++) {
        const float v = SCALED ? acc[n][i] * (1 / halfScale) : acc[n][i];
        if constexpr (ONE) {
          if (lane % 4 == 0 && !(i & 1)) part[turn][warp][r * tileRows + lane / 4 + 4 * i][0] = v;
        } else {
          part[turn][warp][r * tileRows + lane / 4 + 4 * (i & 2)][8 * n + lane % 4 * 2 + (i & 1)] = v;
        }
      }
    }
  };
  // finish adds up a unit's segments, when all warps have kept theirs.
  auto finish = [&](int unit, int turn) ALWAYS {
    syncBlock();
    auto sum = [&](int row, int col) ALWAYS {
      float v = part[turn][0][row][col];
      UNROLL for (int s = 1; s < segments; s++) v = v + part[turn][s][row][col];
      return v;
    };
    if constexpr (!GATED) {
      const Product &p = a.p[productOf(unit)];
      for (int i = tidX(); i < tileRows * columns; i += 256) {
        const int row = unit * tileRows + i / columns, token = first + i % columns;
        if (row >= p.rows || token >= count) continue;
        float v = sum(i / columns, i % columns);
        if (p.bias) v = v + p.bias[row];
        if (a.residual) v = a.residual[s64(token) * a.residualStride + row] + v;
        p.y[s64(token) * p.yStride + row] = v;
      }
    } else {
      for (int c = warp; c < columns; c += 8) {
        if (first + c >= count) break;
        const int row = 32 * unit + lane;
        float v = 0;
        if (row < a.p[0].rows) {
          float gate = sum(lane, c), up = sum(32 + lane, c);
          if (a.p[0].bias) gate = gate + a.p[0].bias[row];
          if (a.p[1].bias) up = up + a.p[1].bias[row];
          v = activate(a.act, gate) * up;
        }
        storeBlock(a.out, first + c, unit, lane, v);
      }
    }
  };
  auto work = [&](const auto &m) ALWAYS {
    int unit = blockX(), r = 0, k = 0, turn = 0;
    clear();
    auto step = [&](F &w) ALWAYS {
      w.prepare();
      m.multiply(acc, w, from + k);
      load(w);
      if (++k < tiles) return;
      keep(r, turn);
      clear();
      k = 0;
      if (++r < R) return;
      finish(unit, turn);
      if (turns == 1) syncBlock();
      r = 0, turn = (turn + 1) % turns, unit += gridX();
    };
    while (tiles > 0 && unit < a.units) {
      step(one);
      if (unit < a.units) step(two);
    }
    for (; unit < a.units; unit += gridX(), turn = (turn + 1) % turns) { // a warp without columns
      for (r = 0; r < R; r++) keep(r, turn);
      finish(unit, turn);
      if (turns == 1) syncBlock();
    }
  };
  if constexpr (ONE) {
    extern __shared__ u8 shared[];
    Row<F> row(a);
    if (a.norm) {
      row = Row<F>(shared, a.kTiles * F::tileK);
      normalizeRow<F>(a, row, from * F::tileK, (from + tiles) * F::tileK, warp, lane);
    }
    work(row.operand(lane));
  } else {
    work(M(a, first, count, lane));
  }
}

#define LINEAR(name, F, M, NT, ONE, GATED, SCALED, BLOCKS) \
  extern "C" __global__ void __launch_bounds__(256, BLOCKS) name(const LinearArgs a) { linear<F, M, NT, ONE, GATED, SCALED>(a); }

// The kernels of a format with products of their own: for one row of the input, 8, 16 and
// 32; gated ones up to 16.
#define LINEAR_FORMAT(F, M, SCALED)                                 \
  LINEAR(linear_1, F, void, 1, true, false, SCALED, 2)              \
  LINEAR(linear_8, F, SINGLE(M<F, 1>), 1, false, false, SCALED, 2)  \
  LINEAR(linear_16, F, SINGLE(M<F, 2>), 2, false, false, SCALED, 2) \
  LINEAR(linear_32, F, SINGLE(M<F, 4>), 4, false, false, SCALED, 1) \
  LINEAR(gated_1, F, void, 1, true, true, SCALED, 2)                \
  LINEAR(gated_8, F, SINGLE(M<F, 1>), 1, false, true, SCALED, 2)    \
  LINEAR(gated_16, F, SINGLE(M<F, 2>), 2, false, true, SCALED, 1)
#define SINGLE(...) __VA_ARGS__
