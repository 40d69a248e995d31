// How weights lie in the device's memory, in every format.
//
// A matrix [rows, cols] is cut into tiles of 16 rows and F::tileK columns, those of the
// same rows beside each other; rows and columns that are not there are 0. In a tile the
// order is that of the operand A of matrix instructions: a lane of a warp, g = lane/4
// and t = lane%4, holds of rows g and g+8 and of every block of 32 columns the columns
// 4t to 4t+3 and 16+4t to 16+4t+3, as the words
//
//	0: row g, first four   1: row g+8, first four   2: row g, second four   3: row g+8
//
// of bytes, or twice as many words of 16 bits. A tile begins with planes of 512 bytes,
// 16 for each lane, that hold the lanes' bits. Then come the scales by row, as many bytes
// as the file has.
#pragma once
#include "device.cuh"

constexpr int tileRows = 16;
constexpr int blockCols = 32;

// columnOf is the first of the four columns that word r of a block has in lane t.
INLINE int columnOf(int t, int r) { return 4 * t + (r >= 2 ? 16 : 0); }

// Quantised formats have tiles of 256 columns. A plane of 4 bits has words for pairs of
// blocks, the first in the lower half of each byte, one of 2 bits for four blocks, one
// of 1 bit for eight.

// lookUp selects 16 values of a table by the lower halves of the four bytes of codes.
INLINE u32 lookUp(u32 codes, u32 t0, u32 t1, u32 t2, u32 t3) {
  // Each nibble of a selector picks one of 8 bytes.
  u32 s = codes & 0x07070707u;
  s = (s | s >> 4) & 0x00ff00ffu;
  s = s | s >> 8;
  u32 low, high;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(low) : "r"(t0), "r"(t1), "r"(s));
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(high) : "r"(t2), "r"(t3), "r"(s));
  const u32 upper = (codes >> 3 & 0x01010101u) * 0xffu;
  return (low & ~upper) | (high & upper);
}

// A Scale says what the values of a block of 32 are: d*code - low. HalfScales say it for
// each 16: d*s0*code - low*m0 and d*s1*code - low*m1.
struct Scale {
  float d, low;
};
struct HalfScales {
  float d, low;
  int s0, s1, m0, m1;
};
