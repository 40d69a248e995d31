// Attention in decoding, where each sequence of the step has one token, or a few: drafts that are
// verified. One launch computes what turn and attention compute, to the bit.
//
// Nothing but the step's own tokens of a sequence sees their keys and values, so everything else
// that a block reads was written by earlier steps. The block loads it while the previous kernel
// still runs, and waits for it together with the new tokens' queries. A block prepares the keys and
// values of all new tokens that its rows see, and one block stores each of them, so no block reads
// what another one writes.
#pragma once
#include "eight.cuh"

// turn and attention have the same heads, pool and table. qOut is not written. partial has room for
// [T][groups][maxSegments][together] rows of headDim+2; see keptOf for one token of each sequence.
struct DecodeArgs {
  TurnArgs turn;
  AttentionArgs attention;
  // [T] segments of each token whose parts the previous kernel has kept, see prefix.cuh; 0: none.
  const s32 *prefix;
  s32 folded;        // 1: these parts are one, which includes the sinks
};

// the most tokens of a sequence in a step that decodes
constexpr int decodeTokens = 8;

// N is the most new tokens of a sequence.
template <class C, int D, int H, int N> struct DecodeShared {
  Eight<D, H> eight;
  Copy<C> key[N], value[N]; // of the new tokens
  int last;
};

// A Decoding is the work of a block for tokens of one sequence: their segments from, from+1, ...,
// end-1, for n query heads of a key/value head. A row is a query head of a token; there are at most
// H. If MANY is set blocks have equally many consecutive segments, the last one perhaps fewer; else
// each has one.
template <class C, int D, int H, bool MANY, int N> struct Decoding {
  using E = Eight<D, H>;
  static constexpr int laneValues = E::dim / 32;
  const TurnArgs &t;
  const AttentionArgs &a;
  DecodeShared<C, D, H, N> &s;
  int dim, kvHead, head, n, skipped; // skipped: earlier heads of kvHead
  int sequence, begin;               // the sequence's first token in the step
  int token, tokens, rows;           // the block's first token, and how many tokens and rows it has
  Place place;                       // of the sequence's first token
  // The positions of the block's tokens are position to last, which see none before first. Their
  // segments are those from lowest on, the first one that is not kept.
  int position, last, first, lowest, segments;
  int kept;                          // parts of the segments before lowest
  bool folded;                       // the kept part is one and includes the sinks
  int blocks, from, end;             // blocks: how many share the segments
  int fresh, news;                   // in the block's segments: the first new position, and how many
  s64 number;                        // of the block's first heads, among those of all tokens
  Slot slot;                         // of the first new key or value that the warp prepares
  float w[laneValues];               // norm weights of the first head that the warp prepares

  METHOD Decoding(const DecodeArgs &args, DecodeShared<C, D, H, N> &shared) : t(args.turn), a(args.attention), s(shared) {
    dim = D ? D : a.dim;
    const int share = a.heads / a.kvHeads, chunks = (share + a.together - 1) / a.together;
    int group = blockY(), skippedTokens = 0;
    sequence = begin = blockZ(), tokens = 1;
    if constexpr (N > 1) {
      const int parts = gridY() / (a.kvHeads * chunks);
      skippedTokens = group % parts * a.tokens, group /= parts;
      begin = a.starts[sequence], tokens = minOf(a.tokens, a.starts[sequence + 1] - begin - skippedTokens);
    }
    token = begin + skippedTokens;
    kvHead = group / chunks, skipped = group % chunks * a.together;
    head = kvHead * share + skipped, n = minOf(a.together, share - skipped), rows = n * tokens;
    number = s64(token) * a.kvHeads * chunks + group * tokens;
    const bool some = N == 1 || tokens > 0;
    place = some ? a.table.places[begin] : Place{-1, 0};
    position = place.position + skippedTokens, last = some ? position + tokens - 1 : -1;
    first = a.window > 0 ? maxOf(0, position - a.window + 1) : 0;
    const int prefix = N == 1 && args.prefix && last >= 0 ? args.prefix[token] : 0;
    folded = args.folded && prefix > 0, kept = folded ? 1 : prefix;
    lowest = first / segmentTokens + prefix, segments = last / segmentTokens - lowest + 1;
    const int each = MANY ? (segments + gridX() - 1) / gridX() : 1;
    blocks = last < 0 ? 0 : MANY ? (segments + each - 1) / each : segments;
    from = lowest + blockX() * each, end = minOf(from + each, lowest + segments);
    if constexpr (N == 1) fresh = last, news = blockX() == blocks - 1;
    else fresh = maxOf(place.position, from * segmentTokens), news = maxOf(0, minOf(last + 1, end * segmentTokens) - fresh);
  }
  METHOD Source source() const { return Source{a.pool, a.table, place.shift, kvHead}; }
  // Whether the block writes its parts to memory; the last block then joins all parts.
  METHOD bool keeps() const { return blocks > 1 || (kept > 0 && !folded); }
  METHOD int newTokens() const { return N == 1 ? 1 : last + 1 - place.position; } // of the sequence, up to the block's last
  METHOD int tokenOf(int row) const { return N == 1 ? 0 : row / n; } // of the block's tokens
  METHOD int headOf(int row) const { return head + (N == 1 ? row : row % n); }
  // Rows that do not exist are dropped at the end.
  METHOD Seen seenOf(int row) const {
    if (N == 1) return Seen{first, last};
    const int at = minOf(position + tokenOf(row), last);
    return Seen{a.window > 0 ? maxOf(0, at - a.window + 1) : 0, at};
  }
  METHOD Part begun(int row, int at) const {
    if (folded && row < rows) {
      const float *p = partial() + row * (dim + 2);
      return Part{p[0], p[1], p[2 + at]};
    }
    return a.sinks && row < rows ? Part{a.sinks[headOf(row)] * log2e, 1, 0} : Part{-infinity, 0, 0};
  }

  // clear zeroes queries that do not exist.
  METHOD void clear() {
    for (int i = tidX(); i < eightRows * (E::dim + 16); i += blockThreads) {
      const int row = i / (E::dim + 16), at = i % (E::dim + 16);
      if (row >= rows || at >= dim) s.eight.q[row][at] = 0;
    }
  }

  // Tasks are the heads to prepare: the queries, then the keys and the values of the new tokens in
  // the block's segments.
  METHOD int tasks() const { return rows + 2 * news; }
  METHOD bool isQuery(int task) const { return task < rows; }
  METHOD bool isKey(int task) const { return task >= rows && task < rows + news; }
  METHOD int positionOf(int task) const { return N == 1 ? last : fresh + (isKey(task) ? task - rows : task - rows - news); }
  METHOD int taskToken(int task) const {
    if (N == 1) return token;
    return isQuery(task) ? token + tokenOf(task) : begin + positionOf(task) - place.position;
  }
  METHOD const float *input(int task) const {
    const s64 of = taskToken(task);
    return isQuery(task) ? a.q + of * a.stride + headOf(task) * dim : isKey(task) ? t.k + of * t.kStride + kvHead * dim : t.v + of * t.vStride + kvHead * dim;
  }
  METHOD const float *normOf(int task) const { return isQuery(task) ? t.qNorm : isKey(task) ? t.kNorm : nullptr; }

  // prepare reads what turnHeads needs and the previous kernel does not write.
  METHOD void prepare() {
    const int warp = tidX() / 32;
    if (N == 1 ? news > 0 : warp < tasks() && !isQuery(warp)) slot = slotOf(a.pool, a.table, place.shift, positionOf(warp));
    if (warp < tasks() && normOf(warp)) loadHead(w, normOf(warp), dim, tidX() % 32);
  }

  // turnHeads runs the tasks, one on each warp. With several tokens there are more tasks than warps:
  // a warp loads the next one first.
  METHOD void turnHeads() {
    const int warp = tidX() / 32, lane = tidX() % 32;
    float v[laneValues];
    if (N > 1 && warp < tasks()) loadHead(v, input(warp), dim, lane);
    _Pragma("unroll 1") for (int task = warp; task < tasks(); task += runs) {
      const bool query = isQuery(task), key = isKey(task);
      float next[laneValues];
      Slot nextSlot = slot;
      if (N == 1) {
        loadHead(v, input(task), dim, lane);
      } else if (const int then = task + runs; then < tasks()) {
        loadHead(next, input(then), dim, lane);
        if (!isQuery(then)) nextSlot = slotOf(a.pool, a.table, place.shift, positionOf(then));
      }
      const int of = taskToken(task);
      if (query || key) {
        const Step step = query ? queryStep(t, of) : keyStep(t, of);
        float2 by[laneValues];
        if (step.angles) loadAngles(by, step, lane);
        if (step.norm && task > warp) loadHead(w, step.norm, dim, lane);
        prepareHead<D>(v, w, by, step, dim, s.eight.slot[warp][0], lane);
      }
      if (query) {
        UNROLL for (int j = 0; j < laneValues; j++) {
          if (32 * j + lane < dim) s.eight.q[task][32 * j + lane] = floatToHalf(v[j]);
        }
      } else {
        const int copy = N == 1 ? 0 : of - begin;
        const bool mine = skipped == 0 && (N == 1 || of >= token);
        if (storeHead(a.pool, slot, key, kvHead, dim, v, lane, mine, key ? &s.key[copy] : &s.value[copy])) {
          if (lane == 0 && mine) __atomic_fetch_min(t.overflow + t.sequence[of], t.layer, __ATOMIC_RELAXED);
        }
      }
      if constexpr (N > 1) {
        UNROLL for (int j = 0; j < laneValues; j++) v[j] = next[j];
        slot = nextSlot;
      }
    }
    syncBlock();
  }

  // keep writes an element of a segment's part to partial, for the last block. The parts of a
  // block's rows are adjacent.
  METHOD int room() const { return N == 1 ? a.together : a.together * tokens; } // rows of a segment
  METHOD float *partial() const { return a.partial + number * a.maxSegments * a.together * (dim + 2); }
  METHOD void keep(int segment, int row, int at, const Part &part) const {
    float *p = partial() + (s64(kept + segment - lowest) * room() + row) * (dim + 2);
    if (at == 0) p[0] = part.top, p[1] = part.sum;
    p[2 + at] = part.value;
  }

  // finish reports whether this block is the last. If so, it joins all kept parts.
  METHOD bool finish(float (&result)[E::count]) {
    if (!drawsLast(a.tickets + number, blocks, s.last)) return false;
    int row[E::count], at[E::count];
    UNROLL for (int k = 0; k < E::count; k++) row[k] = E::at(k) < dim ? E::row(k) : eightRows, at[k] = E::at(k);
    joinNumbers(result, row, at, partial(), kept + segments, a.sinks && !folded ? a.sinks + head : nullptr, N == 1 ? eightRows : n, rows, room(), dim,
                s.eight.slot[0][0], H * (E::width + 4));
    return true;
  }
  METHOD void store(const float (&result)[E::count]) const {
    storeNumbers<D, H>(result, a.out, rows, dim, [&](int row) ALWAYS { return token + tokenOf(row); }, [&](int row) ALWAYS { return headOf(row); });
  }
};

// decodeOne computes one segment.
template <class C, int D, int H, int N> INLINE void decodeOne(const DecodeArgs &args, DecodeShared<C, D, H, N> &s) {
  using E = Eight<D, H>;
  Decoding<C, D, H, false, N> d(args, s);
  if (blockX() >= d.blocks) {
    waitForPrevious();
    allowNext();
    return;
  }
  const int lane = tidX() % 32, begin = d.from * segmentTokens + tidX() / 32 * runTokens;
  // Past positions are lo to old-1.
  const int lo = maxOf(d.first - begin, 0), old = maxOf(lo, minOf(d.place.position - begin, runTokens));
  const bool any = lo < minOf(d.last + 1 - begin, runTokens);
  const Source source = d.source();
  const Seen seen[2] = {d.seenOf(lane % 4 * 2), d.seenOf(lane % 4 * 2 + 1)};
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
  run.putKeys(d.place.position - begin, d.newTokens(), s.key), run.putValues(d.place.position - begin, d.newTokens(), s.value);
  if (any) {
    run.scores(x, s.eight.q[lane / 4]);
    weigh(weight, top, x, d.a, begin, seen);
    addWeights(sum, weight);
    UNROLL for (int b = 0; b < E::dim / 64; b++) run.values(value[b], weight, b);
  }
  putRun(s.eight, value, sum, top, d.rows, 0);
  syncBlock();
  float result[E::count];
  UNROLL for (int k = 0; k < E::count; k++) {
    if (E::row(k) >= d.rows) break;
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

// decodeMany computes segments one after another. While a block waits for keys or
// values, other blocks of the multiprocessor work.
template <class C, int D, int N> INLINE void decodeMany(const DecodeArgs &args, DecodeShared<C, D, eightRows, N> &s) {
  using E = Eight<D>;
  Decoding<C, D, eightRows, true, N> d(args, s);
  if (blockX() >= d.blocks) {
    waitForPrevious();
    allowNext();
    return;
  }
  const int warp = tidX() / 32, lane = tidX() % 32, dim = d.dim;
  const Source source = d.source();
  const Seen seen[2] = {d.seenOf(lane % 4 * 2), d.seenOf(lane % 4 * 2 + 1)};
  int begin, lo, old; // a warp's run: its first position, and its past positions lo to old-1
  const auto find = [&](int segment) ALWAYS {
    begin = segment * segmentTokens + warp * runTokens;
    lo = maxOf(d.first - begin, 0), old = maxOf(lo, minOf(d.place.position - begin, runTokens));
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
    const int fresh = d.place.position - begin; // positions from this one on are new
    const bool any = lo < minOf(d.last + 1 - begin, runTokens);
    if constexpr (D == 0) {
      run.find(source, begin, lo, minOf(d.last + 1 - begin, runTokens), fresh, s.key, s.value);
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
      if (begin + segmentTokens < d.place.position) prefetchRun<C, D>(source, begin + segmentTokens);
      run.putKeys(fresh, d.newTokens(), s.key);
      if (any) run.scores(x, q);
      run.loadValues(source, lo, old);
      run.putValues(fresh, d.newTokens(), s.value);
      if (any) {
        weigh(weight, top, x, d.a, mine, seen);
        addWeights(sum, weight);
        UNROLL for (int b = 0; b < E::dim / 64; b++) run.values(value[b], weight, b);
      }
    }

    UNROLL for (int p = 0; p < E::passes; p++) {
      if (p > 0) syncBlock();
      putRun(s.eight, value, sum, top, d.rows, p);
      syncBlock();
      UNROLL for (int k = p * E::each; k < (p + 1) * E::each; k++) {
        if (E::row(k) >= d.rows || E::at(k) >= dim) continue;
        const Part part = joined(s.eight, E::row(k), E::at(k));
        if (d.keeps()) d.keep(segment, E::row(k), E::at(k), part);
        else if (N == 1 || d.seenOf(E::row(k)).some(segment * segmentTokens, segmentTokens)) join(all[k], part);
      }
    }
    if (segment + 1 < d.end) syncBlock();
  }
  float result[E::count];
  UNROLL for (int k = 0; k < E::count; k++) result[k] = divide(all[k].value, all[k].sum);
  if (d.keeps() && !d.finish(result)) return;
  d.store(result);
}

// Grid (blocks that share the segments of a token, kvHeads*ceil(heads/kvHeads/together)*parts, S),
// 256 threads, no dynamic shared memory. S may be larger than the number of sequences, and parts*tokens
// than the tokens of a sequence; parts is 1 in kernels for one token of each sequence. Kernels of one
// segment need as many blocks as segments, and together*tokens is at most rows.
// Cost: latency; with many tokens and long contexts memory. After the wait, one load (queries, keys
// and values of the new tokens), two barriers, and some 1,400 dependent instructions; with several
// blocks two more loads. A thread holds its share of 32 keys and values in registers: twice headDim
// elements of the KV cache. Blocks that share a key/value head read it from the L2 cache.
#define DECODE(name, cache, dim, rows, most, blocks, body)                                       \
  extern "C" __global__ void __launch_bounds__(blockThreads, blocks) name(const DecodeArgs a) { \
    __shared__ DecodeShared<cache, dim, rows, most> s;                                           \
    body(a, s);                                                                                  \
  }
#define DECODE_ONE(name, cache, dim, rows, most) DECODE(name, cache, dim, rows, most, (dim == 64 ? 2 : 1), (decodeOne<cache, dim, rows, most>))
#define DECODE_MANY(name, cache, dim, most) \
  DECODE(name, cache, dim, eightRows, most, (dim == 64 ? 3 : dim == 128 ? 2 : 1), (decodeMany<cache, dim, most>))
