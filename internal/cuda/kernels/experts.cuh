// Products of a mixture of experts: each expert has its own matrix, which multiplies the rows of
// the tokens that chose it.
//
// A slot is a token together with one of its experts. Slots are ordered by expert, and for each
// expert by token. In a step of several tokens the slots of each expert begin at a multiple of 8;
// the slots in between are unused. The arithmetic is that of linear.cuh: the result of an expert
// for a row depends neither on the other rows of the step nor on the number of rows that a kernel
// takes at a time.
#pragma once
#include "linear.cuh"
#include "rotation.cuh"

constexpr int maxExperts = 2048; // of a mixture

// An Active is an expert that some token chose, with its slots.
struct alignas(16) Active {
  s32 expert;
  s32 begin, end; // of its slots
  s32 place;      // of its matrices: the expert's number, unless keep sets it
};

// A SlotRange is some slots of an active expert, at most as many as a kernel takes at a time.
struct alignas(16) SlotRange {
  s32 active;
  s32 begin, end;
  s32 pad;
};

// The matrices of experts are in places of one size.
struct ExpertProduct {
  const u8 *w;         // tiles in place 0
  const float *powers; // see Product; those of place 0, apart bytes before place 1's
  const float *bias;   // [experts, biasApart], or 0: none
  s64 apart;           // bytes from a place to the next
  s32 biasApart;       // elements
  s32 pad;
};

struct ExpertArgs {
  ExpertProduct p[2]; // gated: the gate and up matrices; else only the first
  s32 rows;           // of an expert's matrix
  s32 units;          // tiles of rows; kernels of gates count their units themselves
  s32 colTiles;       // tiles of a row
  s32 cols, inStride; // of the input, elements
  s32 stride;         // elements
  const float *x;     // the input: a kind of kernel reads one of these
  const u16 *h16;
  const s32 *tokens;    // [slots] row of the input for each slot, or 0: the slot's own
  const Active *active; // [*count]
  const s32 *count;     // [3] active experts, slots, and parts
  const SlotRange *parts;    // [count[2]]
  float *y;             // [slots, stride]; gated: 0
  Forms out;            // gated: [slots, rows] the unit's values
  Unit unit;
  float divided; // the divisor of the 16-bit input
};

// expertProduct is the work of a block: units blockX, blockX+gridX and so on of active expert
// blockY, for all of its slots, 8*NT at a time, or one at a time if ONE is set. The previous kernel
// chooses the expert, so nothing is loaded early.
template <class F, class M, int NT, bool ONE, bool GATED, int AHEAD> INLINE void expertProduct(const ExpertArgs &a) {
  constexpr int each = gateTiles<F, ONE>;
  waitForPrevious();
  allowNext();
  if (blockY() >= *a.count) return;
  const Active e = a.active[blockY()];

  const int lane = tidX() & 31, warp = tidX() >> 5;
  const int from = a.colTiles * warp / segments, tiles = a.colTiles * (warp + 1) / segments - from;
  const s64 rowBytes = s64(a.colTiles) * F::tileBytes;
  auto matrix = [&](int i) ALWAYS { return a.p[i].w + e.place * a.p[i].apart; };
  auto rest = [&](int i) ALWAYS {
    const ExpertProduct &p = a.p[i];
    const auto powers = reinterpret_cast<const u8 *>(p.powers);
    return Matrix{powers ? reinterpret_cast<const float *>(powers + e.place * p.apart) : nullptr, p.bias ? p.bias + s64(e.expert) * p.biasApart : nullptr};
  };
  const u8 *w = matrix(0), *up = GATED ? matrix(1) : nullptr;
  const Matrix lacks = rest(0);
  const Gated gated{w, up, lacks, GATED ? rest(1) : Matrix{}, a.divided, a.rows, (a.rows + tileRows - 1) / tileRows, a.unit, a.out};
  auto rowOf = [&](int unit, int r) ALWAYS -> const u8 * {
    if constexpr (GATED) return gatedRow<each>(gated, unit, r, rowBytes) + s64(from) * F::tileBytes;
    return w + unit * rowBytes + s64(from) * F::tileBytes;
  };
  __shared__ Sums<NT, ONE, GATED ? 2 * each : 1> sums;

  int turn = 0;
  _Pragma("unroll 1") for (int first = e.begin; first < e.end; first += sums.columns) {
    auto begin = [&](const auto &work) ALWAYS {
      if constexpr (ONE) {
        extern __shared__ u16 row[]; // [colTiles*tileK]
        syncWarp();
        bringRow(row, a.h16, a.tokens ? a.tokens[first] : first, a.inStride, from * F::tileK, (from + tiles) * F::tileK, lane);
        work(WordsOne<F>(row, lane));
      } else {
        work(M(a, first, e.end, lane, a.tokens));
      }
    };
    auto store = [&](int unit, const auto &sum) ALWAYS {
      if constexpr (GATED) {
        storeGated<each>(gated, true, unit, first, e.end, sums.columns, lane, warp, sum);
      } else {
        storePlain<tileRows>(a.rows, unit, first, e.end, sums.columns, sum, [&](int row, int slot, float v) ALWAYS {
          a.y[s64(slot) * a.stride + row] = valueOf(lacks, a.divided, row, v);
        });
      }
    };
    pipeline<F, AHEAD, 1>(sums, turn, GATED ? (gated.tiles + each - 1) / each : a.units, GATED ? 2 * each : 1, from, tiles, lane, warp, rowOf, begin, store);
  }
}

// A product by head of a single row of float32: head blockY multiplies its columns of the row by its
// matrix. The columns that follow them are kept, behind the results of the head.
struct HeadArgs {
  ExpertProduct p;     // the matrix of head 0
  s32 rows;            // of a head's matrix, a multiple of 16
  s32 units;           // tiles of rows
  s32 colTiles;        // tiles of a row
  s32 in, kept;        // columns of a head; the latter a multiple of 16
  float divided;       // the divisor of the rounded row
  const float *x;      // [heads, in + kept]
  const s32 *count;    // rows in this step, at most 1
  Forms out;           // [1, heads * (rows + kept)]
  Rotation by;         // of the kept columns of each head
};

template <class F> INLINE void headProduct(const HeadArgs &a) {
  const int lane = tidX() & 31, warp = tidX() >> 5, head = blockY();
  const int from = a.colTiles * warp / segments, tiles = a.colTiles * (warp + 1) / segments - from;
  const s64 rowBytes = s64(a.colTiles) * F::tileBytes;
  const u8 *w = a.p.w + head * a.p.apart;
  const auto powers = reinterpret_cast<const u8 *>(a.p.powers);
  const Matrix matrix{powers ? reinterpret_cast<const float *>(powers + head * a.p.apart) : nullptr, nullptr};
  const float *x = a.x + s64(head) * (a.in + a.kept);
  const int first = head * (a.rows + a.kept) / tileRows; // block of 16 columns of the output
  auto rowOf = [&](int unit, int) ALWAYS -> const u8 * { return w + unit * rowBytes + s64(from) * F::tileBytes; };
  __shared__ Sums<1, true, 1> sums;
  int turn = 0;
  auto begin = [&](const auto &work) ALWAYS {
    extern __shared__ u16 row[]; // [colTiles*tileK]
    waitForPrevious();
    allowNext();
    if (*a.count == 0) return;
    roundRow<F>(row, x, a.in, divide(1.0f, a.divided), from * F::tileK, (from + tiles) * F::tileK, lane);
    work(WordsOne<F>(row, lane));
  };
  auto store = [&](int unit, const auto &sum) ALWAYS {
    if (warp == 0) storeBlock<tileRows>(a.out, 0, first + unit, lane, valueOf(matrix, a.divided, tileRows * unit + lane % tileRows, sum(lane % tileRows, 0)));
    if (unit > 0) return;
    for (int i = warp; i < a.kept / tileRows; i += threadsX() / 32) {
      storeBlock<tileRows>(a.out, 0, first + a.units + i, lane, rotatedAt(a.by, 0, x + a.in, tileRows * i + lane % tileRows));
    }
  };
  pipeline<F, aheadOfOne<F>, 1>(sums, turn, a.units, 1, from, tiles, lane, warp, rowOf, begin, store);
}

#define EXPERT_AHEAD(name, F, M, NT, ONE, GATED, AHEAD, BLOCKS) \
  extern "C" __global__ void __launch_bounds__(256, BLOCKS) name(const ExpertArgs a) { expertProduct<F, M, NT, ONE, GATED, AHEAD>(a); }
#define EXPERT(name, F, M, NT, ONE, GATED, BLOCKS) EXPERT_AHEAD(name, F, SINGLE(M), NT, ONE, GATED, 2, BLOCKS)

// The kernels of a format: for one slot of each expert at a time, and, for formats without kernels
// of wide.cuh, for 8 and 16.
#define EXPERTS(F)                             \
  EXPERT_AHEAD(expert_1, F, void, 1, true, false, aheadOfOne<F>, 2) \
  EXPERT_AHEAD(gated_1, F, void, 1, true, true, aheadOfOne<F>, 2)  \
  extern "C" __global__ void __launch_bounds__(256, 2) head_1(const HeadArgs a) { headProduct<F>(a); }
#define EXPERTS_OF_SEVERAL(F)                                   \
  EXPERT(expert_8, F, SINGLE(Words<F, 1>), 1, false, false, 2)  \
  EXPERT(expert_16, F, SINGLE(Words<F, 2>), 2, false, false, 2) \
  EXPERT(gated_8, F, SINGLE(Words<F, 1>), 1, false, true, 2)    \
  EXPERT(gated_16, F, SINGLE(Words<F, 2>), 2, false, true, 1)

// The kernels of a format times float32.
#define EXPERTS_OF_FLOATS(F)                                              \
  EXPERT(expert_f32_1, F, SINGLE(Floats<F, 1, true>), 1, false, false, 1) \
  EXPERT(gated_f32_1, F, SINGLE(Floats<F, 1, true>), 1, false, true, 1)   \
  EXPERT(expert_f32, F, SINGLE(Floats<F, 8, true>), 1, false, false, 1)   \
  EXPERT(gated_f32, F, SINGLE(Floats<F, 8, true>), 1, false, true, 1)
