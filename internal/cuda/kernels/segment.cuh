// The arithmetic of attention to the pages of a sequence.
//
// A context is cut at absolute multiples of 256 positions, a segment. Every segment is
// computed from nothing, and the segments of a row, which is a query head of a token, are
// joined in ascending order (Milakov and Gimelshein, "Online normalizer calculation for
// softmax", 2018): so the bits of a row depend neither on who did which segment nor on
// other rows.
//
// A cache of float32 is attended to in float32, see floats.cuh. Of the others all products
// are chains of the matrix instruction m16n8k16, from 0, with f16 operands and sums in
// float32; a number of a Q8_0 cache is its byte times its scale, rounded to f16.
//
//   score s   = the chain over the head, 16 numbers at a time in ascending order, of the
//               query rounded to f16 and the key; zeros fill up the last 16
//   exponent  = s * (scale*log2e), not rounded; with a softcap c, c*tanh(s*scale/c) * log2e
//   top       = the largest exponent of the positions that the row sees in the segment,
//               less 14: weights below 2^-14 of the largest then keep their digits
//   weight    = 2^(exponent-top), rounded to f16; 0 of a position that the row does not see
//   sum       = the chain over the segment, 16 positions at a time in ascending order, of
//               the weights and ones
//   values    = the same chain of the weights and the values
//
// A step of 16 positions that no row of a block sees is left out: it would add zeros.
#pragma once
#include "activation.cuh"
#include "forms.cuh"
#include "kv.cuh"

struct AttentionArgs {
  const float *q;     // [T][heads*dim], normalised and turned
  s32 stride;         // of q: from a row to the next, in values
  s32 heads, kvHeads; // query head h reads key/value head h/(heads/kvHeads)
  s32 dim;            // of a head: 1 to 256
  float scale;        // of q.k
  float softcap;      // c: a score becomes c*tanh(score/c); 0: it does not
  s32 window;         // a token sees itself and the window-1 before it; 0: all of the past
  const float *sinks; // [heads] a logit that takes part in a head's softmax and adds no value, or 0
  Pool pool;          // with kvHeads and dim as above
  Table table;
  const s32 *count;  // tokens of the step
  const s32 *seqs;   // its sequences
  const s32 *starts; // [S+1] first token of each sequence, and T
  Forms out;         // [T][heads*dim]; f32 alone where dim is no multiple of 32
  float *partial;    // of segments: top, sum of weights, weighted values [dim]; how they lie is a kernel's own
  s32 *tickets;      // [T][groups], 0 before and after
  s32 split;         // 1: blocks share the segments of a token; 0: one does them all
  s32 maxSegments;   // of partial; a token that sees more is done by one block
};

constexpr int segmentTokens = 256;
constexpr int blockThreads = 256;
constexpr int runs = blockThreads / 32; // and warps
constexpr int blockHeads = 8;           // query heads that a block of so many threads serves at most
constexpr float log2e = 1.44269504f;
constexpr float infinity = __builtin_inff();

// cappedExponent is the exponent of a product where there is a softcap.
INLINE float cappedExponent(float product, const AttentionArgs &a) {
  return a.softcap * tanhOf(divide(product * a.scale, a.softcap)) * log2e;
}

// capProducts makes exponents of products. They take turns at the front, so that a loop
// can count them: few models do it, and its code is long.
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

// topOf is the top of a row whose largest product is most, and weightOf a weight; a product
// is an exponent when multiplied by by.
INLINE float topOf(float most, float by) { return most * by - 14; }
INLINE float weightOf(float product, float by, float top) { return exp2Of(fma(product, by, -top)); }

// A Part is one element of a row: the weighted values of some positions, with the top and
// the sum of their weights, 2^(exponent-top).
struct Part {
  float top, sum, value;
};

// join adds the part that follows. Nothing before has a top of -inf and a sum of 0;
// a part whose scores are all -inf has a sum that is NaN.
INLINE void join(Part &all, const Part &next) {
  const float top = maxOf(all.top, next.top);
  const float a = exp2Of(all.top - top), b = exp2Of(next.top - top);
  all.top = top;
  all.sum = fma(next.sum, b, all.sum * a);
  all.value = fma(next.value, b, all.value * a);
}

// --- Segments that several blocks did

// joinApart joins the parts of n segments that blocks have written, as join does, and
// sets value to the results: number k of a thread is number tidX()+256k of a block's
// heads, of which there are heads, in parts written of H. The factors of a segment are
// the same for all numbers of a head: warp h makes those of head h, for 32 segments at
// a time, in its row of slot.
template <int H, int N, int S>
INLINE void joinApart(float (&value)[N], const float *partial, int n, const float *sinks, int heads, int dim, float (&slot)[runs][S]) {
  static_assert(S >= 96);
  constexpr int depth = 4; // segments asked for at a time
  const int warp = tidX() / 32, lane = tidX() % 32;
  const s64 apart = s64(H) * (dim + 2);
  const bool mine = warp < heads;

  float sum[N];
  int head[N];
  UNROLL for (int k = 0; k < N; k++) {
    head[k] = (tidX() + k * blockThreads) / dim;
    sum[k] = sinks ? 1 : 0, value[k] = 0;
  }
  float before = mine && sinks ? sinks[warp] * log2e : -infinity;
  for (int from = 0; from < n; from += 32) {
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
      float *by = slot[warp] + lane;
      by[0] = exp2Of((lane > 0 ? last : before) - top);
      by[32] = exp2Of(next - top);
      by[64] = nextSum;
      before = shuffleFrom(top, 31);
    }
    syncBlock();
    const int some = minOf(32, n - from);
    _Pragma("unroll 1") for (int i = 0; i < some; i += depth) {
      float x[depth][N];
      UNROLL for (int j = 0; j < depth; j++) {
        const float *p = partial + (from + i + j) * apart + 2 + tidX();
        UNROLL for (int k = 0; k < N; k++) {
          if (i + j < some && head[k] < heads) x[j][k] = p[k * blockThreads + 2 * head[k]];
        }
      }
      UNROLL for (int j = 0; j < depth; j++) {
        UNROLL for (int k = 0; k < N; k++) {
          if (i + j >= some || head[k] >= heads) continue;
          const float *by = slot[head[k]] + i + j;
          sum[k] = fma(by[64], by[32], sum[k] * by[0]);
          value[k] = fma(x[j][k], by[32], value[k] * by[0]);
        }
      }
    }
    syncBlock();
  }
  UNROLL for (int k = 0; k < N; k++) value[k] = divide(value[k], sum[k]);
}

// drawsLast says whether this block is the last of some to come here with that ticket,
// which is 0 again then. What the others have written is there. The barrier puts the
// writes of all threads before the first one's ticket, which releases them; the block
// that draws the last has acquired all of them.
INLINE bool drawsLast(s32 *ticket, int blocks, int &last) {
  syncBlock();
  if (tidX() == 0) {
    last = atomicAddDevice(ticket, 1) == blocks - 1;
    if (last) *ticket = 0;
  }
  syncBlock();
  return last;
}
