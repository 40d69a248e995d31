// How weights lie in the device's memory, in every format.
//
// A matrix [rows, cols] is cut into tiles of 16 rows and F::tileK columns, those of the
// same rows beside each other; rows and columns that are not there are 0. In a tile the
// order is that of the operand A of matrix instructions of 16 columns, a step: a lane of a
// warp, g = lane/4 and t = lane%4, holds of rows g and g+8 and of every step the columns
// 2t, 2t+1, 2t+8 and 2t+9, two to a word:
//
//	0: row g, first two   1: row g+8, first two   2: row g, second two   3: row g+8
//
// Numbers of 16 bits lie so, 16 bytes of each lane and step. Float32 lies as four such words
// twice, of the first and of the second number of each.
//
// Quantised formats have tiles of 256 columns. A tile begins with planes of 512 bytes, 16 for
// each lane, that hold the bits of the lanes' codes, and then come the scales, for most formats
// by row and as many bytes as the file has. Behind all tiles of a matrix stands a float for each row:
// what the row's weights are divided by, so that float16 holds them and their scales. It is a power of
// two, but for rows of numbers in E4M3.
#pragma once
#include "device.cuh"

constexpr int tileRows = 16;

// columnOf is the column in a block of 32 of number e (0 or 1) of word r (0 to 3) of a step
// (0 or 1) in lane t.
INLINE int columnOf(int t, int step, int r, int e) { return 16 * step + 8 * (r >> 1) + 2 * t + e; }

// lookUp selects 16 values of a table by the lower halves of the four bytes of codes.
INLINE u32 lookUp(u32 codes, u32 t0, u32 t1, u32 t2, u32 t3) {
  // Each nibble of a selector picks one of 8 bytes.
  u32 s = codes & 0x07070707u;
  s = (s | s >> 4) & 0x00ff00ffu;
  s = s | s >> 8;
  const u32 low = __nvvm_prmt(t0, t1, s), high = __nvvm_prmt(t2, t3, s);
  const u32 upper = (codes >> 3 & 0x01010101u) * 0xffu;
  return (low & ~upper) | (high & upper);
}
