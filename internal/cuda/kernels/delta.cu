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

constexpr int deltaRows = 16;  // of a chunk that a block computes together
constexpr int deltaFew = 4;    // of these, rows that it multiplies by the matrix at a time
constexpr int deltaAtOnce = 4; // products of two rows that a warp computes at a time
constexpr int deltaTile = 32;  // numbers of a key that are in shared memory for a new matrix

// A DeltaShared is what a block has for W columns of a head: u of the chunk, and of some rows the
// products of key and query with the matrix, and with the rows of the chunk.
template <int W> struct DeltaShared {
  float u[chunkTokens][W];
  float byMatrix[2][deltaRows][W];
  union {
    struct {
      float now[2][deltaFew][deltaDim]; // keys and queries times the decay of the matrix
      float part[2][deltaFew][recurrentThreads / W][W];
    };
    float byRow[2][deltaRows][chunkTokens];
    float keys[chunkTokens][deltaTile]; // times their decay
  };
};

// A DeltaRow is a lane's numbers of a row: every 32nd of its key, its query and its sums of gates.
struct DeltaRow {
  static constexpr int most = deltaDim / 32;
  float key[most], query[most], sum[most];
};

// delta computes W columns of a head of a sequence, some rows at a time. Only u of a row depends on
// the rows before it; the products that it needs are computed for all of these rows together. A
// thread has some rows of a column of the matrix. Grid (blocks of columns, heads, sequences), shared
// memory of 4*keyDim*W bytes.
template <int W> INLINE void delta(const DeltaArgs &a) {
  constexpr int parts = recurrentThreads / W;
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
  const auto queryOf = [&](int token) ALWAYS { return a.queries + (s64(token) * a.keyHeads + head.key) * dim; };
  const auto sumOf = [&](const float *row, int d) ALWAYS { return row[head.sums + (channels ? d : 0)]; };

  const float *before = slotBefore(a.state, seq);
  for (int d = from; d < to; d++) numbers[d * W + c] = before && there ? before[(s64(h) * dim + d) * a.valueDim + col] : 0.0f;
  int begin = place.position / chunkTokens * chunkTokens;
  for (int j = part; j < place.position - begin; j += parts) s.u[j][c] = there ? rowOf(begin + j)[head.u + col] : 0.0f;

  // The position at which the matrix is stored.
  const int last = (place.position + end - first) / chunkTokens * chunkTokens;
  int n = 0; // rows computed together: those of token, which are at and so on in their chunk
  for (int token = first; token < end; token += n) {
    const int position = place.position + token - first, at = position - begin;
    n = minOf(minOf(deltaRows, end - token), chunkTokens - at);

    _Pragma("unroll 1") for (int i0 = 0; i0 < n; i0 += deltaFew) {
      syncBlock();
      for (int x = tidX(); x < deltaFew * dim; x += recurrentThreads) {
        const int i = x / dim, d = x - i * dim, of = minOf(i0 + i, n - 1);
        const float *row = rowOf(position + of);
        const float left = expOf(sumOf(row, d));
        s.now[0][i][d] = row[head.k + d] * left, s.now[1][i][d] = queryOf(token + of)[d] * left;
      }
      syncBlock();
      float x[2][deltaFew] = {};
      for (int d = from; d < to; d++) {
        const float m = numbers[d * W + c];
        UNROLL for (int i = 0; i < deltaFew; i++) x[0][i] = fma(s.now[0][i][d], m, x[0][i]), x[1][i] = fma(s.now[1][i][d], m, x[1][i]);
      }
      UNROLL for (int of = 0; of < 2; of++) {
        UNROLL for (int i = 0; i < deltaFew; i++) s.part[of][i][part][c] = x[of][i];
      }
      syncBlock();
      for (int x = part; x < 2 * deltaFew; x += parts) {
        const int of = x / deltaFew, i = x % deltaFew;
        float sum = 0;
        UNROLL for (int p = 0; p < parts; p++) sum = sum + s.part[of][i][p][c];
        if (i0 + i < n) s.byMatrix[of][i0 + i][c] = sum;
      }
    }
    syncBlock();

    // Each warp has some of the rows, or if they are few, some products of each.
    constexpr int warps = recurrentThreads / 32;
    const bool many = n >= warps;
    for (int i = many ? warp : 0; i < n; i += many ? warps : 1) {
      const float *row = rowOf(position + i), *query = queryOf(token + i);
      DeltaRow r;
      UNROLL for (int e = 0; e < DeltaRow::most; e++) {
        const int d = lane + 32 * e;
        r.key[e] = r.query[e] = r.sum[e] = 0;
        if (d < dim) r.key[e] = row[head.k + d], r.query[e] = query[d], r.sum[e] = sumOf(row, d);
      }
      for (int j0 = many ? 0 : warp * deltaAtOnce; j0 <= at + i; j0 += many ? deltaAtOnce : warps * deltaAtOnce) {
        float ofKey[deltaAtOnce] = {}, ofQuery[deltaAtOnce] = {};
        const float *other[deltaAtOnce];
        UNROLL for (int k = 0; k < deltaAtOnce; k++) other[k] = rowOf(begin + minOf(j0 + k, at + i));
        UNROLL for (int e = 0; e < DeltaRow::most; e++) {
          const int d = lane + 32 * e;
          if (32 * e >= dim) break;
          UNROLL for (int k = 0; k < deltaAtOnce; k++) {
            if (d >= dim) continue;
            float v = other[k][head.k + d];
            if (channels) v = v * expOf(r.sum[e] - other[k][head.sums + d]);
            ofKey[k] = fma(r.key[e], v, ofKey[k]), ofQuery[k] = fma(r.query[e], v, ofQuery[k]);
          }
        }
        UNROLL for (int k = 0; k < deltaAtOnce; k++) {
          ofKey[k] = warpSum(ofKey[k]), ofQuery[k] = warpSum(ofQuery[k]);
          const float left = channels ? 1.0f : expOf(r.sum[0] - other[k][head.sums]);
          if (lane == 0 && j0 + k <= at + i) s.byRow[0][i][j0 + k] = ofKey[k] * left, s.byRow[1][i][j0 + k] = ofQuery[k] * left;
        }
      }
    }
    syncBlock();

    const auto joined = [&](int of, int i, int c) ALWAYS {
      float sum = s.byMatrix[of][i][c];
      for (int j = 0; j < at + i; j++) sum = fma(s.byRow[of][i][j], s.u[j][c], sum);
      return sum;
    };
    if (part == 0) {
      for (int i = 0; i < n; i++) {
        const float v = there ? a.v[s64(token + i) * a.vStride + h * a.valueDim + col] : 0.0f;
        const float u = a.betas[s64(token + i) * a.heads + h] * (v - joined(0, i, c));
        s.u[at + i][c] = u;
        if (there) rowOf(position + i)[head.u + col] = u;
      }
    }
    syncBlock();
    for (int i = part; i < n; i += parts) {
      const float v = fma(s.byRow[1][i][at + i], s.u[at + i][c], joined(1, i, c));
      if (there) storeColumn(a.out, token + i, h * a.valueDim + col, whole, v);
    }
    if (at + n < chunkTokens) continue;

    const float *now = rowOf(position + n - 1);
    _Pragma("unroll 1") for (int d0 = 0; d0 < dim; d0 += deltaTile) {
      syncBlock();
      for (int x = tidX(); x < chunkTokens * deltaTile; x += recurrentThreads) {
        const int j = x / deltaTile, d = minOf(d0 + x % deltaTile, dim - 1);
        const float *row = rowOf(begin + j);
        s.keys[j][x % deltaTile] = row[head.k + d] * expOf(sumOf(now, d) - sumOf(row, d));
      }
      syncBlock();
      for (int d = d0 + part; d < minOf(d0 + deltaTile, dim); d += parts) {
        float v = numbers[d * W + c] * expOf(sumOf(now, d));
        for (int j = 0; j < chunkTokens; j++) v = fma(s.keys[j][d - d0], s.u[j][c], v);
        numbers[d * W + c] = v;
      }
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
