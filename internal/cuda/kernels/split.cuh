// The product of a single row with a weight of few rows, such as a router's. Each segment of a tile
// of rows is a block of a cluster, so that many multiprocessors read the weight. The sums are those
// of linear.cuh, in the same order.
#pragma once
#include "cluster.cuh"
#include "linear.cuh"

#if __CUDA_ARCH__ >= 900
constexpr int maxSplitTiles = 128; // in a segment

// split computes segment blockX%8 of row tile blockX/8 of all products. A warp has every eighth
// tile of columns; the sums of the tiles are added in order.
template <class F> INLINE void split(const LinearArgs &a) {
  __shared__ float sums[maxSplitTiles][tileRows], part[segments][tileRows];
  const int lane = tidX() & 31, warp = tidX() >> 5, segment = blockX() % segments;
  const int from = a.colTiles * segment / segments, tiles = a.colTiles * (segment + 1) / segments - from;
  int unit = blockX() / segments;
  const Product &p = productOf(a, unit);
  const u8 *w = p.w + (s64(unit) * a.colTiles + from) * F::tileBytes;
  // every block of the cluster must have started before another writes to its shared memory
  arriveCluster();

  constexpr int depth = 4;
  F ring[depth];
  UNROLL for (int i = 0; i < depth; i++) {
    if (warp + 8 * i < tiles) loadTile(ring[i], w + s64(warp + 8 * i) * F::tileBytes, lane);
  }
  waitForPrevious();
  allowNext();
  const Floats<F, 1> m(a, 0, 1, lane);
  for (int first = warp; first < tiles; first += 8 * depth) {
    UNROLL for (int i = 0; i < depth; i++) {
      const int k = first + 8 * i;
      if (k >= tiles) break;
      float acc[1][4] = {};
      ring[i].prepare();
      m.multiply(acc, ring[i], from + k);
      if (lane % 4 == 0) sums[k][lane / 4] = acc[0][0], sums[k][lane / 4 + 8] = acc[0][2];
      if (k + 8 * depth < tiles) loadTile(ring[i], w + s64(k + 8 * depth) * F::tileBytes, lane);
    }
  }
  syncBlock();
  waitCluster();
  if (tidX() < tileRows) {
    float v = 0;
#pragma unroll 8
    for (int k = 0; k < tiles; k++) v = v + sums[k][tidX()];
    storeIn(0, &part[segment][tidX()], v);
  }
  arriveCluster();
  waitCluster();
  const int row = unit * tileRows + tidX();
  if (segment > 0 || tidX() >= tileRows || row >= p.rows || *a.count < 1) return;
  float sums8[segments];
  UNROLL for (int s = 0; s < segments; s++) sums8[s] = part[s][tidX()];
  float v = valueOf(matrixOf(p), a.divided, row, sumOfSegments(sums8)) * a.scale;
  if (a.residual) v = a.residual[row] + v;
  p.y[row] = v;
}

#define LINEAR_SPLIT(F) \
  extern "C" __global__ void __launch_bounds__(256, 1) linear_f32_split(const LinearArgs a) { split<F>(a); }
#else // without clusters, a block computes all segments
#define LINEAR_SPLIT(F) LINEAR(linear_f32_split, F, SINGLE(Floats<F, 1>), 1, false, false, 1)
#endif
