// The matrix instruction of all products: it adds to c [16][8] the product of a [16][16] and b
// [16][8], of float16 or of bfloat16, in float32. For g = lane/4 and t = lane%4 a lane has (g, 2t),
// (g, 2t+1), (g+8, 2t) and (g+8, 2t+1) of c; the pair of columns from 2t and that from 2t+8 of rows g
// and g+8 of a, in the order (g, 2t), (g+8, 2t), (g, 2t+8), (g+8, 2t+8); and the pairs of rows from 2t
// and from 2t+8 of column g of b.
#pragma once
#include "device.cuh"

INLINE void addHalfProducts(float *c, uint4 a, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}
INLINE void addBfloatProducts(float *c, uint4 a, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}
