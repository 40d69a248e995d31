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
constexpr int laneValues = maxHeadDim / 32; // of a head

// turnHead computes one head of one token per warp: first the heads of q, then those of k, then of
// v.
template <class C> INLINE void turnHead(const TurnArgs &a, float *row) {
  const int token = blockY(), lane = tidX() % 32, dim = a.headDim;
  int head = blockX() * turnWarps + tidX() / 32;
  const bool query = head < a.heads;
  const bool key = !query && head < a.heads + a.kvHeads;
  const bool some = head < a.heads + 2 * a.kvHeads && token < *a.count;
  if (!query) head -= key ? a.heads : a.heads + a.kvHeads;

  // What no kernel writes is loaded while the previous kernel still runs.
  Slot slot{};
  if (some && !query) {
    const Place place = a.table.places[token];
    slot = slotOf(a.pool, a.table, place.shift, place.position);
  }
  const Step step = query ? queryStep(a, token) : keyStep(a, token);
  const bool norm = (query || key) && step.norm, turned = (query || key) && step.angles;
  float w[laneValues] = {};
  if (norm) loadHead(w, step.norm, dim, lane);
  waitForPrevious();
  allowNext();
  if (!some) return;

  const float *x = query ? a.q + s64(token) * a.qStride : key ? a.k + s64(token) * a.kStride : a.v + s64(token) * a.vStride;
  float v[laneValues];
  loadHead(v, x + head * dim, dim, lane);
  float2 by[laneValues];
  if (turned) loadAngles(by, step, lane);
  if (norm) normalize(v, w, step.eps, dim);
  if (turned) turn(v, row, by, step, lane);

  if (query) {
    float *out = a.qOut + s64(token) * a.qOutStride + head * dim;
    UNROLL for (int j = 0; j < laneValues; j++) {
      if (32 * j + lane < dim) out[32 * j + lane] = v[j];
    }
    return;
  }
  if (storeHead(a.pool, slot, key, head, dim, v, lane, true, static_cast<Copy<C> *>(nullptr)) && lane == 0) {
    __atomic_fetch_min(a.overflow + a.sequence[token], a.layer, __ATOMIC_RELAXED);
  }
}

// Grid (ceil((heads+2*kvHeads)/4), T), 128 threads. Cost: one row is bound by latency, so place and
// page are loaded while the previous kernel runs; many rows are bound by memory: each head is read
// once and written once.
#define TURN(name, cache)                                                                \
  extern "C" __global__ void __launch_bounds__(32 * turnWarps) name(const TurnArgs a) {  \
    __shared__ float rows[turnWarps][maxHeadDim];                                        \
    turnHead<cache>(a, rows[tidX() / 32]);                                               \
  }
TURN(turn_f32, CacheF32)
TURN(turn_f16, CacheF16)
TURN(turn_q8, CacheQ8)
TURN(turn_f8, CacheF8)
