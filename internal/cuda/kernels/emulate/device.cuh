// device.cuh on the host: each function does what the one of the same name in device.cuh does.
// Approximate instructions are exact here; the orders of sums are the same.
#pragma once
#include "machine.h"

#define __global__
#define __device__
#define __shared__ static __attribute__((section("emulated_shared")))
#define __constant__ static const
#define __launch_bounds__(...)
#define INLINE static inline __attribute__((always_inline))
#define ALWAYS __attribute__((always_inline))
#define UNROLL
#define METHOD inline __attribute__((always_inline))

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

INLINE int tidX() { return machine::current->id; }
INLINE int blockX() { return machine::here->index[0]; }
INLINE int blockY() { return machine::here->index[1]; }
INLINE int blockZ() { return machine::here->index[2]; }
INLINE int gridX() { return machine::grid[0]; }
INLINE int gridY() { return machine::grid[1]; }
INLINE int gridZ() { return machine::grid[2]; }
INLINE int threadsX() { return machine::threadsOfBlock; }

INLINE void syncBlock() { machine::syncBlock(); }
INLINE void syncWarp() { machine::exchange(nullptr, 0); }
INLINE void waitForPrevious() {}
INLINE void allowNext() {}

INLINE u32 shuffleFrom(u32 v, int lane) { return machine::exchange(&v, 1)[lane & 31][0]; }
INLINE u32 shuffleXor(u32 v, int mask) { return machine::exchange(&v, 1)[(tidX() & 31) ^ mask][0]; }
INLINE float asFloat(u32 v) { return __builtin_bit_cast(float, v); }
INLINE u32 asBits(float v) { return __builtin_bit_cast(u32, v); }
INLINE float shuffleXor(float v, int mask) { return asFloat(shuffleXor(asBits(v), mask)); }
INLINE float shuffleFrom(float v, int lane) { return asFloat(shuffleFrom(asBits(v), lane)); }
INLINE int shuffleXor(int v, int mask) { return int(shuffleXor(u32(v), mask)); }
INLINE int shuffleFrom(int v, int lane) { return int(shuffleFrom(u32(v), lane)); }
INLINE u64 shuffleXor(u64 v, int mask) { return u64(shuffleXor(u32(v >> 32), mask)) << 32 | shuffleXor(u32(v), mask); }
INLINE u32 ballot(bool p) {
  const u32 mine = p;
  const auto all = machine::exchange(&mine, 1);
  u32 r = 0;
  for (int i = 0; i < 32; i++) r |= all[i][0] << i;
  return r;
}

INLINE float warpSum(float v) {
  for (int m = 16; m; m >>= 1) v = v + shuffleXor(v, m);
  return v;
}
INLINE int warpSum(int v) {
  for (int m = 16; m; m >>= 1) v += shuffleXor(v, m);
  return v;
}
INLINE float maxOf(float a, float b) { return fmaxf(a, b); }
INLINE float minOf(float a, float b) { return fminf(a, b); }
INLINE int maxOf(int a, int b) { return a > b ? a : b; }
INLINE int minOf(int a, int b) { return a < b ? a : b; }
INLINE float warpMax(float v) {
  for (int m = 16; m; m >>= 1) v = maxOf(v, shuffleXor(v, m));
  return v;
}
INLINE int warpMax(int v) {
  for (int m = 16; m; m >>= 1) v = maxOf(v, shuffleXor(v, m));
  return v;
}
INLINE u32 warpMax(u32 v) {
  for (int m = 16; m; m >>= 1) {
    const u32 other = shuffleXor(v, m);
    v = other > v ? other : v;
  }
  return v;
}

INLINE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
INLINE float absOf(float v) { return fabsf(v); }
INLINE float divide(float a, float b) { return a / b; }
INLINE float quotient(float a, float b) { return a / b; }
INLINE float clamp(float v, float most) { return v > most ? most : v < -most ? -most : v; }
INLINE float squareRoot(float v) { return sqrtf(v); }
INLINE float nearInverseRoot(float v) { return 1 / sqrtf(v); }
INLINE float exp2Of(float v) {
  const float r = exp2f(v);
  return r < 0x1p-126f ? 0.0f : r; // keeps NaN
}
INLINE float expOf(float v) {
  const float high = v * 1.44269502f;
  const float low = fma(v, 1.44269502f, -high) + v * 1.925963033e-8f;
  return exp2Of(high) * fma(low, 0.693147182f, 1.0f);
}
INLINE int roundToInt(float v) { return v != v ? 0 : v >= 0x1p31f ? 0x7fffffff : v < -0x1p31f ? int(0x80000000u) : int(rintf(v)); }
INLINE bool isFinite(float v) { return (asBits(v) & 0x7f800000u) != 0x7f800000u; }

INLINE float halfToFloat(u16 h) { return float(__builtin_bit_cast(_Float16, h)); }
INLINE u16 floatToHalf(float v) { return __builtin_bit_cast(u16, _Float16(v)); }
INLINE float bfloatToFloat(u16 h) { return asFloat(u32(h) << 16); }
INLINE u16 floatToBfloat(float v) {
  const u32 b = asBits(v);
  if (v != v) return 0x7fff;
  return u16((b + 0x7fff + (b >> 16 & 1)) >> 16);
}

template <class T> INLINE T loadOnce(const T *p) { return *p; }
INLINE void prefetch(const void *) {}

// Only one thread runs at a time, until it waits, so plain operations are atomic.
INLINE void atomicAddShared(int *p, int v) { *p += v; }
INLINE int atomicAddDevice(int *p, int v) {
  const int was = *p;
  *p += v;
  return was;
}
INLINE void atomicMinDevice(int *p, int v) { *p = minOf(*p, v); }
INLINE void addGlobal(u64 *p, u64 v) { *p += v; }
INLINE void raiseGlobal(u64 *p, u64 v) { *p = *p > v ? *p : v; }
INLINE int takeGlobal(s32 *p, int n) { return atomicAddDevice(p, n); }
INLINE u64 readGlobal(const u64 *p) { return *p; }
INLINE int readGlobal(const s32 *p) { return *p; }
INLINE uint4 read16(const void *p) { return *static_cast<const uint4 *>(p); }

INLINE u32 __nvvm_prmt(u32 a, u32 b, u32 which) {
  const u64 both = u64(b) << 32 | a;
  u32 r = 0;
  for (int i = 0; i < 4; i++) {
    const u32 pick = which >> (4 * i) & 15;
    u32 byte = u32(both >> (8 * (pick & 7))) & 0xff;
    if (pick & 8) byte = byte & 0x80 ? 0xff : 0; // the byte's sign
    r |= byte << (8 * i);
  }
  return r;
}
