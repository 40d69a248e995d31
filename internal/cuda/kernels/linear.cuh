// Products of weights in tiles with rows of activations. Each format has one arithmetic for any
// number of rows: an output is always the same sum in the same order.
//
//   h16  weights times 16-bit activations, in bfloat16 for BF16 weights, else in float16: matrix
//        instructions of 16 columns, accumulated in float32. Quantized weights become float16
//        operands, see formats.cuh.
//   f32  any weights times float32: each lane sums its own columns, then the four lanes of a row
//        are added.
#pragma once
#include "pipeline.cuh"
#include "row.cuh"
#include "staged.cuh"

// productOf returns the product that a unit of ROWS rows belongs to, and sets unit to its number in
// the product.
template <int ROWS = tileRows> INLINE const Product &productOf(const LinearArgs &a, int &unit) {
  int which = 0;
  for (; which < mostProducts - 1 && unit >= (a.p[which].rows + ROWS - 1) / ROWS; which++) unit -= (a.p[which].rows + ROWS - 1) / ROWS;
  return a.p[which];
}

INLINE Matrix matrixOf(const Product &p) { return Matrix{p.powers, p.bias}; }

// linear runs a block. M multiplies, T tiles of rows at a time. With ONE, the input is a single row,
// which the block may normalize.
template <class F, class M, int NT, bool ONE, bool GATED, int AHEAD, int T> INLINE void linear(const LinearArgs &a, const Share share = {}) {
  constexpr int unitRows = T * tileRows, each = gateTiles<F, ONE>;
  const int lane = tidX() & 31, warp = tidX() >> 5;
  const int from = a.colTiles * warp / a.segments, tiles = a.colTiles * (warp + 1) / a.segments - from;
  const s64 rowBytes = s64(a.colTiles) * F::tileBytes;
  const Gated gated{a.p[0].w, a.p[1].w, matrixOf(a.p[0]), matrixOf(a.p[1]), a.divided, a.p[0].rows, (a.p[0].rows + tileRows - 1) / tileRows, a.unit, a.out};

  auto rowOf = [&](int unit, int r) ALWAYS -> const u8 * {
    if constexpr (GATED) return gatedRow<each>(gated, unit, r, rowBytes) + s64(from) * F::tileBytes;
    const Product &p = productOf<unitRows>(a, unit);
    const int tile = T == 1 ? unit : minOf(T * unit + r, (p.rows + tileRows - 1) / tileRows - 1);
    return p.w + tile * rowBytes + s64(from) * F::tileBytes;
  };
  const int R = GATED ? (a.p[1].w ? 2 * each : each) : T;
  const s32 units = (gated.tiles + each - 1) / each;
  const s32 &last = GATED ? units : a.units;
  int count, first, turn = 0;
  __shared__ Sums<NT, ONE, GATED ? 2 * each : T> sums;
  auto begin = [&](const auto &work) ALWAYS {
    if (ONE || !a.late) waitForPrevious();
    allowNext();
    count = *a.count, first = blockY() * 8 * NT;
    if (first >= count) return;
    if constexpr (ONE) {
      extern __shared__ u16 row[]; // [colTiles*tileK]
      if (a.norm) normalizeRow<F>(a, row, from * F::tileK, (from + tiles) * F::tileK, warp, lane);
      else bringRow(row, a.h16, 0, a.inStride, from * F::tileK, (from + tiles) * F::tileK, lane);
      work(WordsOne<F>(row, lane));
    } else if constexpr (sameFormat<M, Staged<F>>()) {
      alignas(128) extern __shared__ u8 ring[];
      work(M(a, ring, first, count, from, tiles, tiles * (R / T) * ((last - int(blockX()) + int(gridX()) - 1) / int(gridX())), warp, lane));
    } else {
      work(M(a, first, count, lane));
    }
  };
  auto store = [&](int unit, const auto &sum) ALWAYS {
    if constexpr (GATED) {
      storeGated<each>(gated, a.p[1].w, unit, first, count, sums.columns, lane, warp, sum);
    } else {
      const Product &p = productOf<unitRows>(a, unit);
      storePlain<unitRows>(p.rows, unit, first, count, sums.columns, sum, [&](int row, int token, float v) ALWAYS {
        v = valueOf(matrixOf(p), a.divided, row, v) * a.scale;
        if (a.residual) v = a.residual[s64(token) * a.residualStride + row] + v;
        p.y[s64(token) * p.stride + row] = v;
      });
    }
  };
  pipeline<F, AHEAD, T>(sums, turn, last, R, from, tiles, lane, warp, rowOf, begin, store, share);
  if (!ONE && a.late) waitForPrevious();
}

#define LINEAR_AHEAD(name, F, M, NT, ONE, GATED, AHEAD, T, BLOCKS) \
  extern "C" __global__ void __launch_bounds__(256, BLOCKS) name(const LinearArgs a) { linear<F, M, NT, ONE, GATED, AHEAD, T>(a); }
#define LINEAR(name, F, M, NT, ONE, GATED, BLOCKS) LINEAR_AHEAD(name, F, SINGLE(M), NT, ONE, GATED, 2, 1, BLOCKS)
#define LINEAR_OF_ONE(name, F, GATED) LINEAR_AHEAD(name, F, void, 1, true, GATED, aheadOfOne<F>, 1, 2)
#define LINEAR_OF_EIGHT(name, F, GATED) LINEAR_AHEAD(name, F, SINGLE(OfEight<F>), 1, false, GATED, eightAhead, eightTogether, 2)

// The kernels of a format: for one row of the input and for 8, and for 16 and 32 where wide.cuh has
// none.
#define LINEARS(F)                             \
  LINEAR_OF_ONE(linear_1, F, false)  \
  LINEAR_OF_EIGHT(linear_8, F, false) \
  LINEAR_OF_ONE(gated_1, F, true)    \
  LINEAR_OF_EIGHT(gated_8, F, true)
#define LINEARS_OF_SEVERAL(F)                                  \
  LINEAR(linear_16, F, SINGLE(Words<F, 2>), 2, false, false, 2) \
  LINEAR(linear_32, F, SINGLE(Words<F, 4>), 4, false, false, 1) \
  LINEAR(gated_16, F, SINGLE(Words<F, 2>), 2, false, true, 1)
#define SINGLE(...) __VA_ARGS__

// The kernels of any format times float32, for one row of the input and for 8. Formats with small
// tiles are those of weights that few blocks read, such as a router's; linear_floats.cuh has the
// kernels of F32 for several rows.
#define LINEAR_OF_A_ROW(F) LINEAR_AHEAD(linear_f32_1, F, SINGLE(Floats<F, 1>), 1, false, false, F::tileK == 32 ? 8 : 2, 1, 1)
#define LINEAR_OF_FLOATS(F) \
  LINEAR_OF_A_ROW(F)        \
  LINEAR(linear_f32, F, SINGLE(Floats<F, 8>), 1, false, false, 1)

// Products of one input in two formats, for one row of the input: the first blocks have those of the
// first format.
struct MixedArgs {
  LinearArgs first, second;
  s32 blocks;
};

#define LINEAR_MIXED(name, F, G)                                                                          \
  extern "C" __global__ void __launch_bounds__(256, 2) name(const MixedArgs a) {                          \
    if (blockX() < a.blocks) linear<F, void, 1, true, false, aheadOfOne<F>, 1>(a.first, {0, a.blocks});   \
    else linear<G, void, 1, true, false, aheadOfOne<G>, 1>(a.second, {a.blocks, gridX() - a.blocks});     \
  }
