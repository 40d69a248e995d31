// A run (32 positions) of a head's keys and values in the registers of a warp, in the layout of
// matrix instructions: their rows are the positions of the keys, then the numbers of the values;
// their columns are 8 queries. Lane 4g+t has
//
//   of the keys of positions g, g+8, g+16 and g+24, numbers 4t to 4t+3 of each 16
//   of the values of positions 2t, 2t+1, 2t+8, 2t+9 and those plus 16, numbers 8g to 8g+7 of
//   each 64
#pragma once
#include "segment.cuh"
#include "source.cuh"

// A lane's scores: of columns 2t and 2t+1, positions g and g+8 of each 16.
using Scores = float[2][4];

// A lane's weights: of column g, positions 2t and 2t+1, 2t+8 and 2t+9 of each 16.
using Weights = u32[2][2];

// A lane's values of one 64: numbers 8g+2j and 8g+2j+1 of columns 2t and 2t+1.
using Values = float[4][4];

INLINE int keyPosition(int i) { return tidX() % 32 / 4 + 8 * i; }
INLINE int valuePosition(int i) { return tidX() % 4 * 2 + i % 2 + i / 2 * 8; }

// capScores turns products into exponents, as capProducts does, in the least code, for the sake of
// models without a softcap.
INLINE void capScores(Scores &x, const AttentionArgs &a) {
  _Pragma("unroll 1") for (int n = 0; n < 8; n++) {
    const float capped = cappedExponent(x[0][0], a);
    UNROLL for (int i = 0; i < 7; i++) x[i / 4][i % 4] = x[(i + 1) / 4][(i + 1) % 4];
    x[1][3] = capped;
  }
}

// weigh computes the weights from the products of the run that begins at position begin, and the
// tops. The columns of this lane see the positions in seen; a column that sees none of the run has
// a top of -inf.
INLINE void weigh(Weights &w, float (&top)[2], Scores &x, const AttentionArgs &a, int begin, const Seen (&seen)[2]) {
  const float by = a.softcap > 0 ? 1.0f : a.scale * log2e;
  if (a.softcap > 0) capScores(x, a);
  const bool all = seen[0].all(begin, runTokens) && seen[1].all(begin, runTokens);
  float from[2];
  UNROLL for (int h = 0; h < 2; h++) {
    float most = -infinity;
    UNROLL for (int i = 0; i < 4; i++) {
      float &v = x[i / 2][i % 2 * 2 + h];
      const int position = begin + keyPosition(i);
      if (!all && (position < seen[h].first || position > seen[h].last)) v = -infinity;
      most = maxOf(most, v);
    }
    UNROLL for (int m = 4; m < 32; m *= 2) most = maxOf(most, shuffleXor(most, m));
    const bool some = seen[h].some(begin, runTokens);
    from[h] = some ? topOf(most, by) : 0.0f;
    top[h] = some ? from[h] : -infinity;
  }
  UNROLL for (int m = 0; m < 2; m++) {
    UNROLL for (int i = 0; i < 2; i++) {
      w[m][i] = transposed(halvesOf(weightOf(x[m][2 * i], by, from[0]), weightOf(x[m][2 * i + 1], by, from[1])));
    }
  }
}

// addWeights adds the weights to sum, whose numbers i and i+2 are those of column 2t+i.
INLINE void addWeights(float (&sum)[4], const Weights &w) {
  const u32 ones[4] = {halfOnes, halfOnes, halfOnes, halfOnes};
  UNROLL for (int m = 0; m < 2; m++) addProducts(sum, ones, w[m][0], w[m][1]);
}

// addValues adds the weighted values of 16 positions. v has 8 numbers of each of the lane's four.
INLINE void addValues(Values &c, const u32 (&v)[4][4], const u32 (&w)[2]) {
  UNROLL for (int j = 0; j < 4; j++) {
    const u32 m[4] = {__nvvm_prmt(v[0][j], v[1][j], 0x5410u), __nvvm_prmt(v[0][j], v[1][j], 0x7632u),
                      __nvvm_prmt(v[2][j], v[3][j], 0x5410u), __nvvm_prmt(v[2][j], v[3][j], 0x7632u)};
    addProducts(c[j], m, w[0], w[1]);
  }
}

// --- Heads of 64 and 128

// Four and EightOf are what a lane loads of a row: four numbers of a key, or eight of a value.
template <class C> struct Four {
  u32 raw;
  METHOD void load(const u8 *at) { raw = loadOnce(reinterpret_cast<const u32 *>(at)); }
  METHOD void copy(const u8 *at) { raw = *reinterpret_cast<const u32 *>(at); }
  METHOD uint2 halves(u16 scale) const { return scaled(C{}, raw, scale); }
};
template <> struct Four<CacheF16> {
  uint2 raw;
  METHOD void load(const u8 *at) { raw = loadOnce(reinterpret_cast<const uint2 *>(at)); }
  METHOD void copy(const u8 *at) { raw = *reinterpret_cast<const uint2 *>(at); }
  METHOD uint2 halves(u16) const { return raw; }
};
template <class C> struct EightOf {
  uint2 raw;
  METHOD void load(const u8 *at) { raw = loadOnce(reinterpret_cast<const uint2 *>(at)); }
  METHOD void copy(const u8 *at) { raw = *reinterpret_cast<const uint2 *>(at); }
  METHOD uint4 halves(u16 scale) const { return scaled(C{}, raw, scale); }
};
template <> struct EightOf<CacheF16> {
  uint4 raw;
  METHOD void load(const u8 *at) { raw = loadOnce(reinterpret_cast<const uint4 *>(at)); }
  METHOD void copy(const u8 *at) { raw = *reinterpret_cast<const uint4 *>(at); }
  METHOD uint4 halves(u16) const { return raw; }
};

template <class C, int D> struct Run {
  static constexpr bool scales = C::shared != 0;
  static constexpr int steps = D / 16, blocks = D / 64;
  // The scales of a key, and the scales of a value that a lane needs.
  static constexpr int keyScales = scales ? scalesOf<C>(D) : 1, valueScales = keyScales < blocks ? keyScales : blocks;
  Four<C> key[4][steps];
  EightOf<C> value[8][blocks];
  u16 keyScale[4][keyScales], valueScale[8][valueScales];
  // The page and the place in it: of the run's first position if pages hold whole runs, else of the
  // lane's position.
  int page, at;

  // find looks up positions lo to hi-1, at least one, of the run that begins at position begin.
  METHOD void find(const Source &s, int begin, int lo, int hi) {
    const int tokens = s.pool.pageTokens;
    const int position = begin + (tokens % runTokens == 0 ? 0 : minOf(maxOf(tidX() % 32, lo), hi - 1));
    const int number = position / tokens;
    page = s.table.pages[s.shift + number], at = position - number * tokens;
  }

  // loadKeys and loadValues load positions lo to hi-1, which find has looked up, and set the others
  // to 0.
  METHOD void loadKeys(const Source &s, int lo, int hi) {
    if (s.pool.pageTokens % runTokens == 0) loadKeys(s, lo, hi, [&](int i) ALWAYS { return Slot{page * s.pool.apart, at + i}; });
    else loadKeys(s, lo, hi, [&](int i) ALWAYS { return Slot{int(shuffleFrom(u32(page), i)) * s.pool.apart, int(shuffleFrom(u32(at), i))}; });
  }
  METHOD void loadValues(const Source &s, int lo, int hi) {
    if (s.pool.pageTokens % runTokens == 0) loadValues(s, lo, hi, [&](int i) ALWAYS { return Slot{page * s.pool.apart, at + i}; });
    else loadValues(s, lo, hi, [&](int i) ALWAYS { return Slot{int(shuffleFrom(u32(page), i)) * s.pool.apart, int(shuffleFrom(u32(at), i))}; });
  }

  template <class SlotOf> METHOD void loadKeys(const Source &s, int lo, int hi, const SlotOf &slotOf) {
    const int t = tidX() % 4;
    Pool pool = s.pool;
    pool.dim = D;
    const s64 apart = (scales ? 1 : 2) * chunkApart<C>(pool);
    const u8 *from[4];
    UNROLL for (int i = 0; i < 4; i++) from[i] = pool.base + keyAt<C>(pool, slotOf(keyPosition(i)), s.head) + (scales ? 4 * t : t / 2 * chunkApart<C>(pool) + t % 2 * 8);
    UNROLL for (int k = 0; k < steps; k++) {
      UNROLL for (int i = 0; i < 4; i++) {
        key[i][k] = Four<C>{};
        if (u32(keyPosition(i) - lo) < u32(hi - lo)) key[i][k].load(from[i]);
        from[i] += apart;
      }
    }
    if constexpr (scales) {
      UNROLL for (int i = 0; i < 4; i++) {
        const u8 *from = pool.base + keyScaleAt<C>(pool, slotOf(keyPosition(i)), s.head);
        UNROLL for (int b = 0; b < keyScales; b++) {
          keyScale[i][b] = 0;
          if (u32(keyPosition(i) - lo) < u32(hi - lo)) keyScale[i][b] = loadOnce(reinterpret_cast<const u16 *>(from));
          from += scalesApart(pool);
        }
      }
    }
  }
  template <class SlotOf> METHOD void loadValues(const Source &s, int lo, int hi, const SlotOf &slotOf) {
    const int g = tidX() % 32 / 4;
    Pool pool = s.pool;
    pool.dim = D;
    UNROLL for (int i = 0; i < 8; i++) {
      const Slot found = slotOf(valuePosition(i));
      const bool seen = u32(valuePosition(i) - lo) < u32(hi - lo);
      const u8 *from = pool.base + valueAt<C>(pool, found, s.head) + 8 * g * C::bytes;
      UNROLL for (int b = 0; b < blocks; b++) {
        value[i][b] = EightOf<C>{};
        if (seen) value[i][b].load(from + 64 * b * C::bytes);
        if (scales && b < valueScales) {
          valueScale[i][b] = 0;
          if (seen) valueScale[i][b] = loadOnce(reinterpret_cast<const u16 *>(pool.base + valueScaleAt<C>(pool, found, s.head)) + scaleOf<C>(64 * b) + scaleOf<C>(8 * g));
        }
      }
    }
  }

  // putKeys and putValues replace n positions, from position on, by copies of a head.
  METHOD void putKeys(int position, int n, const Copy<C> *copies) {
    UNROLL for (int i = 0; i < 4; i++) {
      if (u32(keyPosition(i) - position) >= u32(n)) continue;
      const Copy<C> &copy = copies[n == 1 ? 0 : keyPosition(i) - position];
      UNROLL for (int k = 0; k < steps; k++) key[i][k].copy(copy.numbers + (16 * k + tidX() % 4 * 4) * C::bytes);
      if constexpr (scales) {
        UNROLL for (int b = 0; b < keyScales; b++) keyScale[i][b] = copy.scales[b];
      }
    }
  }
  METHOD void putValues(int position, int n, const Copy<C> *copies) {
    const int g = tidX() % 32 / 4;
    UNROLL for (int i = 0; i < 8; i++) {
      if (u32(valuePosition(i) - position) >= u32(n)) continue;
      const Copy<C> &copy = copies[n == 1 ? 0 : valuePosition(i) - position];
      UNROLL for (int b = 0; b < blocks; b++) {
        value[i][b].copy(copy.numbers + (64 * b + 8 * g) * C::bytes);
        if (scales && b < valueScales) valueScale[i][b] = copy.scales[scaleOf<C>(64 * b) + scaleOf<C>(8 * g)];
      }
    }
  }

  // scores adds the products of the keys and the queries; q is row g of the queries.
  METHOD void scores(Scores &x, const u16 *q) const {
    UNROLL for (int k = 0; k < steps; k++) {
      const uint2 b = *reinterpret_cast<const uint2 *>(q + 16 * k + tidX() % 4 * 4);
      UNROLL for (int m = 0; m < 2; m++) {
        const uint2 low = key[2 * m][k].halves(keyScale[2 * m][scaleOf<C>(16 * k)]), high = key[2 * m + 1][k].halves(keyScale[2 * m + 1][scaleOf<C>(16 * k)]);
        const u32 a[4] = {low.x, high.x, low.y, high.y};
        addProducts(x[m], a, b.x, b.y);
      }
    }
  }
  METHOD void values(Values &c, const Weights &w, int b) const {
    UNROLL for (int m = 0; m < 2; m++) {
      u32 v[4][4];
      UNROLL for (int i = 0; i < 4; i++) {
        const uint4 x = value[4 * m + i][b].halves(valueScale[4 * m + i][b % valueScales]);
        v[i][0] = x.x, v[i][1] = x.y, v[i][2] = x.z, v[i][3] = x.w;
      }
      addValues(c, v, w[m]);
    }
  }
};

// --- Heads of any length

// A Run of any head length loads positions lo to hi-1 when they are needed. Those from copied on
// come from the copies newKeys and newValues.
template <class C> struct Run<C, 0> {
  const Copy<C> *newKeys, *newValues;
  int page, at, lo, hi, copied;

  METHOD void find(const Source &s, int begin, int from, int to, int position, const Copy<C> *keys, const Copy<C> *values) {
    lo = from, hi = to, copied = position, newKeys = keys, newValues = values;
    if (lo >= hi) return;
    const int mine = begin + minOf(maxOf(tidX() % 32, lo), hi - 1), number = mine / s.pool.pageTokens;
    page = s.table.pages[s.shift + number], at = mine - number * s.pool.pageTokens;
  }
  METHOD Row row(const Source &s, int i, bool key) const {
    const Slot found{int(shuffleFrom(u32(page), i)) * s.pool.apart, int(shuffleFrom(u32(at), i))};
    if (i >= copied) return rowOf((key ? newKeys : newValues)[i - copied], s.pool.dim);
    return rowOf<C>(s.pool, found, key, s.head);
  }
  METHOD bool seen(int i) const { return i >= lo && i < hi; }

  METHOD void scores(Scores &x, const Source &s, const u16 *q, int dim) const {
    Row r[4];
    UNROLL for (int i = 0; i < 4; i++) r[i] = row(s, keyPosition(i), true);
    for (int k = 0; k < (dim + 15) / 16; k++) {
      const int first = 16 * k + tidX() % 4 * 4;
      const uint2 b = *reinterpret_cast<const uint2 *>(q + first);
      u32 v[4][2] = {};
      UNROLL for (int i = 0; i < 4; i++) {
        if (seen(keyPosition(i))) numbersOf<4>(C{}, v[i], r[i], first, dim);
      }
      UNROLL for (int m = 0; m < 2; m++) {
        const u32 a[4] = {v[2 * m][0], v[2 * m + 1][0], v[2 * m][1], v[2 * m + 1][1]};
        addProducts(x[m], a, b.x, b.y);
      }
    }
  }
  METHOD void values(Values &c, const Source &s, const Weights &w, int b, int dim) const {
    UNROLL for (int m = 0; m < 2; m++) {
      u32 v[4][4] = {};
      UNROLL for (int i = 0; i < 4; i++) {
        const int position = valuePosition(4 * m + i);
        const Row r = row(s, position, false);
        if (seen(position)) numbersOf<8>(C{}, v[i], r, 64 * b + tidX() % 32 / 4 * 8, dim);
      }
      addValues(c, v, w[m]);
    }
  }
};
