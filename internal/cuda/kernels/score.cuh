// The scores of keys for an indexer, see plan.Select. The score of a key that a token sees is a sum
// over the indexer's heads in ascending order: the head's weight times the product of query and
// key, a chain of fma, if that product is above 0.
#pragma once
#include "anypool.cuh"

struct ScoreArgs {
  const float *q;       // [T, qStride]
  const float *weights; // [T, weightStride], one per head
  s32 qStride, weightStride;
  s32 heads;
  s32 top;          // tokens that see at most top keys have no scores
  AnyPool pool;     // with one KV head
  Table table;
  const s32 *count; // tokens of the step
  float *scores;    // [tokens, apart] for the tokens from first on
  s64 apart;        // elements
  s32 first;
  s32 pad;
};

constexpr int scoreThreads = 256, scoreHeads = 8; // heads computed together

// scoreKeys computes one key per thread. Grid (keys / 256, tokens).
template <class C> INLINE void scoreKeys(const ScoreArgs &a) {
  alignas(16) __shared__ float shared[scoreHeads * anyKeyDim];
  const AnyPool &p = a.pool;
  const int token = a.first + blockY(), dim = p.keyDim, key = blockX() * scoreThreads + tidX();
  const Place place = a.table.places[token];
  waitForPrevious();
  allowNext();
  const int seen = (place.position + 1) / p.every;
  if (token >= *a.count || seen <= a.top || key - tidX() >= seen) return;
  const Numbers at = keyOf<C>(p, slotIn(p, a.table, place.shift, minOf(key, seen - 1)), 0);
  const float *q = a.q + s64(token) * a.qStride, *weights = a.weights + s64(token) * a.weightStride;
  float sum = 0;
  for (int head = 0; head < a.heads; head += scoreHeads) {
    const int n = minOf(scoreHeads, a.heads - head);
    syncBlock(); // all threads have read the previous heads
    for (int i = tidX(); i < scoreHeads * dim; i += scoreThreads) shared[i] = i < n * dim ? q[head * dim + i] : 0.0f;
    syncBlock();
    float product[scoreHeads];
    scoresOf<C, scoreHeads>(product, shared, at, dim);
    UNROLL for (int h = 0; h < scoreHeads; h++) {
      if (h < n) sum = sum + weights[head + h] * (product[h] < 0 ? 0 : product[h]); // keeps NaN
    }
  }
  if (key < seen) a.scores[blockY() * a.apart + key] = sum;
}

#define SCORE(name, C) \
  extern "C" __global__ void __launch_bounds__(scoreThreads) name(const ScoreArgs a) { scoreKeys<C>(a); }
