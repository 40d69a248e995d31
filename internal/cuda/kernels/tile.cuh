// The layout of weights in the device's memory, for every format.
//
// A matrix [rows, cols] is divided into tiles of 16 rows and F::tileK columns. The tiles of the
// same rows are adjacent, and the padding of rows and columns is 0. A tile has the layout of
// operand A of matrix instructions of 16 columns, a step. Lane 4g+t of a warp has columns 2t, 2t+1,
// 2t+8 and 2t+9 of rows g and g+8 of every step, two to a word:
//
//	0: row g, first two   1: row g+8, first two   2: row g, second two   3: row g+8
//
// 16-bit numbers take 16 bytes per lane and step. Float32 numbers take two such groups of four
// words: the first number of each pair, then the second.
//
// Quantized formats have tiles of 256 columns. A tile begins with planes of 512 bytes, 16 for each
// lane, that hold the bits of the lanes' codes. The scales follow, for most formats by row and in
// as many bytes as in the file. After all tiles of a matrix comes a float for each row: the divisor
// of the row's weights, so that float16 holds them and their scales. It is a power of two, except
// for rows of E4M3 numbers.
#pragma once
#include "device.cuh"

constexpr int tileRows = 16;

// columnOf returns the column in a block of 32 of number e (0 or 1) of word r (0 to 3) of step step
// (0 or 1) in lane t.
INLINE int columnOf(int t, int step, int r, int e) { return 16 * step + 8 * (r >> 1) + 2 * t + e; }

// lookUp looks up four of a table's 16 values by the low nibbles of the four bytes of codes.
INLINE u32 lookUp(u32 codes, u32 t0, u32 t1, u32 t2, u32 t3) {
  // Each nibble of a selector picks one of 8 bytes.
  u32 s = codes & 0x07070707u;
  s = (s | s >> 4) & 0x00ff00ffu;
  s = s | s >> 8;
  const u32 low = __nvvm_prmt(t0, t1, s), high = __nvvm_prmt(t2, t3, s);
  const u32 upper = (codes >> 3 & 0x01010101u) * 0xffu;
  return (low & ~upper) | (high & upper);
}
