// The arithmetic of attention to the pages of a sequence.
//
// A context is divided into segments of 256 positions, at absolute multiples of 256, and a segment
// into runs of 32. A row is a query head of a token. Every run of a row is computed on its own; the
// runs of a segment are joined in ascending order, and so are the segments of the row (Milakov and
// Gimelshein, "Online normalizer calculation for softmax", 2018). So the bits of a row depend
// neither on which block or warp computes which run nor on other rows.
//
// Attention to a float32 cache is in float32, see floats.cuh. For other caches, all products are
// chains of the matrix instruction m16n8k16, from 0, with float16 operands and float32
// accumulators. A number of a Q8_0 or F8_E4M3 cache is its byte times its scale, rounded to
// float16.
//
//   score s   = the chain over the head, 16 numbers at a time in ascending order, of the
//               query rounded to float16 and the key; the last 16 are padded with zeros. Numbers
//               4t to 4t+3 of 16 are columns 2t, 2t+1, 2t+8 and 2t+9 of the instruction
//   exponent  = s * (scale*log2e), not rounded; with a softcap c, c*tanh(s*scale/c) * log2e
//   top       = the largest exponent of the positions that the row sees in the run, minus 14, so
//               that weights below 2^-14 of the largest keep their digits
//   weight    = 2^(exponent-top), rounded to float16; 0 for a position that the row does not see
//   sum       = the chain over the run, 16 positions at a time in ascending order, of the
//               weights and ones
//   values    = the same chain of the weights and the values
//
// A row skips the runs that it does not see.
#pragma once
#include "activation.cuh"
#include "forms.cuh"
#include "kv.cuh"

struct AttentionArgs {
  const float *q;     // [T][heads*dim], normalized and rotated
  s32 stride;         // of q: from a row to the next, in numbers
  s32 heads, kvHeads; // query head h reads key/value head h/(heads/kvHeads)
  s32 dim;            // of a head: 1 to 256
  float scale;        // of q.k
  float softcap;      // c: a score becomes c*tanh(score/c); 0: no softcap
  s32 window;         // a token sees itself and the window-1 tokens before it; 0: all of the past
  s32 beside;         // 1: another launch attends for sequences of one token (wide tiles)
  const float *sinks; // [heads] an extra logit in each head's softmax, without a value; or 0
  Pool pool;          // with kvHeads and dim as above
  Table table;
  const s32 *count;  // tokens of the step
  const s32 *seqs;   // sequences of the step
  const s32 *starts; // [S+1] first token of each sequence, then T
  Forms out;         // [T][heads*dim]; f32 alone if dim is not a multiple of 32
  // of segments: top, sum of weights, weighted values [dim]; the layout depends on the kernel
  float *partial;
  s32 *tickets;      // [T][groups], 0 before and after the kernel
  s32 split;         // 1: several blocks share the segments of a token; 0: one block has them all
  s32 maxSegments;   // in partial; a token that sees more segments gets a single block
  // query heads of a KV head, and tokens of a sequence, that one block of a decode step computes;
  // their product is at most 8
  s32 together, tokens;
};

constexpr int runTokens = 32;
constexpr int runs = 8; // of a segment, and warps of most blocks
constexpr int segmentTokens = runs * runTokens;
constexpr int blockThreads = 32 * runs;
// the most query heads that a block of blockThreads threads computes
constexpr int blockHeads = 8;
constexpr float log2e = 1.44269504f;
constexpr float infinity = __builtin_inff();
constexpr float lowest = -3e38f; // less than any top

// cappedExponent returns the exponent of a product in a model with a softcap.
INLINE float cappedExponent(float product, const AttentionArgs &a) {
  return a.softcap * tanhOf(divide(product * a.scale, a.softcap)) * log2e;
}

// capProducts turns products into exponents. It rotates the products through x[0], so that a short
// loop suffices: the code of an exponent is long, and few models use it.
template <int N> INLINE void capProducts(float (&x)[N][4], const AttentionArgs &a) {
  _Pragma("unroll 1") for (int n = 0; n < N; n++) {
    float capped[4];
    UNROLL for (int i = 0; i < 4; i++) capped[i] = x[0][i] == -infinity ? -infinity : cappedExponent(x[0][i], a);
    UNROLL for (int m = 1; m < N; m++) {
      UNROLL for (int i = 0; i < 4; i++) x[m - 1][i] = x[m][i];
    }
    UNROLL for (int i = 0; i < 4; i++) x[N - 1][i] = capped[i];
  }
}

// topOf returns the top of a row whose largest product is most, and weightOf a weight. A product
// times by is an exponent.
INLINE float topOf(float most, float by) { return most * by - 14; }
INLINE float weightOf(float product, float by, float top) { return exp2Of(fma(product, by, -top)); }

// A Seen is the positions that a row sees; none if last is less than first.
struct Seen {
  int first, last;
  // whether it sees some, or all, of the n positions from begin on
  METHOD bool some(int begin, int n) const { return first <= last && first < begin + n && last >= begin; }
  METHOD bool all(int begin, int n) const { return first <= begin && last >= begin + n - 1; }
};

// A Part is one number of a row over some positions: the weighted value, with the top and the sum
// of the weights, 2^(exponent-top).
struct Part {
  float top, sum, value;
};

// A Joining is the factors with which join multiplies the sums and values of two parts.
struct Joining {
  float all, next;
  // It sets top, which is that of the first part, to the larger one.
  METHOD Joining(float &top, float nextTop) {
    const float both = maxOf(top, nextTop);
    all = exp2Of(top - both), next = exp2Of(nextTop - both);
    top = both;
  }
  METHOD float of(float a, float b) const { return fma(b, next, a * all); }
};

// join adds the next part to all. An empty all has a sum of 0 and a top that is -inf or lower than
// all exponents. A part whose scores are all -inf has a sum of NaN. A part that is not seen has a
// top of -inf and a sum and a value of 0; it changes nothing if all has a finite top.
INLINE void join(Part &all, const Part &next) {
  const Joining by(all.top, next.top);
  all.sum = by.of(all.sum, next.sum);
  all.value = by.of(all.value, next.value);
}

// --- Segments computed by several blocks

// joinNumbers joins the parts of n segments that blocks have written, as join does, and sets value
// to the results. Number k of a thread is number at[k] of row row[k], below rows; a thread without
// a number k has a row[k] that is not below rows. A segment in partial has room for as many rows as
// each says. Row r has sink r%heads. All numbers of a row share the factors of a segment: warp r
// computes those of row r, for 32 segments at a time, in its own part of slot; by is the size of a
// part.
template <int N>
INLINE void joinNumbers(float (&value)[N], const int (&row)[N], const int (&at)[N], const float *partial, int n, const float *sinks, int heads,
                        int rows, int each, int dim, float *slot, int by) {
  constexpr int depth = 4; // segments loaded at a time
  const int warp = tidX() / 32, lane = tidX() % 32;
  const s64 apart = s64(each) * (dim + 2);
  const bool mine = warp < rows;

  float sum[N];
  UNROLL for (int k = 0; k < N; k++) sum[k] = sinks ? 1 : 0, value[k] = 0;
  float x[depth][N]; // the loaded numbers
  const auto ask = [&](int from) ALWAYS {
    UNROLL for (int j = 0; j < depth; j++) {
      UNROLL for (int k = 0; k < N; k++) {
        if (from + j < n && row[k] < rows) x[j][k] = partial[(from + j) * apart + row[k] * (dim + 2) + 2 + at[k]];
      }
    }
  };
  ask(0);
  float before = mine && sinks ? sinks[warp % heads] * log2e : -infinity;
  for (int from = 0; from < n; from += 32) {
    const int some = minOf(32, n - from);
    if (mine) {
      float next = -infinity, nextSum = 0;
      if (from + lane < n) {
        const float *p = partial + (from + lane) * apart + warp * (dim + 2);
        next = p[0], nextSum = p[1];
      }
      float top = next; // the largest so far
      UNROLL for (int m = 1; m < 32; m *= 2) {
        const float other = shuffleFrom(top, (lane - m) & 31);
        if (lane >= m) top = maxOf(top, other);
      }
      top = maxOf(before, top);
      const float last = shuffleFrom(top, (lane - 1) & 31);
      float *to = slot + warp * by + lane;
      to[0] = exp2Of((lane > 0 ? last : before) - top);
      to[32] = exp2Of(next - top);
      to[64] = nextSum;
      before = shuffleFrom(top, 31);
    }
    syncBlock();
    _Pragma("unroll 1") for (int i = 0; i < some; i += depth) {
      float now[depth][N];
      UNROLL for (int j = 0; j < depth; j++) {
        UNROLL for (int k = 0; k < N; k++) now[j][k] = x[j][k];
      }
      ask(from + i + depth);
      UNROLL for (int j = 0; j < depth; j++) {
        UNROLL for (int k = 0; k < N; k++) {
          if (i + j >= some || row[k] >= rows) continue;
          const float *f = slot + row[k] * by + i + j;
          sum[k] = fma(f[64], f[32], sum[k] * f[0]);
          value[k] = fma(now[j][k], f[32], value[k] * f[0]);
        }
      }
    }
    syncBlock();
  }
  UNROLL for (int k = 0; k < N; k++) value[k] = divide(value[k], sum[k]);
}

// keptOf returns the place of part i of a token's head in decode:
// [T][groups][maxSegments][together][dim+2].
INLINE float *keptOf(const AttentionArgs &a, int token, int head, int i) {
  const int share = a.heads / a.kvHeads, chunks = (share + a.together - 1) / a.together, skipped = head % share;
  const s64 group = (s64(token) * a.kvHeads + head / share) * chunks + skipped / a.together;
  return a.partial + ((group * a.maxSegments + i) * a.together + skipped % a.together) * (a.dim + 2);
}

// joinApart calls joinNumbers for contiguous rows: number k of a thread is number tidX()+256k of
// all rows. partial has H rows per segment.
template <int H, int N, int S>
INLINE void joinApart(float (&value)[N], const float *partial, int n, const float *sinks, int heads, int dim, float (&slot)[runs][S]) {
  static_assert(S >= 96);
  int row[N], at[N];
  UNROLL for (int k = 0; k < N; k++) {
    const int e = tidX() + k * blockThreads;
    row[k] = e / dim, at[k] = e - row[k] * dim;
  }
  joinNumbers(value, row, at, partial, n, sinks, runs, heads, H, dim, slot[0], S);
}

// drawsLast returns whether this block is the last one to draw this ticket; blocks is the number of
// blocks that draw. The last block resets the ticket to 0. It sees what the others have written:
// the barrier orders the writes of all threads before the first thread's ticket, which releases
// them, and the last block's ticket acquires them.
INLINE bool drawsLast(s32 *ticket, int blocks, int &last) {
  syncBlock();
  if (tidX() == 0) {
    last = atomicAddDevice(ticket, 1) == blocks - 1;
    if (last) *ticket = 0;
  }
  syncBlock();
  return last;
}
