// Activation functions of gated units and of elementwise maps.
#pragma once
#include "device.cuh"

// In the order of plan.Activation.
enum { actSiLU, actGELU, actGELUTanh, actReLU, actReLUSquared, actSigmoid, actQuickGELU, actTanh };

INLINE float tanhOf(float x) {
  const float a = absOf(x);
  if (a < 0.25f) { // the odd power series: the quotient below would lose digits
    const float q = x * x;
    return x * fma(q, fma(q, fma(q, fma(q, 62.0f / 2835, -17.0f / 315), 2.0f / 15), -1.0f / 3), 1.0f);
  }
  const float e = expOf(-2 * a);
  const float t = divide(1 - e, 1 + e);
  return x < 0 ? -t : t;
}

// erfOf is the error function, with an error of at most 2.1e-7. For |x| below 1 it sums ten terms
// of the power series, which leave an error of 1.4e-8. Beyond, it uses formula 7.1.26 of Abramowitz
// and Stegun, Handbook of Mathematical Functions (1964), whose error is 1.5e-7.
INLINE float erfOf(float x) {
  const float a = absOf(x);
  if (a < 1.0f) {
    // 2/sqrt(pi) * sum (-1)^n x^(2n+1) / (n! (2n+1))
    const float q = x * x;
    float s = 1.0f / 6894720;
    s = fma(-q, s, 1.0f / 685440);
    s = fma(-q, s, 1.0f / 75600);
    s = fma(-q, s, 1.0f / 9360);
    s = fma(-q, s, 1.0f / 1320);
    s = fma(-q, s, 1.0f / 216);
    s = fma(-q, s, 1.0f / 42);
    s = fma(-q, s, 1.0f / 10);
    s = fma(-q, s, 1.0f / 3);
    s = fma(-q, s, 1.0f);
    return x * s * 1.12837917f;
  }
  // 1 - (a1 t + ... + a5 t^5) exp(-x^2), t = 1/(1 + p x)
  const float t = divide(1.0f, fma(0.3275911f, a, 1.0f));
  float s = 1.061405429f;
  s = fma(s, t, -1.453152027f);
  s = fma(s, t, 1.421413741f);
  s = fma(s, t, -0.284496736f);
  s = fma(s, t, 0.254829592f);
  const float r = 1 - s * t * expOf(-a * a);
  return x < 0 ? -r : r;
}

// within clamps finite numbers to [-most, most]. Beyond that range the caller's function equals its
// limits to the last bit, but its intermediate results exceed float32.
INLINE float within(float x, float most) { return absOf(x) > most && isFinite(x) ? (x < 0 ? -most : most) : x; }

INLINE float siluOf(float x) { return quotient(x, 1 + expOf(clamp(-x, 1000))); }

INLINE float activate(int act, float x) {
  switch (act) {
  case actSiLU: return siluOf(x);
  case actGELU: return 0.5f * x * (1 + erfOf(within(x, 20) * 0.707106781f));
  case actGELUTanh: {
    const float v = within(x, 20);
    return 0.5f * x * (1 + tanhOf(0.797884561f * fma(0.044715f * v * v, v, v)));
  }
  case actReLU: return x > 0 || x != x ? x : 0;
  case actReLUSquared: return x > 0 || x != x ? x * x : 0;
  case actQuickGELU: return divide(x, 1 + expOf(-1.702f * within(x, 1000)));
  case actTanh: return tanhOf(within(x, 50));
  default: return divide(1.0f, 1 + expOf(-within(x, 1000)));
  }
}

// A Unit is a gated unit, act(gate)*(up+shift). With a limit, gate is at most limit and up is in
// [-limit, limit]. NaN stays NaN.
struct Unit {
  s32 act;
  float limit; // 0: none
  float shift;
};
INLINE float unitOf(const Unit &u, float gate, float up) {
  if (u.limit > 0) {
    gate = gate > u.limit ? u.limit : gate;
    up = up > u.limit ? u.limit : up < -u.limit ? -u.limit : up;
  }
  if (u.shift != 0) up = up + u.shift;
  return activate(u.act, gate) * up;
}

// unitsOf sets v to unitOf of N values. The unit of most models has a path of its own, which does
// not choose the activation for each value.
template <int N> INLINE void unitsOf(const Unit &u, float (&v)[N], float (&gate)[N], float (&up)[N]) {
  if (u.act == actSiLU && !(u.limit > 0) && u.shift == 0) {
    UNROLL for (int i = 0; i < N; i++) v[i] = siluOf(gate[i]) * up[i];
    return;
  }
  UNROLL for (int i = 0; i < N; i++) v[i] = 0;
  _Pragma("unroll 1") for (int n = 0; n < N; n++) { // rotating the arrays keeps them in registers
    const float first = gate[0], other = up[0];
    UNROLL for (int i = 0; i < N - 1; i++) v[i] = v[i + 1], gate[i] = gate[i + 1], up[i] = up[i + 1];
    v[N - 1] = unitOf(u, first, other), gate[N - 1] = first, up[N - 1] = other;
  }
}

INLINE float softcapOf(float x, float by) {
  const float v = divide(x, by);
  return by * tanhOf(isFinite(x) && absOf(v) > 50 ? (v < 0 ? -50.0f : 50.0f) : v);
}

// softplusOf is max(x, 0) + ln(1 + t) with t = exp(-|x|). The logarithm is 2 artanh(t / (2 + t));
// eight terms of its series leave an error of 2e-9.
INLINE float softplusOf(float x) {
  const float t = expOf(-within(absOf(x), 1000));
  const float u = divide(t, 2 + t), q = u * u;
  float s = 1.0f / 15;
  s = fma(q, s, 1.0f / 13);
  s = fma(q, s, 1.0f / 11);
  s = fma(q, s, 1.0f / 9);
  s = fma(q, s, 1.0f / 7);
  s = fma(q, s, 1.0f / 5);
  s = fma(q, s, 1.0f / 3);
  s = fma(q, s, 1.0f);
  return (x < 0 ? 0 : x) + 2 * u * s;
}
