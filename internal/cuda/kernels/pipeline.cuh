// The multiplication in a block: a pipeline of tiles that all products share, for any weights, rows
// and destination of the results.
//
// The columns are divided into 8 segments of whole tiles, one for each warp of a block. Each
// segment is summed from 0, and the sums are added as a tree, ((0+1)+(2+3)) + ((4+5)+(6+7)), so
// that two, four or eight blocks, or devices, that each have a subtree exchange one sum each. On such
// a device a block has as many warps as the subtree has segments; the sums of the others are 0.
#pragma once
#include "value.cuh"
#include "multiply.cuh"

INLINE float sumOfSegments(const float (&v)[segments]) { return ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7])); }

// How many tiles of rows a unit of a gate has, and as many of what it gates. For one row of the input,
// 16-bit weights have small units, of which blocks have more equal shares. Other weights gained
// nothing by them.
template <class F, bool ONE> constexpr int gateTiles = ONE && !F::scaled ? 1 : 2;

// Sums are the sums of the warps of a block, by segment, row and column of a unit of at most R tiles
// of rows. If there is room, the sums of the previous unit are kept too, so that fast warps wait for
// slow ones only once per unit.
template <int NT, bool ONE, int R> struct Sums {
  static constexpr int rows = R * tileRows, columns = ONE ? 1 : 8 * NT;
  static constexpr int turns = segments * rows * columns * 8 > 32768 ? 1 : 2;
  float of[turns][segments][rows][columns];
};

// multiplyTiles multiplies T tiles of the same columns, together if M can.
template <class M, class F, int T, int NT> INLINE void multiplyTiles(M &m, float (&acc)[T][NT][4], const F (&w)[T], int kt) {
  if constexpr (requires { m.multiply(acc, w, kt); }) {
    m.multiply(acc, w, kt);
  } else {
    UNROLL for (int i = 0; i < T; i++) m.multiply(acc[i], w[i], kt);
  }
}

// A Share says which units a block has: those of blocks first to first+of of the grid, or of the whole
// grid if of is 0.
struct Share {
  s32 first = 0, of = 0;
  METHOD int block() const { return blockX() - first; }
  METHOD int blocks() const { return of ? of : gridX(); }
};

// pipeline runs a warp through its segment of the units of its share: those of its block's number,
// one for each block later, and so on. A unit has R
// tiles of rows, at most MOST. T of them are multiplied together, so that a multiplier may load the
// input once for them. Products have 8*NT rows of the input, or one row if ONE. rowOf returns the
// address of tile r of a unit's rows, at the warp's segment. AHEAD times T tiles are loaded ahead; with
// AHEAD 0 each quarter of the next tile, 64 columns, is loaded as soon as that of the current one has
// been multiplied. The first loads start before begin is called. begin calls its argument with the
// multiplier. store writes a unit; its argument returns the value of a row and a column.
template <class F, int AHEAD, int T, int NT, bool ONE, int MOST, class RowOf, class Begin, class Store>
INLINE void pipeline(Sums<NT, ONE, MOST> &sums, int &turn, const s32 &units, int R, int from, int tiles, int lane, int warp, const RowOf &rowOf,
                     const Begin &begin, const Store &store, const Share share = {}) {
  constexpr int turns = Sums<NT, ONE, MOST>::turns, together = AHEAD > 0 ? AHEAD : 1;
  int ahead = share.block(), aheadR = 0, aheadK = 0; // the next tiles to load
  const u8 *next[T];
  auto find = [&]() ALWAYS {
    UNROLL for (int i = 0; i < T; i++) next[i] = rowOf(ahead, aheadR + i);
  };
  find();
  auto loaded = [&]() ALWAYS {
    UNROLL for (int i = 0; i < T; i++) next[i] += F::tileBytes;
    if (++aheadK < tiles) return;
    aheadK = 0;
    if ((aheadR += T) == R) aheadR = 0, ahead += share.blocks();
    if (ahead < units) find();
  };
  auto load = [&](F (&w)[T]) ALWAYS {
    if (ahead >= units) return;
    UNROLL for (int i = 0; i < T; i++) loadTile(w[i], next[i], lane);
    loaded();
  };
  F w[together][T];
  if (tiles > 0) {
    UNROLL for (int i = 0; i < together; i++) load(w[i]);
  }

  float acc[T][NT][4];
  auto clear = [&]() ALWAYS {
    UNROLL for (int t = 0; t < T; t++) {
      UNROLL for (int n = 0; n < NT; n++) {
        UNROLL for (int i = 0; i < 4; i++) acc[t][n][i] = 0;
      }
    }
  };
  auto keep = [&](int r) ALWAYS {
    auto &part = sums.of[turn][warp];
    UNROLL for (int t = 0; t < T; t++) {
      UNROLL for (int n = 0; n < NT; n++) {
        UNROLL for (int i = 0; i < 4; i++) {
          const float v = acc[t][n][i];
          const int row = (r + t) * tileRows + lane / 4;
          if constexpr (ONE) {
            if (lane % 4 == 0 && !(i & 1)) part[row + 4 * i][0] = v;
          } else {
            part[row + 4 * (i & 2)][8 * n + lane % 4 * 2 + (i & 1)] = v;
          }
        }
      }
    }
  };
  auto finish = [&](int unit) ALWAYS {
    syncBlock(); // all warps have stored their sums
    store(unit, [&](int row, int col) ALWAYS {
      float v[segments];
      UNROLL for (int s = 0; s < segments; s++) v[s] = sums.of[turn][s][row][col];
      return sumOfSegments(v);
    });
    if (turns == 1) syncBlock();
    turn = (turn + 1) % turns;
  };
  for (int i = threadsX() / 32 * int(sizeof sums.of[0][0] / 4) + tidX(); i < int(sizeof sums.of[0] / 4); i += threadsX()) {
    UNROLL for (int t = 0; t < turns; t++) (&sums.of[t][0][0][0])[i] = 0;
  }
  begin([&](auto &&m) ALWAYS {
    int unit = share.block(), r = 0, k = 0;
    clear();
    auto multiplied = [&]() ALWAYS {
      if (++k < tiles) return;
      keep(r);
      clear();
      k = 0;
      if ((r += T) < R) return;
      finish(unit);
      r = 0, unit += share.blocks();
    };
    if constexpr (AHEAD > 0) {
      auto step = [&](F (&w)[T]) ALWAYS {
        UNROLL for (int i = 0; i < T; i++) w[i].prepare();
        multiplyTiles(m, acc, w, from + k);
        load(w);
        multiplied();
      };
      while (tiles > 0 && unit < units) {
        step(w[0]);
        UNROLL for (int i = 1; i < AHEAD; i++) {
          if (unit < units) step(w[i]);
        }
      }
    } else {
      auto step = [&]<bool MORE>() ALWAYS {
        F now[T];
        UNROLL for (int i = 0; i < T; i++) {
          now[i] = w[0][i];
          now[i].prepare();
          if constexpr (MORE) w[0][i].template loadScales<FromGlobal>(next[i], lane);
        }
        UNROLL for (int q = 0; q < F::tileK / 64; q++) {
          m.multiplyQuarter(acc, now, from + k, q);
          if constexpr (MORE) {
            UNROLL for (int i = 0; i < T; i++) w[0][i].template loadQuarter<FromGlobal>(next[i], lane, q);
          }
        }
        if constexpr (MORE) loaded();
        multiplied();
      };
      if (tiles > 0 && unit < units) {
        while (ahead < units) step.template operator()<true>();
        step.template operator()<false>();
      }
    }
    for (; unit < units; unit += share.blocks()) { // a warp without columns, whose sums stay 0
      for (r = 0; r < R; r += T) keep(r);
      finish(unit);
    }
  });
}

// A Gated is a product and what it gates, or without up a product and its activation: the tiles of
// the warp's segment, and the destination of the values.
struct Gated {
  const u8 *const &w, *const &up;
  Matrix gate, gated;
  const float &divided;
  const s32 &rows; // of each product
  int tiles;       // of rows
  const Unit &unit;
  const Forms &out;
};

// gatedRow returns the address of tile r of a unit's rows, EACH of the gate and as many of what it
// gates. If the unit's second tile of rows does not exist, it is the first again, and its results
// are not used.
template <int EACH> INLINE const u8 *gatedRow(const Gated &g, int unit, int r, s64 rowBytes) {
  return (r < EACH ? g.w : g.up) + minOf(EACH * unit + r % EACH, g.tiles - 1) * rowBytes;
}

// storeGated writes a unit's columns first to end-1, at most columns of them.
template <int EACH, class Sum> INLINE void storeGated(const Gated &g, bool two, int unit, int first, int end, int columns, int lane, int warp, const Sum &sum) {
  constexpr int rows = EACH * tileRows;
  for (int c = warp; c < columns; c += 8) {
    if (first + c >= end) break;
    const int row = rows * unit + lane;
    float v = 0;
    if (lane < rows && row < g.rows) {
      const float gate = valueOf(g.gate, g.divided, row, sum(lane, c));
      v = unitOf(g.unit, gate, two ? valueOf(g.gated, g.divided, row, sum(rows + lane, c)) : 1);
    }
    storeBlock<rows>(g.out, first + c, unit, lane, v);
  }
}

// storePlain calls put with every value of a unit's columns first to end-1, at most columns of
// them, in rows below rows. A unit has UNIT rows.
template <int UNIT, class Sum, class Put> INLINE void storePlain(int rows, int unit, int first, int end, int columns, const Sum &sum, const Put &put) {
  for (int i = tidX(); i < UNIT * columns; i += threadsX()) {
    const int row = unit * UNIT + i / columns, at = first + i % columns;
    if (row >= rows || at >= end) continue;
    put(row, at, sum(i / columns, i % columns));
  }
}
