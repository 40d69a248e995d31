// The block formats as tiles: how a lane loads its part, how codes and scales become operands of
// matrix instructions, and how tiles are made from the rows of a file. formats.h describes a block
// of a file; it is made from package tensor's table.
//
// A weight is code*s + m. Its operand is that in float16, rounded once. Codes are in the low bits
// of a half, where they are subnormal numbers: code x 2^-24 in row g of a tile and code x 2^-20 in
// row g+8 (4 bits higher), or 2^-24 in both if codes are bytes. s includes the missing power of
// two. If the rows of a file are 2^e times too large or too small for float16, the tile has them
// divided by 2^e. Numbers in E4M3 become halves without arithmetic; their rows are divided by a
// multiple of their largest scale, see F8_E4M3_32.
#pragma once
#include "formats.h"
#include "half.cuh"
#include "tile.cuh"

// wordOf and halfOf return element i of a vector.
INLINE u32 wordOf(uint4 v, int i) {
  const u32 low = i & 1 ? +v.y : +v.x, high = i & 1 ? +v.w : +v.z; // selects values, not addresses
  return i & 2 ? +high : +low;
}
INLINE u16 halfOf(uint4 v, int i) { return u16(wordOf(v, i >> 1) >> (16 * (i & 1))); }

// The source of a tile: device memory, whose weights nothing writes, or shared memory.
struct FromGlobal {
  template <class T> INLINE T at(const T *p) { return loadOnce(p); }
};
struct FromShared {
  template <class T> INLINE T at(const T *p) { return *p; }
};

// A Pair is the factor s and the addend m of a lane's codes, for row g in the lower half and row
// g+8 in the upper half.
struct Pair {
  u32 s, m;
};

// A Line gives the weights of a row in float32, without the row's power of two: d*code + low.
struct Line {
  float d, low;
};

// A Reach bounds s, without its factor 2^24, and m of a block of a file.
struct Reach {
  float s, m;
};

// 2^exponentAbove(v) is above v.
INLINE int exponentAbove(float v) { return int(asBits(v) >> 23 & 0xff) - 126; }

// powerOf is the exponent e of a row with that reach. Divided by 2^e, s and m are below 2^top.
INLINE int powerOf(Reach r, int top) {
  const int s = r.s > 0 ? exponentAbove(r.s) + 24 - top : -126, m = r.m > 0 ? exponentAbove(r.m) - top : -126;
  return r.s > 0 || r.m > 0 ? maxOf(s, m) : 0;
}
INLINE float twoTo(int e) { return e > 127 ? __builtin_inff() : e < -126 ? 0.0f : asFloat(u32(e + 127) << 23); }

// Quantized is what the formats of blocks B have in common.
//
// The low bits of codes have planes of their own, and so do the high bits. In a word of a plane the
// lower half belongs to the first column of each pair, and the upper half to the second. In a plane
// of 4 bits a word is a step: each half has 4 bits of each of the operand's four words, in order. A
// plane of 8 bits has two words for a step, a plane of 2 bits a word for two steps, and a plane of
// 1 bit a word for four. With 2 bits, the bits of word r of step i begin at bit 4r+2i of a half;
// with 1 bit, at bit 4r+i.
template <class B> struct Quantized : B {
  static constexpr int L = B::low, H = B::high;
  static constexpr int tileK = 256, blocks = 8;
  static constexpr bool scaled = true; // by the rows' powers of two
  static constexpr int top = 15;       // s and m in a tile are at most 2^top
  static constexpr int lowWords = 4 * L, highWords = 4 * H;
  static constexpr int lowBytes = lowWords * 128, highBytes = highWords * 128, scalesAt = lowBytes + highBytes;
  static constexpr int codeBytes = B::fileLen * (L + H) / 8; // of a block of the file
  static constexpr int scaleBytes = tileK / B::fileLen * (B::fileBytes - codeBytes);
  static constexpr int tileBytes = scalesAt + tileRows * scaleBytes;

  // Codes of a byte are in the bits of row g in both rows, and are 128 more than what they mean.
  static constexpr bool bytes = L == 8 || B::table;
  static constexpr int offset = bytes ? 128 : B::offset;
  static constexpr int lift = bytes ? 0 : 4; // bits by which codes of row g+8 are higher

  u32 lowCodes[lowWords];
  u32 highCodes[highWords ? highWords : 1];

  template <class From> INLINE void loadWords(u32 *to, int n, const u8 *plane, int lane) {
    UNROLL for (int i = 0; i < n / 4; i++) {
      const uint4 v = From::at(reinterpret_cast<const uint4 *>(plane) + 32 * i + lane);
      to[4 * i] = v.x, to[4 * i + 1] = v.y, to[4 * i + 2] = v.z, to[4 * i + 3] = v.w;
    }
  }
  template <class From> METHOD void loadCodes(const u8 *tile, int lane) {
    loadWords<From>(lowCodes, lowWords, tile, lane);
    if constexpr (H > 0) loadWords<From>(highCodes, highWords, tile + lowBytes, lane);
  }

  // loadQuarter loads the codes of steps 4q to 4q+3.
  template <class From, int BITS> INLINE void loadPart(u32 *words, const u8 *plane, int lane, int q) {
    const u8 *at = plane + 16 * lane;
    if constexpr (BITS == 8) loadWords<From>(words + 8 * q, 8, plane + 1024 * q, lane);
    if constexpr (BITS == 4) loadWords<From>(words + 4 * q, 4, plane + 512 * q, lane);
    if constexpr (BITS == 2) {
      const uint2 v = From::at(reinterpret_cast<const uint2 *>(at + 512 * (q / 2) + 8 * (q % 2)));
      words[2 * q] = v.x, words[2 * q + 1] = v.y;
    }
    if constexpr (BITS == 1) words[q] = From::at(reinterpret_cast<const u32 *>(at + 4 * q));
  }
  template <class From> METHOD void loadQuarter(const u8 *tile, int lane, int q) {
    loadPart<From, L>(lowCodes, tile, lane, q);
    if constexpr (H > 0) loadPart<From, H>(highCodes, tile + lowBytes, lane, q);
  }

  INLINE u32 shifted(u32 v, int right) { return right < 0 ? v << -right : v >> right; }

  // codes sets c to the codes of a step, two in each word.
  METHOD void codes(u32 (&c)[4], int step) const {
    UNROLL for (int k = 0; k < 2; k++) { // words 2k and 2k+1
      if constexpr (L == 8) {
        const u32 v = lowCodes[2 * step + k];
        c[2 * k] = v & 0x00ff00ffu, c[2 * k + 1] = bytesOf(v, 0, 0x4341);
      } else {
        constexpr u32 low = (1 << L) - 1, all = (1 << (L + H)) - 1;
        u32 v = L == 4 ? lowCodes[step] >> (8 * k) : lowCodes[step / 2] >> (8 * k + 2 * (step & 1));
        u32 w = v;
        if constexpr (H > 0) {
          const u32 h = H == 2 ? shifted(highCodes[step / 2], 8 * k + 2 * (step & 1) - L) : shifted(highCodes[step / 4], 8 * k + (step & 3) - L);
          constexpr u32 m = low * 0x00010001u;
          w = (v & (m << 4)) | (h & ~(m << 4));
          v = (v & m) | (h & ~m);
        }
        c[2 * k] = v & (all * 0x00010001u), c[2 * k + 1] = w & (all * 0x00100010u);
      }
    }
    if constexpr (B::table) {
      // The codes of a row: byte 2e is from word 0, byte 2e+1 from word 2.
      const u32 g = c[0] | c[2] << 8, g8 = (c[1] | c[3] << 8) >> 4;
      const u32 v = lookUp(g, B::table0, B::table1, B::table2, B::table3) ^ 0x80808080u;
      const u32 w = lookUp(g8, B::table0, B::table1, B::table2, B::table3) ^ 0x80808080u;
      c[0] = v & 0x00ff00ffu, c[1] = w & 0x00ff00ffu, c[2] = v >> 8 & 0x00ff00ffu, c[3] = w >> 8 & 0x00ff00ffu;
    }
  }

  // operandOf is the operand A of a step.
  METHOD uint4 operandOf(int step, Pair p) const {
    u32 c[4];
    codes(c, step);
    const u32 s0 = lowTwice(p.s), m0 = lowTwice(p.m), s1 = highTwice(p.s), m1 = highTwice(p.m);
    return uint4{fmaHalves(c[0], s0, m0), fmaHalves(c[1], s1, m1), fmaHalves(c[2], s0, m0), fmaHalves(c[3], s1, m1)};
  }

  // lessOffset is the pair with scales s that subtracts the offset from the codes.
  INLINE Pair lessOffset(u32 s) {
    if constexpr (offset == 0) return Pair{s, 0};
    return Pair{s, multiplyHalves(s, halves(-offset * 0x1p-24f, -offset * (bytes ? 0x1p-24f : 0x1p-20f)))};
  }

  // codeOf is code e of word r of a step.
  METHOD int codeOf(const u32 (&c)[4], int r, int e) const { return int(c[r] >> (16 * e + (r & 1) * lift) & 0xff) - offset; }

  // fileCode is the code of element i of a block of the file.
  INLINE u32 fileCode(const u8 *p, int i) {
    u32 c = bitsOf<B::low, B::lowAt, B::lowRun>(p, i);
    if constexpr (H > 0) c |= bitsOf<B::high, B::highAt, B::highRun>(p, i) << L;
    return L == 8 ? c ^ 0x80 : c;
  }
  template <int BITS, int AT, int RUN> INLINE u32 bitsOf(const u8 *p, u32 i) {
    constexpr u32 codes = RUN * 8 / BITS;
    return u32(p[AT + i / codes * RUN + i % RUN]) >> (i % codes / RUN * BITS) & ((1 << BITS) - 1);
  }

  INLINE int divisor(Reach r, int top) { return powerOf(r, top); }

  // put writes the codes of a lane. codeOf(step, r, e) is element e of word r of a step.
  template <class Code> INLINE void put(u8 *tile, int lane, const Code &codeOf) {
    u32 l[lowWords], h[highWords ? highWords : 1];
    UNROLL for (int i = 0; i < lowWords; i++) l[i] = 0;
    UNROLL for (int i = 0; i < highWords; i++) h[i] = 0;
    UNROLL for (int step = 0; step < tileK / 16; step++) {
      UNROLL for (int r = 0; r < 4; r++) {
        UNROLL for (int e = 0; e < 2; e++) {
          const u32 c = codeOf(step, r, e);
          const int at = 16 * e + 4 * r; // in a plane with 4 bits of a step
          if constexpr (L == 8) l[2 * step + r / 2] |= (c & 0xff) << (16 * e + 8 * (r & 1));
          if constexpr (L == 4) l[step] |= (c & 15) << at;
          if constexpr (L == 2) l[step / 2] |= (c & 3) << (at + 2 * (step & 1));
          if constexpr (H == 2) h[step / 2] |= (c >> L & 3) << (at + 2 * (step & 1));
          if constexpr (H == 1) h[step / 4] |= (c >> L & 1) << (at + (step & 3));
        }
      }
    }
    putWords(l, lowWords, tile, lane);
    if constexpr (H > 0) putWords(h, highWords, tile + lowBytes, lane);
  }
  INLINE void putWords(const u32 *from, int n, u8 *plane, int lane) {
    UNROLL for (int i = 0; i < n / 4; i++)
      reinterpret_cast<uint4 *>(plane)[32 * i + lane] = uint4{from[4 * i], from[4 * i + 1], from[4 * i + 2], from[4 * i + 3]};
  }
};

// Each format defines the scales of a block. fileScales writes those of block b of a row to a tile,
// with s times 2^up and m times 2^down, or divided by a number. reach is that of a block of a file.
// divisorOf is the divisor of a row with that reach: the e of 2^e, or a float.
template <class F> INLINE auto divisorOf(Reach r) { return F::divisor(r, F::top); }
INLINE float numberOf(int e) { return twoTo(e); }
INLINE float numberOf(float divisor) { return divisor; }
template <class F> INLINE void putScales(u8 *tile, const u8 *p, int row, int b, int e) { F::fileScales(tile, p, row, b, (row < 8 ? 24 : 24 - F::lift) - e, -e); }
template <class F> INLINE void putScales(u8 *tile, const u8 *p, int row, int b, float divisor) { F::fileScales(tile, p, row, b, divisor); }

INLINE u16 halfTimes(u16 h, int power) { return floatToHalf(halfToFloat(h) * twoTo(power)); }
INLINE u16 halfAt(const u8 *p) { return *reinterpret_cast<const u16 *>(p); }
INLINE float sizeAt(const u8 *p) { return absOf(halfToFloat(halfAt(p))); }

// numbersOf and partsOf convert bytes from 0 to 255 to halves. Halves from 1024 on are integers,
// and numbersOf subtracts less, too. Halves from 16 to 20 are multiples of 1/64, and partsOf
// returns 64ths.
INLINE u32 numbersOf(u32 v, float less) { return addHalves(v | 0x64006400u, halves(-1024 - less, -1024 - less)); }
INLINE u32 partsOf(u32 v) { return addHalves(v | 0x4c004c00u, halves(-16, -16)); }

// Blocks of 32: a tile has eight of each row.

// Scaled has a scale for 32 weights.
template <class B> struct Scaled : Quantized<B> {
  using Base = Quantized<B>;
  uint4 d[2];
  template <class From> METHOD void loadScales(const u8 *tile, int lane) {
    UNROLL for (int r = 0; r < 2; r++) d[r] = From::at(reinterpret_cast<const uint4 *>(tile + Base::scalesAt) + lane / 4 + 8 * r);
  }
  METHOD void prepare() {}
  METHOD u32 scales(int step) const {
    const u32 a = wordOf(d[0], step / 4), b = wordOf(d[1], step / 4);
    return step & 2 ? highHalves(a, b) : lowHalves(a, b);
  }
  METHOD uint4 operand(int step) const { return Base::operandOf(step, Base::lessOffset(scales(step))); }
  METHOD Line line(int step, int r) const { return {halfToFloat(halfOf(d[r], step / 2)), 0}; }
  INLINE Reach reach(const u8 *p) { return {sizeAt(p + B::scaleAt), 0}; }
  INLINE void fileScales(u8 *tile, const u8 *p, int row, int b, int up, int) {
    reinterpret_cast<u16 *>(tile + Base::scalesAt)[8 * row + b] = halfTimes(halfAt(p + B::scaleAt), up);
  }
};
using Q8_0 = Scaled<file::Q8_0>;
using Q4_0 = Scaled<file::Q4_0>;
using Q5_0 = Scaled<file::Q5_0>;
using IQ4_NL = Scaled<file::IQ4_NL>;

// F8_E4M3_32 has numbers in E4M3 with a float32 scale for 32. The sign, the exponent and the
// mantissa of E4M3, in their places of a half, are the number times 2^-8, also if it is subnormal.
// A row is divided by 2^-7 times its largest scale. So its scales in a tile are 2^15 times their
// ratio to the largest one, and if a row has one scale its operands are exact.
struct F8_E4M3_32 : Scaled<file::F8_E4M3_32> {
  static constexpr int tileBytes = scalesAt + tileRows * blocks * 2;
  METHOD void codes(u32 (&c)[4], int step) const {
    UNROLL for (int k = 0; k < 2; k++) {
      const u32 v = lowCodes[2 * step + k];
      c[2 * k] = (v << 8 & 0x80008000u) | (v << 7 & 0x3f803f80u), c[2 * k + 1] = (v & 0x80008000u) | (v >> 1 & 0x3f803f80u);
    }
  }
  METHOD float codeOf(const u32 (&c)[4], int r, int e) const { return halfToFloat(u16(c[r] >> (16 * e))) * 0x1p24f; }
  METHOD uint4 operand(int step) const {
    u32 c[4];
    codes(c, step);
    const u32 s = scales(step), s0 = lowTwice(s), s1 = highTwice(s);
    return uint4{multiplyHalves(c[0], s0), multiplyHalves(c[1], s1), multiplyHalves(c[2], s0), multiplyHalves(c[3], s1)};
  }
  INLINE u32 fileCode(const u8 *p, int i) { return p[lowAt + i]; }
  INLINE float scaleOf(const u8 *p) { return *reinterpret_cast<const float *>(p + scaleAt); }
  INLINE Reach reach(const u8 *p) { return {absOf(scaleOf(p)) * 0x1p-16f, 0}; }
  // The maximum keeps the divisor from being subnormal.
  INLINE float divisor(Reach r, int top) { return maxOf(r.s, 0x1p-126f) * twoTo(24 - top); }
  INLINE void fileScales(u8 *tile, const u8 *p, int row, int b, float divisor) {
    reinterpret_cast<u16 *>(tile + scalesAt)[8 * row + b] = floatToHalf(divide(scaleOf(p), divisor) * 0x1p8f);
  }
};

// Offsets has a scale, and a minimum that is added, for 32 weights.
template <class B> struct Offsets : Quantized<B> {
  using Base = Quantized<B>;
  uint4 d[2][2];
  template <class From> METHOD void loadScales(const u8 *tile, int lane) {
    UNROLL for (int r = 0; r < 2; r++) {
      UNROLL for (int i = 0; i < 2; i++) d[r][i] = From::at(reinterpret_cast<const uint4 *>(tile + Base::scalesAt) + 2 * (lane / 4 + 8 * r) + i);
    }
  }
  METHOD void prepare() {}
  METHOD u32 both(int step, int r) const {
    const u32 first = wordOf(d[r][0], step / 2 & 3), second = wordOf(d[r][1], step / 2 & 3);
    return step & 8 ? +second : +first;
  }
  METHOD uint4 operand(int step) const {
    const u32 a = both(step, 0), b = both(step, 1);
    return Base::operandOf(step, Pair{lowHalves(a, b), highHalves(a, b)});
  }
  METHOD Line line(int step, int r) const { return {halfToFloat(u16(both(step, r))), halfToFloat(u16(both(step, r) >> 16))}; }
  INLINE Reach reach(const u8 *p) { return {sizeAt(p + B::scaleAt), sizeAt(p + B::minimumAt)}; }
  INLINE void fileScales(u8 *tile, const u8 *p, int row, int b, int up, int down) {
    u16 *to = reinterpret_cast<u16 *>(tile + Base::scalesAt) + 2 * (8 * row + b);
    to[0] = halfTimes(halfAt(p + B::scaleAt), up), to[1] = halfTimes(halfAt(p + B::minimumAt), down);
  }
};
using Q4_1 = Offsets<file::Q4_1>;
using Q5_1 = Offsets<file::Q5_1>;

// The scale of MXFP4 is a power of two, and codes are twice the values. In a tile the byte is the
// exponent of the scale in float16.
struct MXFP4 : Quantized<file::MXFP4> {
  uint2 e[2];
  template <class From> METHOD void loadScales(const u8 *tile, int lane) {
    UNROLL for (int r = 0; r < 2; r++) e[r] = From::at(reinterpret_cast<const uint2 *>(tile + scalesAt) + lane / 4 + 8 * r);
  }
  METHOD void prepare() {}
  METHOD u32 scales(int step) const {
    const u32 a = step & 8 ? +e[0].y : +e[0].x, b = step & 8 ? +e[1].y : +e[1].x;
    return smallOfEach(a, b, step / 2 & 3) << 10;
  }
  METHOD uint4 operand(int step) const { return operandOf(step, lessOffset(scales(step))); }
  METHOD Line line(int step, int r) const { return {halfToFloat(u16(scales(step) >> (16 * r))), 0}; }
  INLINE Reach reach(const u8 *p) { return {twoTo(int(p[scaleAt]) - 128), 0}; }
  INLINE void fileScales(u8 *tile, const u8 *p, int row, int b, int up, int) {
    tile[scalesAt + 8 * row + b] = u8(minOf(30, maxOf(0, int(p[scaleAt]) - 128 + up + 15)));
  }
};

// Blocks of 256: a tile has one of each row.

// Whole has a scale for 256 weights.
template <class B> struct Whole : Quantized<B> {
  using Base = Quantized<B>;
  u16 f[2];
  Pair p;
  template <class From> METHOD void loadScales(const u8 *tile, int lane) {
    UNROLL for (int r = 0; r < 2; r++) f[r] = From::at(reinterpret_cast<const u16 *>(tile + Base::scalesAt) + lane / 4 + 8 * r);
  }
  METHOD void prepare() { p = Base::lessOffset(u32(f[0]) | u32(f[1]) << 16); }
  METHOD uint4 operand(int step) const { return Base::operandOf(step, p); }
  METHOD Line line(int, int r) const { return {halfToFloat(f[r]), 0}; }
  INLINE Reach reach(const u8 *p) { return {sizeAt(p + B::scaleAt), 0}; }
  INLINE void fileScales(u8 *tile, const u8 *p, int row, int, int up, int) {
    reinterpret_cast<u16 *>(tile + Base::scalesAt)[row] = halfTimes(halfAt(p + B::scaleAt), up);
  }
};
using TQ2_0 = Whole<file::TQ2_0>;

// Q4_K and Q5_K have 6 bits of scale and of minimum for each 32 weights. A tile has four times
// these, as bytes: for each pair of rows and block, scale and minimum of row g, then of row g+8.
// The factors of the pair follow: a fourth of the file's factor of scales, and 256 times that of
// minima, negated.
template <class B> struct SixBits : Quantized<B> {
  using Base = Quantized<B>;
  static constexpr int factorsAt = Base::scalesAt + 8 * Base::blocks * 4, tileBytes = factorsAt + 8 * 8;
  static constexpr int top = 13; // 1024 times a factor is finite, too
  uint4 w[2];
  uint2 f;
  u32 d, low;
  template <class From> METHOD void loadScales(const u8 *tile, int lane) {
    UNROLL for (int i = 0; i < 2; i++) w[i] = From::at(reinterpret_cast<const uint4 *>(tile + Base::scalesAt) + lane / 4 * 2 + i);
    f = From::at(reinterpret_cast<const uint2 *>(tile + factorsAt) + lane / 4);
  }
  METHOD void prepare() { d = multiplyHalves(f.x, halves(-1024, -1024)), low = multiplyHalves(f.y, halves(-1, -1)); }
  METHOD u32 block(int step) const {
    const u32 first = wordOf(w[0], step / 2 & 3), second = wordOf(w[1], step / 2 & 3);
    return step & 8 ? +second : +first;
  }
  // With the upper byte 0x64 a byte b is the half 1024 + b, and with 0x3c the half 1 + b/1024.
  METHOD Pair pair(int step) const {
    const u32 v = block(step);
    return Pair{fmaHalves(bytesOf(v, 0x64646464, 0x4240), f.x, d), fmaHalves(bytesOf(v, 0x3c3c3c3c, 0x4341), f.y, low)};
  }
  METHOD uint4 operand(int step) const { return Base::operandOf(step, pair(step)); }
  METHOD Line line(int step, int r) const {
    const u32 v = block(step) >> (16 * r);
    return {halfToFloat(u16(f.x >> (16 * r))) * float(v & 0xff), halfToFloat(u16(f.y >> (16 * r))) * (float(v >> 8 & 0xff) * 0x1p-10f)};
  }
  INLINE Reach reach(const u8 *p) { return {64 * sizeAt(p + B::scaleAt), 64 * sizeAt(p + B::minimumAt)}; }
  INLINE void fileScales(u8 *tile, const u8 *p, int row, int, int up, int down) {
    static_assert(B::scaleAt == 0 && B::minimumAt == 2);
    const int g = row % 8, r = row / 8;
    const u8 *q = p + 4;
    for (int b = 0; b < 8; b++) {
      const int scale = b < 4 ? q[b] & 63 : (q[b + 4] & 15) | q[b - 4] >> 6 << 4, minimum = b < 4 ? q[b + 4] & 63 : q[b + 4] >> 4 | q[b] >> 6 << 4;
      u8 *to = tile + Base::scalesAt + 4 * (8 * g + b) + 2 * r;
      to[0] = u8(4 * scale), to[1] = u8(4 * minimum);
    }
    u16 *factors = reinterpret_cast<u16 *>(tile + factorsAt + 8 * g);
    factors[r] = halfTimes(halfAt(p), up - 2), factors[2 + r] = halfTimes(halfAt(p + 2), down + 8) ^ 0x8000;
  }
};
using Q4_K = SixBits<file::Q4_K>;
using Q5_K = SixBits<file::Q5_K>;

// SignedScales is common to formats with a factor for 256 weights and a number for each 16 or 32:
// the number less LESS is the scale in units of the factor.
template <class B, int LESS> struct SignedScales : Quantized<B> {
  using Base = Quantized<B>;
  u16 f[2];
  METHOD u32 factors() const { return u32(f[0]) | u32(f[1]) << 16; }
  METHOD Pair pairOf(u32 v) const { return Base::lessOffset(multiplyHalves(numbersOf(v, LESS), factors())); }
  METHOD Line lineOf(u32 v, int r) const { return {halfToFloat(f[r]) * float(int(v) - LESS), 0}; }
  INLINE Reach reach(const u8 *p) { return {LESS * sizeAt(p + B::scaleAt), 0}; }
};

// Q6_K has 8 bits of scale for each 16 weights. In a tile scales come first, plus 128: for each
// pair of rows and block, that of row g and that of row g+8. The factors of the pairs follow.
struct Q6_K : Quantized<file::Q6_K> {
  static constexpr int factorsAt = scalesAt + 8 * 32;
  uint4 s[2];
  u32 f;
  template <class From> METHOD void loadScales(const u8 *tile, int lane) {
    UNROLL for (int i = 0; i < 2; i++) s[i] = From::at(reinterpret_cast<const uint4 *>(tile + scalesAt) + lane / 4 * 2 + i);
    f = From::at(reinterpret_cast<const u32 *>(tile + factorsAt) + lane / 4);
  }
  METHOD void prepare() {}
  METHOD u32 two(int step) const { // blocks of 16: an even one and the next
    const u32 first = wordOf(s[0], step / 2 & 3), second = wordOf(s[1], step / 2 & 3);
    return step & 8 ? +second : +first;
  }
  METHOD uint4 operand(int step) const {
    const u32 v = addHalves(bytesOf(two(step), 0x64646464, step & 1 ? 0x4342 : 0x4140), halves(-1024 - 128, -1024 - 128));
    return operandOf(step, lessOffset(multiplyHalves(v, f)));
  }
  METHOD Line line(int step, int r) const {
    return {halfToFloat(u16(f >> (16 * r))) * float(int(two(step) >> (16 * (step & 1) + 8 * r) & 0xff) - 128), 0};
  }
  INLINE Reach reach(const u8 *p) { return {128 * sizeAt(p + scaleAt), 0}; }
  INLINE void fileScales(u8 *tile, const u8 *p, int row, int, int up, int) {
    const int g = row % 8, r = row / 8;
    for (int i = 0; i < 16; i++) tile[scalesAt + 32 * g + 2 * i + r] = p[codeBytes + i] ^ 0x80;
    reinterpret_cast<u16 *>(tile + factorsAt)[2 * g + r] = halfTimes(halfAt(p + scaleAt), up);
  }
};

// Q3_K has 6 bits of scale for each 16 weights, from which 32 is subtracted. A tile has the first 8
// bytes of each row's scales, then the last 4 of all rows, then the factors.
struct Q3_K : SignedScales<file::Q3_K, 32> {
  uint2 n[2];
  u32 u[2];
  u32 s[2][4];
  template <class From> METHOD void loadScales(const u8 *tile, int lane) {
    UNROLL for (int r = 0; r < 2; r++) {
      n[r] = From::at(reinterpret_cast<const uint2 *>(tile + scalesAt) + lane / 4 + 8 * r);
      u[r] = From::at(reinterpret_cast<const u32 *>(tile + scalesAt + 128) + lane / 4 + 8 * r);
      f[r] = From::at(reinterpret_cast<const u16 *>(tile + scalesAt + 192) + lane / 4 + 8 * r);
    }
  }
  METHOD void prepare() {
    UNROLL for (int r = 0; r < 2; r++) {
      UNROLL for (int i = 0; i < 4; i++) {
        const u32 w = i & 1 ? n[r].y : n[r].x;
        s[r][i] = (w >> (i / 2 * 4) & 0x0f0f0f0fu) | (u[r] >> (2 * i) & 0x03030303u) << 4;
      }
    }
  }
  METHOD uint4 operand(int step) const { return operandOf(step, pairOf(smallOfEach(s[0][step / 4], s[1][step / 4], step & 3))); }
  METHOD Line line(int step, int r) const { return lineOf(s[r][step / 4] >> (8 * (step & 3)) & 0xff, r); }
  INLINE void fileScales(u8 *tile, const u8 *p, int row, int, int up, int) {
    for (int i = 0; i < 8; i++) tile[scalesAt + 8 * row + i] = p[codeBytes + i];
    UNROLL for (int i = 0; i < 4; i++) tile[scalesAt + 128 + 4 * row + i] = p[codeBytes + 8 + i];
    reinterpret_cast<u16 *>(tile + scalesAt + 192)[row] = halfTimes(halfAt(p + scaleAt), up);
  }
};

// IQ4_XS has 6 bits of scale for each 32 weights, from which 32 is subtracted.
struct IQ4_XS : SignedScales<file::IQ4_XS, 32> {
  uint2 h[2];
  template <class From> METHOD void loadScales(const u8 *tile, int lane) {
    UNROLL for (int r = 0; r < 2; r++) h[r] = From::at(reinterpret_cast<const uint2 *>(tile + scalesAt) + lane / 4 + 8 * r);
  }
  METHOD void prepare() {
    UNROLL for (int r = 0; r < 2; r++) f[r] = u16(h[r].x);
  }
  METHOD u32 scale(int step, int r) const {
    const int b = step / 2;
    return (h[r].y >> (4 * b) & 15) | (h[r].x >> (16 + 2 * b) & 3) << 4;
  }
  METHOD uint4 operand(int step) const { return operandOf(step, pairOf(scale(step, 0) | scale(step, 1) << 16)); }
  METHOD Line line(int step, int r) const { return lineOf(scale(step, r), r); }
  INLINE void fileScales(u8 *tile, const u8 *p, int row, int, int up, int) {
    u32 *to = reinterpret_cast<u32 *>(tile + scalesAt) + 2 * row;
    const u32 first = *reinterpret_cast<const u32 *>(p);
    to[0] = (first & 0xffff0000u) | halfTimes(u16(first), up), to[1] = reinterpret_cast<const u32 *>(p)[1];
  }
};

// Q2_K has 4 bits of scale and of minimum for each 16 weights. In a tile scales come first, then
// the factors of all rows.
struct Q2_K : Quantized<file::Q2_K> {
  uint4 s[2];
  u32 f[2];
  u32 d, low;
  template <class From> METHOD void loadScales(const u8 *tile, int lane) {
    UNROLL for (int r = 0; r < 2; r++) {
      s[r] = From::at(reinterpret_cast<const uint4 *>(tile + scalesAt) + lane / 4 + 8 * r);
      f[r] = From::at(reinterpret_cast<const u32 *>(tile + scalesAt + 256) + lane / 4 + 8 * r);
    }
  }
  METHOD void prepare() { d = lowHalves(f[0], f[1]), low = highHalves(f[0], f[1]); }
  METHOD uint4 operand(int step) const {
    const u32 v = byteOfEach(wordOf(s[0], step / 4), wordOf(s[1], step / 4), step & 3);
    return operandOf(step, Pair{multiplyHalves(numbersOf(v & 0x000f000fu, 0), d), multiplyHalves(partsOf(v >> 4 & 0x000f000fu), low)});
  }
  METHOD Line line(int step, int r) const {
    const u32 v = wordOf(s[r], step / 4) >> (8 * (step & 3));
    return {halfToFloat(u16(f[r])) * float(v & 15), halfToFloat(u16(f[r] >> 16)) * (float(v >> 4 & 15) * 0x1p-6f)};
  }
  INLINE Reach reach(const u8 *p) { return {16 * sizeAt(p + scaleAt), 64 * sizeAt(p + minimumAt)}; }
  INLINE void fileScales(u8 *tile, const u8 *p, int row, int, int up, int down) {
    for (int i = 0; i < 16; i++) tile[scalesAt + 16 * row + i] = p[i];
    reinterpret_cast<u32 *>(tile + scalesAt + 256)[row] =
        u32(halfTimes(halfAt(p + scaleAt), up)) | u32(halfTimes(halfAt(p + minimumAt), down + 6) ^ 0x8000) << 16;
  }
};

// Halves are 16-bit numbers, which are operands as stored.
struct Halves {
  static constexpr int tileK = 128, blocks = 4, tileBytes = tileRows * tileK * 2;
  static constexpr int fileLen = 1, fileBytes = 2;
  static constexpr bool scaled = false;
  uint4 w[8]; // by step
  template <class From> METHOD void loadCodes(const u8 *tile, int lane) {
    UNROLL for (int q = 0; q < 2; q++) loadQuarter<From>(tile, lane, q);
  }
  template <class From> METHOD void loadQuarter(const u8 *tile, int lane, int q) {
    UNROLL for (int i = 4 * q; i < 4 * q + 4; i++) w[i] = From::at(reinterpret_cast<const uint4 *>(tile) + 32 * i + lane);
  }
  template <class From> METHOD void loadScales(const u8 *, int) {}
  METHOD void prepare() {}
  METHOD uint4 operand(int step) const { return w[step]; }
};
struct F16 : Halves {
  INLINE float value(u16 v) { return halfToFloat(v); }
};
struct BF16 : Halves {
  INLINE float value(u16 v) { return bfloatToFloat(v); }
};

struct F32 {
  static constexpr int tileK = 32, blocks = 1, tileBytes = tileRows * tileK * 4;
  static constexpr int fileLen = 1, fileBytes = 4;
  static constexpr bool scaled = false;
  float4 w[2][2]; // by step and element of a pair; the elements are an operand's words
  template <class From> METHOD void loadScales(const u8 *, int) {}
  template <class From> METHOD void loadCodes(const u8 *tile, int lane) {
    UNROLL for (int i = 0; i < 4; i++) {
      const uint4 v = From::at(reinterpret_cast<const uint4 *>(tile) + 32 * i + lane);
      w[i / 2][i % 2] = float4{asFloat(v.x), asFloat(v.y), asFloat(v.z), asFloat(v.w)};
    }
  }
  METHOD void prepare() {}
};

// loadTile loads a lane's part of a tile.
template <class F> INLINE void loadTile(F &w, const u8 *tile, int lane) {
  w.template loadCodes<FromGlobal>(tile, lane);
  w.template loadScales<FromGlobal>(tile, lane);
}
