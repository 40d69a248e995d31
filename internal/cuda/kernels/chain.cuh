// Elementwise operations.
#pragma once
#include "activation.cuh"
#include "each.cuh"

// In the order of plan.Func.
enum { funcActivate, funcScale, funcSoftcap, funcSoftplus, funcClamp, funcXIELU };

// A Function is a function of one value.
struct Function {
  s32 which;
  s32 act;               // of funcActivate
  float by;              // of funcScale, funcSoftcap and funcClamp
  float p, n, beta, eps; // of funcXIELU
};

// belowOne is exp(x) - 1 for x <= 0. Near 0 it sums nine terms of the series, which leave an error
// of 1e-9.
INLINE float belowOne(float x) {
  if (x < -0.5f) return expOf(within(x, 1000)) - 1;
  float s = 1.0f / 362880;
  s = fma(x, s, 1.0f / 40320);
  s = fma(x, s, 1.0f / 5040);
  s = fma(x, s, 1.0f / 720);
  s = fma(x, s, 1.0f / 120);
  s = fma(x, s, 1.0f / 24);
  s = fma(x, s, 1.0f / 6);
  s = fma(x, s, 0.5f);
  s = fma(x, s, 1.0f);
  return x * s;
}

// functionOf is a function of a value, as plan.Func defines it. NaN stays NaN.
INLINE float functionOf(const Function &a, float x) {
  switch (a.which) {
  case funcActivate: return activate(a.act, x);
  case funcScale: return x * a.by;
  case funcSoftplus: return softplusOf(x);
  case funcClamp: return x > a.by ? a.by : x < -a.by ? -a.by : x;
  case funcXIELU:
    if (x > 0) return x * fma(a.p, x, a.beta);
    return fma(a.n, belowOne(x > a.eps ? a.eps : x) - x, a.beta * x);
  default: return softcapOf(x, a.by);
  }
}

// lateUnitOf is unitOf with a limit of act(gate) instead of the gate.
INLINE float lateUnitOf(const Unit &u, float gate, float up) {
  const float act = activate(u.act, gate);
  return (act > u.limit ? u.limit : act) * ((up > u.limit ? u.limit : up < -u.limit ? -u.limit : up) + u.shift);
}

// A Link is an operation on a value v.
enum { linkMap, linkAdd, linkGated, linkGate };
struct Link {
  s32 kind;
  Function function; // of linkMap
  const float *x;    // [T, stride] what is added to v, what gates v, or what v gates; 0 with linkMap
  s32 stride;        // elements, a multiple of 4
  s32 each;          // columns of v for each column of x
  Unit unit;
  s32 late; // see lateUnitOf
};

// linkOf applies l to columns of a row.
template <class V> INLINE V linkOf(const Link &l, int row, int col, const V &v) {
  if (l.kind == linkMap) return byColumn<V>([&](int i) ALWAYS { return functionOf(l.function, numberOf(v, i)); });
  const float *from = l.x + s64(row) * l.stride;
  const V x = l.each == 1 ? columnsAt<V>(from + col) : byColumn<V>([&](int i) ALWAYS { return from[(col + i) / l.each]; });
  if (l.kind == linkAdd) return x + v;
  const V gate = l.kind == linkGated ? x : v, up = l.kind == linkGated ? v : x;
  return byColumn<V>([&](int i) ALWAYS {
    return l.late ? lateUnitOf(l.unit, numberOf(gate, i), numberOf(up, i)) : unitOf(l.unit, numberOf(gate, i), numberOf(up, i));
  });
}
