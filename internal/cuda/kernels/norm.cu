// Normalization of rows: RMSNorm (Zhang and Sennrich, 2019) and LayerNorm (Ba, Kiros and Hinton,
// 2016), over whole rows or over groups of columns.
#include "activation.cuh"
#include "norm.cuh"

struct NormArgs {
  const float *x; // [rows of x, stride]
  s32 stride;     // elements
  s32 cols;       // of x and of out
  s32 group;      // columns normalized together; divides cols
  s32 centered;   // 0: x/sqrt(mean(x^2)+eps)*weight; 1: (x-mean)/sqrt(variance+eps)*weight+bias
  float eps;
  s32 width;           // of weight and bias: group, or cols if each group has its own
  const float *weight; // [width]
  const float *bias;   // [width], or 0: none
  const s32 *at;       // [count] row of x for each row of out, or 0: the same row
  const s32 *count;    // rows of this step
  Forms out;           // cols columns
  // [T, gateStride] what gates the normalized columns, each column of it gateEach adjacent ones; or 0
  const float *gate;
  s32 gateStride; // elements
  s32 gateEach;
  Unit unit; // of the gate
  s32 pad;
};

constexpr int threads = 512;
constexpr int warps = threads / 32;
static_assert(warps == normParts);

// A thread keeps 4*kept columns in registers between its passes, enough for groups of 4096 columns,
// and reads the rest of a group again.
constexpr int kept = 2;

// A group of more columns than this gets all warps of the block.
constexpr int warpColumns = 1024;

INLINE bool aligned(const void *p) { return (u64(p) & 15) == 0; }

// loadFour reads numbers i to i+3 of n; those from n on are 0.
INLINE float4 loadFour(const float *p, int i, int n, bool whole) {
  if (whole && i <= n - 4) return *reinterpret_cast<const float4 *>(p + i);
  return float4{i < n ? p[i] : 0.0f, i < n - 1 ? p[i + 1] : 0.0f, i < n - 2 ? p[i + 2] : 0.0f, i < n - 3 ? p[i + 3] : 0.0f};
}

// A Spread is what the columns of a group have in common: a column becomes ((x - mean) - rest) *
// scale. mean is rounded to float32; rest is the difference from the exact mean.
struct Spread {
  float mean, rest, scale;
};

// spreadOf computes a Spread from the sum of squares of the columns. If the norm is centered, these
// are differences from the rounded mean, and sum is their sum. The product that is subtracted from
// the squares is small, since the mean is nearly exact.
INLINE Spread spreadOf(float mean, float sum, float squares, float share, float eps) {
  const float rest = sum * share;
  const float left = fma(-sum, rest, squares);
  return Spread{mean, rest, scaleOf(left < 0 ? 0.0f : left, share, eps)};
}

template <typename T> INLINE T normalized(const Spread &s, T x, T weight) { return ((x - s.mean) - s.rest) * s.scale * weight; }

// A Meeting has the partial sums of the warps of a block, in two places that are used in turn, so
// that each exchange needs one barrier.
struct Meeting {
  alignas(16) float sums[2][2][warps];
};

// total replaces every s by its sum over a team: all threads of the block, or the lanes of a warp
// in aligned groups whose size is lanes.
template <bool block, int n> INLINE void total(float (&s)[n], int lanes, Meeting &meet, int &turn) {
  for (int m = lanes / 2; m; m >>= 1) {
    UNROLL for (int i = 0; i < n; i++) s[i] = s[i] + shuffleXor(s[i], m);
  }
  if constexpr (block) {
    auto &sums = meet.sums[turn];
    turn ^= 1;
    if ((tidX() & 31) == 0) {
      UNROLL for (int i = 0; i < n; i++) sums[i][tidX() / 32] = s[i];
    }
    syncBlock();
    UNROLL for (int i = 0; i < n; i++) s[i] = sumOfParts(sums[i]);
  }
}

// away returns v minus the mean for columns below n, and 0 for the others.
INLINE float4 away(float4 v, float mean, int i, int n) {
  return float4{i < n ? v.x - mean : 0.0f, i < n - 1 ? v.y - mean : 0.0f, i < n - 2 ? v.z - mean : 0.0f,
                i < n - 3 ? v.w - mean : 0.0f};
}

// normalize computes the columns of a row from first on that belong to the calling warp or block:
// one group, or for a warp also several groups of up to 64 columns, 128 columns in all. Its first
// loads do not wait for count.
template <bool block>
INLINE void normalize(const NormArgs &a, const float *x, int row, int count, int first, int span, Meeting &meet, int &turn) {
  constexpr int step = 4 * (block ? threads : 32);
  const int lane = tidX() & 31;
  const int start = 4 * (block ? tidX() : lane);
  const int lanes = a.group < 128 && !block ? a.group / 4 : 32;
  const bool own = a.width != a.group; // each group has its own weights
  const int wrap = a.group < 128 && !block && !own ? a.group - 1 : -1;
  const int n = minOf(span, a.cols - first), weights = own ? n : a.group;
  const float share = divide(1.0f, float(a.group));
  const float *weight = own ? a.weight + first : a.weight, *bias = own && a.bias ? a.bias + first : a.bias;
  x += first;
  const bool wholeX = aligned(x), wholeWeight = aligned(weight), wholeBias = aligned(bias);

  float4 v[kept], w[kept];
  UNROLL for (int k = 0; k < kept; k++) {
    v[k] = loadFour(x, start + k * step, n, wholeX);
    w[k] = loadFour(weight, (start + k * step) & wrap, weights, wholeWeight);
  }
  if (row >= count) return;

  float mean = 0;
  if (a.centered) {
    float4 s = v[0];
    UNROLL for (int k = 1; k < kept; k++) s += v[k];
#pragma unroll 2
    for (int i = start + kept * step; i < n; i += step) s += loadFour(x, i, n, wholeX);
    float sum[1] = {sumOf(s)};
    total<block>(sum, lanes, meet, turn);
    mean = sum[0] * share;
  }
  float4 s = {}, squares = {};
  UNROLL for (int k = 0; k < kept; k++) {
    const float4 d = away(v[k], mean, start + k * step, n);
    s += d;
    squares = squaresAdded(squares, d);
  }
#pragma unroll 2
  for (int i = start + kept * step; i < n; i += step) {
    const float4 d = away(loadFour(x, i, n, wholeX), mean, i, n);
    s += d;
    squares = squaresAdded(squares, d);
  }
  float sums[2] = {sumOf(squares), sumOf(s)};
  if (a.centered) {
    total<block>(sums, lanes, meet, turn);
  } else {
    float one[1] = {sums[0]};
    total<block>(one, lanes, meet, turn);
    sums[0] = one[0];
    sums[1] = 0;
  }
  const Spread spread = spreadOf(mean, sums[1], sums[0], share, a.eps);

  const auto store = [&](int i, float4 v, float4 w) {
    float4 y = normalized(spread, v, w);
    if (bias) y += loadFour(bias, i & wrap, weights, wholeBias);
    storeFour(a.out, row, first + i, away(y, 0.0f, i, n));
  };
  // All lanes of a warp store together, even if only some have columns.
  if (!a.gate) {
    UNROLL for (int k = 0; k < kept; k++) {
      if (start - 4 * lane + k * step < n) store(start + k * step, v[k], w[k]);
    }
    for (int i = start + kept * step; i - 4 * lane < n; i += step) {
      store(i, loadFour(x, i, n, wholeX), loadFour(weight, i & wrap, weights, wholeWeight));
    }
    return;
  }
  _Pragma("unroll 1") for (int i = start; i - 4 * lane < n; i += step) {
    float4 y = normalized(spread, loadFour(x, i, n, wholeX), loadFour(weight, i & wrap, weights, wholeWeight));
    if (bias) y += loadFour(bias, i & wrap, weights, wholeBias);
    float gate[4], up[4], v[4];
    UNROLL for (int e = 0; e < 4; e++) {
      gate[e] = i + e < n ? a.gate[s64(row) * a.gateStride + (first + i + e) / a.gateEach] : 0.0f;
      up[e] = y[e];
    }
    unitsOf(a.unit, v, gate, up);
    storeFour(a.out, row, first + i, away(float4{v[0], v[1], v[2], v[3]}, 0.0f, i, n));
  }
}

// spreadOfColumns computes a group's Spread with one warp, column by column.
INLINE Spread spreadOfColumns(const NormArgs &a, const float *x, int lane) {
  const float share = divide(1.0f, float(a.group));
  float mean = 0;
  if (a.centered) {
    for (int i = lane; i < a.group; i += 32) mean = mean + x[i];
    mean = warpSum(mean) * share;
  }
  float sum = 0, squares = 0;
  for (int i = lane; i < a.group; i += 32) {
    const float d = x[i] - mean;
    sum = sum + d;
    squares = fma(d, d, squares);
  }
  return spreadOf(mean, a.centered ? warpSum(sum) : 0.0f, warpSum(squares), share, a.eps);
}

// normalizeUneven normalizes a row whose groups do not end at multiples of 32 columns. For each
// window of columns it computes the Spreads of the groups, then writes the blocks of 32.
INLINE void normalizeUneven(const NormArgs &a, const float *x, int row) {
  constexpr int window = 512;
  __shared__ Spread spreads[window];
  const int lane = tidX() & 31, warp = tidX() / 32;
  for (int from = 0; from < a.cols; from += window) {
    const int to = minOf(a.cols, from + window), group = from / a.group;
    for (int g = group + warp; s64(g) * a.group < to; g += warps) {
      const Spread s = spreadOfColumns(a, x + g * a.group, lane);
      if (lane == 0) spreads[g - group] = s;
    }
    syncBlock();
    for (int block = from / 32 + warp; 32 * block < to; block += warps) {
      const int col = 32 * block + lane, g = col / a.group, i = a.width != a.group ? col : col - g * a.group;
      float y = 0;
      if (col < a.cols) {
        y = normalized(spreads[g - group], x[col], a.weight[i]);
        if (a.bias) y = y + a.bias[i];
        if (a.gate) y = unitOf(a.unit, a.gate[s64(row) * a.gateStride + col / a.gateEach], y);
      }
      storeBlock(a.out, row, block, lane, y);
    }
    syncBlock();
  }
}

// startRow waits for the previous kernel, and returns where row blockX of x is, or 0 if no thread has
// anything to do. Row 0 of x always exists, so its values need not wait for count: a single row mostly
// waits for memory. Nor need the weights wait for the previous kernel.
INLINE const float *startRow(const NormArgs &a, int &count) {
  const int row = blockX();
  if (row == 0) {
    for (int i = 32 * tidX(); i < a.width; i += 32 * threads) {
      prefetch(a.weight + i);
      if (a.bias) prefetch(a.bias + i);
    }
  }
  waitForPrevious();
  allowNext();
  count = *a.count;
  if ((row > 0 || a.at) && row >= count) return nullptr;
  return a.x + s64(a.at ? a.at[row] : row) * a.stride;
}

// norm writes row blockX. gridY blocks share it if its groups belong to warps; otherwise gridY is 1.
// Which threads compute a sum, and in which order, depends only on cols and group.
extern "C" __global__ void __launch_bounds__(threads, 2) norm(const NormArgs a) {
  __shared__ Meeting meet;
  int count;
  const float *x = startRow(a, count);
  if (!x) return;
  const int row = blockX(), warp = tidX() / 32, lane = tidX() & 31;
  const bool few = a.group >= 4 && a.group <= 64 && (a.group & (a.group - 1)) == 0;
  int turn = 0;
  if ((a.group == a.cols && a.group > 128) || (a.group % 128 == 0 && a.group > warpColumns)) {
    for (int first = 0; first < a.cols; first += a.group) normalize<true>(a, x, row, count, first, a.group, meet, turn);
  } else if (few || a.group % 128 == 0) {
    const int span = maxOf(a.group, 128);
    for (int first = (blockY() * warps + warp) * span; first < a.cols; first += gridY() * warps * span) normalize<false>(a, x, row, count, first, span, meet, turn);
  } else {
    if (row < count) normalizeUneven(a, x, row);
    return;
  }
  if (row >= count) return;
  for (int col = ((a.cols + 127) & -128) + 128 * (blockY() * warps + warp); col < a.out.stride; col += 128 * gridY() * warps) {
    storeFour(a.out, row, col + 4 * lane, float4{});
  }
}

// rms does what norm does for an RMSNorm over whole rows of a multiple of 4 columns, at most 2048*K,
// with weights alone: most of the norms of a model, in half of the instructions.
template <int K> INLINE void rms(const NormArgs &a) {
  __shared__ Meeting meet;
  constexpr int step = 4 * threads;
  int count, turn = 0;
  const float *x = startRow(a, count);
  if (!x) return;
  const int row = blockX(), start = 4 * tidX();
  float4 v[K], w[K];
  UNROLL for (int k = 0; k < K; k++) {
    const bool there = start + k * step < a.cols;
    v[k] = there ? *reinterpret_cast<const float4 *>(x + start + k * step) : float4{};
    w[k] = there ? *reinterpret_cast<const float4 *>(a.weight + start + k * step) : float4{};
  }
  if (row >= count) return;
  float4 squares = {};
  UNROLL for (int k = 0; k < K; k++) squares = squaresAdded(squares, v[k]);
  float sum[1] = {sumOf(squares)};
  total<true>(sum, 32, meet, turn);
  const float scale = scaleOf(sum[0], divide(1.0f, float(a.cols)), a.eps);
  UNROLL for (int k = 0; k < K; k++) { // the columns, then zeros up to the stride
    const int col = start + k * step;
    if (col < a.out.stride) storeFour(a.out, row, col, col < a.cols ? v[k] * scale * w[k] : float4{});
  }
}

// Grid (rows), 512 threads.
extern "C" __global__ void __launch_bounds__(threads, 4) rms_2048(const NormArgs a) { rms<1>(a); }
extern "C" __global__ void __launch_bounds__(threads, 3) rms_4096(const NormArgs a) { rms<2>(a); }
extern "C" __global__ void __launch_bounds__(threads, 2) rms_8192(const NormArgs a) { rms<4>(a); }
