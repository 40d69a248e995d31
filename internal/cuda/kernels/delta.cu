// The gated delta rule, see plan.Delta. Each row is computed from the matrix at the beginning of
// its chunk and the rows of the chunk. Three launches compute a step: prepare writes what each token
// has of its own; pairs the products of keys and queries with the keys of their chunk; few and many
// go over the rows of each sequence, few if it has at most fewRows in the step. The order of every
// sum is the same in both.
#include "matrix.cuh"
#include "recurrent.cuh"

constexpr int deltaDim = 256; // maximum of keyDim and valueDim

// A product over a key is the sum of those over its parts, each from zero.
constexpr int deltaParts = 4, partMost = deltaDim / deltaParts;

// partOf is how many numbers of a key a part has: a multiple of 4. The last parts may have fewer.
INLINE int partOf(int keyDim) { return (keyDim + 15) / 16 * 4; }

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
  float *pairs;              // [T][keys with gates of their own][2][chunkTokens], see pairs
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

INLINE float4 fourAt(const float *p) { return *reinterpret_cast<const float4 *>(p); }
INLINE void addFour(float4 &sum, float x, float4 v) {
  UNROLL for (int e = 0; e < 4; e++) sum[e] = fma(x, v[e], sum[e]);
}

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
// chunk up to their own; with gates by channel, these times their decay. A thread has A rows, of keys
// and then queries, and J keys.
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
    const Place place = a.table.places[token];
    const int at = place.position % chunkTokens, begin = place.position - at;
    n = minOf(minOf(count, a.starts[a.sequence[token] + 1]) - token, chunkTokens - at);
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

// A ChunkRows is where the rows of a chunk are, up to the last one known, and without gates by
// channel the sums of a head's gates.
struct ChunkRows {
  float *row[chunkTokens];
  float sum[chunkTokens];
};

// A DeltaRows is a head of a sequence, whose rows in the step begin with token first.
struct DeltaRows {
  const DeltaArgs &a;
  ChunkRows &chunk;
  int seq, h, first, end;
  Place place;
  DeltaHead head;
  bool channels;

  METHOD DeltaRows(const DeltaArgs &a, ChunkRows &chunk, bool channels)
      : a(a), chunk(chunk), seq(blockZ()), h(blockY()), first(a.starts[blockZ()]), end(a.starts[blockZ() + 1]), place(a.table.places[first]), head(a, blockY()), channels(channels) {}
  METHOD int positionOf(int token) const { return place.position + token - first; }

  // find finds the first n rows of the chunk that begins at position begin. The block has 64 threads
  // or more, and waits before and after.
  METHOD void find(int begin, int n) {
    if (tidX() >= n) return;
    float *row = rowAt(a.rows, a.table, place.shift, begin + tidX());
    chunk.row[tidX()] = row, chunk.sum[tidX()] = channels ? 0 : row[head.sums];
  }
  METHOD float sumOf(int j, int d) const { return channels ? chunk.row[j][head.sums + d] : chunk.sum[j]; }

  // key returns number d of the key or query of a token, row i of the chunk.
  METHOD float key(bool query, int token, int i, int d) const { return query ? a.queries[(s64(token) * a.keyHeads + head.key) * a.keyDim + d] : chunk.row[i][head.k + d]; }
  // pairsOf returns the products of the key or query of a token and the keys of its chunk.
  METHOD const float *pairsOf(bool query, int token) const {
    return a.pairs + ((s64(token) * (channels ? a.heads : a.keyHeads) + (channels ? h : head.key)) * 2 + (query ? 1 : 0)) * chunkTokens;
  }
  // pair returns the product of the key or query of a token, row i of the chunk, and the key of row
  // j, times its decay.
  METHOD float pair(bool query, int token, int i, int j) const {
    const float v = pairsOf(query, token)[j];
    return channels ? v : v * expOf(chunk.sum[i] - chunk.sum[j]);
  }
  // late returns number d of the key of row j, times its decay at the end of the chunk.
  METHOD float late(int j, int d) const { return chunk.row[j][head.k + d] * expOf(sumOf(chunkTokens - 1, d) - sumOf(j, d)); }
};

constexpr int fewRows = 8;   // of a sequence
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
      if (there) r.chunk.row[at + i][r.head.u + col] = u;
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

constexpr int manyColumns = 32, manyRows = 32; // of a block, rows at a time
constexpr int manyKeys = 16;                   // of a chunk that are added to the matrix at a time

// A ManyShared is the shared memory of many.
struct ManyShared {
  static constexpr int pairStride = chunkTokens + 4;
  float *matrix;                  // [4*each][manyColumns]
  float *part;                    // [2*manyRows][each+4] keys, then queries; or [manyKeys][4*each+4] keys
  float *u;                       // [chunkTokens][manyColumns]
  float *pair;                    // [2][manyRows][pairStride] of keys, then of queries
  float *v, *beta;                // [manyRows][manyColumns], [manyRows]
  METHOD ManyShared(float *base, int each) {
    matrix = base, part = matrix + 4 * each * manyColumns, u = part + 2 * manyRows * (each + 4);
    pair = u + chunkTokens * manyColumns, v = pair + 2 * manyRows * pairStride, beta = v + manyRows * manyColumns;
  }

  // solve sets u of n rows, from row at of the chunk on, where what their keys have of the matrix and
  // of the rows before these is. A warp does it, a lane a column: no row waits for another warp. If
  // FOURS is set, at is a multiple of 4.
  template <bool FOURS> METHOD void solve(int at, int n) const {
    constexpr int together = 4; // rows whose sums over the rows before them are computed at a time
    float *column = u + at * manyColumns + tidX() % 32;
    float known[manyRows];
    UNROLL for (int i = 0; i < manyRows; i += together) {
      if (i >= n) break;
      float x[together];
      const float *of[together];
      UNROLL for (int k = 0; k < together; k++) {
        const int row = minOf(i + k, n - 1);
        x[k] = column[row * manyColumns], of[k] = pair + row * pairStride + at;
      }
      const auto fourOf = [&](int k, int j) ALWAYS { return FOURS ? fourAt(of[k] + j) : float4{of[k][j], of[k][j + 1], of[k][j + 2], of[k][j + 3]}; };
      UNROLL for (int j = 0; j < i; j += 4) {
        float4 p[together];
        UNROLL for (int k = 0; k < together; k++) p[k] = fourOf(k, j);
        UNROLL for (int e = 0; e < 4; e++) {
          UNROLL for (int k = 0; k < together; k++) x[k] = fma(p[k][e], known[j + e], x[k]);
        }
      }
      UNROLL for (int k = 0; k < together; k++) {
        const float4 p = fourOf(k, i);
        UNROLL for (int e = 0; e < k; e++) x[k] = fma(p[e], known[i + e], x[k]);
        const int row = minOf(i + k, n - 1);
        known[i + k] = beta[row] * (v[row * manyColumns + tidX() % 32] - x[k]);
      }
      UNROLL for (int k = 0; k < together; k++) {
        if (i + k < n) column[(i + k) * manyColumns] = known[i + k];
      }
    }
  }
};

// many computes 32 columns of a head of a sequence with more than fewRows rows, 32 of them at a time.
// Only u of a row depends on the rows before it. A thread has four columns of the key and the query
// of a row, and of D/32 numbers of all keys in the matrix. Keys have at most D numbers, and gates by
// channel if CHANNELS is set.
template <int D, bool CHANNELS> INLINE void many(const DeltaArgs &a) {
  extern __shared__ float numbers[];
  __shared__ ChunkRows chunk;
  waitForPrevious();
  allowNext();
  if (blockZ() >= *a.seqs) return;
  DeltaRows r(a, chunk, CHANNELS);
  if (r.end - r.first <= fewRows) return;
  const int dim = a.keyDim, each = partOf(dim), stride = each + 4, lateStride = 4 * each + 4;
  const ManyShared s(numbers, each);
  const int row = tidX() / 8, c = tidX() % 8 * 4, warp = tidX() / 32, lane = tidX() % 32;
  const int col = blockX() * manyColumns + c; // of four
  const bool whole = a.valueDim % 32 == 0;
  const auto there = [&](int e) ALWAYS { return whole || col + e < a.valueDim; };

  const float *before = slotBefore(a.state, r.seq);
  for (int x = tidX(); x < 4 * each * manyColumns; x += recurrentThreads) {
    const int d = x / manyColumns, at = blockX() * manyColumns + x % manyColumns;
    s.matrix[x] = before && d < dim && at < a.valueDim ? before[(s64(r.h) * dim + d) * a.valueDim + at] : 0.0f;
  }
  r.find(r.place.position / chunkTokens * chunkTokens, r.place.position % chunkTokens);
  syncBlock();
  for (int j = warp; j < r.place.position % chunkTokens; j += warps) {
    const int at = blockX() * manyColumns + lane;
    s.u[j * manyColumns + lane] = at < a.valueDim ? chunk.row[j][r.head.u + at] : 0.0f;
  }
  const int stored = r.positionOf(r.end) / chunkTokens * chunkTokens; // the position at which the matrix is stored

  int n = 0; // rows of a chunk, from token on
  for (int token = r.first; token < r.end; token += n) {
    const int at = r.positionOf(token) % chunkTokens, begin = r.positionOf(token) - at;
    n = minOf(minOf(manyRows, r.end - token), chunkTokens - at);
    const bool mine = row < n;

    // What needs no row of the chunk is loaded first: products of rows, values and betas.
    constexpr int fours = 2 * manyRows * chunkTokens / 4 / recurrentThreads;
    float4 pairs[fours];
    UNROLL for (int k = 0; k < fours; k++) {
      const int of = tidX() / 16 + k * (recurrentThreads / 16);
      pairs[k] = of % manyRows < n ? fourAt(r.pairsOf(of >= manyRows, token + of % manyRows) + tidX() % 16 * 4) : float4{};
    }
    float4 v = {};
    float beta = 0;
    if (mine) {
      UNROLL for (int e = 0; e < 4; e++) v[e] = there(e) ? a.v[s64(token + row) * a.vStride + r.h * a.valueDim + col + e] : 0.0f;
      beta = a.betas[s64(token + row) * a.heads + r.h];
    }
    if (at == 0 || token == r.first) {
      syncBlock();
      r.find(begin, minOf(chunkTokens, at + r.end - token));
      syncBlock();
    }

    // The products with the matrix.
    float4 sum[2] = {};
    // A warp copies every 8th row, a lane every 32nd number of a part, which it loads ahead. Rows and
    // numbers that do not exist are those of others.
    constexpr int mineRows = manyRows / warps, numbersOfPart = D / deltaParts / 32;
    const float *keys[mineRows], *queries[mineRows];
    float left[mineRows];
    UNROLL for (int k = 0; k < mineRows; k++) {
      const int i = minOf(warp + k * warps, n - 1);
      keys[k] = chunk.row[at + i] + r.head.k, queries[k] = a.queries + (s64(token + i) * a.keyHeads + r.head.key) * dim;
      left[k] = CHANNELS ? 0 : expOf(chunk.sum[at + i]);
    }
    const int gatesAfter = r.head.sums - r.head.k; // from a number to its gate
    float number[2][mineRows][numbersOfPart], gate[mineRows][numbersOfPart];
    const auto load = [&](int from) ALWAYS {
      UNROLL for (int e = 0; e < numbersOfPart; e++) {
        const int d = minOf(from + lane + 32 * e, dim - 1);
        UNROLL for (int k = 0; k < mineRows; k++) {
          number[0][k][e] = keys[k][d], number[1][k][e] = queries[k][d];
          if constexpr (CHANNELS) gate[k][e] = keys[k][d + gatesAfter];
        }
      }
    };
    load(0);
    UNROLL for (int k = 0; k < fours; k++) {
      const int of = tidX() / 16 + k * (recurrentThreads / 16), j = tidX() % 16 * 4;
      float4 x = pairs[k];
      if constexpr (!CHANNELS) {
        UNROLL for (int e = 0; e < 4; e++) x[e] = x[e] * expOf(chunk.sum[minOf(at + of % manyRows, chunkTokens - 1)] - chunk.sum[j + e]);
      }
      *reinterpret_cast<float4 *>(s.pair + of * ManyShared::pairStride + j) = x;
    }
    _Pragma("unroll 1") for (int from = 0; from < dim; from += each) {
      UNROLL for (int k = 0; k < mineRows; k++) {
        UNROLL for (int e = 0; e < numbersOfPart; e++) {
          const int d = lane + 32 * e;
          float by = left[k];
          if constexpr (CHANNELS) by = expOf(gate[k][e]);
          if (d >= each) continue;
          float *to = s.part + (warp + k * warps) * stride + d;
          to[0] = from + d < dim ? number[0][k][e] * by : 0.0f, to[manyRows * stride] = from + d < dim ? number[1][k][e] * by : 0.0f;
        }
      }
      syncBlock();
      if (from + each < dim) load(from + each);
      float4 part[2] = {};
      const float *key = s.part + row * stride, *query = key + manyRows * stride;
      for (int d = 0; d < each; d += 4) {
        const float4 k = fourAt(key + d), q = fourAt(query + d);
        UNROLL for (int e = 0; e < 4; e++) {
          const float4 m = fourAt(s.matrix + (from + d + e) * manyColumns + c);
          addFour(part[0], k[e], m), addFour(part[1], q[e], m);
        }
      }
      UNROLL for (int e = 0; e < 4; e++) sum[0][e] = sum[0][e] + part[0][e], sum[1][e] = sum[1][e] + part[1][e];
      syncBlock();
    }

    // The rows before these, and then these.
    const float *pair[2] = {s.pair + row * ManyShared::pairStride, s.pair + (manyRows + row) * ManyShared::pairStride};
    const auto add = [&](int which, int from, int to) ALWAYS {
      _Pragma("unroll 4") for (int j = from; j < to; j++) addFour(sum[which], pair[which][j], fourAt(s.u + j * manyColumns + c));
    };
    float4 *const own = reinterpret_cast<float4 *>(s.u + (at + row) * manyColumns + c);
    if (mine) {
      add(0, 0, at);
      *own = sum[0], *reinterpret_cast<float4 *>(s.v + row * manyColumns + c) = v;
      if (c == 0) s.beta[row] = beta;
    }
    syncBlock();
    if (warp == 0) at % 4 == 0 ? s.solve<true>(at, n) : s.solve<false>(at, n);
    if (mine) add(1, 0, at);
    syncBlock();
    if (mine) {
      add(1, at, at + row + 1);
      const float4 u = *own;
      float *to = chunk.row[at + row] + r.head.u + col;
      UNROLL for (int e = 0; e < 4; e++) {
        if (there(e)) to[e] = u[e];
      }
    }
    if (mine) {
      const int to = r.h * a.valueDim + col;
      if (whole) {
        storeFour(a.out, token + row, to, sum[1]);
        for (int x = to + 4; r.h == a.heads - 1 && col == a.valueDim - 4 && x < a.out.stride; x += 4) storeFour(a.out, token + row, x, float4{});
      } else {
        UNROLL for (int e = 0; e < 4; e++) {
          if (there(e)) a.out.f32[s64(token + row) * a.out.stride + to + e] = sum[1][e];
        }
      }
    }
    if (at + n < chunkTokens) {
      syncBlock(); // all warps have read the products of rows
      continue;
    }

    // The matrix after the chunk.
    constexpr int groups = D / (4 * manyRows); // of four numbers of a thread
    float4 x[groups][4];
    UNROLL for (int g = 0; g < groups; g++) {
      UNROLL for (int i = 0; i < 4; i++) {
        const int d = 4 * row + i + g * 4 * manyRows;
        x[g][i] = float4{};
        if (d >= dim) continue;
        const float left = expOf(r.sumOf(chunkTokens - 1, d));
        const float4 m = fourAt(s.matrix + d * manyColumns + c);
        UNROLL for (int e = 0; e < 4; e++) x[g][i][e] = m[e] * left;
      }
    }
    constexpr int mineKeys = manyKeys / warps;
    float last[D / 32], late[mineKeys][D / 32], decay[mineKeys][D / 32];
    UNROLL for (int e = 0; e < D / 32; e++) last[e] = r.sumOf(chunkTokens - 1, minOf(lane + 32 * e, dim - 1));
    const auto loadLate = [&](int j0) ALWAYS {
      UNROLL for (int k = 0; k < mineKeys; k++) {
        const int j = j0 + warp + k * warps;
        const float *key = chunk.row[j] + r.head.k;
        UNROLL for (int e = 0; e < D / 32; e++) {
          const int d = minOf(lane + 32 * e, dim - 1);
          late[k][e] = key[d];
          if constexpr (CHANNELS) decay[k][e] = key[d + gatesAfter];
        }
        if constexpr (!CHANNELS) decay[k][0] = chunk.sum[j];
      }
    };
    loadLate(0);
    _Pragma("unroll 1") for (int j0 = 0; j0 < chunkTokens; j0 += manyKeys) {
      UNROLL for (int k = 0; k < mineKeys; k++) {
        float by = expOf(last[0] - decay[k][0]);
        UNROLL for (int e = 0; e < D / 32; e++) {
          const int d = lane + 32 * e;
          if constexpr (CHANNELS) by = expOf(last[e] - decay[k][e]);
          if (d < 4 * each) s.part[(warp + k * warps) * lateStride + d] = d < dim ? late[k][e] * by : 0.0f;
        }
      }
      syncBlock();
      if (j0 + manyKeys < chunkTokens) loadLate(j0 + manyKeys);
      UNROLL for (int g = 0; g < groups; g++) {
        const int d = 4 * row + g * 4 * manyRows;
        if (d >= 4 * each) break;
        _Pragma("unroll 4") for (int j = 0; j < manyKeys; j++) {
          const float4 k = fourAt(s.part + j * lateStride + d), u = fourAt(s.u + (j0 + j) * manyColumns + c);
          UNROLL for (int i = 0; i < 4; i++) addFour(x[g][i], k[i], u);
        }
      }
      syncBlock();
    }
    UNROLL for (int g = 0; g < groups; g++) {
      UNROLL for (int i = 0; i < 4; i++) {
        const int d = 4 * row + i + g * 4 * manyRows;
        if (d < dim) *reinterpret_cast<float4 *>(s.matrix + d * manyColumns + c) = x[g][i];
      }
    }
    syncBlock();
    if (begin + chunkTokens != stored) continue;
    float *after = slotAfter(a.state, r.seq);
    for (int x = tidX(); x < dim * manyColumns; x += recurrentThreads) {
      const int to = blockX() * manyColumns + x % manyColumns;
      if (to < a.valueDim) after[(s64(r.h) * dim + x / manyColumns) * a.valueDim + to] = s.matrix[x];
    }
  }
}

// Grid (blocks of columns, heads, sequences), 256 threads, shared memory as in lower/delta.go.
extern "C" __global__ void __launch_bounds__(recurrentThreads) many_128(const DeltaArgs a) { many<128, false>(a); }
extern "C" __global__ void __launch_bounds__(recurrentThreads) many_256(const DeltaArgs a) { many<256, false>(a); }
extern "C" __global__ void __launch_bounds__(recurrentThreads) channels_128(const DeltaArgs a) { many<128, true>(a); }
extern "C" __global__ void __launch_bounds__(recurrentThreads) channels_256(const DeltaArgs a) { many<256, true>(a); }
