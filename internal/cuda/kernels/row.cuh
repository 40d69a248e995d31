// A single row of activations, which the block that multiplies it may normalise itself.
#pragma once
#include "multiply.cuh"
#include "norm.cuh"

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
  const float *x = a.x + s64(a.row ? *a.row : 0) * a.inStride;
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
