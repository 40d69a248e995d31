// Operations on weights other than multiplication: packing a file's rows into tiles, and reading
// rows of an embedding table.
#pragma once
#include "linear.cuh"

struct PackArgs {
  const u8 *src; // rows of the file, rowBytes apart
  u8 *dst;       // tiles of these rows
  float *powers; // [rows, up to whole tiles] the rows' divisors, if the format has them
  s64 rowBytes;
  s32 rows, cols; // to pack; the padding of the tiles becomes 0
  s32 colTiles;
  s32 first; // column of src to begin with, a multiple of the columns of a tile
};

// divisorOfRow computes the divisor of a row of src, all of its columns, with one warp.
template <class F> INLINE auto divisorOfRow(const PackArgs &a, int row, int lane) {
  Reach all{0, 0};
  for (int b = lane; row < a.rows && b < a.rowBytes / F::fileBytes; b += 32) {
    const Reach v = F::reach(a.src + row * a.rowBytes + s64(b) * F::fileBytes);
    all = Reach{maxOf(all.s, v.s), maxOf(all.m, v.m)};
  }
  return divisorOf<F>(Reach{warpMax(all.s), warpMax(all.m)});
}

template <class F> INLINE void packBlocks(const PackArgs &a, u8 *tile, int rowTile, int kt, int lane) {
  constexpr int perBlock = F::fileLen / 32; // blocks of 32 in a block of the file
  auto block = [&](int row, int b) ALWAYS { return a.src + row * a.rowBytes + s64(a.first / F::fileLen + (kt * F::blocks + b) / perBlock) * F::fileBytes; };
  auto there = [&](int row, int b) ALWAYS { return row < a.rows && (kt * F::blocks + b) * 32 < a.cols; };
  F::put(tile, lane, [&](int step, int r, int e) ALWAYS -> u32 {
    const int row = tileRows * rowTile + lane / 4 + 8 * (r & 1), b = step / 2;
    return there(row, b) ? F::fileCode(block(row, b), (b % perBlock) * 32 + columnOf(lane & 3, step & 1, r, e)) : 0;
  });
  decltype(divisorOf<F>(Reach{})) divisor = 0;
  for (int r = 0; r < tileRows; r++) {
    const auto d = divisorOfRow<F>(a, tileRows * rowTile + r, lane);
    if (lane == r) divisor = d;
  }
  if (lane < tileRows) {
    const int row = tileRows * rowTile + lane;
    if (kt == 0) a.powers[row] = numberOf(divisor);
    for (int b = 0; b < F::blocks; b += perBlock) {
      alignas(4) u8 zero[F::fileBytes] = {};
      putScales<F>(tile, there(row, b) ? block(row, b) : zero, lane, b, divisor);
    }
  }
}

template <int BYTES> INLINE void packNumbers(const PackArgs &a, u8 *tile, int rowTile, int kt, int tileK, int lane) {
  for (int i = lane; i < tileRows * tileK; i += 32) {
    // a step has four words for each of 32 lanes
    const int word = i % 4, owner = i / 4 % 32, e = i / 128 % 2, step = i / 256;
    const int row = tileRows * rowTile + owner / 4 + 8 * (word & 1), col = kt * tileK + columnOf(owner & 3, step, word, e);
    const bool there = row < a.rows && col < a.cols;
    const u8 *from = a.src + row * a.rowBytes + s64(a.first + col) * BYTES;
    const int words = (step * 32 + owner) * 4 + word; // index of a word of two 16-bit numbers
    if constexpr (BYTES == 2) reinterpret_cast<u16 *>(tile)[2 * words + e] = there ? *reinterpret_cast<const u16 *>(from) : 0;
    else reinterpret_cast<u32 *>(tile)[words + (step + e) * 128] = there ? *reinterpret_cast<const u32 *>(from) : 0;
  }
}

template <class F> INLINE void packTile(const PackArgs &a, u8 *tile, int rowTile, int kt, int lane) { packBlocks<F>(a, tile, rowTile, kt, lane); }
template <> METHOD void packTile<F16>(const PackArgs &a, u8 *tile, int rowTile, int kt, int lane) { packNumbers<2>(a, tile, rowTile, kt, F16::tileK, lane); }
template <> METHOD void packTile<BF16>(const PackArgs &a, u8 *tile, int rowTile, int kt, int lane) { packNumbers<2>(a, tile, rowTile, kt, BF16::tileK, lane); }
template <> METHOD void packTile<F32>(const PackArgs &a, u8 *tile, int rowTile, int kt, int lane) { packNumbers<4>(a, tile, rowTile, kt, F32::tileK, lane); }

// A warp packs a tile. Grid (tiles of rows, tiles of columns / 4).
template <class F> INLINE void packTiles(const PackArgs &a) {
  const int kt = blockY() * 4 + tidX() / 32;
  if (kt >= a.colTiles) return;
  packTile<F>(a, a.dst + (s64(blockX()) * a.colTiles + kt) * F::tileBytes, blockX(), kt, tidX() & 31);
}

struct EmbedArgs {
  const u8 *w;         // tiles of the table
  const float *powers; // see Product
  const s32 *tokens;  // [T] ids, or positions
  // [T] the row of the previous step whose sampled token this is, or -1; 0 for positions, like the
  // next four
  const s32 *from;
  const s32 *sampled; // [rows of the previous step]
  s32 *ids;           // [T] the ids that were read
  s32 *failed;        // [S] set to 0 if the row of the previous step has no token
  const s32 *sequence;
  const s32 *count;
  float *y; // [T, stride]
  s32 stride, cols, colTiles, pad;
};

// embedPart reads columns first to first+cols-1 of a table. A table of fewer rows than the
// vocabulary gives row 0 for the tokens that it lacks.
struct EmbedPartArgs {
  EmbedArgs embed;
  s32 first, rows;
};

// A warp reads a tile of one token's row. Grid (tiles of columns / 4, T).
template <class F> INLINE void embedRows(const EmbedArgs &a, int begin, int rows) {
  waitForPrevious();
  allowNext();
  const int token = blockY(), kt = begin / F::tileK + blockX() * 4 + tidX() / 32, lane = tidX() & 31;
  if (token >= *a.count || kt >= a.colTiles) return;
  int id = a.tokens[token];
  if (rows > 0 && id >= rows) id = 0;
  if (a.from) {
    const int from = a.from[token];
    if (from >= 0) id = a.sampled[from];
    if (id < 0) {
      id = 0;
      if (kt == 0 && lane == 0) a.failed[a.sequence[token]] = 0;
    }
    if (kt == 0 && lane == 0) a.ids[token] = id;
  }
  F w;
  loadTile(w, a.w + (s64(id / tileRows) * a.colTiles + kt) * F::tileBytes, lane);
  w.prepare();
  const int r = id % tileRows;
  UNROLL for (int step = 0; step < F::tileK / 16; step++) {
    float v[4][2];
    weightsOf(v, w, step);
    if (lane / 4 != r % 8) continue;
    UNROLL for (int second = 0; second < 2; second++) {
      UNROLL for (int e = 0; e < 2; e++) {
        const int col = kt * F::tileK + columnOf(lane & 3, step, 2 * second, e) - begin;
        const float x = r < 8 ? v[2 * second][e] : v[2 * second + 1][e];
        if (col >= 0 && col < a.cols) a.y[s64(token) * a.stride + col] = a.powers ? x * a.powers[id] : x;
      }
    }
  }
}

#define WEIGHTS(F)                                                                             \
  extern "C" __global__ void __launch_bounds__(128) pack(const PackArgs a) { packTiles<F>(a); } \
  extern "C" __global__ void __launch_bounds__(128) embed(const EmbedArgs a) { embedRows<F>(a, 0, 0); } \
  extern "C" __global__ void __launch_bounds__(128) embedPart(const EmbedPartArgs a) { embedRows<F>(a.embed, a.first, a.rows); }
