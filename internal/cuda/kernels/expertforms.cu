// Mixtures of experts in forms that experts.cu does not support, and products by head, which are
// mixtures whose tokens choose all experts.
#include "each.cuh"
#include "rotation.cuh"
#include "route.cuh"

struct RouteFormArgs {
  RouteArgs route;
  RouteForm form;
};

// routeForm does what route does, with a RouteForm. One token per block; grid (T), shared memory as
// for route.
extern "C" __global__ void __launch_bounds__(routeThreads) routeForm(const RouteFormArgs a) { routeToken<true>(a.route, a.form); }

struct SpreadArgs {
  s32 *chosen;      // [T, used]; this and the next five as route and group write them
  s32 *slots;
  s32 *tokens;
  Active *active;
  SlotRange *parts;
  s32 *sizes;
  s32 used;         // all experts
  s32 rows;         // of a part, at most
  const s32 *count; // tokens of this step
};

// spread makes every token choose all experts. Those of a single token have a slot each, otherwise
// they have slots for multiples of 8 tokens. Grid (blocks of 256 choices).
extern "C" __global__ void __launch_bounds__(threads) spread(const SpreadArgs a) {
  waitForPrevious();
  allowNext();
  const int i = blockX() * threads + tidX(), count = *a.count;
  if (i >= count * a.used) return;
  const int token = i / a.used, expert = i % a.used, apart = count == 1 ? 1 : (count + 7) / 8 * 8;
  const int first = expert * apart, parts = (count + a.rows - 1) / a.rows;
  a.chosen[i] = expert, a.slots[i] = first + token, a.tokens[first + token] = token;
  if (token == 0) {
    a.active[expert] = Active{expert, first, first + count, expert};
    for (int pad = count; pad < apart; pad++) a.tokens[first + pad] = 0;
  }
  if (token % a.rows == 0) a.parts[expert * parts + token / a.rows] = SlotRange{expert, first + token, first + minOf(token + a.rows, count), 0};
  if (i == 0) a.sizes[0] = a.used, a.sizes[1] = a.used * apart, a.sizes[2] = a.used * parts;
}

struct DealArgs {
  const float *x;       // [T, stride]
  s32 stride;           // elements
  s32 apart;            // columns of x from one expert to the next; 0: all share them
  s32 cols;             // of out
  s32 used;             // experts of a token
  s32 experts;          // experts with slots
  s32 pad;
  const s32 *chosen;    // [T, used]
  const s32 *slots;     // [T, used]
  const float *weights; // [T, used] factors of rows, or 0
  const s32 *count;     // tokens of this step
  Forms out;            // [slots], cols columns
};

// deal writes to each slot the columns of its token times its weight. A row of the grid has the slots
// of a token.
template <class V> INLINE void dealOf(const DealArgs &a) {
  const int some = a.out.stride / columnsOf<V>, at = blockX() * threads + tidX(), k = at / some, col = at % some * columnsOf<V>, n = a.cols - col, count = *a.count;
  if (k >= a.used) return;
  for (int token = blockY(); token < count; token += gridY()) {
    const s64 i = s64(token) * a.used + k;
    if (a.chosen[i] >= a.experts) continue;
    V v = someAt<V>(a.x + s64(token) * a.stride + s64(k) * a.apart + col, n);
    if (a.weights) v = v * a.weights[i];
    storeSome(a.out, a.slots[i], col, n, v);
  }
}
BY_COLUMNS(deal, dealOf, DealArgs)

struct CollectArgs {
  const float *y;    // [slots, yStride] products
  const float *x;    // [T, xStride]; a head has in multiplied columns, then kept ones
  s32 yStride;       // elements
  s32 xStride;       // elements
  s32 in, made, kept;
  s32 cols;          // of out: made and kept of all heads
  s32 heads;
  s32 pad;
  const s32 *slots;  // [T, heads]
  const s32 *count;  // tokens of this step
  Forms out;         // cols columns
  Rotation by;       // of the kept columns of each head
};

// collect writes the heads: their products, followed by the rest of their inputs.
template <class V> INLINE void collectOf(const CollectArgs &a) {
  eachColumn<V>(a.out, a.count, a.cols, [&](int row, int col, int n) ALWAYS {
    constexpr int some = columnsOf<V>;
    const int head = col / (a.made + a.kept), i = col - head * (a.made + a.kept);
    const auto made = [&](int head) ALWAYS { return a.y + s64(a.slots[s64(row) * a.heads + head]) * a.yStride; };
    if (i % some == 0 && i + some <= a.made) return columnsAt<V>(made(head) + i);
    return byColumn<V>([&](int e) ALWAYS {
      if (e >= n) return 0.0f;
      const int head = (col + e) / (a.made + a.kept), i = col + e - head * (a.made + a.kept);
      if (i < a.made) return made(head)[i];
      return rotatedAt(a.by, row, a.x + s64(row) * a.xStride + s64(head) * (a.in + a.kept) + a.in, i - a.made);
    });
  });
}
BY_COLUMNS(collect, collectOf, CollectArgs)

struct CombineFormArgs {
  const float *y;        // [slots, stride] results of experts with matrices
  const float *x;        // [T, xStride] results of experts without matrices
  s32 stride;            // elements
  s32 xStride;           // elements
  s32 cols;              // of y, x and out
  s32 used;              // experts of a token
  s32 experts;           // experts with matrices
  s32 before;            // 1: weights have multiplied the inputs of experts
  const s32 *chosen;     // [T, used]
  const s32 *slots;      // [T, used]
  const float *weights;  // [T, used]
  const float *residual; // [T, residualStride] added to the sum, or 0
  s32 residualStride;    // elements
  s32 pad;
  const s32 *count; // tokens of this step
  Forms out;        // cols columns
};

// combineForm sums the weighted results of each token's experts, the best expert first.
extern "C" __global__ void __launch_bounds__(threads) combineForm(const CombineFormArgs a) {
  waitForPrevious();
  allowNext();
  eachBlock(a.out, a.count, a.cols, [&](int row, int col) {
    float sum = 0;
    for (int k = 0; k < a.used; k++) {
      const s64 i = s64(row) * a.used + k;
      const bool real = a.chosen[i] < a.experts;
      float v = real ? a.y[s64(a.slots[i]) * a.stride + col] : a.x[s64(row) * a.xStride + col];
      if (!a.before || !real) v = a.weights[i] * v;
      sum = k == 0 ? v : sum + v;
    }
    if (a.residual) sum = a.residual[s64(row) * a.residualStride + col] + sum;
    return sum;
  });
}
