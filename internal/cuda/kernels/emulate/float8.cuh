// float8.cuh on the host, which has no operands in float8.
#pragma once
#include "linear.cuh"

struct Fit {
  float by, undo;
};
INLINE Fit fitOf(const Product &p, int row) { return reinterpret_cast<const Fit *>(p.powers)[row]; }
template <class F> constexpr bool isFloat8 = false;
