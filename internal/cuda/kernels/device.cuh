// What clang needs to compile a kernel without CUDA's headers, and functions for the instructions
// that kernels use. Nothing here depends on a model.
#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define INLINE static __device__ inline __attribute__((always_inline))
#define ALWAYS __attribute__((always_inline))
#define UNROLL _Pragma("unroll")
#define METHOD __device__ inline __attribute__((always_inline))

using u8 = unsigned char;
using s8 = signed char;
using u16 = unsigned short;
using s16 = short;
using u32 = unsigned int;
using s32 = int;
using u64 = unsigned long long;
using s64 = long long;

struct alignas(8) uint2 { u32 x, y; };
struct alignas(16) uint4 { u32 x, y, z, w; };
struct alignas(8) float2 { float x, y; };
typedef float float4 __attribute__((ext_vector_type(4)));

// Indices of the thread and its block, and sizes of the block and the grid.
INLINE int tidX() { return __nvvm_read_ptx_sreg_tid_x(); }
INLINE int blockX() { return __nvvm_read_ptx_sreg_ctaid_x(); }
INLINE int blockY() { return __nvvm_read_ptx_sreg_ctaid_y(); }
INLINE int blockZ() { return __nvvm_read_ptx_sreg_ctaid_z(); }
INLINE int gridX() { return __nvvm_read_ptx_sreg_nctaid_x(); }
INLINE int gridY() { return __nvvm_read_ptx_sreg_nctaid_y(); }
INLINE int gridZ() { return __nvvm_read_ptx_sreg_nctaid_z(); }
INLINE int threadsX() { return __nvvm_read_ptx_sreg_ntid_x(); }

INLINE void syncBlock() { __syncthreads(); }
INLINE void syncWarp() { asm volatile("bar.warp.sync 0xffffffff;" ::: "memory"); }

// A kernel may begin before the previous kernel of the stream has ended. Only after waitForPrevious
// may it read what that kernel writes, and write what that kernel reads. allowNext lets the next
// kernel begin.
INLINE void waitForPrevious() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
INLINE void allowNext() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Shuffles over a whole warp.
INLINE u32 shuffleXor(u32 v, int mask) {
  u32 r;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, 0xffffffff;" : "=r"(r) : "r"(v), "r"(mask));
  return r;
}
INLINE u32 shuffleFrom(u32 v, int lane) {
  u32 r;
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, 0xffffffff;" : "=r"(r) : "r"(v), "r"(lane));
  return r;
}
INLINE float asFloat(u32 v) { return __builtin_bit_cast(float, v); }
INLINE u32 asBits(float v) { return __builtin_bit_cast(u32, v); }
INLINE float shuffleXor(float v, int mask) { return asFloat(shuffleXor(asBits(v), mask)); }
INLINE float shuffleFrom(float v, int lane) { return asFloat(shuffleFrom(asBits(v), lane)); }
INLINE int shuffleXor(int v, int mask) { return int(shuffleXor(u32(v), mask)); }
INLINE int shuffleFrom(int v, int lane) { return int(shuffleFrom(u32(v), lane)); }
INLINE u64 shuffleXor(u64 v, int mask) {
  return u64(shuffleXor(u32(v >> 32), mask)) << 32 | shuffleXor(u32(v), mask);
}
INLINE u32 ballot(bool p) {
  u32 r;
  asm volatile("{ .reg .pred q; setp.ne.u32 q, %1, 0; vote.sync.ballot.b32 %0, q, 0xffffffff; }" : "=r"(r) : "r"(u32(p)));
  return r;
}

// Sums and maxima over a warp; all its lanes get the result. Sums are pairwise, in a fixed order.
INLINE float warpSum(float v) {
  UNROLL
  for (int m = 16; m; m >>= 1) v = v + shuffleXor(v, m);
  return v;
}
INLINE int warpSum(int v) {
  UNROLL
  for (int m = 16; m; m >>= 1) v += shuffleXor(v, m);
  return v;
}
INLINE float maxOf(float a, float b) { return __builtin_fmaxf(a, b); }
INLINE float minOf(float a, float b) { return __builtin_fminf(a, b); }
INLINE int maxOf(int a, int b) { return a > b ? a : b; }
INLINE int minOf(int a, int b) { return a < b ? a : b; }
INLINE float warpMax(float v) {
  UNROLL
  for (int m = 16; m; m >>= 1) v = maxOf(v, shuffleXor(v, m));
  return v;
}
INLINE int warpMax(int v) {
  UNROLL
  for (int m = 16; m; m >>= 1) v = maxOf(v, shuffleXor(v, m));
  return v;
}
INLINE u32 warpMax(u32 v) {
  u32 r;
  asm volatile("redux.sync.max.u32 %0, %1, 0xffffffff;" : "=r"(r) : "r"(v));
  return r;
}

// Arithmetic. The compiler does not contract products and sums (-ffp-contract=off): code that needs
// one rounding calls fma.
INLINE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
INLINE float absOf(float v) { return __builtin_fabsf(v); }
INLINE float divide(float a, float b) {
  float r;
  asm("div.rn.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
INLINE float quotient(float a, float b) { // to 2 units in the last place
  float r;
  asm("div.full.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
// clamp limits v to [-most, most]; NaN stays NaN.
INLINE float clamp(float v, float most) {
  asm("max.NaN.f32 %0, %0, %1;\n\tmin.NaN.f32 %0, %0, %2;" : "+f"(v) : "f"(-most), "f"(most));
  return v;
}
INLINE float squareRoot(float v) {
  float r;
  asm("sqrt.rn.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}
INLINE float nearInverseRoot(float v) { // to 2 units in the last place
  float r;
  asm("rsqrt.approx.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}
// exp2Of is 2^v to 2 units in the last place; results below the normal numbers are 0.
INLINE float exp2Of(float v) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}
INLINE float expOf(float v) {
  // v*log2(e) in two parts, so that a large v keeps its precision.
  const float high = v * 1.44269502f;
  const float low = fma(v, 1.44269502f, -high) + v * 1.925963033e-8f;
  return exp2Of(high) * fma(low, 0.693147182f, 1.0f);
}
INLINE int roundToInt(float v) { // to the nearest, halves to even
  int r;
  asm("cvt.rni.s32.f32 %0, %1;" : "=r"(r) : "f"(v));
  return r;
}
INLINE bool isFinite(float v) { return (asBits(v) & 0x7f800000u) != 0x7f800000u; }

// 16-bit numbers.
INLINE float halfToFloat(u16 h) {
  float r;
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(h));
  return r;
}
INLINE u16 floatToHalf(float v) {
  u16 r;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(v));
  return r;
}
INLINE float bfloatToFloat(u16 h) { return asFloat(u32(h) << 16); }
INLINE u16 floatToBfloat(float v) {
  u16 r;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(v));
  return r;
}

// Memory. loadOnce reads memory that nothing writes while the kernel runs, such as weights, and
// does not keep it in the L1 cache. Plain accesses read everything else.
INLINE uint4 loadOnce(const uint4 *p) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
  return v;
}
INLINE uint2 loadOnce(const uint2 *p) {
  uint2 v;
  asm volatile("ld.global.nc.L1::no_allocate.v2.u32 {%0,%1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(p));
  return v;
}
INLINE u32 loadOnce(const u32 *p) {
  u32 v;
  asm volatile("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r"(v) : "l"(p));
  return v;
}
INLINE u16 loadOnce(const u16 *p) {
  u16 v;
  asm volatile("ld.global.nc.L1::no_allocate.u16 %0, [%1];" : "=h"(v) : "l"(p));
  return v;
}

// sharedAt converts an address to the shared memory window, as instructions on shared memory take
// it.
INLINE u32 sharedAt(const void *p) {
  u32 r;
  asm("{ .reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t; }" : "=r"(r) : "l"(p));
  return r;
}

INLINE void prefetch(const void *p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }

INLINE void atomicAddShared(int *p, int v) { __nvvm_atom_add_gen_i(p, v); }
INLINE int atomicAddDevice(int *p, int v) {
  int r;
  asm volatile("atom.acq_rel.gpu.global.add.s32 %0, [%1], %2;" : "=r"(r) : "l"(p), "r"(v) : "memory");
  return r;
}
INLINE void atomicMinDevice(int *p, int v) { asm volatile("red.relaxed.gpu.global.min.s32 [%0], %1;" ::"l"(p), "r"(v) : "memory"); }

// Accesses to memory that blocks share bypass the L1 cache, so that all blocks see them.
INLINE void addGlobal(u64 *p, u64 v) { asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory"); }
INLINE void raiseGlobal(u64 *p, u64 v) { asm volatile("red.relaxed.gpu.global.max.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory"); }
INLINE int takeGlobal(s32 *p, int n) {
  int r;
  asm volatile("atom.relaxed.gpu.global.add.s32 %0, [%1], %2;" : "=r"(r) : "l"(p), "r"(n) : "memory");
  return r;
}
INLINE u64 readGlobal(const u64 *p) {
  u64 r;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(r) : "l"(p) : "memory");
  return r;
}
INLINE int readGlobal(const s32 *p) {
  int r;
  asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(r) : "l"(p) : "memory");
  return r;
}
// read16 reads 16 bytes in one access, at this point of the program.
INLINE uint4 read16(const void *p) {
  uint4 v;
  asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
  return v;
}
