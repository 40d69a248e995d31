// Products of many rows of the input, on Hopper.
//
// A job is 128 rows of weights, or 64 of a gate with the 64 that it gates, and N rows of the
// input. Clusters of 1 to 8 blocks take one job after another. The columns are cut into 8
// segments, see pipeline.cuh: each block of a cluster has as many of them and adds their sums as
// the tree says; then it gets from all blocks what they have for its own part of the rows of the
// input, and adds that as the rest of the tree says.
//
// Of a block's 12 warps two bring tiles of weights and chunks of the input to shared memory, as
// far ahead as there is room, and 8 have 16 rows of weights each: they make operands of codes and
// multiply.
//
// The bits are those of linear.cuh: the same operands, and instructions that add the same
// products in the same order.
#pragma once
#include "hopper.cuh"
#include "linear.cuh"

constexpr int wideThreads = 384, wideRows = 128, wideTiles = wideRows / tileRows;

// How many units of 128 rows of weights are taken with all rows of the input before the next
// ones: the second-level cache holds both.
constexpr int unitsTogether = 16;

// A Wide is what a block has in shared memory. Two blocks share a multiprocessor where there is
// room, up to 32 rows of the input: one multiplies while the other waits. Package lower computes
// the same.
template <class F, int N> struct Wide {
  // Sums of two segments wait there for their neighbours'.
  static constexpr int stride = wideRows + 4; // floats of a row of sums
  static constexpr int sumBytes = N * stride * 4; // more than those that wait take before
  static constexpr int chunkBytes = N * chunkCols * 2, stageBytes = wideTiles * F::tileBytes;
  static constexpr int least = sumBytes + 2 * stageBytes + 3 * chunkBytes + 1024;
  static constexpr int blocks = N <= 32 && least <= 112 << 10 ? 2 : 1; // of a multiprocessor
  static constexpr int bytes = blocks == 2 ? 112 << 10 : 225 << 10;
  static constexpr int room = bytes - sumBytes - 1024;
  static constexpr int chunksFit = (room - 2 * stageBytes) / chunkBytes, chunkStages = chunksFit > 8 ? 8 : chunksFit;
  static constexpr int tilesFit = (room - chunkStages * chunkBytes) / stageBytes, tileStages = tilesFit > 8 ? 8 : tilesFit;
  static_assert(chunkStages >= 3 && tileStages >= 2);
};

// Phases says which stage of some comes next, and the parity of its phase.
template <int STAGES> struct Phases {
  int stage = 0;
  u32 parity = 0;
  METHOD void next() {
    if (++stage == STAGES) stage = 0, parity ^= 1;
  }
};

INLINE void syncConsumers() { asm volatile("bar.sync 1, 256;" ::: "memory"); }
// A Job is which rows of which product a cluster has, and which of the input.
struct Job {
  int which, unit, first;
};

// Lacking is what the sums of four rows of weights still lack, from row on.
struct Lacking {
  float power[4], bias[4];
  bool biased;
  METHOD Lacking(const Product &p, int row) {
    biased = p.bias != nullptr;
    UNROLL for (int i = 0; i < 4; i++) {
      const int at = minOf(row + i, p.rows - 1);
      power[i] = p.powers ? p.powers[at] : 1, bias[i] = p.bias ? p.bias[at] : 0;
    }
  }
  METHOD float valueOf(int i, float divided, float sum) const {
    const float v = sum * power[i] * divided;
    return biased ? v + bias[i] : v;
  }
};

// wide is what a block does.
template <class F, int N, bool GATED> INLINE void wide(const LinearArgs &a) {
  using W = Wide<F, N>;
  // Operands of two steps are made while those of two are multiplied. Numbers of 16 bits are
  // operands already: another warp multiplies while they are loaded.
  constexpr int steps = F::scaled ? 2 : 4, groups = 4 / steps;
  constexpr int quarters = F::tileK / chunkCols, unitRows = GATED ? wideRows / 2 : wideRows;
  extern __shared__ u8 raw[];
  u8 *chunks = raw + (-sharedAt(raw) & 1023), *tiles = chunks + W::chunkStages * W::chunkBytes;
  float *rest = reinterpret_cast<float *>(tiles + W::tileStages * W::stageBytes);
  alignas(8) __shared__ u64 barriers[2 * (W::tileStages + W::chunkStages) + 2];
  const u32 tileThere = sharedAt(barriers), tileFree = tileThere + 8 * W::tileStages, chunkThere = tileFree + 8 * W::tileStages, chunkFree = chunkThere + 8 * W::chunkStages,
            restFree = chunkFree + 8 * W::chunkStages, sumsThere = restFree + 8;

  // Which jobs. How many rows the input has is known before the kernel before has ended.
  const int blocks = blocksOfCluster(), rank = rankInCluster(), each = segments / blocks, own = N / blocks, count = *a.count;
  auto unitsIn = [&](int i) ALWAYS { return (a.p[i].rows + unitRows - 1) / unitRows; };
  const int units = GATED ? unitsIn(0) : unitsIn(0) + unitsIn(1) + unitsIn(2) + unitsIn(3);
  const int parts = (count + N - 1) / N, jobs = units * parts;
  auto jobOf = [&](int i) ALWAYS -> Job {
    const int group = i / (unitsTogether * parts) * unitsTogether, together = minOf(unitsTogether, units - group);
    i -= group * parts;
    Job j{0, group + i % together, i / together * N};
    if constexpr (!GATED) {
      for (; j.which < 3 && j.unit >= unitsIn(j.which); j.which++) j.unit -= unitsIn(j.which);
    }
    return j;
  };
  const int begin = blockX() / blocks, apart = gridX() / blocks;
  const int from = a.colTiles * (rank * each) / segments, to = a.colTiles * (rank * each + each) / segments;

  if (tidX() == 0) {
    for (int i = 0; i < W::tileStages; i++) makeBarrier(tileThere + 8 * i, 1), makeBarrier(tileFree + 8 * i, 8);
    for (int i = 0; i < W::chunkStages; i++) makeBarrier(chunkThere + 8 * i, 1), makeBarrier(chunkFree + 8 * i, 8);
    makeBarrier(restFree, 8 * blocks), makeBarrier(sumsThere, 1);
    showBarriers();
  }
  meetCluster();

  const int warp = tidX() / 32, lane = tidX() % 32;
  if (warp < 4) {
    fewerRegisters<W::blocks == 2 ? 32 : 40>();
    if (warp == 0 && lane < wideTiles) { // tiles of weights, which nobody writes: a row of them each
      Phases<W::tileStages> ring;
      for (int i = begin; i < jobs; i += apart) {
        const Job j = jobOf(i);
        const Product &p = a.p[GATED ? (lane >= wideTiles / 2 && a.p[1].w ? 1 : 0) : j.which];
        const int row = GATED ? j.unit * (wideTiles / 2) + lane % (wideTiles / 2) : j.unit * wideTiles + lane;
        const u8 *tile = p.w + s64(minOf(row, (p.rows + tileRows - 1) / tileRows - 1)) * a.colTiles * F::tileBytes; // one that is not there is the last
        _Pragma("unroll 1") for (int kt = from; kt < to; kt++) {
          awaitPhase(tileFree + 8 * ring.stage, ring.parity ^ 1);
          if (lane == 0) arriveWith(tileThere + 8 * ring.stage, W::stageBytes);
          copyBulk(sharedAt(tiles) + ring.stage * W::stageBytes + lane * F::tileBytes, tile + s64(kt) * F::tileBytes, F::tileBytes, tileThere + 8 * ring.stage);
          ring.next();
        }
      }
    }
    if (warp == 1 && lane == 0) { // the input
      waitForPrevious();
      allowNext();
      Phases<W::chunkStages> ring;
      const s64 chunksApart = chunkOf(0, 1, a.inStride);
      for (int i = begin; i < jobs; i += apart) {
        const u16 *x = a.h16 + chunkOf(jobOf(i).first, 0, a.inStride);
        _Pragma("unroll 1") for (int k = from * quarters; k < to * quarters; k++) {
          awaitPhase(chunkFree + 8 * ring.stage, ring.parity ^ 1);
          arriveWith(chunkThere + 8 * ring.stage, W::chunkBytes);
          copyBulk(sharedAt(chunks) + ring.stage * W::chunkBytes, x + k * chunksApart, W::chunkBytes, chunkThere + 8 * ring.stage);
          ring.next();
        }
      }
    }
    syncWarp();
  } else {
    moreRegisters<W::blocks == 2 ? 104 : 232>();
    waitForPrevious();
    Phases<W::tileStages> ring;
    Phases<W::chunkStages> chunk;
    u32 parity = 0;                    // of the jobs' sums
    float *wait = rest + tidX() - 128; // of number i of a level, 256 apart
    _Pragma("unroll 1") for (int i = begin; i < jobs; i += apart, parity ^= 1) {
      const Job j = jobOf(i);
      {
        float acc[N / 2], total[N / 2];
        volatile float four[N / 2]; // sums of four segments wait in local memory
        int kt = from, before = -1; // the chunk whose products are under way
        uint4 operands[groups][steps];
        UNROLL for (int s = 0; s < segments; s++) {
          if (s >= each) break;
          const int end = a.colTiles * (rank * each + s + 1) / segments;
          UNROLL for (int n = 0; n < N / 2; n++) acc[n] = 0;
          _Pragma("unroll 1") for (; kt < end; kt++) {
            const u8 *tile = tiles + ring.stage * W::stageBytes + (warp - 4) * F::tileBytes;
            awaitPhase(tileThere + 8 * ring.stage, ring.parity);
            F w;
            w.template loadScales<FromShared>(tile, lane);
            w.prepare();
            UNROLL for (int q = 0; q < quarters; q++) {
              w.template loadQuarter<FromShared>(tile, lane, q);
              UNROLL for (int h = 0; h < groups; h++) { // steps, while those before are multiplied
                UNROLL for (int i = 0; i < steps; i++) operands[h][i] = w.operand(4 * q + steps * h + i);
                if (h == 0) awaitPhase(chunkThere + 8 * chunk.stage, chunk.parity);
                const u64 x = tileOfRows(sharedAt(chunks) + chunk.stage * W::chunkBytes) + 2 * steps * h;
                beginProducts();
                UNROLL for (int i = 0; i < steps; i++) multiplyRows<N, sameFormat<F, BF16>()>(acc, operands[h][i], x + 2 * i);
                endProducts();
                awaitProducts<groups - 1>();
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
          hold(acc);
          // The tree: a sum of one segment waits in registers, of two and four in shared memory.
          if (s % 2 == 0) {
            UNROLL for (int n = 0; n < N / 2; n++) total[n] = acc[n]; // 0 of no columns
            continue;
          }
          UNROLL for (int n = 0; n < N / 2; n++) total[n] = total[n] + acc[n];
          if (s % 4 == 1 && each > 2) {
            UNROLL for (int n = 0; n < N / 2; n++) wait[n * 256] = total[n];
          }
          if (s % 4 == 3) {
            UNROLL for (int n = 0; n < N / 2; n++) total[n] = wait[n * 256] + total[n];
          }
          if (s == 3 && each > 4) {
            UNROLL for (int n = 0; n < N / 2; n++) four[n] = total[n];
          }
          if (s == 7) {
            UNROLL for (int n = 0; n < N / 2; n++) total[n] = four[n] + total[n];
          }
        }
        if (before >= 0 && lane == 0) arrive(chunkFree + 8 * before);
        const int row = (warp - 4) * tileRows + lane / 4;
        if (blocks == 1) {
          syncConsumers(); // nobody reads what waited any more
          float *to = rest + lane % 4 * 2 * W::stride + row;
          UNROLL for (int n = 0; n < N / 8; n++) {
            UNROLL for (int e = 0; e < 4; e++) to[(8 * n + (e & 1)) * W::stride + 4 * (e & 2)] = total[4 * n + e];
          }
        } else { // nor anybody of the cluster, nor sums of the job before
          if (tidX() == 128) arriveWith(sumsThere, N * wideRows * 4);
          syncWarp();
          if (lane < blocks) arriveIn(lane, restFree);
          awaitPhase(restFree, parity);
          UNROLL for (int n = 0; n < N / 8; n++) {
            const int token = 8 * n + lane % 4 * 2, owner = token / own;
            const u32 there = placeIn(owner, sumsThere), to = placeIn(owner, sharedAt(rest)) + 4 * ((rank * own + token % own) * W::stride + row);
            UNROLL for (int e = 0; e < 4; e++) storeIn(to + 4 * ((e & 1) * W::stride + 4 * (e & 2)), total[4 * n + e], there);
          }
        }
      }
      // Meanwhile, what the sums of a lane's four rows still lack.
      const Product &p = a.p[GATED ? 0 : j.which];
      const int four = GATED ? lane % 16 : lane, row = unitRows * j.unit + 4 * four;
      const Lacking lacks(p, row), upLacks(a.p[GATED && a.p[1].w ? 1 : GATED ? 0 : j.which], row);
      if (blocks == 1) syncConsumers();
      else awaitPhase(sumsThere, parity);

      // sumAt is the sum of four rows of weights from place on, for one of the block's own rows of the input.
      auto sumAt = [&](int token, int place) ALWAYS -> float4 {
        auto of = [&](int b) ALWAYS { return *reinterpret_cast<const float4 *>(rest + (b * own + token) * W::stride + place); };
        if (blocks == 1) return of(0);
        if (blocks == 2) return of(0) + of(1);
        if (blocks == 4) return (of(0) + of(1)) + (of(2) + of(3));
        return ((of(0) + of(1)) + (of(2) + of(3))) + ((of(4) + of(5)) + (of(6) + of(7)));
      };
      if constexpr (GATED) { // half a warp has a row of the input
        _Pragma("unroll 1") for (int t = 2 * (warp - 4) + lane / 16; t < own; t += 16) {
          const int at = j.first + rank * own + t;
          if (at >= count) break;
          const float4 g = sumAt(t, 4 * four), u = sumAt(t, unitRows + 4 * four);
          float4 gate, up;
          UNROLL for (int i = 0; i < 4; i++) gate[i] = lacks.valueOf(i, a.divided, g[i]), up[i] = a.p[1].w ? upLacks.valueOf(i, a.divided, u[i]) : 1;
          float4 v = unitsOf(a.unit, gate, up);
          UNROLL for (int i = 0; i < 4; i++) v[i] = row + i < p.rows ? v[i] : 0;
          storeFour(a.out, at, row, v);
          if (unitRows * (j.unit + 1) >= a.out.cols) { // the padding, too
            for (int c = row + unitRows; c < a.out.stride; c += unitRows) storeFour(a.out, at, c, float4{});
          }
        }
      } else {
        _Pragma("unroll 4") for (int t = warp - 4; t < own; t += 8) {
          const int at = j.first + rank * own + t;
          if (at >= count) break;
          const float4 sum = sumAt(t, 4 * four);
          const float *residual = a.residual ? a.residual + s64(at) * a.residualStride + row : nullptr;
          float *y = p.y + s64(at) * p.stride + row;
          float4 v;
          UNROLL for (int i = 0; i < 4; i++) v[i] = lacks.valueOf(i, a.divided, sum[i]) * a.scale;
          if (row + 4 <= p.rows) {
            *reinterpret_cast<float4 *>(y) = residual ? *reinterpret_cast<const float4 *>(residual) + v : v;
          } else {
            UNROLL for (int i = 0; i < 4; i++) {
              if (row + i < p.rows) y[i] = residual ? residual[i] + v[i] : v[i];
            }
          }
        }
      }
      syncConsumers(); // nobody reads the sums any more
    }
  }
  meetCluster(); // others arrive here
}

#define WIDE(name, F, N, GATED) \
  extern "C" __global__ void __launch_bounds__(wideThreads, Wide<F, N>::blocks) name(const LinearArgs a) { wide<F, N, GATED>(a); }
#define WIDES(F)                \
  WIDE(wide_16, F, 16, false)   \
  WIDE(wide_32, F, 32, false)   \
  WIDE(wide_64, F, 64, false)   \
  WIDE(wide_128, F, 128, false) \
  WIDE(wide_gated_16, F, 16, true)   \
  WIDE(wide_gated_32, F, 32, true)   \
  WIDE(wide_gated_64, F, 64, true)   \
  WIDE(wide_gated_128, F, 128, true)
