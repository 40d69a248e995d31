// Products of a mixture of experts: every expert has a matrix of its own, which is
// multiplied with the rows of the tokens that chose it.
//
// A slot is a token together with one of its experts. Slots stand in the order of experts,
// and for each expert in that of tokens. The arithmetic is that of linear.cuh: what an
// expert makes of a row depends neither on the step's other rows nor on how many rows a
// kernel takes at a time.
#pragma once
#include "linear.cuh"

constexpr int maxExperts = 2048; // of a mixture

// An Active is an expert that some token chose, with its slots.
struct alignas(16) Active {
  s32 expert;
  s32 begin, end; // of its slots
  s32 place;      // of its matrices: the expert's number, or what keep says
};

// The matrices of experts lie in places of one size.
struct ExpertProduct {
  const u8 *w;       // tiles in place 0
  const float *bias; // [experts, biasApart], or 0: none
  s64 apart;         // bytes from a place to the next
  s32 biasApart;     // elements
  s32 pad;
};

struct ExpertArgs {
  ExpertProduct p[2]; // gated: the gate and what it gates; else the first alone
  s32 rows;           // of an expert's matrix
  s32 units;          // of work for an expert: tiles of rows; gated: two of the gate's, with those that it gates
  s32 colTiles;       // tiles of a row
  s32 cols, inStride; // of the input, elements
  s32 stride;         // elements
  const float *x;     // what is read of the input, by kind of kernel
  const s8 *q8;
  const uint2 *meta;
  const u16 *h16;
  const s32 *tokens;    // [slots] row of the input for each slot, or 0: the slot's own
  const Active *active; // [*count]
  const s32 *count;     // experts that were chosen
  float *y;             // [slots, stride]; gated: 0
  Forms out;            // gated: [slots, rows] where the unit's values go
  Unit unit;
  s32 pad;
};

// oneRow is a single row of the input as an operand.
template <class F> INLINE auto oneRow(const ExpertArgs &a, int row, int lane) {
  if constexpr (F::tileK == 256) return BytesOne<F>(a.q8 + s64(row) * a.inStride, a.meta + s64(row) * (a.inStride / 32), lane);
  else return WordsOne<F>(a.h16 + s64(row) * a.inStride, lane);
}

// expertProduct is what a block does: units blockX, blockX+gridX and so on of active expert
// blockY, for all of its slots, 8*NT at a time, or ONE. Which expert that is is not known
// before the kernel before has ended, so nothing is loaded early.
template <class F, class M, int NT, bool ONE, bool GATED, bool SCALED> INLINE void expertProduct(const ExpertArgs &a) {
  constexpr int R = GATED ? 4 : 1, columns = ONE ? 1 : 8 * NT;
  constexpr int turns = segments * R * tileRows * columns * 8 > 32768 ? 1 : 2;
  __shared__ float part[turns][segments][R * tileRows][columns];
  waitForPrevious();
  allowNext();
  if (blockY() >= *a.count) return;
  const Active e = a.active[blockY()];

  const int lane = tidX() & 31, warp = tidX() >> 5;
  const int from = a.colTiles * warp / segments, tiles = a.colTiles * (warp + 1) / segments - from;
  const s64 rowBytes = s64(a.colTiles) * F::tileBytes;
  const int rowTiles = (a.rows + tileRows - 1) / tileRows;
  const u8 *w = a.p[0].w + e.place * a.p[0].apart, *up = GATED ? a.p[1].w + e.place * a.p[1].apart : nullptr;
  const float *bias = a.p[0].bias ? a.p[0].bias + s64(e.expert) * a.p[0].biasApart : nullptr;
  const float *upBias = GATED && a.p[1].bias ? a.p[1].bias + s64(e.expert) * a.p[1].biasApart : nullptr;

  // rowOf is where the warp's segment begins in tile r of a unit. A second tile of rows
  // that is not there is the first again, and its results are not used.
  auto rowOf = [&](int unit, int r) ALWAYS -> const u8 * {
    if constexpr (GATED) return (r < 2 ? w : up) + minOf(2 * unit + (r & 1), rowTiles - 1) * rowBytes + s64(from) * F::tileBytes;
    return w + unit * rowBytes + s64(from) * F::tileBytes;
  };

  int turn = 0;
  _Pragma("unroll 1") for (int first = e.begin; first < e.end; first += columns) {
    // What is loaded next: two tiles are on their way while one is worked on.
    int ahead = blockX(), aheadR = 0, aheadK = 0;
    const u8 *next = rowOf(ahead, 0);
    auto load = [&](F &t) ALWAYS {
      if (ahead >= a.units) return;
      t.load(next, lane);
      next += F::tileBytes;
      if (++aheadK < tiles) return;
      aheadK = 0;
      if (++aheadR == R) aheadR = 0, ahead += gridX();
      if (ahead < a.units) next = rowOf(ahead, aheadR);
    };
    F one, two;
    if (tiles > 0) {
      load(one);
      load(two);
    }

    float acc[NT][4];
    auto clear = [&]() ALWAYS {
      UNROLL for (int n = 0; n < NT; n++) {
        UNROLL for (int i = 0; i < 4; i++) acc[n][i] = 0;
      }
    };
    auto keep = [&](int r) ALWAYS {
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
    auto finish = [&](int unit) ALWAYS {
      syncBlock();
      auto sum = [&](int row, int col) ALWAYS {
        float v = part[turn][0][row][col];
        UNROLL for (int s = 1; s < segments; s++) v = v + part[turn][s][row][col];
        return v;
      };
      if constexpr (!GATED) {
        for (int i = tidX(); i < tileRows * columns; i += 256) {
          const int row = unit * tileRows + i / columns, slot = first + i % columns;
          if (row >= a.rows || slot >= e.end) continue;
          float v = sum(i / columns, i % columns);
          if (bias) v = v + bias[row];
          a.y[s64(slot) * a.stride + row] = v;
        }
      } else {
        for (int c = warp; c < columns; c += 8) {
          if (first + c >= e.end) break;
          const int row = 32 * unit + lane;
          float v = 0;
          if (row < a.rows) {
            float gate = sum(lane, c), value = sum(32 + lane, c);
            if (bias) gate = gate + bias[row];
            if (upBias) value = value + upBias[row];
            v = unitOf(a.unit, gate, value);
          }
          storeBlock(a.out, first + c, unit, lane, v);
        }
      }
      if (turns == 1) syncBlock();
      turn = (turn + 1) % turns;
    };
    auto work = [&](const auto &m) ALWAYS {
      int unit = blockX(), r = 0, k = 0;
      clear();
      auto step = [&](F &t) ALWAYS {
        t.prepare();
        m.multiply(acc, t, from + k);
        load(t);
        if (++k < tiles) return;
        keep(r);
        clear();
        k = 0;
        if (++r < R) return;
        finish(unit);
        r = 0, unit += gridX();
      };
      while (tiles > 0 && unit < a.units) {
        step(one);
        if (unit < a.units) step(two);
      }
      for (; unit < a.units; unit += gridX()) { // a warp without columns
        clear();
        for (r = 0; r < R; r++) keep(r);
        finish(unit);
      }
    };
    if constexpr (ONE) {
      work(oneRow<F>(a, a.tokens ? a.tokens[first] : first, lane));
    } else {
      work(M(a, first, e.end, lane, a.tokens));
    }
  }
}

#define EXPERT(name, F, M, NT, ONE, GATED, SCALED, BLOCKS) \
  extern "C" __global__ void __launch_bounds__(256, BLOCKS) name(const ExpertArgs a) { expertProduct<F, M, NT, ONE, GATED, SCALED>(a); }

// The kernels of a format: for one slot of each expert, and for 8 and 16 at a time.
#define EXPERTS(F, M, SCALED)                                       \
  EXPERT(expert_1, F, void, 1, true, false, SCALED, 2)              \
  EXPERT(expert_8, F, SINGLE(M<F, 1>), 1, false, false, SCALED, 2)  \
  EXPERT(expert_16, F, SINGLE(M<F, 2>), 2, false, false, SCALED, 2) \
  EXPERT(gated_1, F, void, 1, true, true, SCALED, 2)                \
  EXPERT(gated_8, F, SINGLE(M<F, 1>), 1, false, true, SCALED, 2)    \
  EXPERT(gated_16, F, SINGLE(M<F, 2>), 2, false, true, SCALED, 1)

// Those of a format times float32.
#define EXPERTS_OF_FLOATS(F)                                                      \
  EXPERT(expert_f32_1, F, SINGLE(Floats<F, 1, true>), 1, false, false, false, 1)  \
  EXPERT(gated_f32_1, F, SINGLE(Floats<F, 1, true>), 1, false, true, false, 1)    \
  EXPERT(expert_f32, F, SINGLE(Floats<F, 8, true>), 1, false, false, false, 1)    \
  EXPERT(gated_f32, F, SINGLE(Floats<F, 8, true>), 1, false, true, false, 1)
