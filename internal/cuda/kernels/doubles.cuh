// Functions of float64.
#pragma once
#include "device.cuh"

constexpr double infinity = __builtin_inf();

INLINE double doubleOf(u64 v) { return __builtin_bit_cast(double, v); }
INLINE double shuffleXor(double v, int mask) { return doubleOf(shuffleXor(__builtin_bit_cast(u64, v), mask)); }
INLINE double warpSum(double v) {
  UNROLL for (int m = 16; m; m >>= 1) v = v + shuffleXor(v, m);
  return v;
}
INLINE double warpMax(double v) {
  UNROLL for (int m = 16; m; m >>= 1) {
    const double other = shuffleXor(v, m);
    v = other > v ? other : v;
  }
  return v;
}

// exponential is e^v to about one unit in the last place.
INLINE double exponential(double v) {
  if (v > 709.7) return infinity;
  if (v < -745) return 0;
  const double k = __builtin_rint(v * 1.4426950408889634);
  double r = __builtin_fma(-k, 0x1.62e42fefa39efp-1, v);
  r = __builtin_fma(-k, 0x1.abc9e3b39803fp-56, r);
  double s = 1.0 / 6227020800;
  s = __builtin_fma(s, r, 1.0 / 479001600);
  s = __builtin_fma(s, r, 1.0 / 39916800);
  s = __builtin_fma(s, r, 1.0 / 3628800);
  s = __builtin_fma(s, r, 1.0 / 362880);
  s = __builtin_fma(s, r, 1.0 / 40320);
  s = __builtin_fma(s, r, 1.0 / 5040);
  s = __builtin_fma(s, r, 1.0 / 720);
  s = __builtin_fma(s, r, 1.0 / 120);
  s = __builtin_fma(s, r, 1.0 / 24);
  s = __builtin_fma(s, r, 1.0 / 6);
  s = __builtin_fma(s, r, 0.5);
  s = __builtin_fma(s, r, 1.0);
  s = __builtin_fma(s, r, 1.0);
  // 2^k as two factors, so that float64 holds both.
  const int n = int(k), half = n / 2;
  return s * doubleOf(u64(1023 + half) << 52) * doubleOf(u64(1023 + n - half) << 52);
}

// softplus is ln(1 + e^v), to about two units in the last place of large results and of small ones.
// It is max(v, 0) + ln(1 + t) with t = e^-|v|. The logarithm is 2 artanh(t / (2 + t)); sixteen
// terms of its series leave an error of 1e-17.
INLINE double softplus(double v) {
  const double t = exponential(v < 0 ? v : -v), u = t / (2 + t), q = u * u;
  double s = 0;
  UNROLL for (int i = 31; i > 0; i -= 2) s = __builtin_fma(s, q, 1.0 / i);
  return (v < 0 ? 0 : v) + 2 * u * s;
}
