// The real-gated linear recurrent unit of Griffin, see plan.LRUAttr.
#include "activation.cuh"
#include "forms.cuh"
#include "slots.cuh"

struct LruArgs {
  const float *x, *input, *decay; // [T, stride] each
  s32 xStride, inputStride, decayStride;
  s32 cols;
  const float *rate, *inputBias, *decayBias; // [cols]
  Slots state;                               // [cols]
  const s32 *positions;                      // [T]
  const s32 *starts;                         // [S+1] first token of each sequence, then T
  const s32 *seqs;                           // number of sequences in this step
  Forms out;                                 // cols columns
};

constexpr int lruThreads = 128;

INLINE float sigmoidOf(float x) { return activate(actSigmoid, x); }

// shareOf returns sqrt(1-a^2) for a = e^x, x <= 0. Near 0, it computes 1-a^2 as a series of eight
// terms, with an error of 2e-8.
INLINE float shareOf(float x, float a) {
  const float v = 2 * x;
  if (!(v > -0.5f)) return squareRoot(fma(-a, a, 1.0f));
  float s = 1.0f / 40320;
  s = fma(v, s, 1.0f / 5040);
  s = fma(v, s, 1.0f / 720);
  s = fma(v, s, 1.0f / 120);
  s = fma(v, s, 1.0f / 24);
  s = fma(v, s, 1.0f / 6);
  s = fma(v, s, 0.5f);
  s = fma(v, s, 1.0f);
  return squareRoot(-v * s);
}

// lru computes one column of a sequence per thread. Grid (blocks of 128 columns, sequences).
extern "C" __global__ void __launch_bounds__(lruThreads) lru(const LruArgs a) {
  waitForPrevious();
  allowNext();
  const int col = blockX() * lruThreads + tidX(), s = blockY(), lane = tidX() % 32;
  if (s >= *a.seqs || col - lane >= a.cols) return;
  const bool there = col < a.cols;
  const int c = there ? col : 0;
  const float rate = -8 * softplusOf(a.rate[c]), inputBias = a.inputBias[c], decayBias = a.decayBias[c];
  const float *before = slotBefore(a.state, s);
  float h = before ? before[c] : 0.0f;
  const int end = a.starts[s + 1];
  for (int t = a.starts[s]; t < end; t++) {
    const float in = sigmoidOf(a.input[s64(t) * a.inputStride + c] + inputBias) * a.x[s64(t) * a.xStride + c];
    const float exponent = rate * sigmoidOf(a.decay[s64(t) * a.decayStride + c] + decayBias), by = expOf(exponent);
    h = a.positions[t] == 0 ? in : fma(h, by, shareOf(exponent, by) * in);
    storeBlock(a.out, t, col / 32, lane, there ? h : 0.0f);
  }
  if (there) slotAfter(a.state, s)[c] = h;
}
