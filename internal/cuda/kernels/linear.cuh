// Products of rows of activations with weights in tiles, for one row and for many, by
// one arithmetic for each format: whatever the number of rows, an output is the same
// sum in the same order.
//
// The columns are cut into 8 segments of whole tiles, one for each warp of a block;
// each is summed from 0 and the sums are added in ascending order.
//
//   q8   weights in blocks times bytes: the sum over 32 columns (or twice 16, where there
//        are scales for 16) is an exact integer; it is multiplied by both scales, and the
//        blocks of a tile are added as a tree, see Bytes.
//   h16  weights of 16 bits times numbers of the same type: matrix instructions of 16
//        columns, accumulated in float32.
//   f32  any weights times float32: a lane's columns one by one, then the four lanes of
//        a row.
#pragma once
#include "row.cuh"

// linear is what a block does: units blockX, blockX+gridX and so on, each of R tiles of
// rows; gated ones have 4, of which the first two are the gate's, or those 2 alone where
// nothing is gated. M multiplies. ONE is for one row of the input, which the block may
// normalise itself. DEPTH tiles are on their way while one is worked on.
template <class F, class M, int NT, bool ONE, bool GATED, bool SCALED, int DEPTH> INLINE void linear(const LinearArgs &a) {
  constexpr int most = GATED ? 4 : 1, columns = ONE ? 1 : 8 * NT;
  const int R = GATED && !a.p[1].w ? 2 : most;
  // Of a unit, and where there is room of the one before it, so that fast warps need not
  // wait for slow ones twice.
  constexpr int turns = segments * most * tileRows * columns * 8 > 32768 ? 1 : 2;
  __shared__ float part[turns][segments][most * tileRows][columns];
  const int lane = tidX() & 31, warp = tidX() >> 5;
  const int from = a.colTiles * warp / segments, tiles = a.colTiles * (warp + 1) / segments - from;
  const s64 rowBytes = s64(a.colTiles) * F::tileBytes;
  const int gateTiles = (a.p[0].rows + tileRows - 1) / tileRows;

  // productOf makes unit a tile of rows of one product.
  auto productOf = [&](int &unit) ALWAYS {
    int which = 0;
    for (; which < 3 && unit >= (a.p[which].rows + tileRows - 1) / tileRows; which++) unit -= (a.p[which].rows + tileRows - 1) / tileRows;
    return which;
  };
  // rowOf is where the warp's segment begins in tile r of a unit. A second tile of rows
  // that is not there is the first again, and its results are not used.
  auto rowOf = [&](int unit, int r) ALWAYS -> const u8 * {
    if constexpr (GATED) return (r < 2 ? a.p[0].w : a.p[1].w) + minOf(2 * unit + (r & 1), gateTiles - 1) * rowBytes + s64(from) * F::tileBytes;
    const int which = productOf(unit);
    return a.p[which].w + unit * rowBytes + s64(from) * F::tileBytes;
  };

  // What is loaded next.
  int ahead = blockX(), aheadR = 0, aheadK = 0;
  const u8 *next = rowOf(ahead, 0);
  auto load = [&](F &w) ALWAYS {
    if (ahead >= a.units) return;
    w.load(next, lane);
    next += F::tileBytes;
    if (++aheadK < tiles) return;
    aheadK = 0;
    if (++aheadR == R) aheadR = 0, ahead += gridX();
    if (ahead < a.units) next = rowOf(ahead, aheadR);
  };
  F one, two, more[DEPTH];
  if (tiles > 0) {
    load(one);
    load(two);
    UNROLL for (int i = 2; i < DEPTH; i++) load(more[i]);
  }

  waitForPrevious();
  allowNext();
  const int count = *a.count, first = blockY() * 8 * NT;
  if (first >= count) return;

  float acc[NT][4];
  auto clear = [&]() ALWAYS {
    UNROLL for (int n = 0; n < NT; n++) {
      UNROLL for (int i = 0; i < 4; i++) acc[n][i] = 0;
    }
  };
  auto keep = [&](int r, int turn) ALWAYS {
    UNROLL for (int n = 0; n < NT; n++) {
      UNROLL for (int i = 0; i < 4; i++) {
        const float v = SCALED ? acc[n][i] * (1 / halfScale) : acc[n][i];
        if constexpr (ONE) {
          if (lane % 4 == 0 && !(i & 1)) part[turn][warp][r * tileRows + lane / 4 + 4 * i][0] = v;
        } else {
          part[turn][warp][r * tileRows + lane / 4 + 4 * (i & 2)][8 * n + lane % 4 * 2 + (i & 1)] = v;
        }
      }
    }
  };
  // finish adds up a unit's segments, when all warps have kept theirs.
  auto finish = [&](int unit, int turn) ALWAYS {
    syncBlock();
    auto sum = [&](int row, int col) ALWAYS {
      float v = part[turn][0][row][col];
      UNROLL for (int s = 1; s < segments; s++) v = v + part[turn][s][row][col];
      return v;
    };
    if constexpr (!GATED) {
      const Product &p = a.p[productOf(unit)];
      for (int i = tidX(); i < tileRows * columns; i += 256) {
        const int row = unit * tileRows + i / columns, token = first + i % columns;
        if (row >= p.rows || token >= count) continue;
        float v = sum(i / columns, i % columns);
        if (p.bias) v = v + p.bias[row];
        v = v * a.scale;
        if (a.residual) v = a.residual[s64(token) * a.residualStride + row] + v;
        p.y[s64(token) * p.stride + row] = v;
      }
    } else {
      for (int c = warp; c < columns; c += 8) {
        if (first + c >= count) break;
        const int row = 32 * unit + lane;
        float v = 0;
        if (row < a.p[0].rows) {
          float gate = sum(lane, c);
          if (a.p[0].bias) gate = gate + a.p[0].bias[row];
          float up = 1;
          if (R > 2) {
            up = sum(32 + lane, c);
            if (a.p[1].bias) up = up + a.p[1].bias[row];
          }
          v = unitOf(a.unit, gate, up);
        }
        storeBlock(a.out, first + c, unit, lane, v);
      }
    }
  };
  auto work = [&](const auto &m) ALWAYS {
    int unit = blockX(), r = 0, k = 0, turn = 0;
    clear();
    auto step = [&](F &w) ALWAYS {
      w.prepare();
      m.multiply(acc, w, from + k);
      load(w);
      if (++k < tiles) return;
      keep(r, turn);
      clear();
      k = 0;
      if (++r < R) return;
      finish(unit, turn);
      if (turns == 1) syncBlock();
      r = 0, turn = (turn + 1) % turns, unit += gridX();
    };
    while (tiles > 0 && unit < a.units) {
      step(one);
      if (unit < a.units) step(two);
      UNROLL for (int i = 2; i < DEPTH; i++) {
        if (unit < a.units) step(more[i]);
      }
    }
    for (; unit < a.units; unit += gridX(), turn = (turn + 1) % turns) { // a warp without columns
      for (r = 0; r < R; r++) keep(r, turn);
      finish(unit, turn);
      if (turns == 1) syncBlock();
    }
  };
  if constexpr (ONE) {
    extern __shared__ u8 shared[];
    Row<F> row(a);
    if (a.norm) {
      row = Row<F>(shared, a.colTiles * F::tileK);
      normalizeRow<F>(a, row, from * F::tileK, (from + tiles) * F::tileK, warp, lane);
    }
    work(row.operand(lane));
  } else {
    work(M(a, first, count, lane));
  }
}

#define LINEAR_AHEAD(name, F, M, NT, ONE, GATED, SCALED, DEPTH, BLOCKS) \
  extern "C" __global__ void __launch_bounds__(256, BLOCKS) name(const LinearArgs a) { linear<F, M, NT, ONE, GATED, SCALED, DEPTH>(a); }
#define LINEAR(name, F, M, NT, ONE, GATED, SCALED, BLOCKS) LINEAR_AHEAD(name, F, SINGLE(M), NT, ONE, GATED, SCALED, 2, BLOCKS)

// The kernels of a format with products of their own: for one row of the input, 8, 16 and
// 32; gated ones up to 16.
#define LINEAR_FORMAT(F, M, SCALED)                                 \
  LINEAR(linear_1, F, void, 1, true, false, SCALED, 2)              \
  LINEAR(linear_8, F, SINGLE(M<F, 1>), 1, false, false, SCALED, 2)  \
  LINEAR(linear_16, F, SINGLE(M<F, 2>), 2, false, false, SCALED, 2) \
  LINEAR(linear_32, F, SINGLE(M<F, 4>), 4, false, false, SCALED, 1) \
  LINEAR(gated_1, F, void, 1, true, true, SCALED, 2)                \
  LINEAR(gated_8, F, SINGLE(M<F, 1>), 1, false, true, SCALED, 2)    \
  LINEAR(gated_16, F, SINGLE(M<F, 2>), 2, false, true, SCALED, 1)
#define SINGLE(...) __VA_ARGS__

// Those of any format times float32, for one row of the input and for 8. Small tiles are
// of weights that few blocks have to themselves, such as a router's.
#define LINEAR_OF_FLOATS(F)                                                                               \
  LINEAR_AHEAD(linear_f32_1, F, SINGLE(Floats<F, 1>), 1, false, false, false, F::tileK == 32 ? 8 : 2, 1)  \
  LINEAR(linear_f32, F, SINGLE(Floats<F, 8>), 1, false, false, false, 1)
