// The part of device.cuh that formats.cuh needs, on the host.
#pragma once
#include <math.h>

#define __device__
#define INLINE static inline
#define METHOD inline
#define ALWAYS
#define UNROLL

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using s32 = int;
using u64 = unsigned long long;
using s64 = long long;

struct alignas(8) uint2 { u32 x, y; };
struct alignas(16) uint4 { u32 x, y, z, w; };
typedef float float4 __attribute__((ext_vector_type(4)));

INLINE u32 __nvvm_prmt(u32 a, u32 b, u32 which) {
  const u64 both = u64(b) << 32 | a;
  u32 r = 0;
  for (int i = 0; i < 4; i++) {
    const u32 pick = which >> (4 * i) & 15;
    u32 byte = u32(both >> (8 * (pick & 7))) & 0xff;
    if (pick & 8) byte = byte & 0x80 ? 0xff : 0; // its sign
    r |= byte << (8 * i);
  }
  return r;
}
INLINE float asFloat(u32 v) { return __builtin_bit_cast(float, v); }
INLINE u32 asBits(float v) { return __builtin_bit_cast(u32, v); }
INLINE float maxOf(float a, float b) { return fmaxf(a, b); }
INLINE float minOf(float a, float b) { return fminf(a, b); }
INLINE int maxOf(int a, int b) { return a > b ? a : b; }
INLINE int minOf(int a, int b) { return a < b ? a : b; }
INLINE float absOf(float v) { return fabsf(v); }
INLINE float halfToFloat(u16 h) { return float(__builtin_bit_cast(_Float16, h)); }
INLINE u16 floatToHalf(float v) { return __builtin_bit_cast(u16, _Float16(v)); }
INLINE float bfloatToFloat(u16 h) { return asFloat(u32(h) << 16); }
template <class T> INLINE T loadOnce(const T *p) { return *p; }
