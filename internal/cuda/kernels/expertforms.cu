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
  s32 *chosen;      // [T, used]; this and the next four as route writes them
  s32 *slots;
  s32 *tokens;
  Active *active;
  s32 *sizes;
  s32 used;         // all experts
  s32 pad;
  const s32 *count; // tokens of this step
};

// spread makes every token choose all experts. Grid (blocks of 256 choices).
extern "C" __global__ void __launch_bounds__(threads) spread(const SpreadArgs a) {
  waitForPrevious();
  allowNext();
  const int i = blockX() * threads + tidX(), count = *a.count;
  if (i >= count * a.used) return;
  a.chosen[i] = i % a.used;
  if (count > 1) return;
  a.slots[i] = i;
  a.tokens[i] = 0;
  a.active[i] = Active{i, i, i + 1, i};
  if (i == 0) a.sizes[0] = a.used, a.sizes[1] = a.used;
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

// deal writes to each slot the columns of its token times its weight. Grid (blocks of columns, T,
// experts of a token, or 1).
extern "C" __global__ void __launch_bounds__(threads) deal(const DealArgs a) {
  waitForPrevious();
  allowNext();
  const int lane = tidX() & 31, block = blockX() * (threads / 32) + tidX() / 32, col = 32 * block + lane, count = *a.count;
  if (32 * block >= a.cols) return;
  for (int token = blockY(); token < count; token += gridY()) {
    for (int k = blockZ(); k < a.used; k += gridZ()) {
      const s64 i = s64(token) * a.used + k;
      if (a.chosen[i] >= a.experts) continue;
      float v = col < a.cols ? a.x[s64(token) * a.stride + s64(k) * a.apart + col] : 0.0f;
      if (a.weights) v = v * a.weights[i];
      storeBlock(a.out, a.slots[i], block, lane, col < a.cols ? v : 0.0f);
    }
  }
}

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
extern "C" __global__ void __launch_bounds__(threads) collect(const CollectArgs a) {
  waitForPrevious();
  allowNext();
  eachBlock(a.out, a.count, a.cols, [&](int row, int col) {
    const int head = col / (a.made + a.kept), i = col - head * (a.made + a.kept);
    if (i < a.made) return a.y[s64(a.slots[s64(row) * a.heads + head]) * a.yStride + i];
    return rotatedAt(a.by, row, a.x + s64(row) * a.xStride + s64(head) * (a.in + a.kept) + a.in, i - a.made);
  });
}

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
