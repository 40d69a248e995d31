// Pairs of float16 numbers in a word, the first in the lower half.
#pragma once
#include "device.cuh"

static __device__ constexpr u32 halves(float a, float b) {
  return u32(__builtin_bit_cast(u16, _Float16(a))) | u32(__builtin_bit_cast(u16, _Float16(b))) << 16;
}
INLINE u32 fmaHalves(u32 a, u32 b, u32 c) {
  u32 r;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
  return r;
}
INLINE u32 multiplyHalves(u32 a, u32 b) {
  u32 r;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}
INLINE u32 addHalves(u32 a, u32 b) {
  u32 r;
  asm("add.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}
// bytesOf selects four bytes of a and b, which are bytes 0 to 3 and 4 to 7.
INLINE u32 bytesOf(u32 a, u32 b, u32 which) { return __nvvm_prmt(a, b, which); }
INLINE u32 lowHalves(u32 a, u32 b) { return bytesOf(a, b, 0x5410); }
INLINE u32 highHalves(u32 a, u32 b) { return bytesOf(a, b, 0x7632); }
// lowTwice and highTwice cost nothing: the instructions that use them select halves.
INLINE u32 lowTwice(u32 v) {
  u32 r;
  asm("{ .reg .b16 l, h; mov.b32 {l, h}, %1; mov.b32 %0, {l, l}; }" : "=r"(r) : "r"(v));
  return r;
}
INLINE u32 highTwice(u32 v) {
  u32 r;
  asm("{ .reg .b16 l, h; mov.b32 {l, h}, %1; mov.b32 %0, {h, h}; }" : "=r"(r) : "r"(v));
  return r;
}
// byteOfEach is byte i of a and of b as 16-bit numbers.
INLINE u32 byteOfEach(u32 a, u32 b, int i) { return bytesOf(a, b, 0x0400u + 0x0101u * u32(i)) & 0x00ff00ffu; }
// smallOfEach is byteOfEach for bytes below 128, whose sign bits fill the upper bytes.
INLINE u32 smallOfEach(u32 a, u32 b, int i) { return bytesOf(a, b, 0xc480u + 0x1111u * u32(i)); }
// scaled is signed bytes times their scale, each product rounded once.
INLINE uint2 scaled(u32 bytes, u16 scale) {
  const u32 by = u32(scale) | u32(scale) << 16, v = bytes ^ 0x80808080u;
  // The bytes plus 1152.
  u32 low = __nvvm_prmt(v, 0x64646464u, 0x4140u), high = __nvvm_prmt(v, 0x64646464u, 0x4342u);
  asm("sub.rn.f16x2 %0, %0, %1;" : "+r"(low) : "r"(0x64806480u));
  asm("sub.rn.f16x2 %0, %0, %1;" : "+r"(high) : "r"(0x64806480u));
  asm("mul.rn.f16x2 %0, %0, %1;" : "+r"(low) : "r"(by));
  asm("mul.rn.f16x2 %0, %0, %1;" : "+r"(high) : "r"(by));
  return uint2{low, high};
}
