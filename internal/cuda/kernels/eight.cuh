// Eight rows of attention at a time: what a block of 8 warps does with a segment. The keys'
// positions, and then the values' numbers, are the rows of the matrix instruction, and the
// queries its 8 columns.
#pragma once
#include "band.cuh"
#include "segment.cuh"

constexpr int eightRows = 8;

// Eight is for heads of D numbers, of which a segment's keys and values have room side by
// side, or for D = 0 of any number, of which half a segment's keys or values have.
template <int D> struct Eight {
  static constexpr int dim = D ? D : maxHeadDim;
  static constexpr int band = D ? segmentTokens : segmentTokens / 2, bands = segmentTokens / band;
  static constexpr int bytes = 2 * band * dim; // of a band
  static constexpr int tiles = (dim / 16 + runs - 1) / runs; // of a warp, of 16 numbers of the values
  // Rows of 8 words and 4 are read without conflicts, 16 bytes from each other at least.
  alignas(16) u16 q[eightRows][dim + 8];
  alignas(16) u16 weight[eightRows][segmentTokens + 8];
  alignas(16) float top[eightRows][runs];
  float value[eightRows][dim + 4], sum[eightRows]; // results are values by sums
};

// A Seen is which positions a row sees; none where last is below first.
struct Seen {
  int first, last;
  METHOD bool some(int segment) const { return first <= last && first < (segment + 1) * segmentTokens && last >= segment * segmentTokens; }
};

// Exponents are those of a lane, of columns 2t and 2t+1: positions g and g+8 of two tiles.
struct Exponents {
  float of[2][4];
};

// A lane's positions of a tile of 16 begin here.
template <int D> INLINE int tileAt(int m) { return D ? 32 * (tidX() / 32) + 16 * m : 128 * m + 16 * (tidX() / 32); }

// score makes the products of the queries and the keys of tile m in a band.
template <int D> INLINE void score(float (&c)[4], const Eight<D> &s, u32 band, int m, int steps) {
  constexpr int N = Eight<D>::band;
  const int lane = tidX() % 32, at = tileAt<D>(m) % N;
  const u32 from = bandAt<N>(band, lane / 16, at + lane % 16);
  const u16 *q = s.q[lane / 4] + lane % 4 * 2;
  UNROLL for (int i = 0; i < 4; i++) c[i] = 0;
  const auto step = [&](int k) ALWAYS {
    u32 a[4];
    loadMatrices(a, from + 2 * k * N * 16);
    addProducts(c, a, *reinterpret_cast<const u32 *>(q + 16 * k), *reinterpret_cast<const u32 *>(q + 16 * k + 8));
  };
  if constexpr (D) {
    UNROLL for (int k = 0; k < D / 16; k++) step(k);
  } else {
    for (int k = 0; k < steps; k++) step(k);
  }
}

// weigh makes weights of the products of a segment, of which the columns of this lane see
// what seen says, and their tops.
template <int D> INLINE void weigh(float (&top)[2], Eight<D> &s, Exponents &x, const AttentionArgs &a, int segment, const Seen (&seen)[2]) {
  const int warp = tidX() / 32, lane = tidX() % 32, g = lane / 4, t = lane % 4;
  const float by = a.softcap > 0 ? 1.0f : a.scale * log2e;
  if (a.softcap > 0) capProducts(x.of, a);
  UNROLL for (int h = 0; h < 2; h++) {
    top[h] = -infinity;
    UNROLL for (int m = 0; m < 2; m++) {
      UNROLL for (int i = 0; i < 2; i++) {
        float &v = x.of[m][2 * i + h];
        const int position = segment * segmentTokens + tileAt<D>(m) + g + 8 * i;
        if (position < seen[h].first || position > seen[h].last) v = -infinity;
        top[h] = maxOf(top[h], v);
      }
    }
    UNROLL for (int m = 4; m < 32; m *= 2) top[h] = maxOf(top[h], shuffleXor(top[h], m));
    if (g == 0) s.top[2 * t + h][warp] = top[h];
  }
  syncBlock();
  UNROLL for (int h = 0; h < 2; h++) {
    const float4 *p = reinterpret_cast<const float4 *>(s.top[2 * t + h]);
    const float4 b = p[0], c = p[1];
    const float most = maxOf(maxOf(maxOf(b.x, b.y), maxOf(b.z, b.w)), maxOf(maxOf(c.x, c.y), maxOf(c.z, c.w)));
    top[h] = seen[h].some(segment) ? topOf(most, by) : 0.0f;
    UNROLL for (int m = 0; m < 2; m++) {
      UNROLL for (int i = 0; i < 2; i++) {
        s.weight[2 * t + h][tileAt<D>(m) + g + 8 * i] = floatToHalf(weightOf(x.of[m][2 * i + h], by, top[h]));
      }
    }
  }
  syncBlock();
}

// addValues adds the weighted values of positions 16*lo to 16*hi-1 of a band, the first of
// which is number 16*skipped of the segment, and their weights.
template <int D> INLINE void addValues(float (&value)[Eight<D>::tiles][4], float (&sum)[4], const Eight<D> &s, u32 band, int skipped, int lo, int hi, int steps) {
  constexpr int N = Eight<D>::band;
  const int warp = tidX() / 32, lane = tidX() % 32;
  const u32 from = bandAt<N>(band, 2 * warp + lane / 8 % 2, lane % 8 + lane / 16 * 8);
  const u16 *weights = s.weight[lane / 4] + lane % 4 * 2 + 16 * skipped;
  if (warp >= steps) return;
  const u32 ones[4] = {halfOnes, halfOnes, halfOnes, halfOnes};
  u32 b[2], v[Eight<D>::tiles][4]; // of the next step
  const auto fetch = [&](int j) ALWAYS {
    UNROLL for (int i = 0; i < 2; i++) b[i] = *reinterpret_cast<const u32 *>(weights + 16 * j + 8 * i);
    UNROLL for (int m = 0; m < Eight<D>::tiles; m++) {
      if (warp + runs * m < steps) loadTransposed(v[m], from + (2 * runs * m * N + 16 * j) * 16);
    }
  };
  fetch(lo);
  _Pragma("unroll 1") for (int j = lo; j < hi; j++) {
    const u32 b0 = b[0], b1 = b[1];
    u32 now[Eight<D>::tiles][4];
    UNROLL for (int m = 0; m < Eight<D>::tiles; m++) {
      UNROLL for (int i = 0; i < 4; i++) now[m][i] = v[m][i];
    }
    if (j + 1 < hi) fetch(j + 1);
    addProducts(sum, ones, b0, b1);
    UNROLL for (int m = 0; m < Eight<D>::tiles; m++) {
      if (warp + runs * m < steps) addProducts(value[m], now[m], b0, b1);
    }
  }
}

// putCopy writes the copy of a head into a band, by the lanes of a warp.
template <int N, class C> INLINE void putCopy(u32 band, int at, const Copy<C> &copy, int chunks, int dim) {
  for (int c = tidX() % 32; c < chunks; c += 32) storeChunk(bandAt<N>(band, c, at), copied(copy, c, dim));
}

// A Reach is what the rows of a block see together: positions first to last. The keys and
// values of last are those in copies, where there are any.
template <class C> struct Reach {
  int first, last;
  const Copy<C> *key, *value;
};

// attendInTurn does a segment for heads of any length: band after band through the same
// memory. Before and after it all threads have done with that, and with s.
template <class C>
INLINE void attendInTurn(float (&value)[Eight<0>::tiles][4], float (&sum)[4], float (&top)[2], Eight<0> &s, const AttentionArgs &a, const Source &source, int segment,
                         const Reach<C> &reach, const Seen (&seen)[2]) {
  constexpr int N = Eight<0>::band;
  const u32 band = sharedBands();
  const int steps = (a.dim + 15) / 16, skip = reach.key ? reach.last : -1;
  Exponents x{};
  const auto take = [&](int m, bool key) ALWAYS {
    const int begin = segment * segmentTokens + N * m;
    if (reach.last < begin || reach.first >= begin + N) return false;
    bringAny<C, N, blockThreads>(band, source, key, begin, reach.first, reach.last + 1, skip);
    endCopies();
    if (skip >= begin && skip < begin + N && tidX() < 32) putCopy<N>(band, skip - begin, key ? *reach.key : *reach.value, 2 * steps, a.dim);
    waitCopies<0>();
    syncBlock();
    return true;
  };
  UNROLL for (int m = 0; m < 2; m++) {
    if (take(m, true)) score<0>(x.of[m], s, band, m, steps);
    syncBlock();
  }
  weigh<0>(top, s, x, a, segment, seen);
  UNROLL for (int i = 0; i < 4; i++) {
    sum[i] = 0;
    UNROLL for (int m = 0; m < Eight<0>::tiles; m++) value[m][i] = 0;
  }
  UNROLL for (int m = 0; m < 2; m++) {
    if (take(m, false)) addValues<0>(value, sum, s, band, 8 * m, 0, 8, steps);
    syncBlock();
  }
}

// eachValue calls put with the row and the number of the values that a lane has, and where.
template <int D, class Put> INLINE void eachValue(int steps, const Put &put) {
  const int warp = tidX() / 32, lane = tidX() % 32;
  UNROLL for (int m = 0; m < Eight<D>::tiles; m++) {
    if (warp + runs * m >= steps) break;
    UNROLL for (int i = 0; i < 4; i++) put(lane % 4 * 2 + i % 2, 16 * (warp + runs * m) + lane / 4 + i / 2 * 8, m, i);
  }
}

// storeEight writes the results of n rows, of a token and a head each.
template <int D, class TokenOf, class HeadOf>
INLINE void storeEight(const Eight<D> &s, const Forms &out, int n, int dim, const TokenOf &tokenOf, const HeadOf &headOf) {
  const int warp = tidX() / 32, lane = tidX() % 32;
  if (D || dim % 32 == 0) {
    const int blocks = dim / 32;
    for (int b = warp; b < n * blocks; b += runs) {
      const int row = b / blocks, at = b % blocks;
      storeBlock(out, tokenOf(row), headOf(row) * blocks + at, lane, divide(s.value[row][32 * at + lane], s.sum[row]));
    }
    return;
  }
  for (int e = tidX(); e < n * dim; e += blockThreads) {
    const int row = e / dim;
    out.f32[s64(tokenOf(row)) * out.stride + headOf(row) * dim + e % dim] = divide(s.value[row][e % dim], s.sum[row]);
  }
}
