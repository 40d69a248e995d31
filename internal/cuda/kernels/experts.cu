// A mixture of experts without its products: the choice of each token's experts, the tokens of each
// expert, and the sum of a token's experts.
#include "each.cuh"
#include "route.cuh"

// route chooses the experts of each token, one token per block. Grid (T), shared memory of
// 8*(2*experts+groups+used) + 4*used bytes.
extern "C" __global__ void __launch_bounds__(routeThreads) route(const RouteArgs a) { routeToken<false>(a, RouteForm{}); }

struct GroupArgs {
  const s32 *chosen; // [T, used]
  s32 experts;       // at most maxExperts
  s32 used;
  s32 rows;          // of a part, at most
  const s32 *count;  // tokens of this step
  s32 *slots;        // [T, used]
  s32 *tokens;       // [slots] token of each slot; 0 for unused slots
  Active *active;    // [min(T*used, experts)] in ascending order
  SlotRange *parts;       // in the order of their slots
  s32 *sizes;        // [3] active experts, slots, and parts
};

constexpr int groupThreads = 256;

// group assigns slots to the tokens of each expert. A block has one expert and reads all choices.
// Grid (experts).
extern "C" __global__ void __launch_bounds__(groupThreads) group(const GroupArgs a) {
  constexpr int warps = groupThreads / 32, sums = 6;
  __shared__ s32 of[maxExperts]; // choices of each expert
  __shared__ int shared[sums][warps], hits[2][warps];
  waitForPrevious();
  allowNext();
  const int expert = blockX(), n = *a.count * a.used, tid = tidX(), warp = tid / 32, lane = tid & 31;
  for (int i = tid; i < a.experts; i += groupThreads) of[i] = 0;
  syncBlock();
#pragma unroll 4
  for (int i = tid; i < n; i += groupThreads) atomicAddShared(&of[a.chosen[i]], 1);
  syncBlock();
  int sum[sums] = {}; // active experts, slots and parts: of lower experts, and of all
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
  const u16 *x;      // 16-bit rows of tokens
  u16 *to;           // 16-bit rows of slots
  s32 stride;        // of both, elements
  const s32 *tokens; // [slots] token of each slot
  const s32 *sizes;  // see GroupArgs
};

// gather copies to each slot the row of its token. A thread has a piece of 8 columns. Grid (blocks
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
  const float *y;        // [slots, stride] results of experts
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

// combine sums the weighted results of each token's experts, the best expert first.
template <class V> INLINE void combineOf(const CombineArgs &a) {
  eachColumn<V>(a.out, a.count, a.cols, [&](int row, int col, int) ALWAYS {
    const s32 *slots = a.slots + s64(row) * a.used;
    const float *weights = a.weights + s64(row) * a.used;
    const auto of = [&](int k) ALWAYS { return columnsAt<V>(a.y + s64(slots[k]) * a.stride + col); };
    V v = weights[0] * of(0);
#pragma unroll 4
    for (int k = 1; k < a.used; k++) v = v + weights[k] * of(k);
    if (a.residual) v = columnsAt<V>(a.residual + s64(row) * a.residualStride + col) + v;
    return v;
  });
}
BY_COLUMNS(combine, combineOf, CombineArgs)
