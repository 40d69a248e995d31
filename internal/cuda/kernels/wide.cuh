// Products of many rows of the input, on Hopper.
//
// A job is a unit, which is 128 rows of weights, or 64 rows of a gate with the 64 that it gates, and
// a part, which is N rows of the input. Clusters of 1 to 8 blocks take one set of jobs after
// another. A cluster has two dimensions:
//
//   x  The blocks of a job divide its columns. The columns have 8 segments, or as many as a part of
//      several has, see pipeline.cuh. Each block computes an equal number of segments and adds
//      their sums as the tree says. Then every block gets the sums of its own share of the input's
//      rows from all of them, and adds them as the rest of the tree says.
//   y  Blocks with the same unit and different parts of the input, for 16-bit weights. Each copies
//      some rows of the unit's tiles to all of them, so that less is read from the L2 cache: a block
//      with 128 rows of the input multiplies 64 bytes of weights and input in a clock cycle.
//
// A block has 12 warps. Two of them are producers: they copy tiles of weights and chunks of the
// input to shared memory, as far ahead as the stages allow. Eight are consumers: each has 16 rows
// of weights, turns codes into operands, multiplies, and finishes its sums.
//
// The bits are those of linear.cuh: the same operands, and instructions that add the same products
// in the same order.
#pragma once
#include "experts.cuh"
#include "float8.cuh"
#include "hopper.cuh"
#include "matrix.cuh"

constexpr int wideThreads = 384, wideRows = 128, wideTiles = wideRows / tileRows;

// unitsTogether units of 128 rows of weights are multiplied with all rows of the input before the
// next units: the L2 cache holds both.
constexpr int unitsTogether = 16;

// A Wide is the shared memory of a block. With up to 32 rows of the input, two blocks share a
// multiprocessor if both fit: one multiplies while the other waits. Package lower computes the
// same.
template <class F, int N> struct Wide {
  // floats between the sums of adjacent rows of the input
  static constexpr int apart = wideRows + 4;
  static constexpr int sumBytes = N * apart * 4;
  // A stage of weights is a tile of each row. Tiles of 16-bit numbers leave room for few stages
  // beside the sums of 128 rows: there it has as many columns as a chunk.
  static constexpr int tileChunks = F::tileK / chunkCols, stageChunks = F::scaled || N < 128 ? tileChunks : 1;
  static constexpr int chunkBytes = N * chunkCols * 2, pieceBytes = F::tileBytes / tileChunks * stageChunks, stageBytes = wideTiles * pieceBytes;
  static constexpr int least = sumBytes + 2 * wideTiles * F::tileBytes + 3 * chunkBytes + 1024;
  static constexpr int blocks = N <= 32 && least <= 112 << 10 ? 2 : 1; // per multiprocessor
  static constexpr int bytes = blocks == 2 ? 112 << 10 : 225 << 10;
  static constexpr int room = bytes - sumBytes - 1024;
  // Stages of both that let copies run furthest ahead of the products. If a stage of weights has the
  // columns of one chunk, there are as many of both. The stages of pairChunks chunks are adjacent.
  static constexpr int pairChunks = tileChunks % 2 ? 1 : 2;
  static constexpr int tilesBeside(int chunks) {
    const int fit = (room - chunks * chunkBytes) / stageBytes, most = stageChunks == tileChunks ? 8 : chunks;
    return fit > most ? most : fit;
  }
  static constexpr int ahead(int chunks) {
    const int by = (tilesBeside(chunks) - 1) * stageChunks;
    return by < chunks ? by : chunks;
  }
  static constexpr int best() {
    int most = 8;
    for (int c = 8 - pairChunks; c >= 3; c -= pairChunks) most = ahead(c) > ahead(most) ? c : most;
    return most;
  }
  static constexpr int chunkStages = best(), tileStages = tilesBeside(chunkStages);
  static_assert(chunkStages >= 3 && chunkStages % pairChunks == 0 && tileStages >= 2 && (stageChunks == tileChunks || tileStages == chunkStages));
};

// Phases is the next stage of a ring of STAGES, and the parity of its phase.
template <int STAGES> struct Phases {
  int stage = 0;
  u32 parity = 0;
  METHOD void next() {
    if (++stage == STAGES) stage = 0, parity ^= 1;
  }
};

// syncConsumers is a barrier of the 8 consumer warps.
INLINE void syncConsumers() { syncSome<256, 1>(); }

// syncGroup is a barrier of the four warps of a consumer warpgroup.
INLINE void syncGroup(int group) { syncSome<128>(2 + group); }

// rowsOf transposes sums between lanes. Lane 4g+t has the sums of the operand's rows g and g+8 with
// rows 2t and 2t+1 of the input; it gets those of four rows of weights, from 8*(g/2%2) + 4*(g/4)
// on, with row 2t + g%2.
INLINE float4 rowsOf(float a, float b, float c, float d, int lane) {
  const bool odd = lane & 4, high = lane & 8;
  const float one = shuffleXor(odd ? a : b, 4), two = shuffleXor(odd ? c : d, 4);
  if (odd) a = one, c = two;
  else b = one, d = two;
  const float three = shuffleXor(high ? a : c, 8), four = shuffleXor(high ? b : d, 8);
  return high ? float4{three, four, c, d} : float4{a, b, three, four};
}

// placeAt returns the address of number i, even if p is 0. An address that is either 0 or computed
// must be avoided: ptxas 13.0 does not wait for the zero (CS2R) if an instruction that may set the
// address follows, so a comparison with 0 sees the register's previous value.
INLINE const float *placeAt(const float *p, s64 i) { return reinterpret_cast<const float *>(reinterpret_cast<u64>(p) + u64(4 * i)); }

// A Place is that of a block in its cluster.
struct Place {
  int split, splits; // along x
  int part, parts;   // along y
  METHOD Place(bool shares) : split(rankInCluster<0>()), splits(sizeOfCluster<0>()), part(shares ? rankInCluster<1>() : 0), parts(shares ? sizeOfCluster<1>() : 1) {}
  METHOD int cluster() const { return blockX() / splits; }
  METHOD int clusters() const { return gridX() / splits; }
  // rank returns the rank of a block in the cluster.
  METHOD int rank(int split, int part) const { return part * splits + split; }
  // sharing returns the blocks with the same tiles: bit i is the block of rank i.
  METHOD u32 sharing() const {
    u32 all = 0;
    for (int i = 0; i < parts; i++) all |= 1 << rank(split, i);
    return all;
  }
};

// A Job is what the blocks of a job multiply at a time: a unit of rows of weights, and N rows of the
// input from first on. Rows from end on are ignored.
struct Job {
  int which, unit, first, end;
};

// ManyRows makes the jobs of products of all rows of the input. No kernel writes weights, and the
// number of rows is known before the previous kernel ends, so copies of weights begin at once.
template <int N, bool GATED> struct ManyRows {
  using Args = LinearArgs;
  static constexpr bool known = true;
  static constexpr int unitRows = GATED ? wideRows / 2 : wideRows;
  const LinearArgs &a;
  const Place &at;
  int count, parts, units; // parts: those of a cluster count once
  METHOD ManyRows(const LinearArgs &a, const Place &at) : a(a), at(at), count(*a.count) {
    parts = ((count + N - 1) / N + at.parts - 1) / at.parts;
    units = GATED ? unitsIn(0) : a.units;
  }
  METHOD static int segmentsOf(const LinearArgs &a) { return a.segments; }
  METHOD static bool late(const LinearArgs &a) { return N <= 32 && a.late; }
  METHOD int unitsIn(int i) const { return (a.p[i].rows + unitRows - 1) / unitRows; }
  METHOD int jobs() const { return units * parts; }
  METHOD Job job(int i) const {
    const int group = i / (unitsTogether * parts) * unitsTogether, together = minOf(unitsTogether, units - group);
    i -= group * parts;
    Job j{0, group + i % together, (i / together * at.parts + at.part) * N, count};
    if (j.first >= count) j.first = (count - 1) / N * N, j.end = j.first; // there is no such part
    if constexpr (!GATED) {
      for (; j.which < mostProducts - 1 && j.unit >= unitsIn(j.which); j.which++) j.unit -= unitsIn(j.which);
    }
    return j;
  }
  METHOD Product product(const Job &j, int i) const { return a.p[GATED ? i : j.which]; }
  METHOD float scale() const { return a.scale; }
  METHOD float divided(int) const { return a.divided; }
  METHOD int residualStride() const { return a.residualStride; }
  METHOD bool adds() const { return a.residual != nullptr; }
  METHOD const float *residual(int row, int at) const { return placeAt(a.residual, s64(at) * a.residualStride + row); }
};

// ManyFloat8 is ManyRows for a float8 input, whose rows have scales.
template <int N, bool GATED> struct ManyFloat8 : ManyRows<N, GATED> {
  using ManyRows<N, GATED>::ManyRows;
  METHOD float divided(int row) const { return this->a.scales[row]; }
};

// ManySlots makes the jobs of products of experts with their slots, which an earlier kernel of the
// step has chosen.
template <int N, bool GATED> struct ManySlots {
  using Args = ExpertArgs;
  static constexpr bool known = false;
  static constexpr int unitRows = GATED ? wideRows / 2 : wideRows;
  const ExpertArgs &a;
  int units;
  // A cluster has one part: adjacent parts may have different experts.
  METHOD ManySlots(const ExpertArgs &a, const Place &) : a(a), units((a.rows + unitRows - 1) / unitRows) {}
  METHOD static int segmentsOf(const ExpertArgs &) { return segments; }
  METHOD static bool late(const ExpertArgs &) { return false; }
  METHOD int jobs() const { return units * a.count[2]; }
  METHOD Job job(int i) const {
    const SlotRange p = a.parts[i / units];
    return Job{p.active, i % units, p.begin, p.end};
  }
  METHOD Product product(const Job &j, int i) const {
    const Active e = a.active[j.which];
    const ExpertProduct &p = a.p[i];
    if (!p.w) return Product{};
    const u8 *powers = reinterpret_cast<const u8 *>(p.powers);
    return Product{p.w + e.place * p.apart, powers ? reinterpret_cast<const float *>(powers + e.place * p.apart) : nullptr, a.y,
                   p.bias ? p.bias + s64(e.expert) * p.biasApart : nullptr, a.rows, a.stride};
  }
  METHOD float scale() const { return 1; }
  METHOD float divided(int) const { return a.divided; }
  METHOD int residualStride() const { return 0; }
  METHOD bool adds() const { return false; }
  METHOD const float *residual(int, int) const { return nullptr; }
};

// Lacking turns sums of ROWS rows of weights into values. The rows are APART from each other, from
// row on.
template <class F, int ROWS, int APART> struct Lacking {
  float power[ROWS], bias[ROWS];
  bool biased;
  METHOD Lacking(const Product &p, int row) {
    biased = p.bias != nullptr;
    UNROLL for (int i = 0; i < ROWS; i++) {
      const int at = minOf(row + APART * i, p.rows - 1);
      if constexpr (isFloat8<F>) power[i] = fitOf(p, at).undo;
      else power[i] = p.powers ? p.powers[at] : 1;
      bias[i] = p.bias ? p.bias[at] : 0;
    }
  }
  METHOD float valueOf(int i, float divided, float sum) const {
    const float v = sum * power[i] * divided;
    return biased ? v + bias[i] : v;
  }
};

// A block that is a cluster by itself finishes the sums that its lanes have. Of a warp's 16 rows of
// weights, a lane has rows g and g+8 (g = lane/4) with rows 2t and 2t+1 (t = lane%4) of each 8 of
// the input: sum 4n + 2h + e is of row g + 8h with row 8n + 2t + e.

// finishPlain stores a lane's sums; row is the first row of its warp. Eight lanes write 32 bytes.
template <class F, int N, class Work> INLINE void finishPlain(const Work &work, const Job &j, int row, const float (&total)[N / 2], int lane) {
  // groups of eight rows of the input whose residuals are loaded together
  constexpr int some = N < 32 ? N / 8 : 4;
  const Product p = work.product(j, 0);
  row += lane / 4;
  const Lacking<F, 2, 8> lacks(p, row);
  int at = j.first + lane % 4 * 2;
  const bool adds = work.adds();
  const float *from = work.residual(row, at);
  float *y = p.y + s64(at) * p.stride + row;
  const s64 step = p.stride, fromStep = work.residualStride();
  UNROLL for (int n = 0; n < N / 8; n += some) {
    float residual[4 * some];
    auto each = [&](const auto &f) ALWAYS {
      UNROLL for (int i = 0; i < 4 * some; i++) {
        const int token = i / 4 * 8 + i % 2, h = i / 2 % 2;
        if (at + token < j.end && row + 8 * h < p.rows) f(i, h, token);
      }
    };
    // Residuals and results may share memory: the lane that stores a result reads its residual
    // first.
    UNROLL for (int i = 0; i < 4 * some; i++) {
      const int token = i / 4 * 8 + i % 2, h = i / 2 % 2;
      residual[i] = loadIf(adds && at + token < j.end && row + 8 * h < p.rows, placeAt(from, token * fromStep + 8 * h));
    }
    each([&](int i, int h, int token) ALWAYS {
      const float v = lacks.valueOf(h, work.divided(at + token), total[4 * n + i]) * work.scale();
      y[token * step + 8 * h] = adds ? residual[i] + v : v;
    });
    at += 8 * some, y += 8 * some * step, from = placeAt(from, 8 * some * fromStep);
    // keeps the compiler from computing later addresses early
    asm volatile("" : "+l"(y), "+l"(from));
  }
}

// A Strip is what a lane stores of 16 columns of a gated unit's values: columns c, c+1, c+8 and c+9
// of rows that are 8 apart, where c = first + 2*(lane%4).
struct Strip {
  s64 at;     // of column c in a row of the first chunk of rows, without the row
  int second; // from column c to column c+8
  METHOD Strip(int row, int first, int lane) {
    const int col = first + lane % 4 * 2;
    at = s64(col / chunkCols) * (chunkRows * chunkCols) + pieceOf(row, col) + col % 8;
    second = pieceOf(row, col + 8) - pieceOf(row, col);
  }
  METHOD s64 place(u32 row, int stride) const { return at + s64(row / chunkRows) * (s64(stride) * chunkRows) + row % chunkRows * chunkCols; }
};

// storeTiles stores columns first to first+15 of N tiles of 8 rows, from row on. A lane has the
// values of its sums, 4 of each tile.
template <int N> INLINE void storeTiles(const Forms &f, int row, int end, int first, const Strip &strip, const float (&v)[4 * N], int lane) {
  if (f.f32) {
    UNROLL for (int i = 0; i < 4 * N; i++) {
      const int r = row + i / 4 * 8 + lane % 4 * 2 + i % 2, c = first + lane / 4 + i / 2 % 2 * 8;
      if (r < end && c < f.cols) f.f32[s64(r) * f.stride + c] = v[i];
    }
  }
  // word makes a word of two values of adjacent rows. Transposed, it has two of adjacent columns.
  auto store = [&](u16 *form, const auto &word) ALWAYS {
    UNROLL for (int i = 0; i < N; i++) {
      const u32 low = transposed(word(v[4 * i], v[4 * i + 1])), high = transposed(word(v[4 * i + 2], v[4 * i + 3]));
      const int r = row + 8 * i + lane / 4;
      if (r >= end) continue;
      u16 *to = form + strip.place(r, f.stride);
      *reinterpret_cast<u32 *>(to) = low;
      *reinterpret_cast<u32 *>(to + strip.second) = high;
    }
  };
  if (f.bf16) store(f.bf16, [&](float a, float b) ALWAYS { return wordOf(floatToBfloat(a), floatToBfloat(b)); });
  if (f.f16) store(f.f16, [&](float a, float b) ALWAYS { return halvesOf(a * f.by, b * f.by); });
}

// finishGated stores the values of a unit. Warps 0 and 1 of a warpgroup have the gate's sums, and
// warps 2 and 3 the sums of what it gates. They exchange them through shared memory, where a lane
// has every 256th float4, and each finishes half of the input's rows.
template <class F, int N, class Work> INLINE void finishGated(const Work &work, const Job &j, const Forms &out, const Unit &unit, float4 *own, const float (&total)[N / 2], int warp, int lane) {
  UNROLL for (int n = 0; n < N / 8; n++) own[256 * n] = float4{total[4 * n], total[4 * n + 1], total[4 * n + 2], total[4 * n + 3]};
  syncGroup(warp / 4);
  const int second = warp / 2 % 2;
  const float4 *gates = own - 64 * second, *ups = gates + 64;
  const Product p = work.product(j, 0), gated = work.product(j, 1);
  const int begin = j.unit * (wideRows / 2), first = begin + warp / 4 * 32 + warp % 2 * 16, row = first + lane / 4;
  const Lacking<F, 2, 8> lacks(p, row), upLacks(gated.w ? gated : p, row);
  const Strip strip(j.first + lane / 4, first, lane);
  // Two tiles of 8 rows of the input are finished together: one alone waits for itself.
  constexpr int some = N < 32 ? 1 : 2;
  _Pragma("unroll 1") for (int n = second * (N / 16); n < (second + 1) * (N / 16); n += some) {
    float v[4 * some], gate[4 * some], up[4 * some];
    UNROLL for (int k = 0; k < some; k++) {
      const float4 g = gates[256 * (n + k)], u = ups[256 * (n + k)];
      UNROLL for (int i = 0; i < 4; i++) {
        const float divided = work.divided(j.first + 8 * (n + k) + lane % 4 * 2 + i % 2);
        gate[4 * k + i] = lacks.valueOf(i / 2, divided, g[i]);
        up[4 * k + i] = gated.w ? upLacks.valueOf(i / 2, divided, u[i]) : 1;
      }
    }
    unitsOf<4 * some>(unit, v, gate, up);
    UNROLL for (int i = 0; i < 4 * some; i++) v[i] = row + i / 2 % 2 * 8 < p.rows ? v[i] : 0;
    storeTiles<some>(out, j.first + 8 * n, j.end, first, strip, v, lane);
    if (begin + wideRows / 2 >= out.cols) { // the padding, too
      UNROLL for (int i = 0; i < 4 * some; i++) v[i] = 0;
      for (int c = first + wideRows / 2; c < out.stride; c += wideRows / 2) storeTiles<some>(out, j.first + 8 * n, j.end, c, Strip(j.first + lane / 4, c, lane), v, lane);
    }
  }
  syncGroup(warp / 4); // all warps have read the sums
}

// A WarpTiles is the row of tiles of a job that a warp multiplies. With a gate, each warpgroup has
// two row tiles of the gate, then two of what it gates.
template <bool GATED, class Work> struct WarpTiles {
  Product p;
  int tile; // row of tiles; the last one if the warp's row does not exist
  METHOD WarpTiles(const Work &work, const Job &j, int warp) {
    p = work.product(j, 0);
    if (GATED && (warp & 2)) {
      const Product gated = work.product(j, 1);
      if (gated.w) p = gated;
    }
    const int at = GATED ? j.unit * (wideTiles / 2) + warp / 4 * 2 + warp % 2 : j.unit * wideTiles + warp;
    tile = minOf(at, (p.rows + tileRows - 1) / tileRows - 1);
  }
};

// wide runs a block.
template <class F, int N, bool GATED, class Work> INLINE void wide(const typename Work::Args &a) {
  using W = Wide<F, N>;
  constexpr int quarters = F::tileK / chunkCols, pieces = quarters / W::stageChunks; // of a tile
  // Operands of a group of steps are made while those of the group before are multiplied. A chunk
  // has four steps.
  constexpr int groups = F::scaled ? 2 : 1, steps = 4 / groups, pair = W::pairChunks;
  constexpr bool whole = W::stageChunks == quarters; // a stage of weights is a tile
  extern __shared__ u8 raw[];
  u8 *chunks = raw + (-sharedAt(raw) & 1023), *tiles = chunks + W::chunkStages * W::chunkBytes;
  float *rest = reinterpret_cast<float *>(tiles + W::tileStages * W::stageBytes);
  alignas(8) __shared__ u64 barriers[2 * (W::tileStages + W::chunkStages) + 2];
  const u32 tileThere = sharedAt(barriers), tileFree = tileThere + 8 * W::tileStages, chunkThere = tileFree + 8 * W::tileStages, chunkFree = chunkThere + 8 * W::chunkStages,
            restFree = chunkFree + 8 * W::chunkStages, sumsThere = restFree + 8;

  const Place place(!F::scaled && Work::known);
  const int segments = Work::segmentsOf(a), blocks = place.splits, rank = place.split, each = segments / blocks;
  const int begin = place.cluster(), apart = place.clusters();
  // The number of segments is a power of two.
  auto tileAt = [&](int segment) ALWAYS { return int(u32(a.colTiles * segment) >> (31 - __builtin_clz(segments))); };
  const int firstTile = tileAt(rank * each), endTile = tileAt(rank * each + each);

  if (tidX() == 0) {
    for (int i = 0; i < W::tileStages; i++) makeBarrier(tileThere + 8 * i, 1), makeBarrier(tileFree + 8 * i, 8 * place.parts);
    for (int i = 0; i < W::chunkStages; i++) makeBarrier(chunkThere + 8 * i, 1), makeBarrier(chunkFree + 8 * i, 8);
    makeBarrier(restFree, 8 * blocks), makeBarrier(sumsThere, 9);
    showBarriers();
  }
  const int warp = uniform(tidX() / 32);
  int lane = tidX() % 32;
  asm volatile("" : "+r"(lane)); // keeps it in a register
  syncWarp();
  comeToCluster();
  // If the first warp uses only barriers of its own block, which it has made, it does not wait.
  const bool alone = warp == 0 && place.parts == 1;
  if (!alone) awaitCluster();
  if (warp < 4) {
    fewerRegisters<W::blocks == 2 ? 32 : 40>();
    if (warp == 0 && lane < wideTiles) { // tiles of weights: a row of them per lane
      const int rows = wideTiles / place.parts; // that the block copies
      const bool copies = lane / rows == place.part;
      const u32 sharing = place.sharing();
      if (!Work::known) waitForPrevious();
      const Work work(a, place);
      const int jobs = work.jobs();
      Phases<W::tileStages> ring;
      for (int i = begin; i < jobs; i += apart) {
        const Job j = work.job(i);
        const WarpTiles<GATED, Work> of(work, j, lane);
        const u8 *tile = of.p.w + s64(of.tile) * a.colTiles * F::tileBytes;
        _Pragma("unroll 1") for (int k = firstTile * pieces; k < endTile * pieces; k++) {
          awaitPhase(tileFree + 8 * ring.stage, ring.parity ^ 1);
          if (lane == 0) arriveWith(tileThere + 8 * ring.stage, W::stageBytes);
          const u32 there = sharedAt(tiles) + ring.stage * W::stageBytes + lane * W::pieceBytes;
          if (place.parts == 1) copyBulk(there, tile + s64(k) * W::pieceBytes, W::pieceBytes, tileThere + 8 * ring.stage);
          else if (copies) copyBulkTo(sharing, there, tile + s64(k) * W::pieceBytes, W::pieceBytes, tileThere + 8 * ring.stage);
          ring.next();
        }
      }
    }
    if (warp == 1 && lane == 0) { // chunks of the input
      if (!Work::late(a)) waitForPrevious();
      allowNext();
      const Work work(a, place);
      const int jobs = work.jobs();
      Phases<W::chunkStages> ring;
      const s64 chunksApart = chunkOf(0, 1, a.inStride);
      for (int i = begin; i < jobs; i += apart) {
        // The rows of an expert may continue in the next chunk.
        const int first = work.job(i).first, here = Work::known ? N : minOf(N, chunkRows - first % chunkRows);
        const u16 *x = a.h16 + chunkOf(first, 0, a.inStride), *more = a.h16 + chunkOf(first + here, 0, a.inStride);
        _Pragma("unroll 1") for (int k = firstTile * quarters; k < endTile * quarters; k++) {
          awaitPhase(chunkFree + 8 * ring.stage, ring.parity ^ 1);
          arriveWith(chunkThere + 8 * ring.stage, W::chunkBytes);
          const u32 there = sharedAt(chunks) + ring.stage * W::chunkBytes;
          copyBulk(there, x + k * chunksApart, here * (2 * chunkCols), chunkThere + 8 * ring.stage);
          if (here < N) copyBulk(there + here * (2 * chunkCols), more + k * chunksApart, (N - here) * (2 * chunkCols), chunkThere + 8 * ring.stage);
          ring.next();
        }
      }
      if (Work::late(a)) waitForPrevious();
    }
    syncWarp();
    if (alone) awaitCluster();
  } else {
    moreRegisters<W::blocks == 2 ? 104 : 232>();
    if (!Work::late(a)) waitForPrevious();
    const Work work(a, place);
    const int jobs = work.jobs(), own = N / blocks; // rows of the input that the block finishes
    Phases<W::tileStages> ring;
    Phases<W::chunkStages / pair> turn; // of pairs of chunks
    u32 parity = 0;                    // of the phases of restFree and sumsThere
    // whether the next tiles and the next chunk are there, as far as is known
    bool tilesReady = false, chunkReady = false;
    const u64 input = tileOfRows(u32(uniform(int(sharedAt(chunks)))));
    // the rank of a block that divides the columns
    auto ofJob = [&](int split) ALWAYS { return place.rank(split, place.part); };
    // the lane's sums of a level of the tree, float4s 256 apart
    float4 *wait = reinterpret_cast<float4 *>(rest) + tidX() - 128;
    _Pragma("unroll 1") for (int i = begin; i < jobs; i += apart, parity ^= 1) {
      // with at most two segments per block, no sums wait in rest
      if (each <= 2 && lane < blocks) arriveIn(ofJob(lane), restFree);
      {
        float acc[N / 2], total[N / 2];
        float4 kept[N / 8], *four = kept; // sums of four segments, in local memory
        asm volatile("" : "+l"(four));    // keeps them out of registers
        int kt = firstTile, before = 0; // the stage of the chunk that the products in flight read
        uint4 operands[2][steps];
        F w;
        if constexpr (isFloat8<F>) {
          const WarpTiles<GATED, Work> of(work, work.job(i), warp - 4);
          w.fitted.load(of.p, of.tile, lane);
        }
        // The loop is unrolled by two segments, not fully, so that its code stays in the
        // instruction cache.
        _Pragma("unroll 1") for (int s = 0; s < each; s += 2) {
          UNROLL for (int second = 0; second < 2; second++) {
            if (second && each == 1) break;
            const int end = tileAt(rank * each + s + second + 1);
            UNROLL for (int n = 0; n < N / 2; n++) acc[n] = 0;
            _Pragma("unroll 1") for (; kt < end; kt++) {
              UNROLL for (int q = 0; q < quarters; q++) {
                const int now = turn.stage * pair + q % pair, tileStage = whole ? ring.stage : now;
                const u8 *tile = tiles + tileStage * W::stageBytes + (warp - 4) * W::pieceBytes;
                if ((q == 0 || !whole) && !tilesReady) awaitPhase(tileThere + 8 * tileStage, whole ? ring.parity : turn.parity);
                if constexpr (F::scaled) {
                  if (q == 0) {
                    w.template loadScales<FromShared>(tile, lane);
                    w.prepare();
                    w.template loadQuarter<FromShared>(tile, lane, 0);
                  }
                }
                UNROLL for (int h = 0; h < groups; h++) {
                  const bool last = h == groups - 1;
                  if constexpr (F::scaled) { // the next codes, before they are needed
                    if (last && q < quarters - 1) w.template loadQuarter<FromShared>(tile, lane, q + 1);
                  }
                  uint4(&of)[steps] = operands[(groups * q + h) % 2];
                  UNROLL for (int i = 0; i < steps; i++) {
                    if constexpr (F::scaled) of[i] = w.operand(4 * q + steps * h + i);
                    else of[i] = loadShared(reinterpret_cast<const uint4 *>(tile) + 32 * ((whole ? 4 * q : 0) + steps * h + i) + lane);
                  }
                  if (h == 0 && !chunkReady) awaitPhase(chunkThere + 8 * now, turn.parity);
                  beginProducts();
                  UNROLL for (int i = 0; i < steps; i++) {
                    multiplyRows<N, isFloat8<F> ? InFloat8 : sameFormat<F, BF16>() ? InBF16 : InF16>(acc, of[i], later(input, now * W::chunkBytes + 32 * (steps * h + i)));
                  }
                  endProducts();
                  if (last) {
                    if (q % pair == pair - 1) turn.next();
                    chunkReady = isOver(chunkThere + 8 * (turn.stage * pair + (q + 1) % pair), turn.parity);
                  }
                  awaitProducts<1>();
                  if (h == 0 && lane == 0 && (q > 0 || kt > firstTile)) arrive(chunkFree + 8 * before);
                }
                before = now;
                if (whole && q < quarters - 1) continue;
                syncWarp();
                if (place.parts == 1 && lane == 0) arrive(tileFree + 8 * tileStage);
                if (place.parts > 1 && lane < place.parts) arriveIn(place.rank(rank, lane), tileFree + 8 * tileStage);
                if (whole) {
                  ring.next();
                  tilesReady = isOver(tileThere + 8 * ring.stage, ring.parity);
                } else {
                  tilesReady = isOver(tileThere + 8 * (turn.stage * pair + (q + 1) % pair), turn.parity);
                }
              }
            }
            awaitProducts<0>();
            hold(acc);
            // total is 0 for a segment without columns
            UNROLL for (int n = 0; n < N / 2; n++) total[n] = second ? total[n] + acc[n] : acc[n];
          }
          // The tree: sums of two segments wait in shared memory, sums of four in local memory. All
          // of them are loaded into acc, which is free, before the first is added.
          auto put = [&](float4 *to, int apart) ALWAYS {
            UNROLL for (int n = 0; n < N / 8; n++) to[n * apart] = float4{total[4 * n], total[4 * n + 1], total[4 * n + 2], total[4 * n + 3]};
          };
          auto add = [&](const float4 *from, int apart) ALWAYS {
            UNROLL for (int n = 0; n < N / 8; n++) {
              const float4 v = from[n * apart];
              UNROLL for (int i = 0; i < 4; i++) acc[4 * n + i] = v[i];
            }
            UNROLL for (int n = 0; n < N / 2; n++) total[n] = acc[n] + total[n];
          };
          if (s % 4 == 0 && each > 2) put(wait, 256);
          if (s % 4 == 2) {
            add(wait, 256);
            if (s == 2 && each > 4) put(four, 1);
            if (s == 6) add(four, 1);
          }
        }
        if (endTile > firstTile && lane == 0) arrive(chunkFree + 8 * before);
        if (blocks == 1) {
          const Job j = work.job(i);
          if constexpr (GATED) finishGated<F, N>(work, j, a.out, a.unit, wait, total, warp - 4, lane);
          else finishPlain<F, N>(work, j, wideRows * j.unit + (warp - 4) * tileRows, total, lane);
          continue;
        }
        // Once restFree completes, no block of the cluster reads what rest holds of this or the
        // previous job. A plain block stores its own sums instead of sending them, where that is
        // faster.
        const bool plain = own >= 8;
        if (tidX() == 128) arriveWith(sumsThere, (plain ? N - own : N) * wideRows * 4);
        syncWarp();
        if (each > 2 && lane < blocks) arriveIn(ofJob(lane), restFree);
        awaitPhase(restFree, parity);
        const int row = (warp - 4) * tileRows + (lane & 8) + lane / 16 * 4;
        UNROLL for (int n = 0; n < N / 8; n++) {
          const float4 v = rowsOf(total[4 * n], total[4 * n + 1], total[4 * n + 2], total[4 * n + 3], lane);
          const int token = 8 * n + lane % 4 * 2 + lane / 4 % 2, owner = token * blocks / N;
          float *to = rest + (rank * own + (token & (own - 1))) * W::apart + row;
          if (plain && owner == rank) *reinterpret_cast<float4 *>(to) = v;
          else storeIn(placeIn(ofJob(owner), sharedAt(to)), v, placeIn(ofJob(owner), sumsThere));
        }
        syncWarp();
        if (lane == 0) arrive(sumsThere);
      }
      // While the sums arrive, load what turns the sums of a lane's four rows into values. A warp
      // finishes one row of the input at a time, or two of a gated product.
      constexpr int unitRows = Work::unitRows, together = GATED ? 2 : 1;
      const Job j = work.job(i);
      const Product p = work.product(j, 0);
      const int four = lane % (32 / together), row = unitRows * j.unit + 4 * four;
      const Lacking<F, 4, 1> lacks(p, row);
      const int mine = j.first + rank * own, end = minOf(own, j.end - mine);

      // sumAt returns the sums of four rows of weights, from place on, with one of the block's own
      // rows of the input.
      auto sumAt = [&](int token, int at) ALWAYS -> float4 {
        auto of = [&](int b) ALWAYS { return *reinterpret_cast<const float4 *>(rest + (b * own + token) * W::apart + at); };
        if (blocks == 2) return of(0) + of(1);
        if (blocks == 4) return (of(0) + of(1)) + (of(2) + of(3));
        return ((of(0) + of(1)) + (of(2) + of(3))) + ((of(4) + of(5)) + (of(6) + of(7)));
      };
      if constexpr (GATED) {
        const Product gated = work.product(j, 1);
        const Lacking<F, 4, 1> upLacks(gated.w ? gated : p, row);
        awaitPhase(sumsThere, parity);
        _Pragma("unroll 1") for (int t = 2 * (warp - 4) + lane / 16; t < end; t += 16) {
          // the gate's rows, then what it gates, of each warpgroup
          const int from = 4 * four + four / 8 * 32;
          const float4 g = sumAt(t, from), u = sumAt(t, from + 32);
          float values[4], gate[4], up[4];
          const float divided = work.divided(mine + t);
          UNROLL for (int i = 0; i < 4; i++) gate[i] = lacks.valueOf(i, divided, g[i]), up[i] = gated.w ? upLacks.valueOf(i, divided, u[i]) : 1;
          unitsOf<4>(a.unit, values, gate, up);
          float4 v;
          UNROLL for (int i = 0; i < 4; i++) v[i] = row + i < p.rows ? values[i] : 0;
          storeFour(a.out, mine + t, row, v);
          if (unitRows * (j.unit + 1) >= a.out.cols) { // the padding, too
            for (int c = row + unitRows; c < a.out.stride; c += unitRows) storeFour(a.out, mine + t, c, float4{});
          }
        }
      } else {
        // Residuals are loaded before the sums arrive, some rows at a time. Residuals and results
        // may share memory.
        constexpr int some = 4;
        const bool whole = row + 4 <= p.rows, adds = work.adds();
        float4 residual[some];
        auto ask = [&](int t) ALWAYS {
          UNROLL for (int k = 0; k < some; k++) {
            residual[k] = float4{};
            if (adds && whole && t + 8 * k < end) residual[k] = *reinterpret_cast<const float4 *>(work.residual(row, mine + t + 8 * k));
          }
        };
        ask(warp - 4);
        awaitPhase(sumsThere, parity);
        _Pragma("unroll 1") for (int t = warp - 4; t < end; t += 8 * some) {
          UNROLL for (int k = 0; k < some; k++) {
            const int token = t + 8 * k, at = mine + token;
            if (token >= end) break;
            const float4 sum = sumAt(token, 4 * four);
            float *y = p.y + s64(at) * p.stride + row;
            float4 v;
            UNROLL for (int i = 0; i < 4; i++) v[i] = lacks.valueOf(i, work.divided(at), sum[i]) * work.scale();
            if (whole) {
              *reinterpret_cast<float4 *>(y) = adds ? residual[k] + v : v;
            } else {
              UNROLL for (int i = 0; i < 4; i++) {
                if (row + i < p.rows) y[i] = adds ? work.residual(row, at)[i] + v[i] : v[i];
              }
            }
          }
          ask(t + 8 * some);
        }
      }
      syncConsumers(); // all warps have read the sums
    }
  }
  meetCluster(); // other blocks may still arrive at this block's barriers
}

#define WIDE(name, F, N, GATED, Work) \
  extern "C" __global__ void __launch_bounds__(wideThreads, Wide<F, N>::blocks) name(const Work<N, GATED>::Args a) { wide<F, N, GATED, Work<N, GATED>>(a); }
#define WIDES_OF(prefix, F, Work)             \
  WIDE(prefix##_16, F, 16, false, Work)       \
  WIDE(prefix##_32, F, 32, false, Work)       \
  WIDE(prefix##_64, F, 64, false, Work)       \
  WIDE(prefix##_128, F, 128, false, Work)     \
  WIDE(prefix##_gated_16, F, 16, true, Work)  \
  WIDE(prefix##_gated_32, F, 32, true, Work)  \
  WIDE(prefix##_gated_64, F, 64, true, Work)  \
  WIDE(prefix##_gated_128, F, 128, true, Work)
#define WIDES(F) WIDES_OF(wide, F, ManyRows)
#define WIDES_FLOAT8(F)                                                                  \
  extern "C" __global__ void __launch_bounds__(256) fit(const FitArgs a) { fit<F>(a); }  \
  WIDE(wide_16, Float8<F>, 16, false, ManyFloat8)                                        \
  WIDE(wide_64, Float8<F>, 64, false, ManyFloat8)                                        \
  WIDE(wide_128, Float8<F>, 128, false, ManyFloat8)                                      \
  WIDE(wide_gated_16, Float8<F>, 16, true, ManyFloat8)                                   \
  WIDE(wide_gated_64, Float8<F>, 64, true, ManyFloat8)                                   \
  WIDE(wide_gated_128, Float8<F>, 128, true, ManyFloat8)
#define WIDE_EXPERTS(F) WIDES_OF(expert, F, ManySlots)
