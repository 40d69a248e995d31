// The matrix instruction of all products: it adds the product of a [16][16] and b [16][8], float16
// or bfloat16, to c [16][8] in float32. With g = lane/4 and t = lane%4, a lane has
//
//   c  (g, 2t), (g, 2t+1), (g+8, 2t), (g+8, 2t+1)
//   a  pairs of columns, from (g, 2t), (g+8, 2t), (g, 2t+8), (g+8, 2t+8)
//   b  pairs of rows of column g, from 2t and 2t+8
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
