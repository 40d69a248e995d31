// The choice of the rows with a token's highest scores, see plan.Select. A search by bits, eight at
// a time from the top, finds the lowest of these scores. The rows with higher scores, and the first
// ones of those with that score, are then written in ascending order.
#include "kv.cuh"

struct ChooseArgs {
  const float *scores; // [tokens, apart], of tokens from first on
  s64 apart;           // elements, a multiple of 4
  s32 first;
  s32 every;           // a token at position p sees (p+1)/every rows
  s32 top;
  s32 stride;          // of out, elements
  const Place *places; // [T]
  const s32 *count;    // tokens of the step
  float *out;          // [T, stride] rows in ascending order, then -1
};

constexpr int chooseThreads = 512, chooseWarps = chooseThreads / 32, digits = 256;

// orderedBits is larger for larger numbers. It is the same for both zeros.
INLINE u32 orderedBits(float x) {
  const u32 bits = asBits(x + 0.0f);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}

// eachFour calls of(row, scores, n) for four rows of each thread, of which n exist. All threads of
// the block call it.
template <class Of> INLINE void eachFour(const float *scores, int seen, const Of &of) {
  _Pragma("unroll 1") for (int from = 0; from < seen; from += 4 * chooseThreads) {
    const int row = from + 4 * tidX();
    of(row, row < seen ? *reinterpret_cast<const float4 *>(scores + row) : float4{}, minOf(4, seen - row));
  }
}

// sumTo sums v over the lanes of a warp up to and including this one.
INLINE int sumTo(int v, int lane) {
  UNROLL for (int m = 1; m < 32; m *= 2) {
    const int other = shuffleFrom(v, (lane - m) & 31);
    if (lane >= m) v += other;
  }
  return v;
}

// choose computes one token per block. Grid (tokens).
extern "C" __global__ void __launch_bounds__(chooseThreads) choose(const ChooseArgs a) {
  __shared__ int counts[digits], sums[2][chooseWarps], found, rest, lost;
  const int token = a.first + blockX(), lane = tidX() % 32, warp = tidX() / 32;
  const int seen = (a.places[token].position + 1) / a.every;
  waitForPrevious();
  allowNext();
  if (token >= *a.count) return;
  float *out = a.out + s64(token) * a.stride;
  if (seen <= a.top) {
    for (int i = tidX(); i < a.top; i += chooseThreads) out[i] = i < seen ? float(i) : -1.0f;
    return;
  }

  const float *scores = a.scores + blockX() * a.apart;
  u32 least = 0, known = 0; // the lowest chosen score equals least in the known bits
  int left = a.top;         // rows to choose among those that agree
  if (tidX() == 0) lost = 0;
  for (int shift = 24; shift >= 0; shift -= 8) {
    for (int i = tidX(); i < digits; i += chooseThreads) counts[i] = 0;
    syncBlock();
    eachFour(scores, seen, [&](int, float4 v, int n) ALWAYS {
      UNROLL for (int j = 0; j < 4; j++) {
        if (j >= n) continue;
        if (v[j] != v[j]) lost = 1;
        const u32 bits = orderedBits(v[j]);
        if ((bits & known) == least) atomicAddShared(&counts[bits >> shift & 255], 1);
      }
    });
    syncBlock();
    if (lost) {
      for (int i = tidX(); i < a.top; i += chooseThreads) out[i] = asFloat(0x7fc00000);
      return;
    }
    if (warp == 0) { // a lane has eight digits, the highest first
      constexpr int each = digits / 32;
      const int highest = digits - 1 - each * lane;
      int own = 0;
      for (int i = 0; i < each; i++) own += counts[highest - i];
      int before = sumTo(own, lane) - own;
      if (before < left && left <= before + own) {
        int digit = highest;
        for (; before + counts[digit] < left; digit--) before += counts[digit];
        found = digit, rest = left - before;
      }
    }
    syncBlock();
    least |= u32(found) << shift, known |= 255u << shift, left = rest;
  }

  int higher = 0, equal = 0; // rows before the current ones
  int turn = 0;
  eachFour(scores, seen, [&](int row, float4 v, int n) ALWAYS {
    u32 bits[4];
    int own = 0; // rows with higher scores, and in the upper half those with equal ones
    UNROLL for (int j = 0; j < 4; j++) {
      bits[j] = orderedBits(v[j]);
      if (j < n) own += bits[j] > least ? 1 : bits[j] == least ? 1 << 16 : 0;
    }
    const int to = sumTo(own, lane);
    if (lane == 31) sums[turn][warp] = to;
    syncBlock();
    int before = to - own, all = 0;
    UNROLL for (int w = 0; w < chooseWarps; w++) {
      before += w < warp ? sums[turn][w] : 0;
      all += sums[turn][w];
    }
    int high = higher + (before & 0xffff), same = equal + (before >> 16);
    UNROLL for (int j = 0; j < 4; j++) {
      if (j >= n) continue;
      if (bits[j] > least) out[high + minOf(same, left)] = float(row + j), high++;
      else if (bits[j] == least) {
        if (same < left) out[high + same] = float(row + j);
        same++;
      }
    }
    higher += all & 0xffff, equal += all >> 16, turn ^= 1;
  });
}
