// Attention in decoding for many sequences: a warp attends for the query heads of one key/value head
// of a sequence, run by run, and waits for no other warp. It computes what decode.cuh computes, to the
// bit.
#pragma once
#include "decode.cuh"

// A WarpShared is the shared memory of a warp.
template <class C, int D> struct WarpShared {
  alignas(16) u16 q[eightRows][D + 16];
  float row[D];
  Copy<C> key, value; // of the new token
};

// Columns are numbers that a lane has of rows 2t and 2t+1: 16 of each 64.
template <int D> struct Columns {
  float top[2], sum[2] = {};
  Values value[D / 64] = {};
};

// joinColumns adds the next parts to all, as join does.
template <int D> INLINE void joinColumns(Columns<D> &all, const Columns<D> &next) {
  UNROLL for (int h = 0; h < 2; h++) {
    const Joining by(all.top[h], next.top[h]);
    all.sum[h] = by.of(all.sum[h], next.sum[h]);
    UNROLL for (int b = 0; b < D / 64; b++) {
      UNROLL for (int j = 0; j < 4; j++) {
        UNROLL for (int i = h; i < 4; i += 2) all.value[b][j][i] = by.of(all.value[b][j][i], next.value[b][j][i]);
      }
    }
  }
}

constexpr int warpsTogether = 4; // of a block

// decodeWarp attends for the heads of one key/value head of the token of a sequence: at most eight of
// them, if it has more.
template <class C, int D> INLINE void decodeWarp(const DecodeArgs &args, WarpShared<C, D> &s) {
  const TurnArgs &t = args.turn;
  const AttentionArgs &a = args.attention;
  constexpr int laneValues = D / 32;
  // Keys and values of longer heads do not fit into the registers together.
  constexpr bool ahead = D <= 128;
  const int lane = tidX() % 32, share = a.heads / a.kvHeads, chunks = (share + a.together - 1) / a.together;
  const int group = blockX() * warpsTogether + tidX() / 32, kvHead = group / chunks, skipped = group % chunks * a.together;
  const int head = kvHead * share + skipped, rows = minOf(a.together, share - skipped);
  const int token = a.starts[blockY()];
  Place place{-1, 0};
  if (kvHead < a.kvHeads && token < a.starts[blockY() + 1]) place = a.table.places[token];
  const int last = place.position;
  if (last < 0) {
    waitForPrevious();
    allowNext();
    return;
  }
  const Source source{a.pool, a.table, place.shift, kvHead};
  const int first = a.window > 0 ? maxOf(0, last - a.window + 1) : 0;
  const Seen seen[2] = {Seen{first, last}, Seen{first, last}};

  // Positions of a run that the cache has are begin+lo to begin+old-1.
  const auto lo = [&](int begin) ALWAYS { return maxOf(first - begin, 0); };
  const auto old = [&](int begin) ALWAYS { return maxOf(lo(begin), minOf(last - begin, runTokens)); };
  Run<C, D> run{};
  const auto loadKeys = [&](int begin) ALWAYS {
    if (lo(begin) < old(begin)) run.find(source, begin, lo(begin), old(begin));
    run.loadKeys(source, lo(begin), old(begin));
  };
  const auto loadValues = [&](int begin) ALWAYS { run.loadValues(source, lo(begin), old(begin)); }; // after its keys
  const int from = first / runTokens * runTokens;
  if constexpr (ahead) loadKeys(from), loadValues(from);
  const Slot slot = slotOf(a.pool, a.table, place.shift, last);
  for (int i = lane; i < eightRows * (D + 16); i += 32) s.q[i / (D + 16)][i % (D + 16)] = 0;
  syncWarp();
  waitForPrevious();
  allowNext();

  // The queries, then the new key and value.
  const auto input = [&](int task) ALWAYS {
    if (task < rows) return a.q + s64(token) * a.stride + (head + task) * D;
    return task == rows ? t.k + s64(token) * t.kStride + kvHead * D : t.v + s64(token) * t.vStride + kvHead * D;
  };
  float v[laneValues], next[laneValues], w[laneValues] = {};
  float2 by[laneValues] = {};
  loadHead(v, input(0), D, lane);
  _Pragma("unroll 1") for (int task = 0; task < rows + 2; task++) {
    if (task < rows + 1) loadHead(next, input(task + 1), D, lane);
    if (task <= rows) {
      const Step step = task < rows ? queryStep(t, token) : keyStep(t, token);
      if (task == 0 || task == rows) {
        if (step.angles) loadAngles(by, step, lane);
        if (step.norm) loadHead(w, step.norm, D, lane);
      }
      prepareHead<D>(v, w, by, step, D, s.row, lane);
    }
    if (task < rows) {
      UNROLL for (int j = 0; j < laneValues; j++) s.q[task][32 * j + lane] = floatToHalf(v[j]);
    } else if (storeHead(a.pool, slot, task == rows, kvHead, D, v, lane, skipped == 0, task == rows ? &s.key : &s.value)) {
      if (lane == 0 && skipped == 0) __atomic_fetch_min(t.overflow + t.sequence[token], t.layer, __ATOMIC_RELAXED);
    }
    UNROLL for (int j = 0; j < laneValues; j++) v[j] = next[j];
  }
  syncWarp(); // all lanes have stored their share of the heads

  const u16 *q = s.q[lane / 4];
  const Columns<D> none{{lowest, lowest}};
  Columns<D> all{{-infinity, -infinity}}, part = none; // part: of a segment
  UNROLL for (int h = 0; h < 2; h++) {
    const int row = lane % 4 * 2 + h;
    if (a.sinks && row < rows) all.top[h] = a.sinks[head + row] * log2e, all.sum[h] = 1;
  }
  _Pragma("unroll 1") for (int begin = from; begin <= last; begin += runTokens) {
    const int then = begin + runTokens, fresh = last - begin;
    Scores x{};
    Weights weight{};
    Columns<D> now{};
    float sum[4] = {};
    if constexpr (!ahead) loadKeys(begin);
    run.putKeys(fresh, 1, &s.key);
    run.scores(x, q);
    if constexpr (ahead) {
      if (then <= last) loadKeys(then);
    } else {
      loadValues(begin);
    }
    run.putValues(fresh, 1, &s.value);
    weigh(weight, now.top, x, a, begin, seen);
    addWeights(sum, weight);
    UNROLL for (int h = 0; h < 2; h++) now.sum[h] = sum[h];
    UNROLL for (int b = 0; b < D / 64; b++) run.values(now.value[b], weight, b);
    if constexpr (ahead) {
      if (then <= last) loadValues(then);
    }
    joinColumns(part, now);
    if (then <= last && then % segmentTokens) continue;
    // join adds the runs that are not seen, too; all but the first of them change nothing.
    if (then % segmentTokens) joinColumns(part, Columns<D>{{-infinity, -infinity}});
    joinColumns(all, part);
    part = none;
  }

  UNROLL for (int h = 0; h < 2; h++) {
    const int row = lane % 4 * 2 + h;
    if (row >= rows) continue;
    UNROLL for (int b = 0; b < D / 64; b++) {
      UNROLL for (int j = 0; j < 4; j += 2) {
        const auto number = [&](int k) ALWAYS { return divide(all.value[b][j + k / 2][k % 2 * 2 + h], all.sum[h]); };
        storeFour(a.out, token, (head + row) * D + 64 * b + lane / 4 * 8 + 2 * j, float4{number(0), number(1), number(2), number(3)});
      }
    }
  }
  if (head + rows == a.heads) { // the padding
    for (int c = a.heads * D + 4 * lane; c < a.out.stride; c += 128) storeFour(a.out, token, c, float4{});
  }
}

// Grid (ceil(kvHeads*ceil(heads/kvHeads/together)/4), S), 128 threads. S may be larger than the
// number of sequences; sequences begin at starts, and each has one token. Cost: latency, some 2 us
// for 32 positions of heads of 128; with eight warps a multiprocessor two thirds of the bandwidth.
#define DECODE_WARPS(name, cache, dim)                                                                             \
  extern "C" __global__ void __launch_bounds__(32 * warpsTogether, (dim == 64 ? 4 : 2)) name(const DecodeArgs a) { \
    __shared__ WarpShared<cache, dim> s[warpsTogether];                                                            \
    decodeWarp<cache, dim>(a, s[tidX() / 32]);                                                                     \
  }
