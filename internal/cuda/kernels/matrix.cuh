// Matrix instructions on f16 and what feeds them from shared memory.
//
// There all matrices lie alike: chunks of 8 columns (16 bytes) of so many rows, a chunk's
// rows side by side. So 8 rows of a chunk are 128 bytes in a row, which an instruction
// reads at once, as they are or transposed. Half a chunk further a chunk begins, of which
// lanes then read 8 bytes each beside those of the chunk before.
#pragma once
#include "mma.cuh"

// loadMatrices reads four matrices of 8x8, of which lane 8i+r says where row r of matrix i
// is. Of each a lane gets columns 2t and 2t+1 of row g, and transposed rows 2t and 2t+1 of
// column g, for g = lane/4 and t = lane%4.
INLINE void loadMatrices(u32 (&m)[4], u32 at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3]) : "r"(at) : "memory");
}
INLINE void loadTransposed(u32 (&m)[4], u32 at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3]) : "r"(at) : "memory");
}

// transposed is a matrix of 8x8 the other way round: a lane has columns 2t and 2t+1 of row g.
INLINE u32 transposed(u32 m) {
  u32 r;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(m));
  return r;
}

// addProducts adds to c [16][8] the product of a [16][16] and b [16][8], in one step.
INLINE void addProducts(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) { addHalfProducts(c, uint4{a[0], a[1], a[2], a[3]}, b0, b1); }

constexpr u32 halfOnes = 0x3c003c00u;

// halvesOf is two numbers rounded to f16, the first in the lower half.
INLINE u32 halvesOf(float low, float high) {
  u32 r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}

// copyChunk copies 16 bytes to shared memory, or makes them 0, some time before waitCopies
// returns.
INLINE void copyChunk(u32 to, const void *from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(there ? 16 : 0) : "memory");
}
INLINE uint2 loadHalf(u32 from) { // of a chunk
  uint2 v;
  asm volatile("ld.shared.v2.u32 {%0,%1}, [%2];" : "=r"(v.x), "=r"(v.y) : "r"(from) : "memory");
  return v;
}
INLINE void storeChunk(u32 to, uint4 v) {
  asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}

// Copies are waited for in groups: all of a thread but those of its last N groups.
INLINE void endCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> INLINE void waitCopies() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }
