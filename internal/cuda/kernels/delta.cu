// The gated delta rule, see plan.Delta. Each row is computed from the matrix at the beginning of
// its chunk and the rows of the chunk.
#include "recurrent.cuh"

constexpr int deltaDim = 256; // maximum of keyDim and valueDim

struct DeltaArgs {
  const float *q, *k, *v, *beta, *gate; // [T, stride] each
  s32 qStride, kStride, vStride, betaStride, gateStride; // elements
  s32 keyHeads, heads, keyDim, valueDim;
  s32 tiled;                 // 1: head h has key h % keyHeads; 0: h / (heads/keyHeads)
  s32 gates;                 // gates of a head: 1 or keyDim
  float most;                // maximum of beta
  float floor;               // least gate; 0: none
  float by;                  // factor of queries
  s32 pad;
  const float *rate;         // [heads]
  const float *bias;         // [heads*gates]
  float *queries;            // [T][keyHeads*keyDim] normalised; these three are scratch memory
  float *betas;              // [T][heads]
  float *steps;              // [T][heads*gates] gates
  Slots state;               // [heads][keyDim][valueDim]
  RowsPool rows;             // by key head: k [keyDim], then sums of gates and u of its heads
  Table table;
  const s32 *sequence;       // [T]
  const s32 *starts;         // [S+1] first token of each sequence, and T
  const s32 *seqs;           // sequences of this step
  const s32 *count;          // tokens
  Forms out;                 // heads*valueDim columns; f32 only, unless 32 divides valueDim
};

// A DeltaHead is the offsets of a head's fields in a row.
struct DeltaHead {
  int key, k, sums, u;
  METHOD DeltaHead(const DeltaArgs &a, int h) {
    const int shared = a.heads / a.keyHeads, which = a.tiled ? h / a.keyHeads : h % shared;
    key = a.tiled ? h % a.keyHeads : h / shared;
    k = key * (a.keyDim + shared * (a.gates + a.valueDim));
    sums = k + a.keyDim + which * a.gates;
    u = k + a.keyDim + shared * a.gates + which * a.valueDim;
  }
};

// prepare normalises a query and a key with each warp. Grid (key heads / 4, T).
extern "C" __global__ void __launch_bounds__(128) prepare(const DeltaArgs a) {
  waitForPrevious();
  allowNext();
  const int token = blockY(), key = blockX() * 4 + tidX() / 32, lane = tidX() % 32;
  if (token >= *a.count || key >= a.keyHeads) return;
  const Place place = a.table.places[token];
  const float *q = a.q + s64(token) * a.qStride + key * a.keyDim, *k = a.k + s64(token) * a.kStride + key * a.keyDim;
  float *row = rowAt(a.rows, a.table, place.shift, place.position) + DeltaHead(a, a.tiled ? key : key * (a.heads / a.keyHeads)).k;
  float *queries = a.queries + (s64(token) * a.keyHeads + key) * a.keyDim;
  float ofQ = 0, ofK = 0;
  for (int d = lane; d < a.keyDim; d += 32) ofQ = fma(q[d], q[d], ofQ), ofK = fma(k[d], k[d], ofK);
  ofQ = divide(a.by, squareRoot(warpSum(ofQ) + 1e-6f)), ofK = divide(1.0f, squareRoot(warpSum(ofK) + 1e-6f));
  for (int d = lane; d < a.keyDim; d += 32) queries[d] = q[d] * ofQ, row[d] = k[d] * ofK;
}

// gates writes gates and betas. Grid (blocks of a token's gates, T).
extern "C" __global__ void __launch_bounds__(recurrentThreads) gates(const DeltaArgs a) {
  waitForPrevious();
  allowNext();
  const int token = blockY(), i = blockX() * recurrentThreads + tidX();
  if (token >= *a.count) return;
  if (i < a.heads) a.betas[s64(token) * a.heads + i] = divide(a.most, 1 + expOf(-within(a.beta[s64(token) * a.betaStride + i], 1000)));
  if (i >= a.heads * a.gates) return;
  const float rate = a.rate[i / a.gates], x = a.gate[s64(token) * a.gateStride + i] + a.bias[i];
  a.steps[s64(token) * a.heads * a.gates + i] = a.floor != 0 ? divide(a.floor, 1 + expOf(within(rate * x, 1000))) : rate * softplusOf(x);
}

// sums writes the sum of a chunk's gates up to each token. Grid (blocks of a token's gates, T).
extern "C" __global__ void __launch_bounds__(recurrentThreads) sums(const DeltaArgs a) {
  waitForPrevious();
  allowNext();
  const int token = blockY(), i = blockX() * recurrentThreads + tidX(), all = a.heads * a.gates;
  if (token >= *a.count || i >= all) return;
  const Place place = a.table.places[token];
  const int first = a.starts[a.sequence[token]], begin = place.position / chunkTokens * chunkTokens;
  const int at = DeltaHead(a, i / a.gates).sums + i % a.gates;
  const auto sumAt = [&](int position) ALWAYS -> float & { return rowAt(a.rows, a.table, place.shift, position)[at]; };
  int t = token - (place.position - begin); // token of the chunk's first row
  float sum = 0;
  if (t < first) t = first, sum = place.position - (token - first) > begin ? sumAt(place.position - (token - first) - 1) : 0.0f;
  for (; t <= token; t++) sum = sum + a.steps[s64(t) * all + i];
  sumAt(place.position) = sum;
}

// A DeltaShared is what a block has for W columns of a head: u of the chunk, a token's key and
// query, their products with the rows of the chunk, and partial sums.
template <int W> struct DeltaShared {
  float u[chunkTokens][W];
  float part[2][recurrentThreads / W][W];
  float key[deltaDim], query[deltaDim], sum[deltaDim];      // normalised, and the sums of gates
  float keyNow[deltaDim], queryNow[deltaDim];               // times the decay of the matrix
  float ofKey[chunkTokens], ofQuery[chunkTokens];
};

// delta computes W columns of a head of a sequence, token by token. A thread has some rows of a
// column of the matrix. Grid (blocks of columns, heads, sequences), shared memory of 4*keyDim*W
// bytes.
template <int W> INLINE void delta(const DeltaArgs &a) {
  constexpr int parts = recurrentThreads / W;
  static_assert(parts >= 2);
  extern __shared__ float numbers[]; // the matrix [keyDim][W]
  __shared__ DeltaShared<W> s;
  waitForPrevious();
  allowNext();
  const int seq = blockZ(), h = blockY(), warp = tidX() / 32, lane = tidX() % 32, c = tidX() % W, part = tidX() / W, dim = a.keyDim;
  if (seq >= *a.seqs) return;
  const DeltaHead head(a, h);
  const int col = blockX() * W + c, first = a.starts[seq], end = a.starts[seq + 1];
  const Place place = a.table.places[first];
  const bool there = col < a.valueDim, whole = a.valueDim % 32 == 0, channels = a.gates > 1;
  const int each = (dim + parts - 1) / parts, from = minOf(part * each, dim), to = minOf(from + each, dim);
  const auto rowOf = [&](int position) ALWAYS { return rowAt(a.rows, a.table, place.shift, position); };

  const float *before = slotBefore(a.state, seq);
  for (int d = from; d < to; d++) numbers[d * W + c] = before && there ? before[(s64(h) * dim + d) * a.valueDim + col] : 0.0f;
  int begin = place.position / chunkTokens * chunkTokens;
  for (int j = part; j < place.position - begin; j += parts) s.u[j][c] = there ? rowOf(begin + j)[head.u + col] : 0.0f;
  syncBlock();

  // The position at which the matrix is stored.
  const int last = (place.position + end - first) / chunkTokens * chunkTokens;
  for (int token = first; token < end; token++) {
    const int position = place.position + token - first, at = position - begin;
    float *row = rowOf(position);
    const float *queries = a.queries + (s64(token) * a.keyHeads + head.key) * dim;
    for (int d = tidX(); d < dim; d += recurrentThreads) {
      const float sum = row[head.sums + (channels ? d : 0)], left = expOf(sum);
      s.key[d] = row[head.k + d], s.query[d] = queries[d], s.sum[d] = sum;
      s.keyNow[d] = row[head.k + d] * left, s.queryNow[d] = queries[d] * left;
    }
    syncBlock();

    for (int j = warp; j <= at; j += recurrentThreads / 32) {
      const float *other = rowOf(begin + j);
      float ofKey = 0, ofQuery = 0;
      for (int d = lane; d < dim; d += 32) {
        float k = other[head.k + d];
        if (channels) k = k * expOf(s.sum[d] - other[head.sums + d]);
        ofKey = fma(s.key[d], k, ofKey), ofQuery = fma(s.query[d], k, ofQuery);
      }
      ofKey = warpSum(ofKey), ofQuery = warpSum(ofQuery);
      const float left = channels ? 1.0f : expOf(s.sum[0] - other[head.sums]);
      if (lane == 0) s.ofKey[j] = ofKey * left, s.ofQuery[j] = ofQuery * left;
    }
    float ofKey = 0, ofQuery = 0;
    for (int d = from; d < to; d++) {
      const float m = numbers[d * W + c];
      ofKey = fma(s.keyNow[d], m, ofKey), ofQuery = fma(s.queryNow[d], m, ofQuery);
    }
    s.part[0][part][c] = ofKey, s.part[1][part][c] = ofQuery;
    syncBlock();

    float sum = 0;
    if (part < 2) { // part 0 for the key, part 1 for the query
      UNROLL for (int p = 0; p < parts; p++) sum = sum + s.part[part][p][c];
      const float *weights = part == 0 ? s.ofKey : s.ofQuery;
      for (int j = 0; j < at; j++) sum = fma(weights[j], s.u[j][c], sum);
    }
    if (part == 0) {
      const float v = there ? a.v[s64(token) * a.vStride + h * a.valueDim + col] : 0.0f;
      const float u = a.betas[s64(token) * a.heads + h] * (v - sum);
      s.u[at][c] = u;
      if (there) row[head.u + col] = u;
    }
    syncBlock();
    if (part == 1 && there) storeColumn(a.out, token, h * a.valueDim + col, whole, fma(s.ofQuery[at], s.u[at][c], sum));
    syncBlock();
    if (at + 1 < chunkTokens) continue;

    for (int d = from; d < to; d++) {
      const float now = s.sum[d];
      float v = numbers[d * W + c] * expOf(now);
      for (int j = 0; j < chunkTokens; j++) {
        const float *other = rowOf(begin + j);
        v = fma(other[head.k + d] * expOf(now - other[head.sums + (channels ? d : 0)]), s.u[j][c], v);
      }
      numbers[d * W + c] = v;
    }
    syncBlock();
    begin += chunkTokens;
    if (begin == last && there) {
      float *after = slotAfter(a.state, seq);
      for (int d = from; d < to; d++) after[(s64(h) * dim + d) * a.valueDim + col] = numbers[d * W + c];
    }
  }
}

extern "C" __global__ void __launch_bounds__(recurrentThreads) delta_32(const DeltaArgs a) { delta<32>(a); }
extern "C" __global__ void __launch_bounds__(recurrentThreads) delta_64(const DeltaArgs a) { delta<64>(a); }
