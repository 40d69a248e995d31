// The memory layouts of a value of the program: rows of float32, and the operands of products.
#pragma once
#include "device.cuh"

// Rows of f32 are stride elements apart, a multiple of 256. bf16 is the operand for bfloat16
// weights, and f16 the operand for all others: the value times by, a power of two with which
// float16 holds it. Both have chunks of 64 columns; the chunks of 128 rows are adjacent. In a row
// of a chunk, the index of a piece of 8 columns is its number xor the row's (modulo 8), so that
// matrix instructions take chunks as they are copied. From cols up to stride, bf16 and f16 are 0
// and f32 is undefined.
struct Forms {
  float *f32; // each may be 0 if it is not read
  u16 *bf16;
  u16 *f16;
  s32 stride;
  s32 cols;
  float by;
};

constexpr int chunkRows = 128, chunkCols = 64;

// chunkOf is the offset at which a row of a chunk begins.
INLINE s64 chunkOf(int row, int chunk, int stride) { return (s64(row / chunkRows) * (stride / chunkCols) + chunk) * (chunkRows * chunkCols) + row % chunkRows * chunkCols; }

// pieceOf is the offset of column col's piece in its row of a chunk.
INLINE int pieceOf(int row, int col) { return (col / 8 ^ row) % 8 * 8; }

// placeOf is the offset of a column of a row.
INLINE s64 placeOf(int row, int col, int stride) { return chunkOf(row, col / chunkCols, stride) + pieceOf(row, col) + col % 8; }

// storeBlock writes columns N*block to N*block+N-1 of a row. Lane i has element i, which must be 0
// beyond the columns; lanes from N on have none. All lanes of a warp call it. The warp with the last
// block of the columns also writes the padding.
template <int N = 32> INLINE void storeBlock(const Forms &f, int row, int block, int lane, float v) {
  if (lane >= N) return;
  const int col = N * block + lane;
  if (f.f32 && col < f.cols) f.f32[s64(row) * f.stride + col] = v;
  if (!f.bf16 && !f.f16) return;
  const int end = N * block + N >= f.cols ? f.stride : col + 1;
  for (int c = col; c < end; c += N) {
    const s64 to = placeOf(row, c, f.stride);
    if (f.bf16) f.bf16[to] = c == col ? floatToBfloat(v) : 0;
    if (f.f16) f.f16[to] = c == col ? floatToHalf(v * f.by) : 0;
  }
}

INLINE u32 wordOf(u16 low, u16 high) { return u32(low) | u32(high) << 16; }

// storeFour writes the same bits as storeBlock, four columns with each lane: col is the first, a
// multiple of 4. Padding is columns of zeros, like any other.
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
