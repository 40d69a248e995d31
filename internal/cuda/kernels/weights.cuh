// What is done with weights beside multiplying: making tiles of a file's rows, and
// reading rows of a table of embeddings.
#pragma once
#include "linear.cuh"

struct PackArgs {
  const u8 *src; // rows of the file, rowBytes apart
  u8 *dst;       // tiles of these rows
  s64 rowBytes;
  s32 rows, cols; // of src; what is beyond becomes 0
  s32 colTiles;
};

template <class F> INLINE void packBlocks(const PackArgs &a, u8 *tile, int rowTile, int kt, int lane) {
  constexpr int perBlock = F::fileLen / 32; // blocks of 32 in one of the file
  auto block = [&](int row, int b) ALWAYS { return a.src + row * a.rowBytes + s64((kt * F::blocks + b) / perBlock) * F::fileBytes; };
  auto there = [&](int row, int b) ALWAYS { return row < a.rows && (kt * F::blocks + b) * 32 < a.cols; };
  F::put(tile, lane, [&](int b, int r, int j) ALWAYS -> u32 {
    const int row = tileRows * rowTile + lane / 4 + 8 * (r & 1);
    return there(row, b) ? F::fileCode(block(row, b), (b % perBlock) * 32 + columnOf(lane & 3, r) + j) : 0;
  });
  if (lane < tileRows) {
    const int row = tileRows * rowTile + lane;
    for (int b = 0; b < F::blocks; b += perBlock) {
      u8 zero[F::fileBytes] = {};
      F::fileScales(tile, there(row, b) ? block(row, b) : zero, lane, b);
    }
  }
}

template <int BYTES> INLINE void packNumbers(const PackArgs &a, u8 *tile, int rowTile, int kt, int tileK, int lane) {
  for (int i = lane; i < tileRows * tileK; i += 32) {
    const int r = i / tileK, c = i % tileK; // of the tile
    const int row = tileRows * rowTile + r, col = kt * tileK + c;
    // Four columns stand together, of a lane, a half of a block and a row.
    const int g = r & 7, t = c % 16 / 4, half = c % 32 / 16, b = c / 32, j = c % 4, upper = r / 8;
    const int owner = 4 * g + t;
    if constexpr (BYTES == 2) {
      // words: row g first two, row g+8 first two, row g second two, row g+8 second two
      u16 *to = reinterpret_cast<u16 *>(tile) + ((2 * b + half) * 32 + owner) * 8 + (j / 2 * 2 + upper) * 2 + j % 2;
      *to = row < a.rows && col < a.cols ? reinterpret_cast<const u16 *>(a.src + row * a.rowBytes)[col] : 0;
    } else {
      u32 *to = reinterpret_cast<u32 *>(tile) + ((2 * half + upper) * 32 + owner) * 4 + j;
      *to = row < a.rows && col < a.cols ? reinterpret_cast<const u32 *>(a.src + row * a.rowBytes)[col] : 0;
    }
  }
}

template <class F> INLINE void packTile(const PackArgs &a, u8 *tile, int rowTile, int kt, int lane) { packBlocks<F>(a, tile, rowTile, kt, lane); }
template <> METHOD void packTile<F16>(const PackArgs &a, u8 *tile, int rowTile, int kt, int lane) { packNumbers<2>(a, tile, rowTile, kt, F16::tileK, lane); }
template <> METHOD void packTile<BF16>(const PackArgs &a, u8 *tile, int rowTile, int kt, int lane) { packNumbers<2>(a, tile, rowTile, kt, BF16::tileK, lane); }
template <> METHOD void packTile<F32>(const PackArgs &a, u8 *tile, int rowTile, int kt, int lane) { packNumbers<4>(a, tile, rowTile, kt, F32::tileK, lane); }

// A warp makes a tile; grid (tiles of rows, tiles of columns / 4).
template <class F> INLINE void packTiles(const PackArgs &a) {
  const int kt = blockY() * 4 + tidX() / 32;
  if (kt >= a.colTiles) return;
  packTile<F>(a, a.dst + (s64(blockX()) * a.colTiles + kt) * F::tileBytes, blockX(), kt, tidX() & 31);
}

struct EmbedArgs {
  const u8 *w;        // tiles of the table
  const s32 *tokens;  // [T] ids, or positions
  const s32 *from;    // [T] the row of the step before whose sampled token this is, or -1; 0 for positions, like the next four
  const s32 *sampled; // [rows of the step before]
  s32 *ids;           // [T] the ids that were taken
  s32 *failed;        // [S] set to 0 where the row of the step before gave no token
  const s32 *sequence;
  const s32 *count;
  float *y; // [T, stride]
  s32 stride, cols, colTiles, pad;
};

// A warp reads a tile of one token's row; grid (tiles of columns / 4, T).
template <class F> INLINE void embedRows(const EmbedArgs &a) {
  waitForPrevious();
  allowNext();
  const int token = blockY(), kt = blockX() * 4 + tidX() / 32, lane = tidX() & 31;
  if (token >= *a.count || kt >= a.colTiles) return;
  int id = a.tokens[token];
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
  w.load(a.w + (s64(id / tileRows) * a.colTiles + kt) * F::tileBytes, lane);
  w.prepare();
  const int r = id % tileRows;
  UNROLL for (int b = 0; b < F::blocks; b++) {
    float v[4][4];
    weightsOf(v, w, b);
    if (lane / 4 != r % 8) continue;
    UNROLL for (int half = 0; half < 2; half++) {
      UNROLL for (int j = 0; j < 4; j++) {
        const int col = kt * F::tileK + 32 * b + 16 * half + 4 * (lane & 3) + j;
        const float x = r < 8 ? v[2 * half][j] : v[2 * half + 1][j];
        if (col < a.cols) a.y[s64(token) * a.stride + col] = x;
      }
    }
  }
}

#define WEIGHTS(F)                                                                             \
  extern "C" __global__ void __launch_bounds__(128) pack(const PackArgs a) { packTiles<F>(a); } \
  extern "C" __global__ void __launch_bounds__(128) embed(const EmbedArgs a) { embedRows<F>(a); }
