// The selective scan of Mamba, each column by itself.
#include "activation.cuh"
#include "forms.cuh"
#include "slots.cuh"

struct ScanArgs {
  const float *x, *dt;    // [T, stride] values and steps
  const float *in, *out;  // [T, stride] inputs and outputs of n values each
  s32 xStride, dtStride;  // elements
  s32 inStride, outStride;
  const float *a;         // [cols, n] decays
  const float *skip;      // [cols]
  s32 cols, n;
  Slots state;            // [n, cols] each
  const s32 *starts;      // [S+1] first token of each sequence, then T
  const s32 *seqs;        // number of sequences in this step
  Forms y;                // cols columns
};

constexpr int scanThreads = 128;

// States is the state of a column: N numbers in registers, or with N = 0 any number of them in the
// slot after the step.
template <int N> struct States {
  float h[N];
  METHOD States(const ScanArgs &a, int s, int col, int n) {
    const float *before = slotBefore(a.state, s);
    UNROLL for (int i = 0; i < N; i++) h[i] = before && i < n ? before[s64(i) * a.cols + col] : 0.0f;
  }
  METHOD float get(int i) const { return h[i]; }
  METHOD void set(int i, float v) { h[i] = v; }
  METHOD void end(const ScanArgs &a, int s, int col) const {
    float *after = slotAfter(a.state, s);
    UNROLL for (int i = 0; i < N; i++) {
      if (i < a.n) after[s64(i) * a.cols + col] = h[i];
    }
  }
};
template <> struct States<0> {
  float *h;
  int apart;
  METHOD States(const ScanArgs &a, int s, int col, int n) : h(slotAfter(a.state, s) + col), apart(a.cols) {
    const float *before = slotBefore(a.state, s);
    for (int i = 0; i < n; i++) h[s64(i) * apart] = before ? before[s64(i) * apart + col] : 0.0f;
  }
  METHOD float get(int i) const { return h[s64(i) * apart]; }
  METHOD void set(int i, float v) { h[s64(i) * apart] = v; }
  METHOD void end(const ScanArgs &, int, int) const {}
};

// scanColumns computes a column of a sequence per thread. Grid (blocks of 128 columns, sequences).
template <int N> INLINE void scanColumns(const ScanArgs &a) {
  waitForPrevious();
  allowNext();
  const int col = blockX() * scanThreads + tidX(), s = blockY(), lane = tidX() % 32;
  if (s >= *a.seqs || col - lane >= a.cols) return;
  const bool there = col < a.cols;
  const int c = there ? col : 0, n = there ? a.n : 0; // lanes beyond cols have no state
  const float *decays = a.a + s64(c) * a.n;
  const float skip = a.skip[c];
  States<N> h(a, s, c, n);
  const int end = a.starts[s + 1];
  for (int t = a.starts[s]; t < end; t++) {
    const float x = a.x[s64(t) * a.xStride + c], step = softplusOf(a.dt[s64(t) * a.dtStride + c]), put = step * x;
    const float *in = a.in + s64(t) * a.inStride, *out = a.out + s64(t) * a.outStride;
    float y = 0;
    const auto one = [&](int i) ALWAYS {
      const float v = fma(put, in[i], h.get(i) * expOf(step * decays[i]));
      h.set(i, v);
      y = fma(v, out[i], y);
    };
    if constexpr (N > 0) {
      UNROLL for (int i = 0; i < N; i++) {
        if (i < n) one(i);
      }
    } else {
      _Pragma("unroll 1") for (int i = 0; i < n; i++) one(i);
    }
    storeBlock(a.y, t, col / 32, lane, there ? fma(skip, x, y) : 0.0f);
  }
  if (there) h.end(a, s, c);
}

extern "C" __global__ void __launch_bounds__(scanThreads) scan_16(const ScanArgs a) { scanColumns<16>(a); }
extern "C" __global__ void __launch_bounds__(scanThreads) scan_any(const ScanArgs a) { scanColumns<0>(a); }
