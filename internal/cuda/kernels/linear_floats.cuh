// Products of float32 weights with several rows of float32, the tokens. Blocks copy tiles of both
// to shared memory, and each thread multiplies several rows of both. The sums are those of Floats,
// in the same order: of the columns of a tile that are in one lane of its layout, of the four lanes
// of a row, of the tiles of a segment, and of the segments.
#pragma once
#include "linear.cuh"
#include "matrix.cuh"

// A FloatBlock is a block of 256 threads. GROUPS groups of warps have equal numbers of segments. A
// thread has PAIRS pairs of weight rows, one pair of each tile, and TOKENS tokens, an even number.
// DEPTH tiles of each group are in shared memory. Lanes that read the same chunk of 16 bytes are
// neighbours, so that two quarters of a warp read at a time.
template <int GROUPS, int PAIRS, int TOKENS, int DEPTH> struct FloatBlock {
  static constexpr int warps = 8 / GROUPS, threads = 32 * warps; // of a group
  static constexpr int rows = PAIRS * tileRows, tokens = 4 * TOKENS * warps;
  static constexpr int weightChunks = PAIRS * F32::tileBytes / 16, chunks = weightChunks + tokens * F32::tileK / 4; // of a tile
  static constexpr int share = segments / GROUPS, levels = share > 2 ? 2 : 1; // of segments that wait for others
  static_assert(share == 1 || share == 2 || share == 4);

  const LinearArgs &a;
  float4 *stages;                // [DEPTH][chunks] of the group
  float *sums;                   // [levels][tokens][rows] of the group
  int group, thread, warp, g, b; // the thread in its group, g and b in its warp
  int first, count;              // tokens
  const u8 *w[PAIRS];            // the tiles of rows
  float acc[2 * PAIRS][TOKENS];  // rows g and g+8 of each tile

  METHOD FloatBlock(const LinearArgs &a, float4 *shared)
      : a(a), group(tidX() / threads), thread(tidX() % threads), warp(thread / 32), g(tidX() / 2 % 8), b(tidX() % 2 + tidX() % 32 / 16 * 2),
        first(blockY() * tokens), count(0) {
    stages = shared + group * DEPTH * chunks;
    sums = reinterpret_cast<float *>(shared + GROUPS * DEPTH * chunks) + group * levels * tokens * rows;
    UNROLL for (int p = 0; p < PAIRS; p++) {
      int unit = minOf(blockX() * PAIRS + p, a.units - 1);
      const Product &of = productOf(a, unit);
      w[p] = of.w + s64(unit) * a.colTiles * F32::tileBytes;
    }
    clear();
  }
  METHOD void clear() {
    UNROLL for (int r = 0; r < 2 * PAIRS; r++) {
      UNROLL for (int n = 0; n < TOKENS; n++) acc[r][n] = 0;
    }
  }

  // copyWeights copies tile kt of the weights. The chunks of lane 4g+t of each 32 go to 8t+(g^2t),
  // so that neither the copies nor reads of one t and all g have bank conflicts.
  METHOD void copyWeights(float4 *stage, int kt) const {
    const int t = thread % 4, to = thread / 32 * 32 + 8 * t + (thread % 32 / 4 ^ 2 * t);
    UNROLL for (int i = 0; i < weightChunks; i += threads) {
      copyChunk(sharedAt(stage + i + to), w[i / 128] + s64(kt) * F32::tileBytes + (i % 128 + thread) * 16, true);
    }
  }

  // copyTokens copies columns of tile kt. Columns 2t, 2t+1, 2t+8 and 2t+9 of step s become a chunk;
  // chunk u = 2t+s of a token goes to place token^u of the tokens' chunks u. Tokens from count on
  // repeat the last one. Columns from cols on repeat the last one, too; their weights are 0.
  METHOD void copyTokens(float4 *stage, int kt) const {
    const int pair = thread % 16, u = pair % 4 * 2 + pair / 8, k = kt * F32::tileK + 2 * pair;
    const auto each = [&](const auto &copy) ALWAYS {
      UNROLL for (int i = 0; i < tokens; i += threads / 16) {
        const int token = i + thread / 16;
        copy(reinterpret_cast<float *>(stage + weightChunks + u * tokens + (token ^ u)) + pair / 4 % 2 * 2,
             a.x + s64(minOf(first + token, count - 1)) * a.inStride);
      }
    };
    if ((kt + 1) * F32::tileK <= a.cols) {
      each([&](float *to, const float *row) ALWAYS { copyHalf(sharedAt(to), row + k); });
    } else {
      each([&](float *to, const float *row) ALWAYS { to[0] = row[minOf(k, a.cols - 1)], to[1] = row[minOf(k + 1, a.cols - 1)]; });
    }
  }

  // multiply adds the products of a tile.
  METHOD void multiply(const float4 *stage) {
    const float4 *x = stage + weightChunks + 4 * TOKENS * warp;
    float sum[2][2 * PAIRS][TOKENS]; // of the first two lanes and of the others
    UNROLL for (int t = 0; t < 4; t++) {
      float own[2 * PAIRS][TOKENS] = {};
      UNROLL for (int step = 0; step < 2; step++) {
        const int u = 2 * t + step;
        float4 v[PAIRS][2], y[TOKENS];
        UNROLL for (int p = 0; p < PAIRS; p++) {
          UNROLL for (int e = 0; e < 2; e++) v[p][e] = stage[128 * p + 32 * (2 * step + e) + 8 * t + (g ^ 2 * t)];
        }
        UNROLL for (int n = 0; n < TOKENS; n++) y[n] = x[u * tokens + 4 * (n ^ u / 4) + (b ^ u % 4)];
        UNROLL for (int i = 0; i < 4; i++) {
          UNROLL for (int r = 0; r < 2 * PAIRS; r++) {
            UNROLL for (int n = 0; n < TOKENS; n++) own[r][n] = fma(v[r / 2][i % 2][i / 2 * 2 + r % 2], y[n][i], own[r][n]);
          }
        }
      }
      UNROLL for (int r = 0; r < 2 * PAIRS; r++) {
        UNROLL for (int n = 0; n < TOKENS; n++) sum[t / 2][r][n] = t % 2 ? sum[t / 2][r][n] + own[r][n] : own[r][n];
      }
    }
    UNROLL for (int r = 0; r < 2 * PAIRS; r++) {
      UNROLL for (int n = 0; n < TOKENS; n++) acc[r][n] = acc[r][n] + (sum[0][r][n] + sum[1][r][n]);
    }
  }

  // sumAt returns the place of the sum of a token and a row.
  METHOD float &sumAt(int level, int token, int row) const { return sums[(level * tokens + token) * rows + row]; }

  // close ends a segment of the group: its sum is added to those that waited for it. The sum of all
  // is at level 0.
  METHOD void close(int segment) {
    UNROLL for (int r = 0; r < 2 * PAIRS; r++) {
      UNROLL for (int n = 0; n < TOKENS; n++) {
        const int token = 4 * (TOKENS * warp + n) + b, row = r / 2 * tileRows + r % 2 * 8 + g;
        float v = acc[r][n];
        if (segment & 1) v = sumAt(segment / 2 % levels, token, row) + v;
        if (segment == 3) v = sumAt(0, token, row) + v;
        sumAt(segment == 2 ? 1 : 0, token, row) = v;
      }
    }
    clear();
  }

  METHOD void sync() const {
    if constexpr (warps == 1) syncWarp();
    else syncBlock();
  }

  // run runs the block. While a tile is multiplied, the next DEPTH-1 are copied. The first copies
  // of weights start before the previous kernel has ended.
  METHOD void run() {
    const auto begin = [&](int segment) ALWAYS { return a.colTiles * (group * share + segment) / segments; };
    const int from = begin(0), end = begin(share);
    const int steps = warps == 1 ? end - from : (a.colTiles + GROUPS - 1) / GROUPS; // the most of a group
    UNROLL for (int i = 0; i < DEPTH - 1; i++) {
      if (from + i < end) copyWeights(stages + i * chunks, from + i);
    }
    waitForPrevious();
    allowNext();
    count = *a.count;
    if (first >= count) {
      waitCopies<0>();
      return;
    }
    UNROLL for (int i = 0; i < DEPTH - 1; i++) {
      if (from + i < end) copyTokens(stages + i * chunks, from + i);
      endCopies();
    }
    int at = 0, to = DEPTH - 1; // stages of this tile and of the one to copy
    _Pragma("unroll 1") for (int i = 0, segment = 0;; i++) {
      _Pragma("unroll 1") for (; segment < share && from + i >= begin(segment + 1); segment++) close(segment);
      if (i == steps) break;
      waitCopies<DEPTH - 2>();
      sync();
      if (const int kt = from + i + DEPTH - 1; kt < end) {
        copyWeights(stages + to * chunks, kt);
        copyTokens(stages + to * chunks, kt);
      }
      endCopies();
      if (from + i < end) multiply(stages + at * chunks);
      at = at + 1 == DEPTH ? 0 : at + 1, to = to + 1 == DEPTH ? 0 : to + 1;
    }
    syncBlock();
    store();
  }

  // store adds the sums of the groups and writes them. A thread has a row.
  METHOD void store() const {
    static_assert(256 % rows == 0);
    const int of = tidX() % rows;
    int unit = blockX() * PAIRS + of / tileRows;
    if (unit >= a.units) return;
    const Product &p = productOf(a, unit);
    const int row = unit * tileRows + of % tileRows;
    if (row >= p.rows) return;
    const float *all = sums - group * levels * tokens * rows;
    for (int i = tidX() / rows; i < tokens && first + i < count; i += 256 / rows) {
      const s64 token = first + i;
      float v[GROUPS];
      UNROLL for (int s = 0; s < GROUPS; s++) v[s] = all[(s * levels * tokens + i) * rows + of];
      UNROLL for (int n = GROUPS; n > 1; n /= 2) {
        UNROLL for (int s = 0; s < n / 2; s++) v[s] = v[2 * s] + v[2 * s + 1];
      }
      float y = valueOf(matrixOf(p), a.divided, row, v[0]) * a.scale;
      if (a.residual) y = a.residual[token * a.residualStride + row] + y;
      p.y[token * p.stride + row] = y;
    }
  }
};

#define LINEAR_FLOATS(name, GROUPS, PAIRS, TOKENS, DEPTH, BLOCKS)                      \
  extern "C" __global__ void __launch_bounds__(256, BLOCKS) name(const LinearArgs a) { \
    extern __shared__ float4 stages[];                                                 \
    FloatBlock<GROUPS, PAIRS, TOKENS, DEPTH>(a, stages).run();                         \
  }

// The kernels by the number of tokens of a block, which has 16, 32 and 64 rows of weights. Grid
// (blocks of rows, blocks of tokens), shared memory as in lower/linearfloats.go.
#define LINEARS_OF_FLOATS                     \
  LINEAR_FLOATS(linear_f32_8, 8, 1, 2, 3, 2)  \
  LINEAR_FLOATS(linear_f32_32, 8, 2, 8, 2, 1) \
  LINEAR_FLOATS(linear_f32_64, 2, 4, 4, 2, 1)
