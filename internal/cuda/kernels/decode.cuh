// Attention in decoding, where each sequence of the step has one token. One launch computes what
// turn and attention compute, to the bit.
//
// No other token sees the new one, so everything else that a block reads was written by earlier
// steps. The block loads it while the previous kernel still runs, and waits for it together with
// the new token's query.
#pragma once
#include "eight.cuh"

// turn and attention have the same heads, pool and table. qOut is not written, and partial is
// [T][groups][maxSegments][together][headDim+2]; see keptOf.
struct DecodeArgs {
  TurnArgs turn;
  AttentionArgs attention;
  // [T] segments of each token whose parts the previous kernel has kept, see prefix.cuh; 0: none.
  const s32 *prefix;
  s32 folded;        // 1: these parts are one, which includes the sinks
};

template <class C, int D, int H> struct DecodeShared {
  Eight<D, H> eight;
  Copy<C> key, value; // the new token's
  int last;
};

// A Decoding is the work of a block for one token: its segments from, from+1, ..., end-1, for n
// query heads of a key/value head, at most H. If MANY is set blocks have equally many consecutive
// segments, the last one perhaps fewer; else each has one.
template <class C, int D, int H, bool MANY> struct Decoding {
  using E = Eight<D, H>;
  static constexpr int laneValues = E::dim / 32;
  const TurnArgs &t;
  const AttentionArgs &a;
  DecodeShared<C, D, H> &s;
  int dim, token, kvHead, head, n, skipped; // skipped: earlier heads of kvHead
  Place place;
  // Visible positions, and visible segments from lowest on, the first one that is not kept.
  int first, last, lowest, segments;
  int kept;                          // parts of the segments before lowest
  bool folded;                       // the kept part is one and includes the sinks
  int blocks, from, end;             // blocks: how many share the segments
  s64 number;                        // index of the token's group of heads
  Slot slot;                         // the new token's
  float w[laneValues];               // norm weights of the first head that the warp prepares

  METHOD Decoding(const DecodeArgs &args, DecodeShared<C, D, H> &shared) : t(args.turn), a(args.attention), s(shared) {
    dim = D ? D : a.dim, token = blockZ();
    const int share = a.heads / a.kvHeads, chunks = (share + a.together - 1) / a.together, group = blockY();
    kvHead = group / chunks, skipped = group % chunks * a.together;
    head = kvHead * share + skipped, n = minOf(a.together, share - skipped);
    number = s64(token) * a.kvHeads * chunks + group;
    place = a.table.places[token];
    last = place.position, first = a.window > 0 ? maxOf(0, last - a.window + 1) : 0;
    const int prefix = args.prefix && last >= 0 ? args.prefix[token] : 0;
    folded = args.folded && prefix > 0, kept = folded ? 1 : prefix;
    lowest = first / segmentTokens + prefix, segments = last / segmentTokens - lowest + 1;
    const int each = MANY ? (segments + gridX() - 1) / gridX() : 1;
    blocks = last < 0 ? 0 : MANY ? (segments + each - 1) / each : segments;
    from = lowest + blockX() * each, end = minOf(from + each, lowest + segments);
  }
  METHOD Source source() const { return Source{a.pool, a.table, place.shift, kvHead}; }
  METHOD bool newest() const { return blockX() == blocks - 1; } // has the new token
  // Whether the block writes its parts to memory; the last block then joins all parts.
  METHOD bool keeps() const { return blocks > 1 || (kept > 0 && !folded); }
  METHOD Part begun(int row, int at) const {
    if (folded && row < n) {
      const float *p = partial() + row * (dim + 2);
      return Part{p[0], p[1], p[2 + at]};
    }
    return a.sinks && row < n ? Part{a.sinks[head + row] * log2e, 1, 0} : Part{-infinity, 0, 0};
  }

  // clear zeroes queries that do not exist.
  METHOD void clear() {
    for (int i = tidX(); i < eightRows * (E::dim + 16); i += blockThreads) {
      const int row = i / (E::dim + 16), at = i % (E::dim + 16);
      if (row >= n || at >= dim) s.eight.q[row][at] = 0;
    }
  }

  // Tasks are the heads to prepare: the queries, and in the new token's segment its key and its
  // value.
  METHOD int tasks() const { return newest() ? n + 2 : n; }
  METHOD const float *normOf(int task) const { return task < n ? t.qNorm : task == n ? t.kNorm : nullptr; }

  // prepare reads what turnHeads needs and the previous kernel does not write.
  METHOD void prepare() {
    const int warp = tidX() / 32;
    if (newest()) slot = slotOf(a.pool, a.table, place.shift, last);
    if (warp < tasks() && normOf(warp)) loadHead(w, normOf(warp), dim, tidX() % 32);
  }

  // turnHeads runs the tasks, one on each warp.
  METHOD void turnHeads() {
    const int warp = tidX() / 32, lane = tidX() % 32;
    _Pragma("unroll 1") for (int task = warp; task < tasks(); task += runs) {
      const bool query = task < n, isKey = task == n;
      const float *x = query ? a.q + s64(token) * a.stride + (head + task) * dim
                             : isKey ? t.k + s64(token) * t.kStride + kvHead * dim : t.v + s64(token) * t.vStride + kvHead * dim;
      float v[laneValues];
      loadHead(v, x, dim, lane);
      const Step step = query ? queryStep(t, token) : keyStep(t, token);
      const bool turned = (query || isKey) && step.angles;
      const bool whole = D && step.dims == D;
      float2 by[laneValues];
      if (turned && !whole) loadAngles(by, step, lane);
      if (normOf(task)) {
        if (task > warp) loadHead(w, normOf(task), dim, lane);
        normalize(v, w, step.eps, dim);
      }
      if (turned) {
        if constexpr (D) {
          if (whole) turnWhole(v, step, lane);
        }
        if (!whole) turn(v, s.eight.slot[warp][0], by, step, lane);
      }
      if (query) {
        UNROLL for (int j = 0; j < laneValues; j++) {
          if (32 * j + lane < dim) s.eight.q[task][32 * j + lane] = floatToHalf(v[j]);
        }
      } else if (storeHead(a.pool, slot, isKey, kvHead, dim, v, lane, skipped == 0, isKey ? &s.key : &s.value)) {
        if (lane == 0 && skipped == 0) __atomic_fetch_min(t.overflow + token, t.layer, __ATOMIC_RELAXED);
      }
    }
    syncBlock();
  }

  // keep writes an element of a segment's part to partial, for the last block.
  METHOD float *partial() const { return a.partial + number * a.maxSegments * a.together * (dim + 2); }
  METHOD void keep(int segment, int row, int at, const Part &part) const {
    float *p = partial() + (s64(kept + segment - lowest) * a.together + row) * (dim + 2);
    if (at == 0) p[0] = part.top, p[1] = part.sum;
    p[2 + at] = part.value;
  }

  // finish reports whether this block is the last. If so, it joins all kept parts.
  METHOD bool finish(float (&result)[E::count]) {
    if (!drawsLast(a.tickets + number, blocks, s.last)) return false;
    int row[E::count], at[E::count];
    UNROLL for (int k = 0; k < E::count; k++) row[k] = E::at(k) < dim ? E::row(k) : eightRows, at[k] = E::at(k);
    joinNumbers(result, row, at, partial(), kept + segments, a.sinks && !folded ? a.sinks + head : nullptr, n, a.together, dim,
                s.eight.slot[0][0], H * (E::width + 4));
    return true;
  }
  METHOD void store(const float (&result)[E::count]) const {
    storeNumbers<D, H>(result, a.out, n, dim, [&](int) ALWAYS { return token; }, [&](int row) ALWAYS { return head + row; });
  }
};

// decodeOne computes one segment of a token.
template <class C, int D, int H> INLINE void decodeOne(const DecodeArgs &args, DecodeShared<C, D, H> &s) {
  using E = Eight<D, H>;
  Decoding<C, D, H, false> d(args, s);
  if (blockX() >= d.blocks) {
    waitForPrevious();
    allowNext();
    return;
  }
  const int lane = tidX() % 32, begin = d.from * segmentTokens + tidX() / 32 * runTokens;
  // Past positions are lo to old-1.
  const int lo = maxOf(d.first - begin, 0), old = minOf(d.last - begin, runTokens);
  const bool any = lo < minOf(d.last + 1 - begin, runTokens), isNew = d.last >= begin && d.last < begin + runTokens;
  const Source source = d.source();
  // Rows that do not exist are dropped at the end.
  const Seen seen[2] = {{d.first, d.last}, {d.first, d.last}};
  Run<C, D> run{};
  if (lo < old) run.find(source, begin, lo, old);
  run.loadKeys(source, lo, old);
  run.loadValues(source, lo, old);
  d.prepare();
  d.clear();
  waitForPrevious();
  allowNext();
  d.turnHeads();

  Scores x{};
  Weights weight{};
  Values value[E::dim / 64] = {};
  float sum[4] = {}, top[2] = {-infinity, -infinity};
  if (isNew) run.putKey(d.last - begin, s.key), run.putValue(d.last - begin, s.value);
  if (any) {
    run.scores(x, s.eight.q[lane / 4]);
    weigh(weight, top, x, d.a, begin, seen);
    addWeights(sum, weight);
    UNROLL for (int b = 0; b < E::dim / 64; b++) run.values(value[b], weight, b);
  }
  putRun(s.eight, value, sum, top, d.n, 0);
  syncBlock();
  float result[E::count];
  UNROLL for (int k = 0; k < E::count; k++) {
    if (E::row(k) >= d.n) break;
    const Part part = joined(s.eight, E::row(k), E::at(k));
    if (d.keeps()) {
      d.keep(d.from, E::row(k), E::at(k), part);
      continue;
    }
    Part all = d.begun(E::row(k), E::at(k));
    join(all, part);
    result[k] = divide(all.value, all.sum);
  }
  if (d.keeps() && !d.finish(result)) return;
  d.store(result);
}

// prefetchRun prefetches the keys and values of the run at position begin to the L2 cache, if a
// page holds whole runs.
template <class C, int D> INLINE void prefetchRun(const Source &s, int begin) {
  if (s.pool.pageTokens % runTokens != 0) return;
  // Cache lines of all keys, and of a chunk of all keys.
  constexpr int line = 128, lines = runTokens * D * C::bytes / line, ofChunk = runTokens * 16 / line;
  Pool pool = s.pool;
  pool.dim = D;
  const Slot slot = slotOf(pool, s.table, s.shift, begin);
  const u8 *keys = pool.base + keyAt<C>(pool, slot, s.head), *values = pool.base + valueAt<C>(pool, slot, s.head);
  UNROLL for (int i = tidX() % 32; i < lines; i += 32) {
    prefetch(keys + i / ofChunk * chunkApart<C>(pool) + i % ofChunk * line);
    prefetch(values + i * line);
  }
}

// decodeMany computes segments of a token one after another. While a block waits for keys or
// values, other blocks of the multiprocessor work.
template <class C, int D> INLINE void decodeMany(const DecodeArgs &args, DecodeShared<C, D, eightRows> &s) {
  using E = Eight<D>;
  Decoding<C, D, eightRows, true> d(args, s);
  if (blockX() >= d.blocks) {
    waitForPrevious();
    allowNext();
    return;
  }
  const int warp = tidX() / 32, lane = tidX() % 32, dim = d.dim;
  const Source source = d.source();
  // Rows that do not exist are dropped at the end.
  const Seen seen[2] = {{d.first, d.last}, {d.first, d.last}};
  int begin, lo, old; // a warp's run: its first position, and its past positions lo to old-1
  const auto find = [&](int segment) ALWAYS {
    begin = segment * segmentTokens + warp * runTokens;
    lo = maxOf(d.first - begin, 0), old = minOf(d.last - begin, runTokens);
  };
  find(d.from);
  if constexpr (D) {
    if (lo < old) prefetchRun<C, D>(source, begin);
  }
  d.prepare();
  d.clear();
  waitForPrevious();
  allowNext();
  d.turnHeads();

  const u16 *q = s.eight.q[lane / 4];
  Part all[E::count];
  UNROLL for (int k = 0; k < E::count; k++) all[k] = d.begun(E::row(k), E::at(k));
  _Pragma("unroll 1") for (int segment = d.from; segment < d.end; segment++) {
    Scores x{};
    Weights weight{};
    Values value[E::dim / 64] = {};
    float sum[4] = {}, top[2] = {-infinity, -infinity};
    Run<C, D> run{};
    find(segment);
    const int mine = begin;
    const bool any = lo < minOf(d.last + 1 - begin, runTokens), isNew = d.last >= begin && d.last < begin + runTokens;
    if constexpr (D == 0) {
      run.find(source, begin, lo, minOf(d.last + 1 - begin, runTokens), isNew ? d.last - begin : -1, &s.key, &s.value);
      if (any) {
        run.scores(x, source, q, dim);
        weigh(weight, top, x, d.a, mine, seen);
        addWeights(sum, weight);
        UNROLL for (int b = 0; b < E::dim / 64; b++) {
          if (64 * b < dim) run.values(value[b], source, weight, b, dim);
        }
      }
    } else {
      if (lo < old) run.find(source, begin, lo, old);
      run.loadKeys(source, lo, old);
      if (begin + segmentTokens < d.last) prefetchRun<C, D>(source, begin + segmentTokens);
      if (isNew) run.putKey(d.last - begin, s.key);
      if (any) run.scores(x, q);
      run.loadValues(source, lo, old);
      if (isNew) run.putValue(d.last - begin, s.value);
      if (any) {
        weigh(weight, top, x, d.a, mine, seen);
        addWeights(sum, weight);
        UNROLL for (int b = 0; b < E::dim / 64; b++) run.values(value[b], weight, b);
      }
    }

    UNROLL for (int p = 0; p < E::passes; p++) {
      if (p > 0) syncBlock();
      putRun(s.eight, value, sum, top, d.n, p);
      syncBlock();
      UNROLL for (int k = p * E::each; k < (p + 1) * E::each; k++) {
        if (E::row(k) >= d.n || E::at(k) >= dim) continue;
        const Part part = joined(s.eight, E::row(k), E::at(k));
        if (d.keeps()) d.keep(segment, E::row(k), E::at(k), part);
        else join(all[k], part);
      }
    }
    if (segment + 1 < d.end) syncBlock();
  }
  float result[E::count];
  UNROLL for (int k = 0; k < E::count; k++) result[k] = divide(all[k].value, all[k].sum);
  if (d.keeps() && !d.finish(result)) return;
  d.store(result);
}

// grid (blocks that share the segments of a token, kvHeads*ceil(heads/kvHeads/together), T), 256
// threads, no dynamic shared memory. Kernels of one segment need as many blocks as segments, and
// together is at most heads.
// cost: latency; with many tokens and long contexts memory. After the wait, one load (query, key
// and value of the new token), two barriers, and some 1,400 dependent instructions; with several
// blocks two more loads. A thread holds its share of 32 keys and values in registers: twice headDim
// elements of the KV cache.
#define DECODE(name, cache, dim, heads, blocks, body)                                            \
  extern "C" __global__ void __launch_bounds__(blockThreads, blocks) name(const DecodeArgs a) { \
    __shared__ DecodeShared<cache, dim, heads> s;                                                          \
    body(a, s);                                                                                            \
  }
#define DECODE_ONE(name, cache, dim, heads) DECODE(name, cache, dim, heads, (dim == 64 ? 2 : 1), (decodeOne<cache, dim, heads>))
#define DECODE_MANY(name, cache, dim) DECODE(name, cache, dim, eightRows, (dim == 64 ? 3 : dim == 128 ? 2 : 1), (decodeMany<cache, dim>))
