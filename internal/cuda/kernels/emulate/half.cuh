// half.cuh on the host: pairs of float16 numbers, each result rounded once.
#pragma once
#include "device.cuh"

static constexpr u32 halves(float a, float b) {
  return u32(__builtin_bit_cast(u16, _Float16(a))) | u32(__builtin_bit_cast(u16, _Float16(b))) << 16;
}
template <class Of> INLINE u32 eachHalf(const Of &of) {
  u32 r = 0;
  for (int i = 0; i < 2; i++) r |= u32(floatToHalf(float(of(16 * i)))) << (16 * i);
  return r;
}
INLINE double numberOf(u32 v, int shift) { return halfToFloat(u16(v >> shift)); }
INLINE u32 fmaHalves(u32 a, u32 b, u32 c) { return eachHalf([&](int s) { return numberOf(a, s) * numberOf(b, s) + numberOf(c, s); }); }
INLINE u32 multiplyHalves(u32 a, u32 b) { return eachHalf([&](int s) { return numberOf(a, s) * numberOf(b, s); }); }
INLINE u32 addHalves(u32 a, u32 b) { return eachHalf([&](int s) { return numberOf(a, s) + numberOf(b, s); }); }
INLINE u32 bytesOf(u32 a, u32 b, u32 which) { return __nvvm_prmt(a, b, which); }
INLINE u32 lowHalves(u32 a, u32 b) { return bytesOf(a, b, 0x5410); }
INLINE u32 highHalves(u32 a, u32 b) { return bytesOf(a, b, 0x7632); }
INLINE u32 lowTwice(u32 v) { return bytesOf(v, v, 0x1010); }
INLINE u32 highTwice(u32 v) { return bytesOf(v, v, 0x3232); }
INLINE u32 byteOfEach(u32 a, u32 b, int i) { return bytesOf(a, b, 0x0400u + 0x0101u * u32(i)) & 0x00ff00ffu; }
INLINE u32 smallOfEach(u32 a, u32 b, int i) { return bytesOf(a, b, 0xc480u + 0x1111u * u32(i)); }
INLINE uint2 scaled(u32 bytes, u16 scale) {
  u32 w[2] = {};
  for (int i = 0; i < 4; i++) w[i / 2] |= u32(floatToHalf(float(s8(bytes >> (8 * i))) * halfToFloat(scale))) << (i % 2 * 16);
  return uint2{w[0], w[1]};
}
