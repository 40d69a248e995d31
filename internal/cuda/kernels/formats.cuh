// The block formats of GGUF as tiles: how a lane takes its part, what the codes and
// scales of a block are, and how tiles are made of the rows of a file. The formats are
// those of package tensor.
#pragma once
#include "tile.cuh"

// Quantized is what the formats share. L and H are the bits of a code in the low and in
// the high planes, S the bytes of scales of a row in a tile.
template <int L, int H, int S> struct Quantized {
  static constexpr int tileK = 256, blocks = 8;
  static constexpr int lowWords = 4 * L, highWords = 4 * H;
  static constexpr int lowBytes = lowWords * 128, highBytes = highWords * 128;
  static constexpr int scaleBytes = S, scalesAt = lowBytes + highBytes;
  static constexpr int tileBytes = scalesAt + tileRows * S;

  u32 low[lowWords];
  u32 high[highWords ? highWords : 1];

  INLINE void loadWords(u32 *to, int n, const u8 *plane, int lane) {
    UNROLL for (int i = 0; i < n / 4; i++) {
      const uint4 v = loadOnce(reinterpret_cast<const uint4 *>(plane) + 32 * i + lane);
      to[4 * i] = v.x, to[4 * i + 1] = v.y, to[4 * i + 2] = v.z, to[4 * i + 3] = v.w;
    }
  }

  METHOD void loadCodes(const u8 *tile, int lane) {
    loadWords(low, lowWords, tile, lane);
    if constexpr (H > 0) loadWords(high, highWords, tile + lowBytes, lane);
  }

  // code is word r of block b: four codes.
  METHOD u32 code(int b, int r) const {
    u32 v;
    if constexpr (L == 8) v = low[4 * b + r];
    if constexpr (L == 4) v = low[b / 2 * 4 + r] >> (4 * (b & 1)) & 0x0f0f0f0fu;
    if constexpr (L == 2) v = low[b / 4 * 4 + r] >> (2 * (b & 3)) & 0x03030303u;
    if constexpr (H == 2) v |= (high[b / 4 * 4 + r] >> (2 * (b & 3)) & 0x03030303u) << L;
    if constexpr (H == 1) v |= (high[r] >> b & 0x01010101u) << L;
    return v;
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

// wordOf and halfOf are number i of what a vector holds.
INLINE u32 wordOf(uint4 v, int i) {
  const u32 low = i & 1 ? +v.y : +v.x, high = i & 1 ? +v.w : +v.z; // choosing values, not places
  return i & 2 ? +high : +low;
}
INLINE u16 halfOf(uint4 v, int i) { return u16(wordOf(v, i >> 1) >> (16 * (i & 1))); }

// The bits of element i of blocks whose nibbles are split in halves of 32.
INLINE u32 nibble32(const u8 *q, int i) { return q[i & 15] >> (i >> 4 << 2) & 15; }
INLINE u32 bit(const u8 *p, int i) { return p[i >> 3] >> (i & 7) & 1; }

// Each format says how a block of the file is read: fileCode is the code of element i,
// fileScales copies the scales of a row's block b into a tile.

// Formats with a block of 32: a tile has eight of each row.

struct Q8_0 : Quantized<8, 0, 16> {
  static constexpr int fileLen = 32, fileBytes = 34, offset = 0;
  static constexpr bool halves = false, minimum = false;
  uint4 d[2];
  METHOD void load(const u8 *tile, int lane) {
    loadCodes(tile, lane);
    UNROLL for (int r = 0; r < 2; r++) d[r] = loadOnce(reinterpret_cast<const uint4 *>(tile + scalesAt) + lane / 4 + 8 * r);
  }
  METHOD void prepare() {}
  METHOD u32 values(int b, int r) const { return code(b, r); }
  METHOD Scale scale(int b, int r) const { return {halfToFloat(halfOf(d[r], b)), 0}; }
  INLINE u32 fileCode(const u8 *p, int i) { return p[2 + i]; }
  INLINE void fileScales(u8 *tile, const u8 *p, int row, int b) { reinterpret_cast<u16 *>(tile + scalesAt)[8 * row + b] = *reinterpret_cast<const u16 *>(p); }
};

// Codes of 4 or 5 bits with a scale for 32.
template <int H, int HEAD, int OFFSET> struct Nibbles : Quantized<4, H, 16> {
  using Base = Quantized<4, H, 16>;
  static constexpr int fileLen = 32, fileBytes = HEAD + 16, offset = OFFSET;
  static constexpr bool halves = false, minimum = false;
  uint4 d[2];
  METHOD void load(const u8 *tile, int lane) {
    Base::loadCodes(tile, lane);
    UNROLL for (int r = 0; r < 2; r++) d[r] = loadOnce(reinterpret_cast<const uint4 *>(tile + Base::scalesAt) + lane / 4 + 8 * r);
  }
  METHOD void prepare() {}
  METHOD u32 values(int b, int r) const { return Base::code(b, r); }
  METHOD Scale scale(int b, int r) const { return {halfToFloat(halfOf(d[r], b)), 0}; }
  INLINE u32 fileCode(const u8 *p, int i) {
    u32 c = nibble32(p + HEAD, i);
    if constexpr (H == 1) c |= bit(p + HEAD - 4, i) << 4;
    return c;
  }
  INLINE void fileScales(u8 *tile, const u8 *p, int row, int b) { reinterpret_cast<u16 *>(tile + Base::scalesAt)[8 * row + b] = *reinterpret_cast<const u16 *>(p); }
};
using Q4_0 = Nibbles<0, 2, 8>;
using Q5_0 = Nibbles<1, 6, 16>;

struct IQ4_NL : Nibbles<0, 2, 0> {
  METHOD u32 values(int b, int r) const {
    return lookUp(code(b, r), 0xbfad9881u, 0xf6eaddcfu, 0x26190d01u, 0x71594535u);
  }
};

// Codes of 4 or 5 bits with a scale and a minimum for 32.
template <int H, int HEAD> struct Offsets : Quantized<4, H, 32> {
  using Base = Quantized<4, H, 32>;
  static constexpr int fileLen = 32, fileBytes = HEAD + 16, offset = 0;
  static constexpr bool halves = false, minimum = true;
  uint4 d[2][2];
  METHOD void load(const u8 *tile, int lane) {
    Base::loadCodes(tile, lane);
    UNROLL for (int r = 0; r < 2; r++) {
      UNROLL for (int i = 0; i < 2; i++) d[r][i] = loadOnce(reinterpret_cast<const uint4 *>(tile + Base::scalesAt) + 2 * (lane / 4 + 8 * r) + i);
    }
  }
  METHOD void prepare() {}
  METHOD u32 values(int b, int r) const { return Base::code(b, r); }
  METHOD Scale scale(int b, int r) const {
    const u32 first = wordOf(d[r][0], b & 3), second = wordOf(d[r][1], b & 3), w = b & 4 ? +second : +first;
    return {halfToFloat(u16(w)), -halfToFloat(u16(w >> 16))};
  }
  INLINE u32 fileCode(const u8 *p, int i) {
    u32 c = nibble32(p + HEAD, i);
    if constexpr (H == 1) c |= bit(p + HEAD - 4, i) << 4;
    return c;
  }
  INLINE void fileScales(u8 *tile, const u8 *p, int row, int b) { reinterpret_cast<u32 *>(tile + Base::scalesAt)[8 * row + b] = *reinterpret_cast<const u32 *>(p); }
};
using Q4_1 = Offsets<0, 4>;
using Q5_1 = Offsets<1, 8>;

// The scale is a power of two; codes are twice the values.
struct MXFP4 : Quantized<4, 0, 8> {
  static constexpr int fileLen = 32, fileBytes = 17, offset = 0;
  static constexpr bool halves = false, minimum = false;
  uint2 e[2];
  METHOD void load(const u8 *tile, int lane) {
    loadCodes(tile, lane);
    UNROLL for (int r = 0; r < 2; r++) e[r] = loadOnce(reinterpret_cast<const uint2 *>(tile + scalesAt) + lane / 4 + 8 * r);
  }
  METHOD void prepare() {}
  METHOD u32 values(int b, int r) const {
    return lookUp(code(b, r), 0x03020100u, 0x0c080604u, 0xfdfeff00u, 0xf4f8fafcu);
  }
  METHOD Scale scale(int b, int r) const {
    const u32 v = (b & 4 ? +e[r].y : +e[r].x) >> (8 * (b & 3)) & 0xff;
    return {asFloat(v == 255 ? 0x7fc00000u : v > 1 ? (v - 1) << 23 : 0x00200000u << v), 0}; // 2^(v-128)
  }
  INLINE u32 fileCode(const u8 *p, int i) { return nibble32(p + 1, i); }
  INLINE void fileScales(u8 *tile, const u8 *p, int row, int b) { tile[scalesAt + 8 * row + b] = p[0]; }
};

// Formats with a block of 256: a tile has one of each row.

// Q4_K and Q5_K: 6 bits of scale and of minimum for each 32.
template <int H> struct SixBits : Quantized<4, H, 16> {
  using Base = Quantized<4, H, 16>;
  static constexpr int fileLen = 256, fileBytes = H ? 176 : 144, offset = 0;
  static constexpr bool halves = false, minimum = true;
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
  METHOD u32 values(int b, int r) const { return Base::code(b, r); }
  METHOD Scale scale(int b, int r) const {
    const int shift = 8 * (b & 3);
    return {d[r] * float((b & 4 ? +s[r][1] : +s[r][0]) >> shift & 0xff), low[r] * float((b & 4 ? +m[r][1] : +m[r][0]) >> shift & 0xff)};
  }
  INLINE u32 fileCode(const u8 *p, int i) {
    u32 c = p[16 + 32 * H + i / 64 * 32 + i % 32] >> (i / 32 % 2 * 4) & 15;
    if constexpr (H == 1) c |= (u32(p[16 + i % 32]) >> (i / 32) & 1) << 4;
    return c;
  }
  INLINE void fileScales(u8 *tile, const u8 *p, int row, int) {
    UNROLL for (int i = 0; i < 4; i++) reinterpret_cast<u32 *>(tile + Base::scalesAt)[4 * row + i] = reinterpret_cast<const u32 *>(p)[i];
  }
};
using Q4_K = SixBits<0>;
using Q5_K = SixBits<1>;

// 8 bits of scale for each 16. Scales first, and then the factors of all rows.
struct Q6_K : Quantized<4, 2, 18> {
  static constexpr int fileLen = 256, fileBytes = 210, offset = 32;
  static constexpr bool halves = true, minimum = false;
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
  METHOD u32 values(int b, int r) const { return code(b, r); }
  METHOD HalfScales scale(int b, int r) const {
    const u32 pair = halfOf(s[r], b);
    return {d[r], 0, s8(pair), s8(pair >> 8), 0, 0};
  }
  INLINE u32 fileCode(const u8 *p, int i) {
    const int part = i / 128, j = i % 128;
    return (p[64 * part + j % 64] >> (j / 64 * 4) & 15) | (p[128 + 32 * part + j % 32] >> (j / 32 * 2) & 3) << 4;
  }
  INLINE void fileScales(u8 *tile, const u8 *p, int row, int) {
    for (int i = 0; i < 16; i++) tile[scalesAt + 16 * row + i] = p[192 + i];
    reinterpret_cast<u16 *>(tile + scalesAt + 256)[row] = *reinterpret_cast<const u16 *>(p + 208);
  }
};

// 4 bits of scale and of minimum for each 16. Scales first, then the factors of all rows.
struct Q2_K : Quantized<2, 0, 20> {
  static constexpr int fileLen = 256, fileBytes = 84, offset = 0;
  static constexpr bool halves = true, minimum = true;
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
  METHOD u32 values(int b, int r) const { return code(b, r); }
  METHOD HalfScales scale(int b, int r) const {
    const u32 pair = halfOf(s[r], b);
    return {d[r], low[r], int(pair & 15), int(pair >> 8 & 15), int(pair >> 4 & 15), int(pair >> 12 & 15)};
  }
  INLINE u32 fileCode(const u8 *p, int i) { return p[16 + i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2) & 3; }
  INLINE void fileScales(u8 *tile, const u8 *p, int row, int) {
    for (int i = 0; i < 16; i++) tile[scalesAt + 16 * row + i] = p[i];
    reinterpret_cast<u32 *>(tile + scalesAt + 256)[row] = *reinterpret_cast<const u32 *>(p + 80);
  }
};

// 6 bits of scale for each 16, of which 32 is subtracted. The first 8 bytes of each row's
// scales, then the last 4 of all rows, then the factors.
struct Q3_K : Quantized<2, 1, 14> {
  static constexpr int fileLen = 256, fileBytes = 110, offset = 4;
  static constexpr bool halves = true, minimum = false;
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
  METHOD u32 values(int b, int r) const { return code(b, r); }
  METHOD HalfScales scale(int b, int r) const {
    const u32 pair = halfOf(uint4{s[r][0], s[r][1], s[r][2], s[r][3]}, b);
    return {d[r], 0, int(pair & 63) - 32, int(pair >> 8 & 63) - 32, 0, 0};
  }
  INLINE u32 fileCode(const u8 *p, int i) {
    return (p[32 + i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2) & 3) | (u32(p[i % 32]) >> (i / 32) & 1) << 2;
  }
  INLINE void fileScales(u8 *tile, const u8 *p, int row, int) {
    for (int i = 0; i < 8; i++) tile[scalesAt + 8 * row + i] = p[96 + i];
    UNROLL for (int i = 0; i < 4; i++) tile[scalesAt + 128 + 4 * row + i] = p[104 + i];
    reinterpret_cast<u16 *>(tile + scalesAt + 192)[row] = *reinterpret_cast<const u16 *>(p + 108);
  }
};

// 6 bits of scale for each 32, of which 32 is subtracted.
struct IQ4_XS : Quantized<4, 0, 8> {
  static constexpr int fileLen = 256, fileBytes = 136, offset = 0;
  static constexpr bool halves = false, minimum = false;
  uint2 h[2];
  float d[2];
  METHOD void load(const u8 *tile, int lane) {
    loadCodes(tile, lane);
    UNROLL for (int r = 0; r < 2; r++) h[r] = loadOnce(reinterpret_cast<const uint2 *>(tile + scalesAt) + lane / 4 + 8 * r);
  }
  METHOD void prepare() {
    UNROLL for (int r = 0; r < 2; r++) d[r] = halfToFloat(u16(h[r].x));
  }
  METHOD u32 values(int b, int r) const {
    return lookUp(code(b, r), 0xbfad9881u, 0xf6eaddcfu, 0x26190d01u, 0x71594535u);
  }
  METHOD Scale scale(int b, int r) const {
    const int s = int((h[r].y >> (4 * b) & 15) | (h[r].x >> (16 + 2 * b) & 3) << 4) - 32;
    return {d[r] * float(s), 0};
  }
  INLINE u32 fileCode(const u8 *p, int i) { return nibble32(p + 8 + i / 32 * 16, i % 32); }
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
