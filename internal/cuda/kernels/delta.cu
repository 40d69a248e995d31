// The gated delta rule, see plan.Delta. Each row is computed from the matrix at the beginning of
// its chunk and the rows of the chunk. A step has these launches: prepare writes what each token has
// of its own; pairs and, for sequences with many rows and gates by head, chunkPairs write the products
// of keys and queries with the keys of their chunk; few and many go over the rows of each sequence,
// few if it has at most fewRows in the step. The order of every sum is the same in both.
#include "delta_many.cuh"
#include "delta_pairs.cuh"
#include "matrix.cuh"

constexpr int gatesAhead = 8; // that a thread loads at a time

// prepare normalises a query and a key with each warp of its first blocks. Each thread of the others
// has a gate, and goes over the tokens of a chunk, from the first one of them in the step: it sums
// the gate, and writes betas. Grid (keyBlocks + blocks of a token's gates, T), 256 threads.
extern "C" __global__ void __launch_bounds__(recurrentThreads) prepare(const DeltaArgs a) {
  waitForPrevious();
  allowNext();
  const int token = blockY(), keyBlocks = (a.keyHeads + 7) / 8;
  if (token >= *a.count) return;
  const Place place = a.table.places[token];
  if (blockX() < keyBlocks) {
    const int key = blockX() * 8 + tidX() / 32, lane = tidX() % 32;
    if (key >= a.keyHeads) return;
    const float *q = a.q + s64(token) * a.qStride + key * a.keyDim, *k = a.k + s64(token) * a.kStride + key * a.keyDim;
    float *row = rowAt(a.rows, a.table, place.shift, place.position) + DeltaHead(a, a.tiled ? key : key * (a.heads / a.keyHeads)).k;
    float *queries = a.queries + (s64(token) * a.keyHeads + key) * a.keyDim;
    float ofQ = 0, ofK = 0;
    for (int d = lane; d < a.keyDim; d += 32) ofQ = fma(q[d], q[d], ofQ), ofK = fma(k[d], k[d], ofK);
    ofQ = divide(a.by, squareRoot(warpSum(ofQ) + 1e-6f)), ofK = divide(1.0f, squareRoot(warpSum(ofK) + 1e-6f));
    for (int d = lane; d < a.keyDim; d += 32) queries[d] = q[d] * ofQ, row[d] = k[d] * ofK;
    return;
  }
  const int i = (blockX() - keyBlocks) * recurrentThreads + tidX(), all = a.heads * a.gates, seq = a.sequence[token];
  if (i >= all) return;
  if (token > a.starts[seq] && place.position % chunkTokens != 0) return; // another thread has it
  const int n = minOf(chunkTokens - place.position % chunkTokens, a.starts[seq + 1] - token);
  const int at = DeltaHead(a, i / a.gates).sums + i % a.gates;
  const float rate = a.rate[i / a.gates], bias = a.bias[i];
  const auto sumAt = [&](int position) ALWAYS -> float & { return rowAt(a.rows, a.table, place.shift, position)[at]; };
  float sum = place.position % chunkTokens > 0 ? sumAt(place.position - 1) : 0.0f;
  for (int t0 = 0; t0 < n; t0 += gatesAhead) {
    float gate[gatesAhead], beta[gatesAhead];
    UNROLL for (int t = 0; t < gatesAhead; t++) {
      const s64 from = minOf(token + t0 + t, token + n - 1);
      gate[t] = a.gate[from * a.gateStride + i], beta[t] = i < a.heads ? a.beta[from * a.betaStride + i] : 0.0f;
    }
    UNROLL for (int t = 0; t < gatesAhead; t++) {
      if (t0 + t >= n) break;
      if (i < a.heads) a.betas[s64(token + t0 + t) * a.heads + i] = divide(a.most, 1 + expOf(-within(beta[t], 1000)));
      const float x = gate[t] + bias;
      sum = sum + (a.floor != 0 ? divide(a.floor, 1 + expOf(within(rate * x, 1000))) : rate * softplusOf(x));
      sumAt(place.position + t0 + t) = sum;
    }
  }
}

constexpr int warps = recurrentThreads / 32;
constexpr int pairRows = 16; // rows of a block, if a step has many

// A PairsShared is some parts of keys: of the rows of the chunk, of a block's rows, and of their
// queries. With gates by channel the sums of these follow.
template <int R> struct PairsShared {
  static constexpr int most = R == 1 ? 2 * partMost : partMost, stride = most + 4;
  const float *row[chunkTokens];
  static constexpr int sums = partMost + 4; // where the sums of a key's gates begin
  alignas(16) float keys[chunkTokens][2 * sums], rows[2][R][stride], rowSums[R][sums];
};

// pairs writes the products of the keys and queries of R tokens with the keys of the rows of their
// chunk up to their own; with gates by channel, these times their decay. Without these, it leaves
// sequences with more than fewRows rows to chunkPairs. A thread has A rows, of keys and then queries,
// and J keys.
template <int R, int A, int J> INLINE void pairs(const DeltaArgs &a) {
  __shared__ PairsShared<R> s;
  waitForPrevious();
  allowNext();
  const bool channels = a.gates > 1;
  const int which = blockY(), count = minOf(*a.count, (blockX() + 1) * R), each = partOf(a.keyDim);
  const int span = channels || 4 * each > PairsShared<R>::most ? each : 4 * each; // numbers in shared memory
  const DeltaHead head(a, channels ? which : a.tiled ? which : which * (a.heads / a.keyHeads));
  const int warp = tidX() / 32, lane = tidX() % 32;
  int row[A], of[J];
  UNROLL for (int i = 0; i < A; i++) row[i] = A == 1 ? tidX() / chunkTokens : 8 * i + tidX() % 8;
  UNROLL for (int j = 0; j < J; j++) of[j] = A == 1 ? tidX() % chunkTokens : 32 * j + tidX() / 8;
  int n = 0; // rows of one chunk
  for (int token = blockX() * R; token < count; token += n) {
    const int seq = a.sequence[token], end = a.starts[seq + 1];
    n = end - token;
    if (!channels && end - a.starts[seq] > fewRows) continue;
    const Place place = a.table.places[token];
    const int at = place.position % chunkTokens, begin = place.position - at;
    n = minOf(minOf(count, end) - token, chunkTokens - at);
    if (tidX() < at + n) s.row[tidX()] = rowAt(a.rows, a.table, place.shift, begin + tidX());
    syncBlock();
    float total[A][J] = {};
    _Pragma("unroll 1") for (int from = 0; from < a.keyDim; from += span) {
      constexpr int lanes = PairsShared<R>::most / 32;
      const int width = minOf(span, a.keyDim - from);
      const auto copy = [&](float *to, const float *base) ALWAYS {
        UNROLL for (int e = 0; e < lanes; e++) {
          const int d = lane + 32 * e;
          if (d < span) to[d] = d < width ? base[from + d] : 0.0f;
        }
      };
      {
        float v[chunkTokens / warps][lanes];
        UNROLL for (int k = 0; k < chunkTokens / warps; k++) {
          const int j = warp + k * warps;
          UNROLL for (int e = 0; e < lanes; e++) v[k][e] = j < at + n && lane + 32 * e < width ? s.row[j][head.k + from + lane + 32 * e] : 0.0f;
        }
        UNROLL for (int k = 0; k < chunkTokens / warps; k++) {
          UNROLL for (int e = 0; e < lanes; e++) {
            if (lane + 32 * e < span) s.keys[warp + k * warps][lane + 32 * e] = v[k][e];
          }
        }
      }
      if (channels) {
        for (int j = warp; j < at + n; j += warps) copy(s.keys[j] + PairsShared<R>::sums, s.row[j] + head.sums);
        for (int i = warp; i < n; i += warps) copy(s.rowSums[i], s.row[at + i] + head.sums);
      }
      for (int i = warp; i < 2 * n; i += warps) {
        copy(s.rows[i % 2][i / 2], i % 2 ? a.queries + (s64(token + i / 2) * a.keyHeads + head.key) * a.keyDim : s.row[at + i / 2] + head.k);
      }
      syncBlock();
      const float *rows = s.rows[0][0];
      for (int d0 = 0; d0 < span && tidX() < 2 * R / A * chunkTokens / J; d0 += each) {
        float sum[A][J] = {};
        for (int d = d0; d < d0 + each; d += 4) {
          float4 x[A], y[J];
          UNROLL for (int i = 0; i < A; i++) x[i] = fourAt(rows + row[i] * PairsShared<R>::stride + d);
          UNROLL for (int j = 0; j < J; j++) y[j] = fourAt(&s.keys[of[j]][d]);
          UNROLL for (int j = 0; j < J; j++) {
            UNROLL for (int i = 0; i < A; i++) {
              float4 v = y[j];
              if (channels) {
                const float4 now = fourAt(&s.rowSums[row[i] % R][d]), then = fourAt(&s.keys[of[j]][PairsShared<R>::sums + d]);
                UNROLL for (int e = 0; e < 4; e++) v[e] = v[e] * expOf(now[e] - then[e]);
              }
              UNROLL for (int e = 0; e < 4; e++) sum[i][j] = fma(x[i][e], v[e], sum[i][j]);
            }
          }
        }
        UNROLL for (int i = 0; i < A; i++) {
          UNROLL for (int j = 0; j < J; j++) total[i][j] = total[i][j] + sum[i][j];
        }
      }
      syncBlock();
    }
    if (tidX() >= 2 * R / A * chunkTokens / J) continue;
    UNROLL for (int i = 0; i < A; i++) {
      float *to = a.pairs + ((s64(token + row[i] % R) * gridY() + which) * 2 + row[i] / R) * chunkTokens;
      UNROLL for (int j = 0; j < J; j++) {
        if (row[i] % R < n && of[j] <= at + row[i] % R) to[of[j]] = total[i][j];
      }
    }
  }
}

// Grid (tokens / rows of a block, keys with gates of their own), 256 threads.
extern "C" __global__ void __launch_bounds__(recurrentThreads) pairs_1(const DeltaArgs a) { pairs<1, 1, 1>(a); }
extern "C" __global__ void __launch_bounds__(recurrentThreads, 3) pairs_16(const DeltaArgs a) { pairs<pairRows, 4, 2>(a); }
extern "C" __global__ void __launch_bounds__(pairThreads, 2) pairs_64(const DeltaArgs a) { chunkPairs(a); }

constexpr int fewThreads = 128, fewColumns = 32, fewWarps = fewThreads / 32;
constexpr int lateNumbers = 16; // of keys that are in shared memory for a new matrix

// A FewShared is what a block has beside its columns of the matrix: the rows of the chunk with their
// u, and of R rows the keys and queries times the decay of the matrix, the parts of their products
// with it, and their products with the rows of the chunk.
template <int R> struct FewShared {
  ChunkRows chunk;
  float u[chunkTokens][fewColumns];
  union {
    struct {
      alignas(16) float now[2][R][deltaDim];
      float part[2][R][deltaParts][fewColumns];
      float pair[2][R][chunkTokens];
    };
    float keys[chunkTokens][lateNumbers]; // times their decay at the end of the chunk
  };
};

// someRows computes the rows of n <= R tokens of a chunk.
template <int R> INLINE void someRows(const DeltaRows &r, FewShared<R> &s, const float *matrix, int token, int n) {
  const DeltaArgs &a = r.a;
  const int c = tidX() % 32, part = tidX() / 32, dim = a.keyDim, each = partOf(dim), at = r.positionOf(token) % chunkTokens;
  const int col = blockX() * fewColumns + c;
  const bool there = col < a.valueDim, whole = a.valueDim % 32 == 0;
  for (int i = 0; i < 2 * n; i++) {
    for (int d = tidX(); d < 4 * each; d += fewThreads) s.now[i % 2][i / 2][d] = d < dim ? r.key(i % 2, token + i / 2, at + i / 2, d) * expOf(r.sumOf(at + i / 2, d)) : 0.0f;
  }
  for (int x = tidX(); x < 2 * n * chunkTokens; x += fewThreads) {
    const int i = x / chunkTokens, j = x % chunkTokens;
    if (j <= at + i / 2) s.pair[i % 2][i / 2][j] = r.pair(i % 2, token + i / 2, at + i / 2, j);
  }
  waitCopies<0>();
  syncBlock();
  float sum[2][R] = {};
  _Pragma("unroll 2") for (int d = part * each; d < (part + 1) * each; d += 4) {
    float m[4];
    UNROLL for (int e = 0; e < 4; e++) m[e] = matrix[(d + e) * fewColumns + c];
    UNROLL for (int i = 0; i < R; i++) {
      const float4 k = fourAt(&s.now[0][i][d]), q = fourAt(&s.now[1][i][d]);
      UNROLL for (int e = 0; e < 4; e++) sum[0][i] = fma(k[e], m[e], sum[0][i]), sum[1][i] = fma(q[e], m[e], sum[1][i]);
    }
  }
  UNROLL for (int i = 0; i < R; i++) s.part[0][i][part][c] = sum[0][i], s.part[1][i][part][c] = sum[1][i];
  syncBlock();

  // Each warp has some keys and queries; then one has all keys, and all have some queries.
  for (int x = part; x < 2 * n; x += fewWarps) {
    const int query = x % 2, i = x / 2;
    float v = 0;
    UNROLL for (int p = 0; p < deltaParts; p++) v = v + s.part[query][i][p][c];
    _Pragma("unroll 8") for (int j = 0; j < at; j++) v = fma(s.pair[query][i][j], s.u[j][c], v);
    s.part[query][i][0][c] = v;
  }
  syncBlock();
  if (part == 0) {
    for (int i = 0; i < n; i++) {
      float v = s.part[0][i][0][c];
      for (int j = at; j < at + i; j++) v = fma(s.pair[0][i][j], s.u[j][c], v);
      const float u = a.betas[s64(token + i) * a.heads + r.h] * ((there ? a.v[s64(token + i) * a.vStride + r.h * a.valueDim + col] : 0.0f) - v);
      s.u[at + i][c] = u;
      if (there) r.chunk->row[at + i][r.head.u + col] = u;
    }
  }
  syncBlock();
  for (int i = part; i < n; i += fewWarps) {
    float v = s.part[1][i][0][c];
    for (int j = at; j <= at + i; j++) v = fma(s.pair[1][i][j], s.u[j][c], v);
    if (there) storeColumn(a.out, token + i, r.h * a.valueDim + col, whole, v);
  }
  syncBlock();
}

// endChunk sets the matrix to the one after the chunk, and writes it.
template <int R> INLINE void endChunk(const DeltaRows &r, FewShared<R> &s, float *matrix, float *after) {
  const DeltaArgs &a = r.a;
  const int c = tidX() % 32, warp = tidX() / 32, dim = a.keyDim, col = blockX() * fewColumns + c;
  _Pragma("unroll 1") for (int d0 = 0; d0 < dim; d0 += lateNumbers) {
    const int number = tidX() % lateNumbers;
    for (int j = tidX() / lateNumbers; j < chunkTokens; j += fewThreads / lateNumbers) s.keys[j][number] = r.late(j, minOf(d0 + number, dim - 1));
    syncBlock();
    for (int d = d0 + warp; d < minOf(d0 + lateNumbers, dim); d += fewWarps) {
      float v = matrix[d * fewColumns + c] * expOf(r.sumOf(chunkTokens - 1, d));
      _Pragma("unroll 8") for (int j = 0; j < chunkTokens; j++) v = fma(s.keys[j][d - d0], s.u[j][c], v);
      matrix[d * fewColumns + c] = v;
      if (col < a.valueDim) after[(s64(r.h) * dim + d) * a.valueDim + col] = v;
    }
    syncBlock();
  }
}

// few computes the rows of a sequence with at most fewRows of them, R at a time. A thread has a
// column of a part of the matrix. What does not depend on other rows is loaded first: the matrix,
// and u of the rows before.
template <int R> INLINE void few(const DeltaArgs &a) {
  extern __shared__ float numbers[]; // the matrix [4*each][fewColumns]
  __shared__ FewShared<R> s;
  waitForPrevious();
  allowNext();
  if (blockZ() >= *a.seqs) return;
  DeltaRows r(a, s.chunk, a.gates > 1);
  if (r.end - r.first > fewRows) return;
  const int c = tidX() % 32, warp = tidX() / 32, dim = a.keyDim, left = a.valueDim - blockX() * fewColumns; // columns from the block's first
  const float *before = slotBefore(a.state, r.seq);
  if (before) before += s64(r.h) * dim * a.valueDim + blockX() * fewColumns;
  if (before && left >= fewColumns && (u64(before) | 4 * u64(a.valueDim)) % 16 == 0) {
    for (int x = tidX(); x < dim * fewColumns / 4; x += fewThreads) copyChunk(sharedAt(numbers + 4 * x), before + s64(x / 8) * a.valueDim + x % 8 * 4, true);
    endCopies();
  } else {
    for (int d = warp; d < dim; d += fewWarps) numbers[d * fewColumns + c] = before && c < left ? before[s64(d) * a.valueDim + c] : 0.0f;
  }
  for (int d = dim + warp; d < 4 * partOf(dim); d += fewWarps) numbers[d * fewColumns + c] = 0;
  int n = 0;
  for (int token = r.first; token < r.end; token += n) {
    const int at = r.positionOf(token) % chunkTokens;
    n = minOf(minOf(R, r.end - token), chunkTokens - at);
    r.find(r.positionOf(token) - at, at + n);
    syncBlock();
    if (token == r.first) {
      float u[chunkTokens / fewWarps];
      UNROLL for (int k = 0; k < chunkTokens / fewWarps; k++) {
        const int j = warp + k * fewWarps;
        u[k] = j < at && c < left ? s.chunk.row[j][r.head.u + blockX() * fewColumns + c] : 0.0f;
      }
      UNROLL for (int k = 0; k < chunkTokens / fewWarps; k++) s.u[warp + k * fewWarps][c] = u[k];
    }
    someRows(r, s, numbers, token, n);
    if (at + n == chunkTokens) endChunk(r, s, numbers, slotAfter(a.state, r.seq));
  }
}

// Grid (blocks of columns, heads, sequences), 128 threads, shared memory for the columns.
extern "C" __global__ void __launch_bounds__(fewThreads, 7) few_1(const DeltaArgs a) { few<1>(a); }
extern "C" __global__ void __launch_bounds__(fewThreads, 6) few_4(const DeltaArgs a) { few<4>(a); }

// Grid (blocks of columns, heads, sequences), 256 threads, ManyShared.
extern "C" __global__ void __launch_bounds__(manyThreads) many_128(const DeltaArgs a) { many<128, false>(a); }
extern "C" __global__ void __launch_bounds__(manyThreads) many_256(const DeltaArgs a) { many<256, false>(a); }
extern "C" __global__ void __launch_bounds__(manyThreads) channels_128(const DeltaArgs a) { many<128, true>(a); }
extern "C" __global__ void __launch_bounds__(manyThreads) channels_256(const DeltaArgs a) { many<256, true>(a); }
