// The gated delta rule for many rows of a sequence, a chunk at a time. Only u of a row depends on
// the rows before it.
#pragma once
#include "delta.cuh"

constexpr int manyColumns = 32; // of the matrix, that a block has
constexpr int manyThreads = 256, manyWarps = manyThreads / 32;

// A warp computes a band of rows, keys in the first warps and queries in the others: each thread a
// tile of some of the rows, four apart, and four columns.
constexpr int threadRows = 4, bandRows = 4 * threadRows, bands = chunkTokens / bandRows;
static_assert(manyWarps == 2 * bands);

// A ManyShared is the shared memory of many. Rows of keys and queries and of products end with four
// unused numbers, so that adjacent ones are in different banks.
struct ManyShared {
  float *matrix; // [4*each][manyColumns]
  float *rows;   // [2*chunkTokens][span+4] keys, then queries; or [chunkTokens][2*span+4] keys
  float *u;      // [chunkTokens][manyColumns]
  float *pairs;  // [2][pairsBefore(bands)] products of the keys, then of the queries, with keys
  METHOD ManyShared(float *base, int each, int span) {
    matrix = base, rows = matrix + 4 * each * manyColumns, u = rows + 2 * chunkTokens * (span + 4), pairs = u + chunkTokens * manyColumns;
  }

  // pairsOf returns the products of a row of a chunk with keys: those up to the end of its band. Those
  // of the band's rows are pairsApart apart; those of all bands before it take pairsBefore numbers.
  static constexpr int pairsBefore(int band) { return bandRows * (bandRows * band * (band + 1) / 2 + 4 * band); }
  static constexpr int pairsApart(int band) { return bandRows * (band + 1) + 4; }
  METHOD float *pairsOf(bool query, int row) const {
    const int band = row / bandRows;
    return pairs + (query ? pairsBefore(bands) : 0) + pairsBefore(band) + row % bandRows * pairsApart(band);
  }
};

// A Many computes 32 columns of a head of a sequence with more than fewRows rows. Keys have at most D
// numbers, and gates by channel if CHANNELS is set.
template <int D, bool CHANNELS> struct Many {
  static constexpr int spanParts = deltaDim / D;                 // parts of keys that are in shared memory at a time
  static constexpr int spanNumbers = spanParts * D / deltaParts; // at most
  static constexpr int copied = chunkTokens / manyWarps;         // rows of the chunk that a warp copies
  static constexpr int fours = chunkTokens * chunkTokens / 4 / manyThreads;

  const DeltaArgs &a;
  DeltaRows &r;
  const ManyShared s;
  float *const betas, *const decays; // [chunkTokens] of rows, in shared memory
  const int dim, each, span, stride, lateStride;
  const int first; // column of the block
  int warp, lane;
  int token, at, n; // n rows of the chunk from row at on, which is token's

  // What is loaded before it is needed. A warp copies every 8th row, a lane every 32nd number.
  float number[2][copied][spanNumbers / 32], gate[copied][spanNumbers / 32];
  float late[copied][spanNumbers / 16], lateGate[copied][spanNumbers / 16];
  float4 pair[2][fours];
  float v[bandRows], beta, decay[copied];

  METHOD Many(const DeltaArgs &a, DeltaRows &r, float *base, float *betas, float *decays)
      : a(a), r(r), s(base, partOf(a.keyDim), spanParts * partOf(a.keyDim)), betas(betas), decays(decays), dim(a.keyDim), each(partOf(a.keyDim)), span(spanParts * each), stride(span + 4),
        lateStride(2 * span + 4), first(blockX() * manyColumns), warp(tidX() / 32), lane(tidX() % 32) {}

  // renew has the compiler compute what follows from the thread's number again, which otherwise takes
  // more registers than there are.
  METHOD void renew() { asm volatile("" : "+r"(warp), "+r"(lane)); }

  METHOD bool query() const { return warp >= bands; }
  METHOD int band() const { return warp % bands * bandRows; } // first row of the warp's band

  // place is the first row of the tile in its band, and column its first column. Lanes that differ in
  // the lowest bit have the same columns, those that differ in the next one the same rows, so that
  // two quarters of a warp read shared memory at a time.
  METHOD int place() const { return lane % 2 + lane / 16 * 2; }
  METHOD int column() const { return lane / 2 % 8 * 4; }
  METHOD int tileRow(int k) const { return band() + place() + 4 * k; }

  METHOD bool ends() const { return at + n == chunkTokens; }
  METHOD bool computes() const { return band() < at + n && band() + bandRows > at; }
  METHOD bool inStep(int i) const { return i >= at && i < at + n; }
  METHOD int rowInStep(int i) const { return minOf(maxOf(i, at), at + n - 1); }
  METHOD int tokenOf(int i) const { return token + rowInStep(i) - at; }

  // load loads a span of keys and queries, from number from on. Rows and numbers that do not exist are
  // those of others.
  METHOD void load(int from) {
    UNROLL for (int k = 0; k < copied; k++) {
      const int i = warp + k * manyWarps;
      const float *key = r.chunk->row[rowInStep(i)] + r.head.k, *query = a.queries + (s64(tokenOf(i)) * a.keyHeads + r.head.key) * dim;
      UNROLL for (int e = 0; e < spanNumbers / 32; e++) {
        const int d = minOf(from + lane + 32 * e, dim - 1);
        number[0][k][e] = key[d], number[1][k][e] = query[d];
        if constexpr (CHANNELS) gate[k][e] = key[d + r.head.sums - r.head.k];
      }
    }
  }

  // store stores the span times its decay.
  METHOD void store(int from) {
    if (from == 0 && !CHANNELS) {
      UNROLL for (int k = 0; k < copied; k++) decay[k] = expOf(r.chunk->sum[rowInStep(warp + k * manyWarps)]);
    }
    const auto put = [&](bool all) ALWAYS {
      UNROLL for (int k = 0; k < copied; k++) {
        float *to = s.rows + (warp + k * manyWarps) * stride + lane;
        UNROLL for (int e = 0; e < spanNumbers / 32; e++) {
          const int d = lane + 32 * e;
          const float by = CHANNELS ? expOf(gate[k][e]) : decay[k];
          if (d >= span) continue;
          to[32 * e] = all || from + d < dim ? number[0][k][e] * by : 0.0f;
          to[32 * e + chunkTokens * stride] = all || from + d < dim ? number[1][k][e] * by : 0.0f;
        }
      }
    };
    from + span <= dim ? put(true) : put(false);
  }

  // loadOwn loads what else a chunk has: products of rows, values and betas.
  METHOD void loadOwn() {
    UNROLL for (int k = 0; k < fours; k++) {
      const int i = tidX() / 16 + k * (manyThreads / 16);
      UNROLL for (int q = 0; q < 2; q++) pair[q][k] = fourAt(r.pairsOf(q, tokenOf(i)) + tidX() % 16 * 4);
    }
    if (!query()) {
      UNROLL for (int i = 0; i < bandRows; i++) v[i] = a.v[s64(tokenOf(band() + i)) * a.vStride + r.h * a.valueDim + minOf(first + lane, a.valueDim - 1)];
    }
    beta = a.betas[s64(tokenOf(tidX() % chunkTokens)) * a.heads + r.h];
  }

  // storeOwn stores the products of rows, times their decay, betas, and the decays of keys at the end
  // of the chunk.
  METHOD void storeOwn() {
    UNROLL for (int k = 0; k < fours; k++) {
      const int i = tidX() / 16 + k * (manyThreads / 16), j = tidX() % 16 * 4;
      if (j > i) continue;
      float4 by = {1, 1, 1, 1};
      if constexpr (!CHANNELS) {
        UNROLL for (int e = 0; e < 4; e++) by[e] = expOf(r.chunk->sum[rowInStep(i)] - r.chunk->sum[j + e]);
      }
      UNROLL for (int q = 0; q < 2; q++) *reinterpret_cast<float4 *>(s.pairsOf(q, i) + j) = pair[q][k] * by;
    }
    if (tidX() < chunkTokens) {
      betas[tidX()] = beta;
      if (!CHANNELS && ends()) decays[tidX()] = expOf(r.chunk->sum[chunkTokens - 1] - r.chunk->sum[tidX()]);
    }
  }

  // multiply adds the products of the tile's rows with the matrix, over a span. It loads four numbers
  // of the keys while it multiplies the four before.
  METHOD void multiply(float4 (&sum)[threadRows], int from) const {
    const float *rows = s.rows + ((query() ? chunkTokens : 0) + tileRow(0)) * stride, *matrix = s.matrix + from * manyColumns + column();
    float4 x[2][threadRows], m[2][4];
    const auto ask = [&](int i, int d) ALWAYS {
      UNROLL for (int k = 0; k < threadRows; k++) x[i][k] = fourAt(rows + 4 * k * stride + d);
      UNROLL for (int e = 0; e < 4; e++) m[i][e] = fourAt(matrix + (d + e) * manyColumns);
    };
    UNROLL for (int p = 0; p < spanParts; p++) {
      const int end = (p + 1) * each;
      float4 part[threadRows] = {};
      const auto add = [&](int i) ALWAYS {
        UNROLL for (int e = 0; e < 4; e++) {
          UNROLL for (int k = 0; k < threadRows; k++) addFour(part[k], x[i][k][e], m[i][e]);
        }
      };
      ask(0, end - each);
      _Pragma("unroll 1") for (int d = end - each; d < end; d += 8) {
        ask(1, minOf(d + 4, end - 4));
        add(0);
        if (d + 4 >= end) break;
        ask(0, minOf(d + 8, end - 4));
        add(1);
      }
      UNROLL for (int k = 0; k < threadRows; k++) sum[k] = sum[k] + part[k];
    }
  }

  // addBand adds the products of the tile's queries with the keys of a band times their u. pairs is of
  // the first of these queries. If OWN is set, the band is theirs, and keys behind a query are not
  // added to it.
  template <bool OWN> METHOD void addBand(float4 (&sum)[threadRows], const float *pairs, int apart, int from) const {
    _Pragma("unroll 1") for (int j = 0; j < bandRows; j += 4) {
      float4 p[threadRows], u[4];
      UNROLL for (int k = 0; k < threadRows; k++) p[k] = fourAt(pairs + 4 * k * apart + from + j);
      UNROLL for (int e = 0; e < 4; e++) u[e] = fourAt(s.u + (from + j + e) * manyColumns + column());
      UNROLL for (int e = 0; e < 4; e++) {
        UNROLL for (int k = 0; k < threadRows; k++) {
          if (!OWN || j + e <= place() + 4 * k) addFour(sum[k], p[k][e], u[e]);
        }
      }
    }
  }

  // addColumns does so for the keys of a warp's band, of which a lane has a column, and the keys of an
  // earlier band.
  METHOD void addColumns(float (&x)[bandRows], const float *pairs, int apart, int from) const {
    _Pragma("unroll 1") for (int j = from; j < from + bandRows; j += 4) {
      float u[4];
      UNROLL for (int e = 0; e < 4; e++) u[e] = s.u[(j + e) * manyColumns + lane];
      UNROLL for (int i = 0; i < bandRows; i++) {
        const float4 p = fourAt(pairs + i * apart + j);
        UNROLL for (int e = 0; e < 4; e++) x[i] = fma(p[e], u[e], x[i]);
      }
    }
  }

  // solve replaces what the keys of a band have of the matrix and of the rows before the band by their
  // u. If KNOWN is set, the first rows may be from before the step, with u in shared memory.
  template <bool KNOWN> METHOD void solve(float (&x)[bandRows], const float *pairs, int apart) const {
    float *const u = s.u + band() * manyColumns + lane;
    float4 by[bandRows / 4];
    UNROLL for (int i = 0; i < bandRows; i += 4) by[i / 4] = fourAt(betas + band() + i);
    UNROLL for (int j = 0; j < bandRows; j += 4) {
      float4 p[bandRows];
      UNROLL for (int i = j; i < bandRows; i++) p[i] = fourAt(pairs + i * apart + band() + j);
      UNROLL for (int e = 0; e < 4; e++) {
        const int i = j + e;
        x[i] = by[i / 4][e] * (v[i] - x[i]);
        if (KNOWN && band() + i < at) x[i] = u[i * manyColumns];
        UNROLL for (int k = i + 1; k < bandRows; k++) x[k] = fma(p[k][e], x[i], x[k]);
      }
    }
    UNROLL for (int i = 0; i < bandRows; i++) u[i * manyColumns] = x[i]; // no row reads those beyond the step
  }

  // lastSum returns the sum of the gates of number d over the whole chunk.
  METHOD float lastSum(const ChunkRows &of, int d) const { return CHANNELS ? of.row[chunkTokens - 1][r.head.sums + minOf(d, dim - 1)] : of.sum[chunkTokens - 1]; }

  // loadLate loads two spans of all keys of the chunk.
  METHOD void loadLate(const ChunkRows &of, int from) {
    UNROLL for (int k = 0; k < copied; k++) {
      const float *key = of.row[warp + k * manyWarps] + r.head.k;
      UNROLL for (int e = 0; e < spanNumbers / 16; e++) {
        const int d = minOf(from + lane + 32 * e, dim - 1);
        late[k][e] = key[d];
        if constexpr (CHANNELS) lateGate[k][e] = key[d + r.head.sums - r.head.k];
      }
    }
  }

  // storeLate stores them, times their decay at the end of the chunk.
  METHOD void storeLate(const ChunkRows &of, int from) {
    const auto put = [&](bool all) ALWAYS {
      UNROLL for (int k = 0; k < copied; k++) {
        const int j = warp + k * manyWarps;
        float by = CHANNELS ? 0 : decays[j];
        UNROLL for (int e = 0; e < spanNumbers / 16; e++) {
          const int d = lane + 32 * e;
          if (d >= 2 * span) continue;
          if constexpr (CHANNELS) by = expOf(lastSum(of, from + d) - lateGate[k][e]);
          s.rows[j * lateStride + d] = all || from + d < dim ? late[k][e] * by : 0.0f;
        }
      }
    };
    from + 2 * span <= dim ? put(true) : put(false);
  }

  // update sets two spans of the matrix to those after the chunk, and writes them if after is set. A
  // thread has four numbers of the keys and four columns, and loads two rows while it adds two.
  METHOD void update(const ChunkRows &of, int from, float *after) const {
    const int d = 4 * (4 * warp + place());
    if (d >= 2 * span) return;
    float *const matrix = s.matrix + (from + d) * manyColumns + column();
    const float *late = s.rows + d, *u = s.u + column();
    float4 x[4], key[2][2], value[2][2];
    const auto ask = [&](int i, int j) ALWAYS {
      UNROLL for (int e = 0; e < 2; e++) key[i][e] = fourAt(late + (j + e) * lateStride), value[i][e] = fourAt(u + (j + e) * manyColumns);
    };
    const auto add = [&](int i) ALWAYS {
      UNROLL for (int e = 0; e < 2; e++) {
        UNROLL for (int k = 0; k < 4; k++) addFour(x[k], key[i][e][k], value[i][e]);
      }
    };
    ask(0, 0);
    UNROLL for (int i = 0; i < 4; i++) x[i] = fourAt(matrix + i * manyColumns) * expOf(lastSum(of, from + d + i));
    _Pragma("unroll 1") for (int j = 0; j < chunkTokens; j += 4) {
      ask(1, j + 2);
      add(0);
      ask(0, minOf(j + 4, chunkTokens - 2));
      add(1);
    }
    const int col = first + column();
    UNROLL for (int i = 0; i < 4; i++) {
      if (from + d + i >= dim) break;
      *reinterpret_cast<float4 *>(matrix + i * manyColumns) = x[i];
      if (!after) continue;
      UNROLL for (int e = 0; e < 4; e++) {
        if (col + e < a.valueDim) after[(s64(r.h) * dim + from + d + i) * a.valueDim + col + e] = x[i][e];
      }
    }
  }

  // finish writes the results of the tile's queries.
  METHOD void finish(const float4 (&sum)[threadRows]) const {
    const int col = first + column(), to = r.h * a.valueDim + col;
    UNROLL for (int k = 0; k < threadRows; k++) {
      const int i = tileRow(k);
      if (!inStep(i)) continue;
      if (a.valueDim % 32 == 0) {
        storeFour(a.out, tokenOf(i), to, sum[k]);
        for (int x = to + 4; r.h == a.heads - 1 && col == a.valueDim - 4 && x < a.out.stride; x += 4) storeFour(a.out, tokenOf(i), x, float4{});
      } else {
        UNROLL for (int e = 0; e < 4; e++) {
          if (col + e < a.valueDim) a.out.f32[s64(tokenOf(i)) * a.out.stride + to + e] = sum[k][e];
        }
      }
    }
  }

  // run goes over the chunks of the sequence.
  METHOD void run(ChunkRows (&chunks)[2]) {
    const float *before = slotBefore(a.state, r.seq);
    for (int x = tidX(); x < 4 * each * manyColumns; x += manyThreads) {
      const int d = x / manyColumns, col = first + x % manyColumns;
      s.matrix[x] = before && d < dim && col < a.valueDim ? before[(s64(r.h) * dim + d) * a.valueDim + col] : 0.0f;
    }
    token = r.first, at = r.place.position % chunkTokens, n = minOf(r.end - token, chunkTokens - at);
    r.find(r.place.position - at, at + n);
    syncBlock();
    for (int j = warp; j < at; j += manyWarps) s.u[j * manyColumns + lane] = r.chunk->row[j][r.head.u + minOf(first + lane, a.valueDim - 1)];
    load(0);
    loadOwn();
    const int stored = r.positionOf(r.end) / chunkTokens * chunkTokens; // the position at which the matrix is written

    for (int turn = 0;; turn ^= 1) {
      const int begin = r.positionOf(token) - at, left = r.end - token - n; // of the sequence's rows, after these
      // Some threads find the rows of the next chunk, while the spans are multiplied.
      const int next = tidX() - manyThreads / 2;
      const bool finds = next >= 0 && next < minOf(left, chunkTokens);
      float *nextRow = nullptr, nextSum = 0;
      float4 sum[threadRows] = {};
      _Pragma("unroll 1") for (int from = 0; from < 4 * each; from += span) {
        renew();
        store(from);
        if (from == 0) storeOwn();
        syncBlock();
        renew();
        if (from + span < 4 * each) load(from + span);
        else if (finds && !CHANNELS) nextSum = nextRow[r.head.sums];
        if (finds && from == 0) nextRow = rowAt(a.rows, a.table, r.place.shift, begin + chunkTokens + next);
        if (computes()) multiply(sum, from);
        syncBlock();
      }
      renew();
      if (ends()) loadLate(*r.chunk, 0), storeLate(*r.chunk, 0);
      if (finds) chunks[turn ^ 1].row[next] = nextRow, chunks[turn ^ 1].sum[next] = nextSum;

      renew();
      float x[bandRows]; // of a column of the band's keys
      if (!query() && computes()) {
        UNROLL for (int k = 0; k < threadRows; k++) {
          if (tileRow(k) >= at) *reinterpret_cast<float4 *>(s.u + tileRow(k) * manyColumns + column()) = sum[k];
        }
        syncWarp();
        UNROLL for (int i = 0; i < bandRows; i++) x[i] = s.u[(band() + i) * manyColumns + lane];
        syncWarp();
      }
      const int apart = ManyShared::pairsApart(band() / bandRows);
      const float *pairs = query() ? s.pairsOf(true, tileRow(0)) : s.pairsOf(false, band());
      _Pragma("unroll 1") for (int of = 0; of < at + n; of += bandRows) {
        if (of + bandRows > at) { // otherwise all u of the band are of rows before the step
          if (!query() && of == band()) of >= at ? solve<false>(x, pairs, apart) : solve<true>(x, pairs, apart);
          syncBlock();
        }
        if (!computes()) continue;
        if (!query() && of < band()) addColumns(x, pairs, apart, of);
        else if (query() && of < band()) addBand<false>(sum, pairs, apart, of);
        else if (query() && of == band()) addBand<true>(sum, pairs, apart, of);
      }
      renew();
      if (!query() && first + lane < a.valueDim) {
        UNROLL for (int i = 0; i < bandRows; i++) {
          if (inStep(band() + i)) r.chunk->row[band() + i][r.head.u + first + lane] = x[i];
        }
      }
      if (query()) finish(sum);
      renew();
      // The next chunk is loaded while the matrix is updated.
      const ChunkRows &ended = *r.chunk;
      const bool updates = ends();
      if (left > 0) {
        r.chunk = &chunks[turn ^ 1];
        token += n, at = 0, n = minOf(left, chunkTokens);
        load(0);
        loadOwn();
      }
      renew();
      if (updates) {
        float *after = begin + chunkTokens == stored ? slotAfter(a.state, r.seq) : nullptr;
        update(ended, 0, after);
        _Pragma("unroll 1") for (int from = 2 * span; from < 4 * each; from += 2 * span) {
          syncBlock();
          loadLate(ended, from);
          storeLate(ended, from);
          syncBlock();
          update(ended, from, after);
        }
      }
      if (left == 0) return;
      syncBlock();
    }
  }
};

template <int D, bool CHANNELS> INLINE void many(const DeltaArgs &a) {
  extern __shared__ float numbers[];
  __shared__ ChunkRows chunks[2];
  alignas(16) __shared__ float betas[chunkTokens], decays[chunkTokens];
  waitForPrevious();
  allowNext();
  if (blockZ() >= *a.seqs) return;
  DeltaRows r(a, chunks[0], CHANNELS);
  if (r.end - r.first <= fewRows) return;
  Many<D, CHANNELS>(a, r, numbers, betas, decays).run(chunks);
}
