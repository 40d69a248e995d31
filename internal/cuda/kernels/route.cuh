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

// inGroup returns the sum of the top best experts of a group, added from the best on.
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

// scoreExperts computes, with one warp, the scores of all experts and the values that choose among
// them. It returns whether all logits are finite.
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
  } else if (a.score == sqrtSoftplus) {
    for (int i = lane; i < a.experts; i += 32) scores[i] = __builtin_sqrt(softplus(scores[i]));
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

// routeToken chooses the experts of a token, in float64. The first warp of the block computes
// scores and weights; each thread ranks experts among all.
template <bool FORMS> INLINE void routeToken(const RouteArgs &a, const RouteForm &form) {
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
  const bool good = finite, given = FORMS && form.given;
  for (int k = tidX(); given && good && k < a.used; k += routeThreads) {
    const float e = form.given[s64(token) * form.givenStride + k];
    picked[k] = e > 0 ? int(minOf(e, float(a.experts - 1))) : 0; // NaN gives 0
    mine[k] = scores[picked[k]];
  }
  for (int i = tidX(); !given && good && i < a.experts; i += routeThreads) {
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
  if (FORMS && good && a.score == sparseMixer) mixed(mine, scores, picked, a.experts, a.used, form.jitter, lane);
  double sum = 1;
  if (good && (a.score == softmaxChosen || a.normalize)) {
    sum = 0;
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
