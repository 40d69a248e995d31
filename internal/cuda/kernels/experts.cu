// A mixture of experts beside its products: which experts a token has, which tokens an
// expert has, and what a token gets of its experts.
#include "each.cuh"
#include "experts.cuh"

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
  // 2^k in two steps, so that both are numbers.
  const int n = int(k), half = n / 2;
  return s * doubleOf(u64(1023 + half) << 52) * doubleOf(u64(1023 + n - half) << 52);
}

// As plan.Score counts them.
enum { softmaxAll, softmaxChosen, sigmoidEach };

struct RouteArgs {
  const float *logits; // [T, stride]
  const float *bias;   // [experts] added to scores to choose by, or 0
  s32 stride;          // elements
  s32 experts;         // at most maxExperts
  s32 used;            // experts of a token
  s32 score;
  s32 normalize;       // 1: weights are divided by their sum
  s32 groups;          // of consecutive experts; 0 or 1: all experts can be chosen
  s32 groupsUsed;
  s32 groupTop;        // experts by which a group is judged
  double scale;        // of the weights
  const s32 *count;    // tokens of this step
  s32 *chosen;         // [T, used] the best first
  float *weights;      // [T, used]
  s32 *slots;          // [T, used]; these four are written where there is one token
  s32 *tokens;         // [T*used] token of each slot
  Active *active;      // [min(T*used, experts)]
  s32 *sizes;          // [2] active experts, and slots
};

// inGroup adds up the best experts of a group, the best first.
INLINE double inGroup(const double *choice, int size, int top) {
  double sum = 0, last = infinity;
  int at = -1;
  for (int k = 0; k < top; k++) {
    double best = -infinity;
    int next = size;
    for (int i = 0; i < size; i++) {
      const double v = choice[i];
      if ((v < last || (v == last && i > at)) && (v > best || next == size)) best = v, next = i;
    }
    sum = sum + best, last = best, at = next;
  }
  return sum;
}

// scoreExperts has a warp write the scores of all experts, and what they are chosen by. It
// reports whether the logits are finite.
INLINE bool scoreExperts(const RouteArgs &a, const float *logits, double *scores, double *choice, double *groups, int lane) {
  bool good = true;
  double top = -infinity;
  for (int i = lane; i < a.experts; i += 32) {
    const float v = logits[i];
    good = good && isFinite(v);
    scores[i] = v;
    top = double(v) > top ? double(v) : top;
  }
  if (ballot(good) != 0xffffffffu) return false;
  top = warpMax(top);
  if (a.score == softmaxAll) {
    double sum = 0;
    for (int i = lane; i < a.experts; i += 32) {
      scores[i] = exponential(scores[i] - top);
      sum = sum + scores[i];
    }
    sum = warpSum(sum);
    for (int i = lane; i < a.experts; i += 32) scores[i] = scores[i] / sum;
  } else if (a.score == sigmoidEach) {
    for (int i = lane; i < a.experts; i += 32) scores[i] = 1 / (1 + exponential(-scores[i]));
  }
  for (int i = lane; i < a.experts; i += 32) choice[i] = a.bias ? scores[i] + double(a.bias[i]) : scores[i];
  if (a.groups <= 1) return true;
  syncWarp();
  const int size = a.experts / a.groups;
  for (int g = lane; g < a.groups; g += 32) groups[g] = inGroup(choice + g * size, size, a.groupTop);
  syncWarp();
  for (int g = lane; g < a.groups; g += 32) {
    int better = 0;
    for (int h = 0; h < a.groups; h++) better += groups[h] > groups[g] || (groups[h] == groups[g] && h < g);
    if (better < a.groupsUsed) continue;
    for (int i = 0; i < size; i++) choice[g * size + i] = -infinity;
  }
  return true;
}

constexpr int routeThreads = 128;

// route chooses the experts of each token, as internal/cpu/route.go defines it, in
// float64. A block does a token: its first warp the scores and the weights, and a thread
// the place of an expert among all. Grid (T), shared memory of
// 8*(2*experts+groups+used) + 4*used bytes.
extern "C" __global__ void __launch_bounds__(routeThreads) route(const RouteArgs a) {
  extern __shared__ double shared[];
  __shared__ int finite;
  waitForPrevious();
  allowNext();
  const int token = blockX(), lane = tidX() & 31, count = *a.count;
  if (token >= count) return;
  double *scores = shared, *choice = scores + a.experts, *groups = choice + a.experts, *mine = groups + a.groups;
  s32 *picked = reinterpret_cast<s32 *>(mine + a.used);
  if (tidX() < 32) {
    const bool good = scoreExperts(a, a.logits + s64(token) * a.stride, scores, choice, groups, lane);
    if (lane == 0) finite = good;
  }
  syncBlock();
  const bool good = finite;
  for (int i = tidX(); good && i < a.experts; i += routeThreads) {
    const double own = choice[i];
    int better = 0;
#pragma unroll 8
    for (int j = 0; j < a.experts; j++) better += choice[j] > own || (choice[j] == own && j < i);
    if (better < a.used) picked[better] = i, mine[better] = scores[i];
  }
  syncBlock();
  if (tidX() >= 32) return;
  if (good && a.score == softmaxChosen) {
    double best = -infinity;
    for (int k = lane; k < a.used; k += 32) best = mine[k] > best ? mine[k] : best;
    best = warpMax(best);
    for (int k = lane; k < a.used; k += 32) mine[k] = exponential(mine[k] - best);
    syncWarp();
  }
  double sum = 1;
  if (good && (a.score == softmaxChosen || a.normalize)) {
    sum = 0;
    for (int k = 0; k < a.used; k++) sum = sum + mine[k];
  }
  for (int k = lane; k < a.used; k += 32) {
    const s64 i = s64(token) * a.used + k;
    // What is not finite chooses the first experts, and stays so.
    const int expert = good ? picked[k] : k;
    a.chosen[i] = expert;
    a.weights[i] = good ? float(mine[k] / sum * a.scale) : asFloat(0x7fc00000);
    if (count == 1) {
      a.slots[k] = k;
      a.tokens[k] = 0;
      a.active[k] = Active{expert, k, k + 1, expert};
      if (k == 0) a.sizes[0] = a.used, a.sizes[1] = a.used;
    }
  }
}

struct GroupArgs {
  const s32 *chosen; // [T, used]
  s32 experts;       // at most maxExperts
  s32 used;
  s32 rows;          // of a part at most
  const s32 *count;  // tokens of this step
  s32 *slots;        // [T, used]
  s32 *tokens;       // [slots] token of each slot; 0 for unused slots
  Active *active;    // [min(T*used, experts)] in ascending order
  SlotRange *parts;       // in the order of their slots
  s32 *sizes;        // [3] active experts, slots, and parts
};

constexpr int groupThreads = 256;

// group gives the tokens of each expert their slots. A block does an expert, and looks at
// all that was chosen; grid (experts).
extern "C" __global__ void __launch_bounds__(groupThreads) group(const GroupArgs a) {
  constexpr int warps = groupThreads / 32, sums = 6;
  __shared__ s32 of[maxExperts]; // how many chose an expert
  __shared__ int shared[sums][warps], hits[2][warps];
  waitForPrevious();
  allowNext();
  const int expert = blockX(), n = *a.count * a.used, tid = tidX(), warp = tid / 32, lane = tid & 31;
  for (int i = tid; i < a.experts; i += groupThreads) of[i] = 0;
  syncBlock();
#pragma unroll 4
  for (int i = tid; i < n; i += groupThreads) atomicAddShared(&of[a.chosen[i]], 1);
  syncBlock();
  int sum[sums] = {}; // active experts, slots and parts of those below; and of all
  for (int i = tid; i < a.experts; i += groupThreads) {
    const int of3[3] = {of[i] > 0, (of[i] + 7) / 8 * 8, (of[i] + a.rows - 1) / a.rows};
    UNROLL for (int k = 0; k < 3; k++) sum[k] += i < expert ? of3[k] : 0, sum[3 + k] += of3[k];
  }
  UNROLL for (int k = 0; k < sums; k++) {
    sum[k] = warpSum(sum[k]);
    if (lane == 0) shared[k][warp] = sum[k];
  }
  syncBlock();
  UNROLL for (int k = 0; k < sums; k++) {
    sum[k] = 0;
    UNROLL for (int i = 0; i < warps; i++) sum[k] += shared[k][i];
  }
  if (expert == 0 && tid < 3) a.sizes[tid] = tid == 0 ? sum[3] : tid == 1 ? sum[4] : sum[5];
  const int mine = of[expert], begin = sum[1];
  if (mine == 0) return;
  if (tid == 0) a.active[sum[0]] = Active{expert, begin, begin + mine, expert};
  for (int i = tid; i * a.rows < mine; i += groupThreads) {
    a.parts[sum[2] + i] = SlotRange{sum[0], begin + i * a.rows, begin + minOf(i * a.rows + a.rows, mine), 0};
  }
  if (tid < (8 - mine % 8) % 8) a.tokens[begin + mine + tid] = 0;
  int next = begin;
  for (int first = 0, turn = 0; first < n; first += groupThreads, turn ^= 1) {
    const int i = first + tid;
    const bool hit = i < n && a.chosen[i] == expert;
    const u32 all = ballot(hit);
    if (lane == 0) hits[turn][warp] = __builtin_popcount(all);
    syncBlock();
    int before = 0, total = 0;
    UNROLL for (int k = 0; k < warps; k++) {
      before += k < warp ? hits[turn][k] : 0;
      total += hits[turn][k];
    }
    if (hit) {
      const int slot = next + before + __builtin_popcount(all & ((1u << lane) - 1));
      a.slots[i] = slot;
      a.tokens[slot] = i / a.used;
    }
    next += total;
  }
}

struct GatherArgs {
  const u16 *x;      // rows of 16 bits, of tokens
  u16 *to;           // the same, of slots
  s32 stride;        // of both, elements
  const s32 *tokens; // [slots] token of each slot
  const s32 *sizes;  // see GroupArgs
};

// gather gives each slot the row of its token. A thread has a piece of 8 columns; grid (blocks
// of a row's pieces, rows).
extern "C" __global__ void __launch_bounds__(threads) gather(const GatherArgs a) {
  waitForPrevious();
  allowNext();
  const int col = 8 * (blockX() * threads + tidX()), slots = a.sizes[1];
  if (col >= a.stride) return;
  for (int slot = blockY(); slot < slots; slot += gridY()) {
    const u16 *from = a.x + placeOf(a.tokens[slot], col, a.stride);
    *reinterpret_cast<uint4 *>(a.to + placeOf(slot, col, a.stride)) = *reinterpret_cast<const uint4 *>(from);
  }
}

struct CombineArgs {
  const float *y;        // [slots, stride] what experts made of their tokens
  s32 stride;            // elements
  s32 cols;              // of y and out
  const s32 *slots;      // [T, used]
  const float *weights;  // [T, used]
  const float *residual; // [T, residualStride] added to the sum, or 0
  s32 residualStride;    // elements
  s32 used;
  const s32 *count; // tokens of this step
  Forms out;        // cols columns
};

// combine adds up the experts of each token, the best first.
extern "C" __global__ void __launch_bounds__(threads) combine(const CombineArgs a) {
  waitForPrevious();
  allowNext();
  eachBlock(a.out, a.count, a.cols, [&](int row, int col) {
    const s32 *slots = a.slots + s64(row) * a.used;
    const float *weights = a.weights + s64(row) * a.used;
    float v = weights[0] * a.y[s64(slots[0]) * a.stride + col];
#pragma unroll 4
    for (int k = 1; k < a.used; k++) v = v + weights[k] * a.y[s64(slots[k]) * a.stride + col];
    if (a.residual) v = a.residual[s64(row) * a.residualStride + col] + v;
    return v;
  });
}
