// Attention in the forms that attention.cuh and decode.cuh do not support: values that differ in
// length from keys, or are the leading elements of keys or whole keys; long heads; windows that
// begin at multiples of a chunk; first positions that are not seen; keys and values that another
// layer has stored; and lists of rows: chosen positions, compressed rows, or chosen compressed rows.
// Steps of one token and of many use the same arithmetic. latent.cu has some of these forms.
//
// The context is cut at multiples of 256 positions into segments, and a segment into runs of 32
// positions, one for each warp. A list is cut likewise, by the indices of its rows, and precedes
// the positions. Elements of the KV cache are float32 times their scale; queries, weights and sums
// are float32:
//
//   score  = a chain of fma over the head in ascending order
//   weight = 2^(exponent-top) with the largest exponent of the segment
//   sum    = pairwise over a run, then runs in ascending order
//   values = a chain of fma over a run in ascending order, then runs in ascending order
//
// Segments are joined in ascending order, so the bits of a row depend only on its positions.
#pragma once
#include "anypool.cuh"
#include "segment.cuh"

// --- Attending

constexpr int anyValueDim = 512; // at most
constexpr int anyPasses = anyValueDim / blockThreads;

struct AnyAttentionArgs {
  const float *q; // [T, stride], normalised and rotated
  s32 stride, heads;
  s32 values; // elements of a value
  s32 latent; // 1: values are the leading elements of keys
  float scale, softcap;
  s32 window, chunk;  // what a token attends to; 0: all
  const float *sinks; // [heads], or 0
  AnyPool pool;
  Table table;
  const s32 *count;
  Forms out;      // [T][heads*values]; f32 only, unless values is a multiple of 32
  float *partial; // [T][groups][maxSegments][8][values+2] tops, sums and values of segments
  s32 *tickets;   // [T][groups], 0 before and after a launch
  s32 split;      // 1: several blocks share the segments of a token
  s32 maxSegments;

  // The list has rows of far before the token: the first top rows that chosen names, or all of
  // them.
  AnyPool far;         // kvHeads, keyDim and valueDim are those of pool
  Table farTable;
  // [T, chosenStride] rows in ascending order, NaN where the choice is unknown; 0: all rows.
  const float *chosen;
  s32 chosenStride;    // elements
  s32 top;
  s32 listed;          // 1: there is a list
  s32 alone;           // 1: only rows of the list
  s32 unseen;          // only they themselves see the positions before it
  s32 pad;
};

template <int H> struct AnyShared {
  alignas(16) float q[H * anyKeyDim];
  float weight[runs][runTokens][H];
  float value[runs][blockThreads]; // of one head
  float top[H][runs], sum[H][runs];
  int last;
};

// Whole holds a block's results so far for n heads: their tops and sums, and elements tidX(),
// tidX()+256 and so on of their values.
template <int H> struct Whole {
  float top[H], sum[H], value[H][anyPasses];
  METHOD void begin(const AnyAttentionArgs &a, int head, int n) {
    UNROLL for (int h = 0; h < H; h++) {
      top[h] = -infinity, sum[h] = 0;
      if (a.sinks && h < n) top[h] = a.sinks[head + h] * log2e, sum[h] = 1;
      UNROLL for (int p = 0; p < anyPasses; p++) value[h][p] = 0;
    }
  }
  // add joins a segment.
  METHOD void add(int h, float nextTop, float nextSum, const float (&next)[anyPasses]) {
    UNROLL for (int p = 0; p < anyPasses; p++) {
      Part all{top[h], sum[h], value[h][p]};
      join(all, Part{nextTop, nextSum, next[p]});
      value[h][p] = all.value;
      if (p == anyPasses - 1) top[h] = all.top, sum[h] = all.sum;
    }
  }
};

// attendAny is the work of a block: at most H heads of one token that share a key/value head.
template <class C, int H> INLINE void attendAny(const AnyAttentionArgs &a) {
  __shared__ AnyShared<H> s;
  AnyPool pool = a.pool;
  const int token = blockZ(), group = blockY(), warp = tidX() / 32, lane = tidX() % 32, dim = pool.keyDim;
  const Place place = a.table.places[token];
  waitForPrevious();
  allowNext();
  if (token >= *a.count) return;
  const int share = a.heads / pool.kvHeads, chunks = (share + H - 1) / H, kvHead = group / chunks;
  const int head = kvHead * share + group % chunks * H, n = minOf(H, share - group % chunks * H);
  const int last = place.position;
  const int nearest = a.chunk > 0 ? last / a.chunk * a.chunk : a.window > 0 ? maxOf(0, last - a.window + 1) : 0;
  const int first = maxOf(nearest, minOf(a.unseen, last));
  int rows = a.listed ? (last + 1) / a.far.every : 0; // in the list
  const int most = rows;
  const float *chosen = a.chosen ? a.chosen + s64(token) * a.chosenStride : nullptr;
  if (chosen) rows = minOf(rows, a.top);
  const bool unknown = rows > 0 && chosen && chosen[0] != chosen[0];
  if (unknown) rows = 0;
  const int lists = (rows + segmentTokens - 1) / segmentTokens, lowestSegment = first / segmentTokens;
  const int segments = lists + (a.alone ? 0 : last / segmentTokens - lowestSegment + 1);
  const bool apart = a.split && gridX() > 1 && segments > 1 && segments <= a.maxSegments;
  const int blocks = apart ? minOf(segments, gridX()) : 1;
  if (blockX() >= blocks) return;
  const s64 number = s64(token) * pool.kvHeads * chunks + group, partApart = s64(H) * (a.values + 2);
  float *partial = a.partial + number * a.maxSegments * partApart;

  // Whether values are read four elements at a time.
  const bool fours = a.latent ? dim % C::chunk == 0 : a.values % 4 == 0 && s64(pool.kvHeads) * dim * pool.rows % 4 == 0;
  const float by = a.softcap > 0 ? 1.0f : a.scale * log2e;
  const float *q = a.q + s64(token) * a.stride + s64(head) * dim;
  for (int i = tidX(); i < H * dim; i += blockThreads) s.q[i] = i < n * dim ? q[i] * by : 0.0f;
  syncBlock();

  Whole<H> all;
  all.begin(a, head, n);
  _Pragma("unroll 1") for (int i = blockX(); i < segments; i += blocks) {
    const bool list = i < lists;
    const int begin = (list ? i : lowestSegment + i - lists) * segmentTokens + warp * runTokens;
    // Positions lo to hi-1 of this run are visible. The others are not read: their memory is
    // undefined.
    const int lo = list ? 0 : maxOf(first - begin, 0), hi = minOf((list ? rows : last + 1) - begin, runTokens);
    const bool any = lo < hi;
    float score[H];
    Slot slot{};
    if (any) {
      int row = begin + minOf(maxOf(lane, lo), hi - 1);
      if (list && chosen) {
        const float number = chosen[row];
        row = number >= 0 && number < float(most) ? int(number) : 0;
      }
      pool.base = list ? a.far.base : a.pool.base, pool.apart = list ? a.far.apart : a.pool.apart;
      pool.every = list ? a.far.every : a.pool.every, pool.rows = list ? a.far.rows : a.pool.rows;
      slot = list ? slotIn(pool, a.farTable, a.farTable.places[token].shift, row) : slotIn(pool, a.table, place.shift, row);
      scoresOf<C, H>(score, s.q, keyOf<C>(pool, slot, kvHead), dim);
      UNROLL for (int h = 0; h < H; h++) {
        if (a.softcap > 0) score[h] = a.softcap * tanhOf(divide(score[h] * a.scale, a.softcap)) * log2e;
        if (lane < lo || lane >= hi) score[h] = -infinity;
        const float top = warpMax(score[h]);
        if (lane == 0) s.top[h][warp] = top;
      }
    } else if (lane < H) {
      s.top[lane][warp] = -infinity;
    }
    syncBlock();
    float top[H];
    UNROLL for (int h = 0; h < H; h++) {
      top[h] = s.top[h][0];
      UNROLL for (int r = 1; r < runs; r++) top[h] = maxOf(top[h], s.top[h][r]);
      float weight = 0;
      if (any && lane >= lo && lane < hi) weight = exp2Of(score[h] - top[h]);
      s.weight[warp][lane][h] = weight;
      const float sum = warpSum(weight);
      if (lane == 0) s.sum[h][warp] = sum;
    }
    syncWarp();

    float part[H][anyPasses];
    UNROLL for (int h = 0; h < H; h++) {
      UNROLL for (int p = 0; p < anyPasses; p++) part[h][p] = 0;
    }
    _Pragma("unroll 1") for (int p = 0; p < anyPasses; p++) {
      if (blockThreads * p >= a.values) break;
      // A lane has eight adjacent elements of the values.
      constexpr int each = blockThreads / 32;
      const int from = blockThreads * p + each * lane;
      float value[H][each] = {};
      _Pragma("unroll 1") for (int t = lo; t < hi; t++) {
        const Slot at{s64(shuffleFrom(u32(slot.page >> 32), t)) << 32 | shuffleFrom(u32(slot.page), t), shuffleFrom(slot.at, t)};
        const Numbers v = a.latent ? keyOf<C>(pool, at, kvHead) : valueOf<C>(pool, at, kvHead);
        float x[each];
        if (fours) {
          UNROLL for (int k = 0; k < each; k += 4) {
            const float4 four = from + k < a.values ? fourNumbers(C{}, v, from + k) : float4{};
            UNROLL for (int j = 0; j < 4; j++) x[k + j] = four[j];
          }
        } else {
          UNROLL for (int k = 0; k < each; k++) x[k] = from + k < a.values ? numberAt(C{}, v, from + k) : 0.0f;
        }
        UNROLL for (int h = 0; h < H; h++) {
          const float weight = s.weight[warp][t][h];
          UNROLL for (int k = 0; k < each; k++) value[h][k] = fma(weight, x[k], value[h][k]);
        }
      }
      UNROLL for (int h = 0; h < H; h++) {
        UNROLL for (int k = 0; k < each; k++) s.value[warp][each * lane + k] = value[h][k];
        syncBlock();
        float sum = 0;
        UNROLL for (int r = 0; r < runs; r++) sum = sum + s.value[r][tidX()];
        UNROLL for (int k = 0; k < anyPasses; k++) {
          if (k == p) part[h][k] = sum;
        }
        syncBlock();
      }
    }

    UNROLL for (int h = 0; h < H; h++) {
      float sum = 0;
      UNROLL for (int r = 0; r < runs; r++) sum = sum + s.sum[h][r];
      if (!apart) {
        all.add(h, top[h], sum, part[h]);
        continue;
      }
      if (h >= n) continue;
      float *to = partial + i * partApart + h * (a.values + 2);
      if (tidX() == 0) to[0] = top[h], to[1] = sum;
      UNROLL for (int p = 0; p < anyPasses; p++) {
        if (blockThreads * p + tidX() < a.values) to[2 + blockThreads * p + tidX()] = part[h][p];
      }
    }
    syncBlock(); // all warps have read tops and sums
  }

  if (apart) {
    if (!drawsLast(a.tickets + number, blocks, s.last)) return;
    for (int i = 0; i < segments; i++) {
      UNROLL for (int h = 0; h < H; h++) {
        if (h >= n) continue;
        const float *from = partial + i * partApart + h * (a.values + 2);
        float part[anyPasses];
        UNROLL for (int p = 0; p < anyPasses; p++) part[p] = blockThreads * p + tidX() < a.values ? from[2 + blockThreads * p + tidX()] : 0.0f;
        all.add(h, from[0], from[1], part);
      }
    }
  }
  UNROLL for (int h = 0; h < H; h++) {
    if (h >= n) break;
    UNROLL for (int p = 0; p < anyPasses; p++) {
      const int at = blockThreads * p + tidX();
      if (at - lane >= a.values) continue;
      const float v = unknown ? asFloat(0x7fc00000) : divide(all.value[h][p], all.sum[h]);
      const int col = (head + h) * a.values + at;
      if (a.values % 32 == 0) storeBlock(a.out, token, col / 32, lane, v);
      else if (at < a.values) a.out.f32[s64(token) * a.out.stride + col] = v;
    }
  }
}

// grid (split ? segments : 1, kvHeads*ceil(heads/kvHeads/H), T), 256 threads.
// cost: with many tokens the L2 cache: keys and values are read for H heads of one token at a time.
#define ANY_ATTENTION(cache)                                                                                         \
  extern "C" __global__ void __launch_bounds__(128) store(const StoreArgs a) { storeAny<cache>(a); }                    \
  extern "C" __global__ void __launch_bounds__(blockThreads, 2) attend_1(const AnyAttentionArgs a) { attendAny<cache, 1>(a); } \
  extern "C" __global__ void __launch_bounds__(blockThreads, 2) attend_4(const AnyAttentionArgs a) { attendAny<cache, 4>(a); } \
  extern "C" __global__ void __launch_bounds__(blockThreads, 1) attend_8(const AnyAttentionArgs a) { attendAny<cache, 8>(a); }
