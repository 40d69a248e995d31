// Matrix instructions on float16 and their loads from shared memory.
//
// All matrices in shared memory have the same layout: chunks of 8 columns (16 bytes), with the rows
// of a chunk adjacent. So 8 rows of a chunk are 128 contiguous bytes, which one instruction reads,
// transposed or not. Adjacent chunks of a band (see band.cuh) are 64 bytes more than a multiple of
// 128 apart, so that lanes that read 8 bytes each of both use different banks.
#pragma once
#include "mma.cuh"

// loadMatrices reads four 8x8 matrices; lane 8i+r has the address of row r of matrix i. With g =
// lane/4 and t = lane%4, a lane gets columns 2t and 2t+1 of row g of each matrix. loadTransposed
// gives it rows 2t and 2t+1 of column g.
INLINE void loadMatrices(u32 (&m)[4], u32 at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3]) : "r"(at) : "memory");
}
INLINE void loadTransposed(u32 (&m)[4], u32 at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3]) : "r"(at) : "memory");
}

// transposed returns the transpose of an 8x8 matrix: a lane has columns 2t and 2t+1 of row g.
INLINE u32 transposed(u32 m) {
  u32 r;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(m));
  return r;
}

// addProducts adds the product of a [16][16] and b [16][8] to c [16][8].
INLINE void addProducts(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) { addHalfProducts(c, uint4{a[0], a[1], a[2], a[3]}, b0, b1); }

constexpr u32 halfOnes = 0x3c003c00u;

// halvesOf rounds two numbers to float16, the first in the lower half.
INLINE u32 halvesOf(float low, float high) {
  u32 r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}

// copyChunk starts a copy of 16 bytes, or of zeros if there is false, to shared memory. waitCopies
// waits for it.
INLINE void copyChunk(u32 to, const void *from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(there ? 16 : 0) : "memory");
}
INLINE void copyHalf(u32 to, const void *from) { // half of a chunk
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(to), "l"(from) : "memory");
}
INLINE uint2 loadHalf(u32 from) { // half of a chunk
  uint2 v;
  asm volatile("ld.shared.v2.u32 {%0,%1}, [%2];" : "=r"(v.x), "=r"(v.y) : "r"(from) : "memory");
  return v;
}
INLINE uint4 loadChunk(u32 from) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(from) : "memory");
  return v;
}
INLINE void storeChunk(u32 to, uint4 v) {
  asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}
INLINE void storeHalf(u32 to, uint2 v) { asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(to), "r"(v.x), "r"(v.y) : "memory"); }
INLINE void storeWord(u32 to, u32 v) { asm volatile("st.shared.u32 [%0], %1;" ::"r"(to), "r"(v) : "memory"); }

// endCopies ends a group of copies. waitCopies waits for all groups of the thread but its last N.
INLINE void endCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> INLINE void waitCopies() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }
