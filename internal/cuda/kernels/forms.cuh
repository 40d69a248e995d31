// The forms in which a value of the program lies in memory: rows of float32, and
// what products read.
#pragma once
#include "device.cuh"

// Rows of f32 are stride elements apart, a multiple of 256. bf16 is what weights of that type are
// multiplied with, and f16 what all others are: by times the value, a power of two with which
// float16 holds it. Both lie in chunks of 64 columns, those of 128 rows beside each other, and
// pieces of 8 columns stand in a chunk's row at the place of their number xor the row's (modulo
// 8): so matrix instructions take chunks as they are copied. Beyond a row's columns, up to the
// stride, both are 0, and f32 is anything.
struct Forms {
  float *f32; // each may be 0: nobody reads it
  u16 *bf16;
  u16 *f16;
  s32 stride;
  s32 cols;
  float by;
};

constexpr int chunkRows = 128, chunkCols = 64;

// chunkOf is where a chunk of a row begins.
INLINE s64 chunkOf(int row, int chunk, int stride) { return (s64(row / chunkRows) * (stride / chunkCols) + chunk) * (chunkRows * chunkCols) + row % chunkRows * chunkCols; }

// pieceOf is where the piece of column col stands in its chunk's row.
INLINE int pieceOf(int row, int col) { return (col / 8 ^ row) % 8 * 8; }

// placeOf is where a column of a row is.
INLINE s64 placeOf(int row, int col, int stride) { return chunkOf(row, col / chunkCols, stride) + pieceOf(row, col) + col % 8; }

// storeBlock writes columns 32*block to 32*block+31 of a row, of which lane i has
// number i; what lies beyond the columns must be 0. All lanes of a warp take part.
// Whoever writes the last block of the columns writes the padding too.
INLINE void storeBlock(const Forms &f, int row, int block, int lane, float v) {
  const int col = 32 * block + lane;
  if (f.f32 && col < f.cols) f.f32[s64(row) * f.stride + col] = v;
  if (!f.bf16 && !f.f16) return;
  const int end = 32 * block + 32 >= f.cols ? f.stride : col + 1;
  for (int c = col; c < end; c += 32) {
    const s64 to = placeOf(row, c, f.stride);
    if (f.bf16) f.bf16[to] = c == col ? floatToBfloat(v) : 0;
    if (f.f16) f.f16[to] = c == col ? floatToHalf(v * f.by) : 0;
  }
}

INLINE u32 wordOf(u16 low, u16 high) { return u32(low) | u32(high) << 16; }

// storeFour writes what storeBlock writes, to the bit, but four columns of each lane: col is the
// first, a multiple of 4. Padding is columns like any other, of zeros.
INLINE void storeFour(const Forms &f, int row, int col, float4 v) {
  const s64 at = s64(row) * f.stride + col, to = placeOf(row, col, f.stride);
  if (f.f32) {
    if (col <= f.cols - 4) {
      *reinterpret_cast<float4 *>(f.f32 + at) = v;
    } else {
      if (col < f.cols) f.f32[at] = v.x;
      if (col < f.cols - 1) f.f32[at + 1] = v.y;
      if (col < f.cols - 2) f.f32[at + 2] = v.z;
    }
  }
  if (f.bf16) {
    *reinterpret_cast<uint2 *>(f.bf16 + to) =
        uint2{wordOf(floatToBfloat(v.x), floatToBfloat(v.y)), wordOf(floatToBfloat(v.z), floatToBfloat(v.w))};
  }
  if (f.f16) {
    *reinterpret_cast<uint2 *>(f.f16 + to) = uint2{wordOf(floatToHalf(v.x * f.by), floatToHalf(v.y * f.by)),
                                                   wordOf(floatToHalf(v.z * f.by), floatToHalf(v.w * f.by))};
  }
}
