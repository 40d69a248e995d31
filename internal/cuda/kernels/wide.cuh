// Products of many rows of the input, on Hopper.
//
// A cluster of blocks has 128 rows of weights, or 64 of a gate with the 64 that it gates, and N
// rows of the input. The columns are cut into 8 segments, see pipeline.cuh: each block of the
// cluster has as many of them and adds their sums as the tree says, and what blocks have is
// added as the rest of the tree says, by each block for its own part of the rows of the input.
//
// Of a block's 12 warps two bring tiles of weights and of the input to shared memory, and 8 have
// 16 rows of weights each: they make operands of codes and multiply.
//
// The bits are those of linear.cuh: the same operands, and instructions that add the same
// products in the same order.
#pragma once
#include "hopper.cuh"
#include "linear.cuh"

constexpr int wideThreads = 384, wideRows = 128, wideTiles = wideRows / tileRows;

// A Wide is what a block of N rows of the input, one of C of its cluster, has in shared memory.
template <class F, int N, int C> struct Wide {
  static constexpr int each = segments / C;                  // segments of a block
  static constexpr int levels = each == 8 ? 2 : each == 4 ? 1 : 0; // sums that wait there for their neighbours'
  static constexpr int chunkBytes = N * chunkCols * 2;       // of the input
  static constexpr int stride = wideRows + 4;                // floats of a row of sums
  static constexpr int sumBytes = N * stride * 4;
  static constexpr int waitBytes = levels * N * wideRows * 4;
  static constexpr int restBytes = sumBytes > waitBytes ? sumBytes : waitBytes; // one after the other
  static constexpr int tileStages = levels == 2 ? 2 : 3;
  static constexpr int stageBytes = wideTiles * F::tileBytes;
  static constexpr int left = 225 * 1024 - restBytes - tileStages * stageBytes - 1024;
  static constexpr int chunkStages = left / chunkBytes > 8 ? 8 : left / chunkBytes;
  static constexpr int bytes = 1024 + chunkStages * chunkBytes + tileStages * stageBytes + restBytes;
  static_assert(chunkStages >= 3);
};

// A Ring says which stage of some comes next, and the parity of its phase.
template <int STAGES> struct Ring {
  int stage = 0;
  u32 parity = 0;
  METHOD void next() {
    if (++stage == STAGES) stage = 0, parity ^= 1;
  }
};

INLINE void syncConsumers() { asm volatile("bar.sync 1, 256;" ::: "memory"); }
INLINE float elementOf(float4 v, int i) {
  const float low = i & 1 ? +v.y : +v.x, high = i & 1 ? +v.w : +v.z;
  return i & 2 ? high : low;
}

// wide is what a block does.
template <class F, int N, int C, bool GATED> INLINE void wide(const LinearArgs &a) {
  using W = Wide<F, N, C>;
  constexpr int quarters = F::tileK / chunkCols;
  extern __shared__ u8 raw[];
  u8 *chunks = raw + (-sharedAt(raw) & 1023), *tiles = chunks + W::chunkStages * W::chunkBytes;
  float *rest = reinterpret_cast<float *>(tiles + W::tileStages * W::stageBytes);
  alignas(8) __shared__ u64 barriers[2 * (W::tileStages + W::chunkStages)];
  const u32 tileThere = sharedAt(barriers), tileFree = tileThere + 8 * W::tileStages, chunkThere = tileFree + 8 * W::tileStages, chunkFree = chunkThere + 8 * W::chunkStages;

  // Which products: a unit is 128 rows of weights, or 64 gated ones.
  const int rank = C > 1 ? rankInCluster() : 0, first = blockY() * N;
  int unit = blockX() / C;
  int which = 0;
  if constexpr (!GATED) {
    for (; which < 3 && unit >= (a.p[which].rows + wideRows - 1) / wideRows; which++) unit -= (a.p[which].rows + wideRows - 1) / wideRows;
  }
  const Product &p = a.p[which];
  const int rowTiles = (p.rows + tileRows - 1) / tileRows;
  const s64 rowBytes = s64(a.colTiles) * F::tileBytes;
  // rowOf is where tile r of the block's rows begins; one that is not there is the last.
  auto rowOf = [&](int r) ALWAYS -> const u8 * {
    if constexpr (GATED) return (r < 4 || !a.p[1].w ? a.p[0].w : a.p[1].w) + minOf(4 * unit + (r & 3), rowTiles - 1) * rowBytes;
    return p.w + minOf(wideTiles * unit + r, rowTiles - 1) * rowBytes;
  };
  const int from = a.colTiles * (rank * W::each) / segments, to = a.colTiles * (rank * W::each + W::each) / segments;

  if (tidX() == 0) {
    for (int i = 0; i < W::tileStages; i++) makeBarrier(tileThere + 8 * i, 1), makeBarrier(tileFree + 8 * i, 8);
    for (int i = 0; i < W::chunkStages; i++) makeBarrier(chunkThere + 8 * i, 1), makeBarrier(chunkFree + 8 * i, 8);
    showBarriers();
  }
  syncBlock();

  const int warp = tidX() / 32, lane = tidX() % 32;
  if (warp < 4) {
    fewerRegisters<40>();
    if (warp == 0 && lane == 0) { // tiles of weights, which nobody writes
      Ring<W::tileStages> ring;
      const u8 *row[wideTiles];
      UNROLL for (int r = 0; r < wideTiles; r++) row[r] = rowOf(r);
      for (int kt = from; kt < to; kt++) {
        awaitPhase(tileFree + 8 * ring.stage, ring.parity ^ 1);
        arriveWith(tileThere + 8 * ring.stage, W::stageBytes);
        UNROLL for (int r = 0; r < wideTiles; r++) {
          copyBulk(sharedAt(tiles) + ring.stage * W::stageBytes + r * F::tileBytes, row[r] + s64(kt) * F::tileBytes, F::tileBytes, tileThere + 8 * ring.stage);
        }
        ring.next();
      }
    }
    if (warp == 1 && lane == 0) { // the input
      waitForPrevious();
      allowNext();
      if (first < *a.count) {
        Ring<W::chunkStages> ring;
        const u16 *x = a.h16 + chunkOf(first, 0, a.inStride);
        const s64 apart = chunkOf(0, 1, a.inStride);
        for (int k = from * quarters; k < to * quarters; k++) {
          awaitPhase(chunkFree + 8 * ring.stage, ring.parity ^ 1);
          arriveWith(chunkThere + 8 * ring.stage, W::chunkBytes);
          copyBulk(sharedAt(chunks) + ring.stage * W::chunkBytes, x + k * apart, W::chunkBytes, chunkThere + 8 * ring.stage);
          ring.next();
        }
      }
    }
    return;
  }
  moreRegisters<232>();
  waitForPrevious();
  const int count = *a.count;
  if (first >= count) return;
  {
    Ring<W::tileStages> ring;
    Ring<W::chunkStages> chunk;
    float acc[N / 2], total[N / 2];
    float *wait = rest + tidX() - 128; // of number i of a level, 256 apart
    int kt = from, before = -1;        // the chunk whose products are under way
    uint4 operands[2][2];
    UNROLL for (int s = 0; s < W::each; s++) {
      const int end = a.colTiles * (rank * W::each + s + 1) / segments;
      UNROLL for (int i = 0; i < N / 2; i++) acc[i] = 0;
      _Pragma("unroll 1") for (; kt < end; kt++) {
        const u8 *tile = tiles + ring.stage * W::stageBytes + (warp - 4) * F::tileBytes;
        awaitPhase(tileThere + 8 * ring.stage, ring.parity);
        F w;
        w.template loadScales<FromShared>(tile, lane);
        w.prepare();
        UNROLL for (int q = 0; q < quarters; q++) {
          w.template loadQuarter<FromShared>(tile, lane, q);
          UNROLL for (int h = 0; h < 2; h++) { // two steps, while two are multiplied
            UNROLL for (int i = 0; i < 2; i++) operands[h][i] = w.operand(4 * q + 2 * h + i);
            if (h == 0) awaitPhase(chunkThere + 8 * chunk.stage, chunk.parity);
            const u64 x = tileOfRows(sharedAt(chunks) + chunk.stage * W::chunkBytes) + 4 * h;
            beginProducts();
            UNROLL for (int i = 0; i < 2; i++) multiplyRows<N, sameFormat<F, BF16>()>(acc, operands[h][i], x + 2 * i);
            endProducts();
            awaitProducts<1>();
            if (h == 0 && before >= 0 && lane == 0) arrive(chunkFree + 8 * before);
          }
          before = chunk.stage;
          chunk.next();
        }
        syncWarp();
        if (lane == 0) arrive(tileFree + 8 * ring.stage);
        ring.next();
      }
      awaitProducts<0>();
      // The tree: a sum of one segment waits in registers, of two and four in shared memory.
      if (s % 2 == 0) {
        UNROLL for (int i = 0; i < N / 2; i++) total[i] = acc[i];
        continue;
      }
      UNROLL for (int i = 0; i < N / 2; i++) total[i] = total[i] + acc[i];
      if (W::each > 2 && s % 4 == 1) {
        UNROLL for (int i = 0; i < N / 2; i++) wait[i * 256] = total[i];
      }
      if (s % 4 == 3) {
        UNROLL for (int i = 0; i < N / 2; i++) total[i] = wait[i * 256] + total[i];
      }
      if (W::each > 4 && s == 3) {
        UNROLL for (int i = 0; i < N / 2; i++) wait[(N / 2 + i) * 256] = total[i];
      }
      if (s == 7) {
        UNROLL for (int i = 0; i < N / 2; i++) total[i] = wait[(N / 2 + i) * 256] + total[i];
      }
    }
    syncConsumers(); // nobody reads what waited any more
    const int row = (warp - 4) * tileRows + lane / 4, token = lane % 4 * 2;
    UNROLL for (int n = 0; n < N / 8; n++) {
      UNROLL for (int i = 0; i < 4; i++) rest[(8 * n + token + (i & 1)) * W::stride + row + 4 * (i & 2)] = total[4 * n + i];
    }
  }
  // Producers have gone: a cluster waits for those that are there.
  if constexpr (C > 1) meetCluster();
  else syncConsumers();

  // sumAt is the sum of four rows of weights from row on, for a row of the input.
  auto sumAt = [&](int token, int row) ALWAYS -> float4 {
    const float *at = rest + token * W::stride + row;
    if constexpr (C == 1) return *reinterpret_cast<const float4 *>(at);
    float4 v[C];
    UNROLL for (int i = 0; i < C; i++) v[i] = loadFrom(i, at);
    if constexpr (C == 2) return v[0] + v[1];
    if constexpr (C == 4) return (v[0] + v[1]) + (v[2] + v[3]);
    if constexpr (C == 8) return ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
  };
  constexpr int own = N / C;
  static_assert(N % C == 0);
  _Pragma("unroll 1") for (int t = warp - 4; t < own; t += 8) {
    const int token = rank * own + t, at = first + token;
    if (at >= count) break;
    if constexpr (GATED) {
      _Pragma("unroll 1") for (int block = 0; block < 2; block++) { // of 32 rows
        const int row = 64 * unit + 32 * block + lane;
        const float4 g = sumAt(token, 32 * block + (lane & ~3)), u = sumAt(token, 64 + 32 * block + (lane & ~3));
        float v = 0;
        if (row < a.p[0].rows) {
          const float gate = valueOf(matrixOf(a.p[0]), a.divided, row, elementOf(g, lane & 3));
          v = unitOf(a.unit, gate, a.p[1].w ? valueOf(matrixOf(a.p[1]), a.divided, row, elementOf(u, lane & 3)) : 1);
        }
        if (64 * unit + 32 * block < a.out.cols) storeBlock(a.out, at, 2 * unit + block, lane, v);
      }
    } else {
      const float4 v = sumAt(token, 4 * lane);
      UNROLL for (int i = 0; i < 4; i++) {
        const int row = wideRows * unit + 4 * lane + i;
        if (row >= p.rows) break;
        float y = valueOf(matrixOf(p), a.divided, row, v[i]) * a.scale;
        if (a.residual) y = a.residual[s64(at) * a.residualStride + row] + y;
        p.y[s64(at) * p.stride + row] = y;
      }
    }
  }
  if constexpr (C > 1) meetCluster(); // others read this block's sums
}

#define WIDE(name, F, N, C, GATED) \
  extern "C" __global__ void __launch_bounds__(wideThreads, 1) name(const LinearArgs a) { wide<F, N, C, GATED>(a); }
#define WIDES(F)                       \
  WIDE(wide_128_1, F, 128, 1, false)   \
  WIDE(wide_128_2, F, 128, 2, false)   \
  WIDE(wide_64_8, F, 64, 8, false)     \
  WIDE(wide_16_8, F, 16, 8, false)     \
  WIDE(gated_128_2, F, 128, 2, true)   \
  WIDE(gated_64_8, F, 64, 8, true)
