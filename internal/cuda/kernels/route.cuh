// The choice of experts from a router's logits, as internal/cpu/route.go defines it.
#pragma once
#include "doubles.cuh"
#include "experts.cuh"

// In the order of plan.Score.
enum { softmaxAll, softmaxChosen, sigmoidEach, sparseMixer, sqrtSoftplus };

struct RouteArgs {
  const float *logits; // [T, stride]
  const float *bias;   // [experts] added to the scores for the choice alone, or 0
  s32 stride;          // elements
  s32 experts;         // at most maxExperts
  s32 used;            // experts per token
  s32 score;
  s32 normalize;       // 1: weights are divided by their sum
  s32 groups;          // of consecutive experts; 0 or 1: no groups
  s32 groupsUsed;
  s32 groupTop;        // a group's score is the sum of its best groupTop experts
  double scale;        // of the weights
  const s32 *count;    // tokens of this step
  s32 *chosen;         // [T, used] the best first
  float *weights;      // [T, used]
  s32 *slots;          // [T, used]; this and the next three are written if there is one token
  s32 *tokens;         // [T*used] token of each slot
  Active *active;      // [min(T*used, experts)]
  s32 *sizes;          // [2] the numbers of active experts and of slots
};

// keyOf returns a key of v: the larger number has the larger key, and both zeros have the same.
INLINE u64 keyOf(double v) {
  const u64 bits = __builtin_bit_cast(u64, v == 0 ? 0.0 : v);
  return bits >> 63 ? ~bits : bits | 1ull << 63;
}
INLINE double ofKey(u64 key) { return doubleOf(key >> 63 ? key & ~(1ull << 63) : ~key); }

// eachBest calls take for the best n of size keys, the best first; of equal ones, the first is
// better. It runs in a warp; a lane has every 32nd key. take is called by all lanes with the rank
// and the lane that has the key, and with the best key of the calling lane and its index.
template <class Take> INLINE void eachBest(const u64 *keys, int size, int n, int lane, const Take &take) {
  u64 best = ~0ull, second = 0; // of the lane's keys that are not taken; 0 is no key
  int at = -1, secondAt = -1;
  const auto find = [&]() ALWAYS {
    const u64 last = best;
    const int taken = at;
    best = 0;
#pragma unroll 8
    for (int i = lane; i < size; i += 32) {
      const u64 key = keys[i];
      const bool left = key <= last - (i <= taken), first = left & (key > best), next = left & (key > second);
      second = first ? best : next ? key : second, secondAt = first ? at : next ? i : secondAt;
      best = first ? key : best, at = first ? i : at;
    }
  };
  find();
  _Pragma("unroll 1") for (int k = 0; k < n; k++) {
    const u32 high = u32(best >> 32), most = warpMax(high);
    u32 all = ballot(high == most);
    if (all & (all - 1)) {
      const u32 low = high == most ? u32(best) : 0;
      const bool equal = warpMax(low) == low && high == most;
      const u32 first = ~warpMax(equal ? ~u32(at) : 0);
      all = ballot(equal && u32(at) == first);
    }
    const int from = __builtin_ctz(all);
    take(k, from, best, at);
    if (lane == from) {
      if (second) best = second, at = secondAt, second = 0;
      else find();
    }
  }
}

constexpr int routeThreads = 128, routeWarps = routeThreads / 32;

// A RouteForm has what few routers use: factors of the experts' weights, the jitter of sparseMixer,
// experts without matrices (from real on), and experts that are given.
struct RouteForm {
  const float *scales; // [experts], or 0
  double jitter;
  const float *given;  // [T, givenStride] indices of the token's experts, or 0: the router chooses
  s32 givenStride;     // elements
  s32 real;
};

// mixed computes the weights of sparseMixer with one warp: the share of each expert in a softmax
// over the experts that are near it and not chosen before it.
INLINE void mixed(double *mine, const double *scores, const s32 *picked, int experts, int used, double jitter, int lane) {
  for (int k = 0; k < used; k++) {
    const double s = scores[picked[k]];
    double sum = 0;
    for (int i = lane; i < experts; i += 32) {
      const double t = scores[i], most = (t < 0 ? -t : t) > s ? (t < 0 ? -t : t) : s;
      bool out = (s - t) / most > 2 * jitter;
      for (int j = 0; j < k; j++) out = out || picked[j] == i;
      if (!out) sum = sum + exponential(t - s);
    }
    sum = warpSum(sum);
    if (lane == 0) mine[k] = 1 / sum;
  }
  syncWarp();
}

// limit makes -inf of the keys of all experts that are not in the best groups.
INLINE void limit(const RouteArgs &a, u64 *keys, double *groups) {
  const int lane = tidX() & 31, size = a.experts / a.groups;
  for (int g = tidX() / 32; g < a.groups; g += routeWarps) {
    double sum = 0;
    eachBest(keys + g * size, size, a.groupTop, lane, [&](int, int from, u64 key, int) ALWAYS {
      sum = sum + ofKey(u64(shuffleFrom(u32(key >> 32), from)) << 32 | shuffleFrom(u32(key), from));
    });
    if (lane == 0) groups[g] = sum;
  }
  syncBlock();
  for (int g = tidX(); g < a.groups; g += routeThreads) {
    int better = 0;
    for (int h = 0; h < a.groups; h++) better += groups[h] > groups[g] || (groups[h] == groups[g] && h < g);
    if (better < a.groupsUsed) continue;
    for (int i = 0; i < size; i++) keys[g * size + i] = keyOf(-infinity);
  }
}

// scoreExperts computes the scores of all experts, in which the block has put the logits, and the
// keys that choose among them, in which it has put the bits of the biases.
INLINE void scoreExperts(const RouteArgs &a, double top, double *scores, u64 *keys, double *groups) {
  __shared__ double total;
  double sum = 1;
  if (a.score == softmaxAll) {
    for (int i = tidX(); i < a.experts; i += routeThreads) scores[i] = exponential(scores[i] - top);
    syncBlock();
    if (tidX() < 32) {
      sum = 0;
#pragma unroll 8
      for (int i = tidX(); i < a.experts; i += 32) sum = sum + scores[i];
      sum = warpSum(sum);
      if (tidX() == 0) total = sum;
    }
    syncBlock();
    sum = total;
  }
  for (int i = tidX(); i < a.experts; i += routeThreads) {
    double v = scores[i];
    if (a.score == softmaxAll) v = v / sum;
    if (a.score == sigmoidEach) v = 1 / (1 + exponential(-v));
    if (a.score == sqrtSoftplus) v = __builtin_sqrt(softplus(v));
    scores[i] = v;
    keys[i] = keyOf(a.bias ? v + doubleOf(keys[i]) : v);
  }
  syncBlock();
  if (a.groups <= 1) return;
  limit(a, keys, groups);
  syncBlock();
}

// routeToken chooses the experts of a token, in float64. The block computes the scores, and its
// first warp chooses among them.
template <bool FORMS> INLINE void routeToken(const RouteArgs &a, const RouteForm &form) {
  extern __shared__ double shared[];
  __shared__ float tops[routeWarps];
  double *scores = shared, *groups = scores + 2 * a.experts, *mine = groups + a.groups;
  u64 *keys = reinterpret_cast<u64 *>(scores + a.experts);
  s32 *picked = reinterpret_cast<s32 *>(mine + a.used);
  for (int i = tidX(); a.bias && i < a.experts; i += routeThreads) keys[i] = __builtin_bit_cast(u64, double(a.bias[i]));
  waitForPrevious();
  allowNext();
  const int token = blockX(), lane = tidX() & 31, count = *a.count;
  if (token >= count) return;
  const float *logits = a.logits + s64(token) * a.stride;
  float top = -float(infinity); // inf if a logit is not finite
  for (int i = tidX(); i < a.experts; i += routeThreads) {
    const float v = logits[i];
    scores[i] = v;
    top = maxOf(top, isFinite(v) ? v : float(infinity));
  }
  top = warpMax(top);
  if (lane == 0) tops[tidX() / 32] = top;
  syncBlock();
  UNROLL for (int i = 0; i < routeWarps; i++) top = maxOf(top, tops[i]);
  const bool good = isFinite(top), given = FORMS && form.given;
  if (good) scoreExperts(a, top, scores, keys, groups);
  if (tidX() >= 32) return;
  for (int k = lane; given && good && k < a.used; k += 32) {
    const float e = form.given[s64(token) * form.givenStride + k];
    picked[k] = e > 0 ? int(minOf(e, float(a.experts - 1))) : 0; // NaN gives 0
  }
  if (!given && good) {
    eachBest(keys, a.experts, a.used, lane, [&](int k, int from, u64, int at) ALWAYS {
      if (lane == from) picked[k] = at;
    });
  }
  syncWarp();
  for (int k = lane; good && k < a.used; k += 32) mine[k] = scores[picked[k]];
  syncWarp();
  if (good && a.score == softmaxChosen) {
    double best = -infinity;
    for (int k = lane; k < a.used; k += 32) best = mine[k] > best ? mine[k] : best;
    best = warpMax(best);
    for (int k = lane; k < a.used; k += 32) mine[k] = exponential(mine[k] - best);
    syncWarp();
  }
  if (FORMS && good && a.score == sparseMixer) mixed(mine, scores, picked, a.experts, a.used, form.jitter, lane);
  double sum = 1;
  if (good && (a.score == softmaxChosen || a.normalize)) {
    sum = 0;
#pragma unroll 8
    for (int k = 0; k < a.used; k++) sum = sum + mine[k];
  }
  for (int k = lane; k < a.used; k += 32) {
    const s64 i = s64(token) * a.used + k;
    // If a logit is not finite, the token gets the first experts with NaN weights.
    const int expert = good ? picked[k] : k;
    a.chosen[i] = expert;
    double weight = mine[k] / sum * a.scale;
    if (FORMS && form.scales) weight *= double(form.scales[expert]);
    a.weights[i] = good ? float(weight) : asFloat(0x7fc00000);
    if (FORMS && count == 1) {
      int place = 0, all = 0; // of the expert, and the number of all, among those with matrices
      for (int j = 0; j < a.used; j++) {
        const bool real = (good ? picked[j] : j) < form.real;
        place += real && j < k, all += real;
      }
      a.slots[k] = k;
      a.tokens[k] = 0;
      if (expert < form.real) a.active[place] = Active{expert, k, k + 1, expert};
      if (k == 0) a.sizes[0] = all, a.sizes[1] = a.used;
    } else if (count == 1) {
      a.slots[k] = k;
      a.tokens[k] = 0;
      a.active[k] = Active{expert, k, k + 1, expert};
      if (k == 0) a.sizes[0] = a.used, a.sizes[1] = a.used;
    }
  }
}
