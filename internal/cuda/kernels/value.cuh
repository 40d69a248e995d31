// How sums over columns become values of a product.
#pragma once
#include "device.cuh"

// A Matrix is what turns sums of its tiles into values: the divisors of its rows, or 0, and their
// bias, or 0.
struct Matrix {
  const float *powers, *bias;
};

// valueOf turns a row's sum into its value. A divisor that is a power of two changes only the
// exponent.
INLINE float valueOf(const Matrix &m, float divided, int row, float sum) {
  float v = sum * (m.powers ? m.powers[row] * divided : divided);
  if (m.bias) v = v + m.bias[row];
  return v;
}
