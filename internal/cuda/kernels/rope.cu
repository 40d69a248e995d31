// Rotary positions: these kernels normalize and rotate queries and keys, and store keys and values
// in their pages.
#include "head.cuh"

struct AnglesArgs {
  const double *freqs;  // [sets][pairs] radians per position
  const s32 *set;       // [T] the set of each token
  const s32 *positions; // [T]
  const s32 *count;     // tokens of the step
  float2 *out;          // [T][pairs] cosine and sine, both times scale
  s32 pairs;
  float scale;
  s32 shift;            // added to positions
  s32 pad;
};

// sinCos computes the sine and the cosine of an angle up to about 2^31, to 1e-11.
INLINE void sinCos(double angle, double &sine, double &cosine) {
  // r is the angle minus the nearest multiple of pi/2. The second constant is what the first lacks
  // of pi/2; the products are not rounded.
  const double turns = __builtin_rint(angle * 0.63661977236758134);
  double r = __builtin_fma(-turns, 1.5707963267948966, angle);
  r = __builtin_fma(-turns, 6.123233995736766e-17, r);
  const double q = r * r;
  double s = -1.0 / 39916800, c = 1.0 / 479001600;
  s = __builtin_fma(s, q, 1.0 / 362880);
  s = __builtin_fma(s, q, -1.0 / 5040);
  s = __builtin_fma(s, q, 1.0 / 120);
  s = __builtin_fma(s, q, -1.0 / 6);
  s = __builtin_fma(s * q, r, r);
  c = __builtin_fma(c, q, -1.0 / 3628800);
  c = __builtin_fma(c, q, 1.0 / 40320);
  c = __builtin_fma(c, q, -1.0 / 720);
  c = __builtin_fma(c, q, 1.0 / 24);
  c = __builtin_fma(c, q, -0.5);
  c = __builtin_fma(c, q, 1.0);
  // The quarter turn comes from the number's bits, since the conversion of NaN is undefined.
  const int quarter = int(__builtin_bit_cast(u64, turns + 0x1.8p52) & 3);
  const double a = quarter & 1 ? c : s, b = quarter & 1 ? s : c;
  sine = quarter & 2 ? -a : a;
  cosine = quarter == 1 || quarter == 2 ? -b : b;
}

// Grid (T), 128 threads. It runs once per step, for all layers.
extern "C" __global__ void __launch_bounds__(128) angles(const AnglesArgs a) {
  waitForPrevious();
  allowNext();
  const int token = blockX();
  if (token >= *a.count) return;
  const double position = a.positions[token] + a.shift;
  const double *freqs = a.freqs + s64(a.set[token]) * a.pairs;
  for (int i = tidX(); i < a.pairs; i += threadsX()) {
    double sine, cosine;
    sinCos(position * freqs[i], sine, cosine);
    a.out[s64(token) * a.pairs + i] = float2{float(cosine * a.scale), float(sine * a.scale)};
  }
}

constexpr int turnWarps = 4;
constexpr int headsOfWarp = 4;

// turnHeads computes four heads of one token per warp: first those of q, then those of k, then of v.
// Heads have D elements, or any number if D is 0.
template <class C, int D> INLINE void turnHeads(const TurnArgs &a, float *row) {
  constexpr int laneValues = (D ? D : maxHeadDim) / 32;
  const int token = blockY(), lane = tidX() % 32, dim = D ? D : a.headDim;
  const int queries = (a.heads + headsOfWarp - 1) / headsOfWarp, keys = (a.kvHeads + headsOfWarp - 1) / headsOfWarp;
  int group = blockX() * turnWarps + tidX() / 32;
  const bool query = group < queries;
  const bool key = !query && group < queries + keys;
  const bool some = group < queries + 2 * keys && token < *a.count;
  if (!query) group -= key ? queries : queries + keys;
  const int first = group * headsOfWarp, n = minOf(headsOfWarp, (query ? a.heads : a.kvHeads) - first);

  // What no kernel writes is loaded while the previous kernel still runs.
  Slot slot{};
  if (some && !query) {
    const Place place = a.table.places[token];
    slot = slotOf(a.pool, a.table, place.shift, place.position);
  }
  const Step step = query ? queryStep(a, token) : key ? keyStep(a, token) : Step{};
  float w[laneValues] = {};
  if (step.norm) loadHead(w, step.norm, dim, lane);
  waitForPrevious();
  allowNext();
  if (!some) return;

  const float *x = (query ? a.q + s64(token) * a.qStride : key ? a.k + s64(token) * a.kStride : a.v + s64(token) * a.vStride) + first * dim;
  float *out = a.qOut + s64(token) * a.qOutStride + first * dim;
  float2 by[laneValues] = {};
  if (step.angles) loadAngles(by, step, lane);
  const auto finish = [&](float(&v)[laneValues], int h) ALWAYS {
    prepareHead<D>(v, w, by, step, dim, row, lane);
    if (query) {
      UNROLL for (int j = 0; j < laneValues; j++) {
        if (32 * j + lane < dim) out[h * dim + 32 * j + lane] = v[j];
      }
    } else if (storeHead(a.pool, slot, key, first + h, dim, v, lane, true, static_cast<Copy<C> *>(nullptr)) && lane == 0) {
      __atomic_fetch_min(a.overflow + a.sequence[token], a.layer, __ATOMIC_RELAXED);
    }
  };
  if constexpr (D) {
    float v[headsOfWarp][laneValues];
    UNROLL for (int h = 0; h < headsOfWarp; h++) {
      if (h < n) loadHead(v[h], x + h * dim, dim, lane);
    }
    UNROLL for (int h = 0; h < headsOfWarp; h++) {
      if (h < n) finish(v[h], h);
    }
  } else {
    _Pragma("unroll 1") for (int h = 0; h < n; h++) {
      float v[laneValues];
      loadHead(v, x + h * dim, dim, lane);
      finish(v, h);
    }
  }
}

// Grid (ceil((ceil(heads/4)+2*ceil(kvHeads/4))/4), T), 128 threads. Cost: one row is bound by latency,
// so place and page are loaded while the previous kernel runs; many rows are bound by memory: each
// head is read once and written once.
#define TURN(name, cache)                                                                \
  extern "C" __global__ void __launch_bounds__(32 * turnWarps) name(const TurnArgs a) {  \
    __shared__ float rows[turnWarps][maxHeadDim];                                        \
    float *row = rows[tidX() / 32];                                                      \
    if (a.headDim == 128) return turnHeads<cache, 128>(a, row);                          \
    if (a.headDim == 64) return turnHeads<cache, 64>(a, row);                            \
    turnHeads<cache, 0>(a, row);                                                         \
  }
TURN(turn_f32, CacheF32)
TURN(turn_f16, CacheF16)
TURN(turn_q8, CacheQ8)
TURN(turn_f8, CacheF8)
