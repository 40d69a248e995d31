// The block formats of GGUF as tiles: how a lane takes its part, what the codes and scales
// of a block are, and how tiles are made of the rows of a file. What a block of a file is
// says formats.h, which is made of package tensor's table.
#pragma once
#include "formats.h"
#include "tile.cuh"

// wordOf and halfOf are number i of what a vector holds.
INLINE u32 wordOf(uint4 v, int i) {
  const u32 low = i & 1 ? +v.y : +v.x, high = i & 1 ? +v.w : +v.z; // choosing values, not places
  return i & 2 ? +high : +low;
}
INLINE u16 halfOf(uint4 v, int i) { return u16(wordOf(v, i >> 1) >> (16 * (i & 1))); }

// Quantized is what the formats of blocks B share. The low and the high bits of codes have
// planes of their own; then come the scales, all that a row of the file has beside codes.
template <class B> struct Quantized : B {
  static constexpr int L = B::low, H = B::high;
  static constexpr int tileK = 256, blocks = 8;
  static constexpr bool halves = B::group == 16;
  static constexpr int lowWords = 4 * L, highWords = 4 * H;
  static constexpr int lowBytes = lowWords * 128, highBytes = highWords * 128, scalesAt = lowBytes + highBytes;
  static constexpr int codeBytes = B::fileLen * (L + H) / 8; // of a block of the file
  static constexpr int scaleBytes = tileK / B::fileLen * (B::fileBytes - codeBytes);
  static constexpr int tileBytes = scalesAt + tileRows * scaleBytes;

  u32 lowCodes[lowWords];
  u32 highCodes[highWords ? highWords : 1];

  INLINE void loadWords(u32 *to, int n, const u8 *plane, int lane) {
    UNROLL for (int i = 0; i < n / 4; i++) {
      const uint4 v = loadOnce(reinterpret_cast<const uint4 *>(plane) + 32 * i + lane);
      to[4 * i] = v.x, to[4 * i + 1] = v.y, to[4 * i + 2] = v.z, to[4 * i + 3] = v.w;
    }
  }

  METHOD void loadCodes(const u8 *tile, int lane) {
    loadWords(lowCodes, lowWords, tile, lane);
    if constexpr (H > 0) loadWords(highCodes, highWords, tile + lowBytes, lane);
  }

  // code is word r of block b: four codes.
  METHOD u32 code(int b, int r) const {
    u32 v;
    if constexpr (L == 8) v = lowCodes[4 * b + r];
    if constexpr (L == 4) v = lowCodes[b / 2 * 4 + r] >> (4 * (b & 1)) & 0x0f0f0f0fu;
    if constexpr (L == 2) v = lowCodes[b / 4 * 4 + r] >> (2 * (b & 3)) & 0x03030303u;
    if constexpr (H == 2) v |= (highCodes[b / 4 * 4 + r] >> (2 * (b & 3)) & 0x03030303u) << L;
    if constexpr (H == 1) v |= (highCodes[r] >> b & 0x01010101u) << L;
    return v;
  }

  // values is what word r of block b stands for, but for the offset.
  METHOD u32 values(int b, int r) const {
    if constexpr (B::table) return lookUp(code(b, r), B::table0, B::table1, B::table2, B::table3);
    else return code(b, r);
  }

  // fileCode is the code of element i of a block of the file.
  INLINE u32 fileCode(const u8 *p, int i) {
    u32 c = bitsOf<B::low, B::lowAt, B::lowRun>(p, i);
    if constexpr (H > 0) c |= bitsOf<B::high, B::highAt, B::highRun>(p, i) << L;
    return c;
  }
  template <int BITS, int AT, int RUN> INLINE u32 bitsOf(const u8 *p, u32 i) {
    constexpr u32 codes = RUN * 8 / BITS;
    return u32(p[AT + i / codes * RUN + i % RUN]) >> (i % codes / RUN * BITS) & ((1 << BITS) - 1);
  }

  // put writes the codes of a lane, code(b, r, j) being number j of word r of block b.
  template <class Code> INLINE void put(u8 *tile, int lane, const Code &codeOf) {
    u32 l[lowWords], h[highWords ? highWords : 1];
    UNROLL for (int i = 0; i < lowWords; i++) l[i] = 0;
    if constexpr (H > 0) {
      UNROLL for (int i = 0; i < highWords; i++) h[i] = 0;
    }
    UNROLL for (int b = 0; b < blocks; b++) {
      UNROLL for (int r = 0; r < 4; r++) {
        UNROLL for (int j = 0; j < 4; j++) {
          const u32 c = codeOf(b, r, j);
          if constexpr (L == 8) l[4 * b + r] |= (c & 0xff) << (8 * j);
          if constexpr (L == 4) l[b / 2 * 4 + r] |= (c & 15) << (8 * j + 4 * (b & 1));
          if constexpr (L == 2) l[b / 4 * 4 + r] |= (c & 3) << (8 * j + 2 * (b & 3));
          if constexpr (H == 2) h[b / 4 * 4 + r] |= (c >> L & 3) << (8 * j + 2 * (b & 3));
          if constexpr (H == 1) h[r] |= (c >> L & 1) << (8 * j + b);
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

// Each format says what the scales of a block are; fileScales copies those of a row's block
// b into a tile.

// Blocks of 32: a tile has eight of each row.

// A scale for 32.
template <class B> struct Scaled : Quantized<B> {
  using Base = Quantized<B>;
  uint4 d[2];
  METHOD void load(const u8 *tile, int lane) {
    Base::loadCodes(tile, lane);
    UNROLL for (int r = 0; r < 2; r++) d[r] = loadOnce(reinterpret_cast<const uint4 *>(tile + Base::scalesAt) + lane / 4 + 8 * r);
  }
  METHOD void prepare() {}
  METHOD Scale scale(int b, int r) const { return {halfToFloat(halfOf(d[r], b)), 0}; }
  INLINE void fileScales(u8 *tile, const u8 *p, int row, int b) {
    reinterpret_cast<u16 *>(tile + Base::scalesAt)[8 * row + b] = *reinterpret_cast<const u16 *>(p + B::scaleAt);
  }
};
using Q8_0 = Scaled<file::Q8_0>;
using Q4_0 = Scaled<file::Q4_0>;
using Q5_0 = Scaled<file::Q5_0>;
using IQ4_NL = Scaled<file::IQ4_NL>;

// A scale and a minimum, which is added, for 32.
template <class B> struct Offsets : Quantized<B> {
  using Base = Quantized<B>;
  uint4 d[2][2];
  METHOD void load(const u8 *tile, int lane) {
    Base::loadCodes(tile, lane);
    UNROLL for (int r = 0; r < 2; r++) {
      UNROLL for (int i = 0; i < 2; i++) d[r][i] = loadOnce(reinterpret_cast<const uint4 *>(tile + Base::scalesAt) + 2 * (lane / 4 + 8 * r) + i);
    }
  }
  METHOD void prepare() {}
  METHOD Scale scale(int b, int r) const {
    const u32 first = wordOf(d[r][0], b & 3), second = wordOf(d[r][1], b & 3), w = b & 4 ? +second : +first;
    return {halfToFloat(u16(w)), -halfToFloat(u16(w >> 16))};
  }
  INLINE void fileScales(u8 *tile, const u8 *p, int row, int b) {
    static_assert(B::minimumAt == B::scaleAt + 2);
    reinterpret_cast<u32 *>(tile + Base::scalesAt)[8 * row + b] = *reinterpret_cast<const u32 *>(p + B::scaleAt);
  }
};
using Q4_1 = Offsets<file::Q4_1>;
using Q5_1 = Offsets<file::Q5_1>;

// The scale is a power of two; codes are twice the values.
struct MXFP4 : Quantized<file::MXFP4> {
  uint2 e[2];
  METHOD void load(const u8 *tile, int lane) {
    loadCodes(tile, lane);
    UNROLL for (int r = 0; r < 2; r++) e[r] = loadOnce(reinterpret_cast<const uint2 *>(tile + scalesAt) + lane / 4 + 8 * r);
  }
  METHOD void prepare() {}
  METHOD Scale scale(int b, int r) const {
    const u32 v = (b & 4 ? +e[r].y : +e[r].x) >> (8 * (b & 3)) & 0xff;
    return {asFloat(v == 255 ? 0x7fc00000u : v > 1 ? (v - 1) << 23 : 0x00200000u << v), 0}; // 2^(v-128)
  }
  INLINE void fileScales(u8 *tile, const u8 *p, int row, int b) { tile[scalesAt + 8 * row + b] = p[scaleAt]; }
};

// Blocks of 256: a tile has one of each row.

// A scale for all 256.
template <class B> struct Whole : Quantized<B> {
  using Base = Quantized<B>;
  u16 f[2];
  float d[2];
  METHOD void load(const u8 *tile, int lane) {
    Base::loadCodes(tile, lane);
    UNROLL for (int r = 0; r < 2; r++) f[r] = loadOnce(reinterpret_cast<const u16 *>(tile + Base::scalesAt) + lane / 4 + 8 * r);
  }
  METHOD void prepare() {
    UNROLL for (int r = 0; r < 2; r++) d[r] = halfToFloat(f[r]);
  }
  METHOD Scale scale(int, int r) const { return {d[r], 0}; }
  INLINE void fileScales(u8 *tile, const u8 *p, int row, int) {
    reinterpret_cast<u16 *>(tile + Base::scalesAt)[row] = *reinterpret_cast<const u16 *>(p + B::scaleAt);
  }
};
using TQ2_0 = Whole<file::TQ2_0>;

// Q4_K and Q5_K: 6 bits of scale and of minimum for each 32.
template <class B> struct SixBits : Quantized<B> {
  using Base = Quantized<B>;
  uint4 head[2];
  float d[2], low[2];
  u32 s[2][2], m[2][2];
  METHOD void load(const u8 *tile, int lane) {
    Base::loadCodes(tile, lane);
    UNROLL for (int r = 0; r < 2; r++) head[r] = loadOnce(reinterpret_cast<const uint4 *>(tile + Base::scalesAt) + lane / 4 + 8 * r);
  }
  METHOD void prepare() {
    UNROLL for (int r = 0; r < 2; r++) {
      const uint4 h = head[r];
      d[r] = halfToFloat(u16(h.x)), low[r] = halfToFloat(u16(h.x >> 16));
      s[r][0] = h.y & 0x3f3f3f3fu, m[r][0] = h.z & 0x3f3f3f3fu;
      s[r][1] = (h.w & 0x0f0f0f0fu) | (h.y >> 2 & 0x30303030u);
      m[r][1] = (h.w >> 4 & 0x0f0f0f0fu) | (h.z >> 2 & 0x30303030u);
    }
  }
  METHOD Scale scale(int b, int r) const {
    const int shift = 8 * (b & 3);
    return {d[r] * float((b & 4 ? +s[r][1] : +s[r][0]) >> shift & 0xff), low[r] * float((b & 4 ? +m[r][1] : +m[r][0]) >> shift & 0xff)};
  }
  INLINE void fileScales(u8 *tile, const u8 *p, int row, int) {
    UNROLL for (int i = 0; i < 4; i++) reinterpret_cast<u32 *>(tile + Base::scalesAt)[4 * row + i] = reinterpret_cast<const u32 *>(p)[i];
  }
};
using Q4_K = SixBits<file::Q4_K>;
using Q5_K = SixBits<file::Q5_K>;

// 8 bits of scale for each 16. Scales first, and then the factors of all rows.
struct Q6_K : Quantized<file::Q6_K> {
  uint4 s[2];
  u16 f[2];
  float d[2];
  METHOD void load(const u8 *tile, int lane) {
    loadCodes(tile, lane);
    UNROLL for (int r = 0; r < 2; r++) {
      s[r] = loadOnce(reinterpret_cast<const uint4 *>(tile + scalesAt) + lane / 4 + 8 * r);
      f[r] = loadOnce(reinterpret_cast<const u16 *>(tile + scalesAt + 256) + lane / 4 + 8 * r);
    }
  }
  METHOD void prepare() {
    UNROLL for (int r = 0; r < 2; r++) d[r] = halfToFloat(f[r]);
  }
  METHOD HalfScales scale(int b, int r) const {
    const u32 pair = halfOf(s[r], b);
    return {d[r], 0, s8(pair), s8(pair >> 8), 0, 0};
  }
  INLINE void fileScales(u8 *tile, const u8 *p, int row, int) {
    for (int i = 0; i < 16; i++) tile[scalesAt + 16 * row + i] = p[codeBytes + i];
    reinterpret_cast<u16 *>(tile + scalesAt + 256)[row] = *reinterpret_cast<const u16 *>(p + scaleAt);
  }
};

// 4 bits of scale and of minimum for each 16. Scales first, then the factors of all rows.
struct Q2_K : Quantized<file::Q2_K> {
  uint4 s[2];
  u32 f[2];
  float d[2], low[2];
  METHOD void load(const u8 *tile, int lane) {
    loadCodes(tile, lane);
    UNROLL for (int r = 0; r < 2; r++) {
      s[r] = loadOnce(reinterpret_cast<const uint4 *>(tile + scalesAt) + lane / 4 + 8 * r);
      f[r] = loadOnce(reinterpret_cast<const u32 *>(tile + scalesAt + 256) + lane / 4 + 8 * r);
    }
  }
  METHOD void prepare() {
    UNROLL for (int r = 0; r < 2; r++) d[r] = halfToFloat(u16(f[r])), low[r] = halfToFloat(u16(f[r] >> 16));
  }
  METHOD HalfScales scale(int b, int r) const {
    const u32 pair = halfOf(s[r], b);
    return {d[r], low[r], int(pair & 15), int(pair >> 8 & 15), int(pair >> 4 & 15), int(pair >> 12 & 15)};
  }
  INLINE void fileScales(u8 *tile, const u8 *p, int row, int) {
    for (int i = 0; i < 16; i++) tile[scalesAt + 16 * row + i] = p[i];
    reinterpret_cast<u32 *>(tile + scalesAt + 256)[row] = *reinterpret_cast<const u32 *>(p + scaleAt);
  }
};

// 6 bits of scale for each 16, of which 32 is subtracted. The first 8 bytes of each row's
// scales, then the last 4 of all rows, then the factors.
struct Q3_K : Quantized<file::Q3_K> {
  uint2 n[2];
  u32 u[2];
  u16 f[2];
  float d[2];
  u32 s[2][4];
  METHOD void load(const u8 *tile, int lane) {
    loadCodes(tile, lane);
    UNROLL for (int r = 0; r < 2; r++) {
      n[r] = loadOnce(reinterpret_cast<const uint2 *>(tile + scalesAt) + lane / 4 + 8 * r);
      u[r] = loadOnce(reinterpret_cast<const u32 *>(tile + scalesAt + 128) + lane / 4 + 8 * r);
      f[r] = loadOnce(reinterpret_cast<const u16 *>(tile + scalesAt + 192) + lane / 4 + 8 * r);
    }
  }
  METHOD void prepare() {
    UNROLL for (int r = 0; r < 2; r++) {
      d[r] = halfToFloat(f[r]);
      UNROLL for (int i = 0; i < 4; i++) {
        const u32 w = i & 1 ? n[r].y : n[r].x;
        s[r][i] = (w >> (i / 2 * 4) & 0x0f0f0f0fu) | (u[r] >> (2 * i) & 0x03030303u) << 4;
      }
    }
  }
  METHOD HalfScales scale(int b, int r) const {
    const u32 pair = halfOf(uint4{s[r][0], s[r][1], s[r][2], s[r][3]}, b);
    return {d[r], 0, int(pair & 63) - 32, int(pair >> 8 & 63) - 32, 0, 0};
  }
  INLINE void fileScales(u8 *tile, const u8 *p, int row, int) {
    for (int i = 0; i < 8; i++) tile[scalesAt + 8 * row + i] = p[codeBytes + i];
    UNROLL for (int i = 0; i < 4; i++) tile[scalesAt + 128 + 4 * row + i] = p[codeBytes + 8 + i];
    reinterpret_cast<u16 *>(tile + scalesAt + 192)[row] = *reinterpret_cast<const u16 *>(p + scaleAt);
  }
};

// 6 bits of scale for each 32, of which 32 is subtracted.
struct IQ4_XS : Quantized<file::IQ4_XS> {
  uint2 h[2];
  float d[2];
  METHOD void load(const u8 *tile, int lane) {
    loadCodes(tile, lane);
    UNROLL for (int r = 0; r < 2; r++) h[r] = loadOnce(reinterpret_cast<const uint2 *>(tile + scalesAt) + lane / 4 + 8 * r);
  }
  METHOD void prepare() {
    UNROLL for (int r = 0; r < 2; r++) d[r] = halfToFloat(u16(h[r].x));
  }
  METHOD Scale scale(int b, int r) const {
    const int s = int((h[r].y >> (4 * b) & 15) | (h[r].x >> (16 + 2 * b) & 3) << 4) - 32;
    return {d[r] * float(s), 0};
  }
  INLINE void fileScales(u8 *tile, const u8 *p, int row, int) {
    UNROLL for (int i = 0; i < 2; i++) reinterpret_cast<u32 *>(tile + scalesAt)[2 * row + i] = reinterpret_cast<const u32 *>(p)[i];
  }
};

// Numbers of 16 bits: two words of codes are four words here, two for each half of a
// block. They have no scales.
struct Halves {
  static constexpr int tileK = 128, blocks = 4, tileBytes = tileRows * tileK * 2;
  static constexpr int fileLen = 1, fileBytes = 2;
  uint4 w[8]; // two for each block
  METHOD void load(const u8 *tile, int lane) {
    UNROLL for (int i = 0; i < 8; i++) w[i] = loadOnce(reinterpret_cast<const uint4 *>(tile) + 32 * i + lane);
  }
  METHOD void prepare() {}
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
  float4 w[4]; // word r of a block of codes is w[r] here
  METHOD void load(const u8 *tile, int lane) {
    UNROLL for (int r = 0; r < 4; r++) {
      const uint4 v = loadOnce(reinterpret_cast<const uint4 *>(tile) + 32 * r + lane);
      w[r] = float4{asFloat(v.x), asFloat(v.y), asFloat(v.z), asFloat(v.w)};
    }
  }
  METHOD void prepare() {}
};
