// Latent attention by the matrix instructions of a warp. latent_wide.cuh has the kernel for many
// tokens on Hopper.
//
// Positions 4t to 4t+3 of 16 are columns of the instruction as numbers are, see segment.cuh.
#include "band.cuh"
#include "latent.cuh"

// positionOf returns which of 32 positions column column%8 of 8 columns number column/8 is.
INLINE int positionOf(int column) { return column / 16 * 16 + column % 8 / 2 * 4 + column / 8 % 2 * 2 + column % 2; }

// loadOperands loads the queries of rows to shared memory as operands, by 16 numbers and lane.
INLINE void loadOperands(const LatentRows &rows, uint4 *to, const AnyAttentionArgs &a) {
  rows.load<5>(a, tidX(), blockThreads, [&](int row, int at, uint2 four) ALWAYS {
    u32 *words = reinterpret_cast<u32 *>(to + 32 * (at / 16) + row % 8 * 4 + at / 4 % 4) + row / 8;
    words[0] = four.x, words[2] = four.y;
  });
}

// hide sets the scores of those of 8*N positions that are not seen to -inf, and raises most to the
// largest of a lane.
template <int N> INLINE void hide(float (&x)[N][4], float (&most)[2], int from, const Seen &seen, int t) {
  UNROLL for (int n = 0; n < N; n++) {
    UNROLL for (int i = 0; i < 4; i++) {
      const int at = from + positionOf(8 * n + 2 * t + i % 2);
      if (at < seen.first || at > seen.last) x[n][i] = -infinity;
      most[i / 2] = maxOf(most[i / 2], x[n][i]);
    }
  }
}
INLINE float mostOfRow(float most) { // of the lanes of a row
  most = maxOf(most, shuffleXor(most, 1));
  return maxOf(most, shuffleXor(most, 2));
}

// weightsOf returns half of the operand of the weights of 16 positions: that of 8 columns. weightsOf
// of two times 8 columns returns the operand.
INLINE uint2 weightsOf(const float (&x)[4], float by, const float (&top)[2]) {
  u32 w[2];
  UNROLL for (int h = 0; h < 2; h++) {
    float v[2];
    UNROLL for (int i = 0; i < 2; i++) {
      const float product = x[2 * h + i];
      v[i] = product == -infinity ? 0 : weightOf(product, by, top[h]);
    }
    w[h] = halvesOf(v[0], v[1]);
  }
  return uint2{w[0], w[1]};
}
INLINE uint4 weightsOf(const float (&x)[2][4], float by, const float (&top)[2]) {
  const uint2 low = weightsOf(x[0], by, top), high = weightsOf(x[1], by, top);
  return uint4{low.x, low.y, high.x, high.y};
}

// joinValues joins values of rows g and g+8 to all; by are the factors of all rows.
INLINE void joinValues(float (&all)[8][4], const float (&next)[8][4], const Factors *by, int g) {
  UNROLL for (int h = 0; h < 2; h++) {
    const Factors f = by[g + 8 * h];
    UNROLL for (int n = 0; n < 8; n++) {
      UNROLL for (int i = 2 * h; i < 2 * h + 2; i++) all[n][i] = f.joined(all[n][i], next[n][i]);
    }
  }
}

// addValues adds the products of the weights of 16 positions and 64 columns of their values. A lane
// has 8 columns of each of four positions. Number 2h+e of value n of a lane is of row g+8h and
// column 16t + 8e + n.
INLINE void addValues(float (&x)[8][4], uint4 weights, const uint4 (&v)[4]) {
  UNROLL for (int n = 0; n < 8; n++) {
    const auto word = [&](int i) ALWAYS { return n / 2 == 0 ? v[i].x : n / 2 == 1 ? v[i].y : n / 2 == 2 ? v[i].z : v[i].w; };
    const u32 b0 = n % 2 ? highHalves(word(0), word(1)) : lowHalves(word(0), word(1));
    const u32 b1 = n % 2 ? highHalves(word(2), word(3)) : lowHalves(word(2), word(3));
    addHalfProducts(x[n], weights, b0, b1);
  }
}

// eachFour calls f with the first of 4 columns of a row of a warp's values, and these.
template <class Of> INLINE void eachFour(const float (&all)[8][4], int warp, int g, int t, const Of &f) {
  UNROLL for (int h = 0; h < 2; h++) {
    UNROLL for (int e = 0; e < 2; e++) {
      UNROLL for (int n = 0; n < 8; n += 4) f(g + 8 * h, latentColumns * warp + 16 * t + 8 * e + n, float4{all[n][2 * h + e], all[n + 1][2 * h + e], all[n + 2][2 * h + e], all[n + 3][2 * h + e]});
    }
  }
}

// --- Parts

// Blocks that share the segments of a token write parts of segments, or of their runs, to
// [T][groups][maxSegments][16][values+2]: the top, the sum of weights, the weighted values. Another
// kernel joins them.
INLINE float *latentPart(const AnyAttentionArgs &a, int token, int group, int segment) {
  const s64 groups = (a.heads + latentHeads - 1) / latentHeads;
  return a.partial + ((token * groups + group) * a.maxSegments + segment) * latentHeads * (a.values + 2);
}

// storePart writes the values of a part, which begins at to.
INLINE void storePart(float *to, const AnyAttentionArgs &a, const float (&values)[8][4], int warp, int g, int t) {
  eachFour(values, warp, g, t, [&](int row, int column, float4 v) ALWAYS {
    float2 *four = reinterpret_cast<float2 *>(to + row * (a.values + 2) + 2 + column);
    four[0] = float2{v.x, v.y}, four[1] = float2{v.z, v.w};
  });
}

// --- A token

// A block has 16 heads of a token. For each segment, each warp computes the weights of a run. Then
// each warp computes 64 columns of the values of all runs. So every number of a key is read once
// for its scores and once for the values, for all 16 heads.

struct LatentShared {
  alignas(16) uint4 q[anyKeyDim / 16][32]; // operands: of 16 numbers, by lane
  alignas(16) uint4 weight[runs][2][32];   // operands: of each half of a run, by lane
  s64 place[segmentTokens];                // where the keys of a segment begin, in bytes
  float top[runs][latentHeads], sum[runs][latentHeads];
  Factors by[runs + 1][latentHeads]; // of each run, and of the segment
  float allTop[latentHeads], allSum[latentHeads], segmentTop[latentHeads], segmentSum[latentHeads];
};

// A Latent is the work of a block.
struct Latent {
  const AnyAttentionArgs &a;
  LatentShared &s;
  LatentRows rows;
  Place place;
  Seen seen;
  int warp, lane, g, t;
  s64 chunkApart; // bytes between chunks of 8 numbers of a key
  bool mine;      // the warp has columns of the values

  METHOD Latent(const AnyAttentionArgs &a, LatentShared &s) : a(a), s(s), rows(a, blockZ(), blockY()) {
    place = a.table.places[rows.token];
    seen = seenBy(a, place.position);
    warp = tidX() / 32, lane = tidX() % 32, g = lane / 4, t = lane % 4;
    chunkApart = s64(a.pool.rows) * 16;
    mine = latentColumns * warp < a.values;
  }

  METHOD void begin() {
    loadOperands(rows, s.q[0], a);
    if (tidX() < latentHeads) s.allTop[tidX()] = -infinity, s.allSum[tidX()] = 0;
  }

  // score computes the weights of the warp's run of a segment.
  METHOD void score(int begin) {
    const int from = begin + warp * runTokens;
    s.place[tidX()] = 0;
    if (seen.some(begin + tidX(), 1)) {
      const Slot slot = slotIn(a.pool, a.table, place.shift, begin + tidX());
      s.place[tidX()] = slot.page + slot.at * 16;
    }
    syncWarp(); // the warp reads the places of its own run
    if (!seen.some(from, runTokens)) {
      if (lane < latentHeads) s.top[warp][lane] = -infinity, s.sum[warp][lane] = 0;
      return;
    }
    // Positions that are not seen read a row that is.
    const u8 *key[4];
    const int some = minOf(maxOf(from, seen.first), seen.last) - begin;
    UNROLL for (int n = 0; n < 4; n++) {
      const int at = warp * runTokens + positionOf(8 * n + g);
      key[n] = a.pool.base + s.place[seen.some(begin + at, 1) ? at : some] + t / 2 * chunkApart + t % 2 * 8;
    }
    float x[2][2][4] = {}; // by half of the run and 8 columns
    constexpr int ahead = 3; // of 32 numbers of the keys
    const int all = a.pool.keyDim / 32;
    uint2 k[ahead][2][4];
    auto load = [&](uint2 (&to)[2][4], int j) ALWAYS {
      if (j >= all) return;
      UNROLL for (int h = 0; h < 2; h++) {
        UNROLL for (int n = 0; n < 4; n++) to[h][n] = *reinterpret_cast<const uint2 *>(key[n] + (4 * j + 2 * h) * chunkApart);
      }
    };
    UNROLL for (int j = 0; j < ahead; j++) load(k[j], j);
    _Pragma("unroll 1") for (int j = 0; j < all; j += ahead) {
      UNROLL for (int i = 0; i < ahead; i++) {
        if (j + i >= all) break;
        UNROLL for (int h = 0; h < 2; h++) {
          const uint4 q = s.q[2 * (j + i) + h][lane];
          UNROLL for (int n = 0; n < 4; n++) addHalfProducts(x[n / 2][n % 2], q, k[i][h][n].x, k[i][h][n].y);
        }
        load(k[i], j + i + ahead);
      }
    }
    const float by = a.scale * log2e;
    float most[2] = {-infinity, -infinity}, top[2];
    UNROLL for (int half = 0; half < 2; half++) hide(x[half], most, from + 16 * half, seen, t);
    UNROLL for (int h = 0; h < 2; h++) top[h] = topOf(mostOfRow(most[h]), by);
    float sum[4] = {};
    UNROLL for (int half = 0; half < 2; half++) {
      const uint4 operand = weightsOf(x[half], by, top);
      s.weight[warp][half][lane] = operand;
      addHalfProducts(sum, operand, halfOnes, halfOnes);
    }
    if (t == 0) {
      s.top[warp][g] = top[0], s.sum[warp][g] = sum[0];
      s.top[warp][g + 8] = top[1], s.sum[warp][g + 8] = sum[2];
    }
  }

  // joinRuns computes the factors of a segment's runs, and of the segment itself.
  METHOD void joinRuns(int begin) {
    if (tidX() >= latentHeads) return;
    const int row = tidX();
    float top = -infinity, sum = 0;
    const auto join = [&](int at, float &top, float &sum, float nextTop, float nextSum) ALWAYS {
      const Factors f = factorsOf(top, nextTop);
      s.by[at][row] = f, sum = f.joined(sum, nextSum);
    };
    for (int r = 0; r < runs; r++) {
      if (seen.some(begin + r * runTokens, runTokens)) join(r, top, sum, s.top[r][row], s.sum[r][row]);
    }
    s.segmentTop[row] = top, s.segmentSum[row] = sum;
    join(runs, s.allTop[row], s.allSum[row], top, sum);
  }

  // values sets part to the warp's columns of a segment's values.
  METHOD void values(float (&part)[8][4], int begin) const {
    UNROLL for (int n = 0; n < 8; n++) {
      UNROLL for (int i = 0; i < 4; i++) part[n][i] = 0;
    }
    const u8 *chunk = a.pool.base + (8 * warp + g) * chunkApart;
    uint4 v[2][4];
    // Positions that are not seen have a weight of 0, and read a row that is seen.
    const int some = minOf(maxOf(begin, seen.first), seen.last) - begin;
    auto load = [&](uint4 (&to)[4], int run, int half) ALWAYS {
      UNROLL for (int i = 0; i < 4; i++) {
        const int at = run * runTokens + 16 * half + 4 * t + i;
        to[i] = *reinterpret_cast<const uint4 *>(chunk + s.place[seen.some(begin + at, 1) ? at : some]);
      }
    };
    const int from = maxOf(0, seen.first - begin) / runTokens, end = minOf(seen.last - begin, segmentTokens - 1) / runTokens + 1;
    load(v[0], from, 0);
    _Pragma("unroll 1") for (int run = from; run < end; run++) {
      float x[8][4] = {};
      UNROLL for (int half = 0; half < 2; half++) {
        if (half == 0) load(v[1], run, 1);
        else if (run + 1 < end) load(v[0], run + 1, 0);
        addValues(x, s.weight[run][half][lane], v[half]);
      }
      joinValues(part, x, s.by[run], g);
    }
  }
};

// attend attends. Grid (split ? segments : 1, ceil(heads/16), T), 256 threads.
extern "C" __global__ void __launch_bounds__(blockThreads, 1) attend(const AnyAttentionArgs a) {
  __shared__ LatentShared s;
  Latent l(a, s);
  waitForPrevious();
  allowNext();
  if (l.rows.token >= *a.count) return;
  const int lowest = l.seen.first / segmentTokens, segments = l.seen.last / segmentTokens - lowest + 1;
  if (blockX() >= segments) return;
  l.begin();
  syncBlock();
  float all[8][4] = {};
  _Pragma("unroll 1") for (int i = blockX(); i < segments; i += gridX()) {
    const int begin = (lowest + i) * segmentTokens;
    l.score(begin);
    syncBlock();
    l.joinRuns(begin);
    syncBlock();
    if (l.mine) {
      float part[8][4];
      l.values(part, begin);
      if (a.split) {
        storePart(latentPart(a, l.rows.token, blockY(), i), a, part, l.warp, l.g, l.t);
      } else {
        joinValues(all, part, s.by[runs], l.g);
      }
    }
    if (a.split && tidX() < latentHeads) {
      float *to = latentPart(a, l.rows.token, blockY(), i) + tidX() * (a.values + 2);
      to[0] = s.segmentTop[tidX()], to[1] = s.segmentSum[tidX()];
    }
    syncBlock(); // all warps have read weights and factors
  }
  if (a.split || !l.mine) return;
  eachFour(all, l.warp, l.g, l.t, [&](int row, int column, float4 v) ALWAYS { l.rows.store(a, row, column, v, s.allSum[row]); });
}

// --- A token with few runs

// A block has 16 heads of a token and a run, and asks for all that it reads at once. Four warps
// compute the scores of 8 positions each, then all compute 64 columns of the values each. The parts
// have the layout of those of segments, 8 for each segment.

struct RunShared {
  alignas(16) uint4 q[anyKeyDim / 16][32];          // operands: of 16 numbers, by lane
  alignas(16) uint2 weight[runTokens / 16][32][2];  // operands: of each half of the run, by lane and 8 positions
  s64 place[runTokens];                             // where the keys begin, in bytes
  float most[runTokens / 8][latentHeads];           // the largest products of 8 positions
};

// attend_runs attends. Grid (8 for each segment, ceil(heads/16), T), 256 threads.
extern "C" __global__ void __launch_bounds__(blockThreads, 1) attend_runs(const AnyAttentionArgs a) {
  __shared__ RunShared s;
  const LatentRows rows(a, blockZ(), blockY());
  const Place place = a.table.places[rows.token];
  const Seen seen = seenBy(a, place.position);
  const int warp = tidX() / 32, lane = tidX() % 32, g = lane / 4, t = lane % 4;
  waitForPrevious();
  allowNext();
  if (rows.token >= *a.count) return;
  const int begin = seen.first / segmentTokens * segmentTokens + blockX() * runTokens;
  if (!seen.some(begin, runTokens)) return;
  const s64 chunkApart = s64(a.pool.rows) * 16;
  if (tidX() < runTokens) { // positions that are not seen read a row that is
    const Slot slot = slotIn(a.pool, a.table, place.shift, minOf(maxOf(begin + tidX(), seen.first), seen.last));
    s.place[tidX()] = slot.page + slot.at * 16;
  }
  syncBlock();
  constexpr int scoring = runTokens / 8, most = anyKeyDim / 16; // warps; steps
  const int steps = a.pool.keyDim / 16;
  const bool scores = warp < scoring, mine = latentColumns * warp < a.values;
  uint2 k[most];
  if (scores) {
    const u8 *key = a.pool.base + s.place[positionOf(8 * warp + g)] + t / 2 * chunkApart + t % 2 * 8;
    UNROLL for (int j = 0; j < most; j++) {
      if (j < steps) k[j] = *reinterpret_cast<const uint2 *>(key + 2 * j * chunkApart);
    }
  }
  uint4 v[runTokens / 16][4];
  if (mine) {
    const u8 *chunk = a.pool.base + (8 * warp + g) * chunkApart;
    UNROLL for (int half = 0; half < runTokens / 16; half++) {
      UNROLL for (int i = 0; i < 4; i++) v[half][i] = *reinterpret_cast<const uint4 *>(chunk + s.place[16 * half + 4 * t + i]);
    }
  }
  loadOperands(rows, s.q[0], a);
  syncBlock();
  float x[1][4] = {};
  if (scores) {
    UNROLL for (int j = 0; j < most; j++) {
      if (j < steps) addHalfProducts(x[0], s.q[j][lane], k[j].x, k[j].y);
    }
    float largest[2] = {-infinity, -infinity};
    hide(x, largest, begin + positionOf(8 * warp), seen, t);
    UNROLL for (int h = 0; h < 2; h++) {
      largest[h] = mostOfRow(largest[h]);
      if (t == 0) s.most[warp][g + 8 * h] = largest[h];
    }
  }
  syncBlock();
  const float by = a.scale * log2e;
  float top[2];
  UNROLL for (int h = 0; h < 2; h++) {
    top[h] = s.most[0][g + 8 * h];
    UNROLL for (int n = 1; n < scoring; n++) top[h] = maxOf(top[h], s.most[n][g + 8 * h]);
    top[h] = topOf(top[h], by);
  }
  if (scores) s.weight[warp / 2][lane][warp % 2] = weightsOf(x[0], by, top);
  syncBlock();
  float *to = latentPart(a, rows.token, blockY(), blockX());
  const auto weights = [&](int half) ALWAYS { return *reinterpret_cast<const uint4 *>(s.weight[half][lane]); };
  if (warp == 0) {
    float sum[4] = {};
    UNROLL for (int half = 0; half < runTokens / 16; half++) addHalfProducts(sum, weights(half), halfOnes, halfOnes);
    UNROLL for (int h = 0; h < 2; h++) {
      float *row = to + (g + 8 * h) * (a.values + 2);
      if (t == 0) row[0] = top[h], row[1] = sum[2 * h];
    }
  }
  if (!mine) return;
  float values[8][4] = {};
  UNROLL for (int half = 0; half < runTokens / 16; half++) addValues(values, weights(half), v[half]);
  storePart(to, a, values, warp, g, t);
}

// join_runs joins the runs of a head's segments, and these. Grid (1, heads, T), 256 threads.
extern "C" __global__ void __launch_bounds__(blockThreads) join_runs(const AnyAttentionArgs a) {
  const int token = blockZ(), head = blockY();
  const Seen seen = seenBy(a, a.table.places[token].position);
  waitForPrevious();
  allowNext();
  if (token >= *a.count) return;
  const int lowest = seen.first / segmentTokens, segments = seen.last / segmentTokens - lowest + 1;
  const float *part = latentPart(a, token, head / latentHeads, 0) + head % latentHeads * (a.values + 2);
  const s64 apart = latentHeads * (a.values + 2);
  Part all[anyPasses];
  UNROLL for (int k = 0; k < anyPasses; k++) all[k] = Part{-infinity, 0, 0};
  _Pragma("unroll 1") for (int i = 0; i < segments; i++) {
    const auto sees = [&](int r) ALWAYS { return seen.some((lowest + i) * segmentTokens + r * runTokens, runTokens); };
    Part next[runs][anyPasses], segment[anyPasses];
    UNROLL for (int r = 0; r < runs; r++) {
      if (!sees(r)) continue;
      const float *p = part + (i * runs + r) * apart;
      UNROLL for (int k = 0; k < anyPasses; k++) {
        const int at = tidX() + blockThreads * k;
        next[r][k] = Part{p[0], p[1], at < a.values ? p[2 + at] : 0.0f};
      }
    }
    UNROLL for (int k = 0; k < anyPasses; k++) segment[k] = Part{-infinity, 0, 0};
    UNROLL for (int r = 0; r < runs; r++) {
      if (!sees(r)) continue;
      UNROLL for (int k = 0; k < anyPasses; k++) join(segment[k], next[r][k]);
    }
    UNROLL for (int k = 0; k < anyPasses; k++) join(all[k], segment[k]);
  }
  UNROLL for (int k = 0; k < anyPasses; k++) {
    const int at = tidX() + blockThreads * k;
    if (at < a.values) storeBlock(a.out, token, (head * a.values + at) / 32, tidX() % 32, divide(all[k].value, all[k].sum));
  }
}

// --- Many tokens

// A block has 16 heads of each of two adjacent tokens. It copies the keys of pieces of 64 positions
// to shared memory, once for both tokens if they are of one sequence; otherwise it attends for one
// and then for the other. Each warp computes the scores of 16 positions for one of the tokens, and
// then 64 columns of the values for both.

constexpr int pieceHalves = 2 * pieceRuns;
constexpr int factorsHalf = 1, sumsHalf = 2; // of the warps that compute these
static_assert(manyTokens * pieceHalves == runs);

struct ManyShared {
  alignas(16) uint4 weight[manyTokens][pieceHalves][32]; // operands: of each half of a run, by lane
  float most[manyTokens][pieceHalves][latentHeads];      // the largest products
  Factors by[manyTokens][pieceRuns + 1][latentHeads];    // of each run, and of the segment
  // Of the segment so far, and of all before it.
  float top[manyTokens][latentHeads], sum[manyTokens][latentHeads], allTop[manyTokens][latentHeads], allSum[manyTokens][latentHeads];
};

// A Many is the work of a block. A piece in shared memory is rows of whole 128 bytes, of positions
// in the order of the instruction's columns. Chunk c of row r is number c^mixed(r), so that eight
// rows of a chunk are in different banks, and so are two chunks of four rows.
struct Many {
  const AnyAttentionArgs &a;
  ManyShared &s;
  int id, warp, lane, g, t;
  int token, half; // that the warp computes scores for
  int rowBytes;    // of a key in shared memory
  int queryBytes;  // of a token's queries in shared memory, operands as in LatentShared
  u32 queries, pieces;
  s64 chunkApart;
  int shift;
  Seen seen[manyTokens]{}; // by each token, of the sequence at shift
  Seen own;                // by the token of the warp's scores

  METHOD static int mixed(int row) { return row % 4 * 2 + row / 4 % 2; }

  METHOD Many(const AnyAttentionArgs &a, ManyShared &s) : a(a), s(s) {
    locate();
    rowBytes = (a.pool.keyDim + 63) / 64 * 128, queryBytes = 2 * latentHeads * a.pool.keyDim;
    pieces = sharedAt(sharedBytes()), queries = pieces + 2 * latentPiece * rowBytes;
    chunkApart = s64(a.pool.rows) * 16;
    if (id < manyTokens * latentHeads) {
      const int k = id / latentHeads, row = id % latentHeads;
      s.top[k][row] = s.allTop[k][row] = -infinity, s.sum[k][row] = s.allSum[k][row] = 0;
    }
  }

  METHOD void locate() {
    id = tidX();
    asm volatile("" : "+r"(id)); // what a piece needs of it is computed anew, to have registers
    __builtin_assume(id >= 0 && id < blockThreads);
    warp = id / 32, lane = id % 32, g = lane / 4, t = lane % 4;
    token = warp / pieceHalves, half = warp % pieceHalves;
    own = token == 0 ? seen[0] : seen[1];
  }

  METHOD u32 pieceAt(int i) const { return pieces + i * latentPiece * rowBytes; }

  // find returns where the thread's part of a piece begins, in bytes, and -1 if no token sees it.
  METHOD s64 find(int begin) const {
    const int position = begin + positionOf(id % latentPiece);
    if (!seen[0].some(position, 1) && !seen[1].some(position, 1)) return -1;
    const Slot slot = slotIn(a.pool, a.table, shift, position);
    return slot.page + slot.at * 16 + id / latentPiece * chunkApart;
  }
  // copy starts the copy of a piece. Rows that no token sees keep what they have.
  METHOD void copy(u32 piece, s64 from) const {
    if (from < 0) return;
    constexpr int each = blockThreads / latentPiece; // adjacent chunks of a row are of different threads
    static_assert(each == 4);
    const int row = id % latentPiece, mix = mixed(row);
    const u32 to = piece + row * rowBytes + 16 * (id / latentPiece ^ mix % each);
    const u8 *key = a.pool.base + from;
    const int all = a.pool.keyDim / 32;
    for (int j = 0; j < all; j++, key += each * chunkApart) copyChunk(to + 16 * each * (j ^ mix / each), key, true);
  }

  // score computes the warp's 16 positions, and their largest product.
  METHOD void score(float (&x)[2][4], u32 piece, int begin) {
    if (!own.some(begin + half / 2 * runTokens, runTokens)) return;
    const int all = a.pool.keyDim / 32, mix = mixed(g);
    const u32 q = queries + token * queryBytes + 16 * lane, key = piece + (16 * half + g) * rowBytes + 16 * (t / 2 ^ mix % 2) + 8 * (t % 2);
    uint4 query[2][2]; // by turns: of 32 numbers, by step
    uint2 v[2][2][2];  // of two keys
    const auto load = [&](int turn, int j) ALWAYS {
      if (j >= all) return;
      UNROLL for (int i = 0; i < 2; i++) {
        query[turn][i] = loadChunk(q + 1024 * j + 512 * i);
        UNROLL for (int n = 0; n < 2; n++) v[turn][i][n] = loadHalf(key + 8 * n * rowBytes + 32 * (2 * j + i ^ mix / 2));
      }
    };
    UNROLL for (int n = 0; n < 2; n++) {
      UNROLL for (int i = 0; i < 4; i++) x[n][i] = 0;
    }
    load(0, 0);
    _Pragma("unroll 1") for (int j = 0; j < all; j += 2) {
      UNROLL for (int turn = 0; turn < 2; turn++) {
        if (j + turn >= all) break;
        load(1 - turn, j + turn + 1);
        UNROLL for (int i = 0; i < 2; i++) {
          UNROLL for (int n = 0; n < 2; n++) addHalfProducts(x[n], query[turn][i], v[turn][i][n].x, v[turn][i][n].y);
        }
      }
    }
    float most[2] = {-infinity, -infinity};
    hide(x, most, begin + 16 * half, own, t);
    UNROLL for (int h = 0; h < 2; h++) {
      most[h] = mostOfRow(most[h]);
      if (t == 0) s.most[token][half][g + 8 * h] = most[h];
    }
  }

  // ends reports whether a piece is the last one of a segment that a token sees.
  METHOD static bool ends(const Seen &seen, int begin) {
    return seen.some(begin, latentPiece) && ((begin + latentPiece) % segmentTokens == 0 || begin + latentPiece > seen.last);
  }

  METHOD float topOfRun(int r, int row) const {
    return topOf(maxOf(s.most[token][2 * r][row], s.most[token][2 * r + 1][row]), a.scale * log2e);
  }

  // weigh computes the weights of the warp's positions. One warp of each token computes its factors
  // too, each row with one lane.
  METHOD void weigh(const float (&x)[2][4], int begin) {
    if (own.some(begin + half / 2 * runTokens, runTokens)) {
      const float next[2] = {topOfRun(half / 2, g), topOfRun(half / 2, g + 8)};
      s.weight[token][half][lane] = weightsOf(x, a.scale * log2e, next);
    }
    if (half != factorsHalf || t > 1) return;
    const int row = g + 8 * t;
    float top = s.top[token][row];
    UNROLL for (int r = 0; r < pieceRuns; r++) {
      if (own.some(begin + r * runTokens, runTokens)) s.by[token][r][row] = factorsOf(top, topOfRun(r, row));
    }
    if (ends(own, begin)) {
      s.by[token][pieceRuns][row] = factorsOf(s.allTop[token][row], top);
      top = -infinity;
    }
    s.top[token][row] = top;
  }
  // addSums adds the sums of the weights. One warp of each token does it, each row with one lane.
  METHOD void addSums(int begin) {
    if (half != sumsHalf) return;
    const int row = g + 8 * (t % 2);
    float sum = s.sum[token][row];
    UNROLL for (int r = 0; r < pieceRuns; r++) {
      if (!own.some(begin + r * runTokens, runTokens)) continue;
      float next[4] = {};
      UNROLL for (int i = 0; i < 2; i++) addHalfProducts(next, s.weight[token][2 * r + i][lane], halfOnes, halfOnes);
      sum = s.by[token][r][row].joined(sum, t % 2 ? next[2] : next[0]);
    }
    if (t > 1) return;
    if (ends(own, begin)) {
      s.allSum[token][row] = s.by[token][pieceRuns][row].joined(s.allSum[token][row], sum);
      sum = 0;
    }
    s.sum[token][row] = sum;
  }

  // addRun joins the values of a run to the parts of tokens FROM to TO-1. Number 2h+e of value n of
  // a lane is of row g+8h and column 8n + 2t + e of the warp's. If WHOLE is false, positions that
  // the token does not see count as 0, whatever they are.
  template <int FROM, int TO, bool WHOLE> METHOD void addRun(float (&part)[manyTokens][8][4], u32 piece, int begin, int r) const {
    const int row = r * runTokens + lane;
    const u32 at = piece + row * rowBytes + 2 * latentColumns * warp, mix = 16 * mixed(row);
    uint4 w[TO - FROM][2];
    Factors f[TO - FROM][2];
    UNROLL for (int k = FROM; k < TO; k++) {
      UNROLL for (int i = 0; i < 2; i++) w[k - FROM][i] = s.weight[k][2 * r + i][lane], f[k - FROM][i] = s.by[k][r][g + 8 * i];
    }
    u32 mask[4];
    if constexpr (!WHOLE) {
      UNROLL for (int i = 0; i < 4; i++) {
        const int first = begin + r * runTokens + positionOf(8 * i + 2 * t);
        mask[i] = (seen[FROM].some(first, 1) ? 0xffffu : 0) | (seen[FROM].some(first + 1, 1) ? 0xffff0000u : 0);
      }
    }
    constexpr int each = 2; // of 8 columns at a time, so that the chains of their products overlap
    UNROLL for (int n = 0; n < 8; n += each) {
      u32 now[each][4];
      UNROLL for (int e = 0; e < each; e++) loadTransposed(now[e], at + (16 * (n + e) ^ mix));
      if constexpr (!WHOLE) {
        UNROLL for (int e = 0; e < each; e++) {
          UNROLL for (int i = 0; i < 4; i++) now[e][i] &= mask[i];
        }
      }
      float x[TO - FROM][each][4] = {};
      UNROLL for (int i = 0; i < 2; i++) {
        UNROLL for (int e = 0; e < each; e++) {
          UNROLL for (int k = 0; k < TO - FROM; k++) addHalfProducts(x[k][e], w[k][i], now[e][2 * i], now[e][2 * i + 1]);
        }
      }
      UNROLL for (int k = 0; k < TO - FROM; k++) {
        UNROLL for (int e = 0; e < each; e++) {
          UNROLL for (int i = 0; i < 4; i++) part[FROM + k][n + e][i] = f[k][i / 2].joined(part[FROM + k][n + e][i], x[k][e][i]);
        }
      }
    }
  }

  // addValues joins the values of a piece to the parts, and these to all where a segment ends.
  METHOD void addValues(float (&all)[manyTokens][8][4], float (&part)[manyTokens][8][4], u32 piece, int begin) const {
    _Pragma("unroll 1") for (int r = 0; r < pieceRuns; r++) {
      const int from = begin + r * runTokens;
      if (seen[0].all(from, runTokens) && seen[1].all(from, runTokens)) {
        addRun<0, 2, true>(part, piece, begin, r);
      } else {
        if (seen[0].some(from, runTokens)) addRun<0, 1, false>(part, piece, begin, r);
        if (seen[1].some(from, runTokens)) addRun<1, 2, false>(part, piece, begin, r);
      }
    }
    UNROLL for (int k = 0; k < manyTokens; k++) {
      if (!ends(seen[k], begin)) continue;
      joinValues(all[k], part[k], s.by[k][pieceRuns], g);
      UNROLL for (int n = 0; n < 8; n++) {
        UNROLL for (int i = 0; i < 4; i++) part[k][n][i] = 0;
      }
    }
  }

  // attend attends for tokens that see positions first to last of the sequence at shift.
  METHOD void attend(float (&all)[manyTokens][8][4], float (&part)[manyTokens][8][4], int first, int last) {
    const int start = first / latentPiece * latentPiece;
    // While a piece is computed, the next one is copied and the one after that is found.
    s64 next = -1;
    _Pragma("unroll 1") for (int begin = start - 2 * latentPiece, i = 0; begin <= last; begin += latentPiece, i ^= 1) {
      waitCopies<0>();
      syncBlock(); // the queries and the piece are there, and all warps are done with the other one
      copy(pieceAt(1 - i), next);
      endCopies();
      next = find(begin + 2 * latentPiece);
      if (begin < start) continue;
      locate();
      const u32 piece = pieceAt(i);
      float x[2][4];
      score(x, piece, begin);
      syncBlock();
      weigh(x, begin);
      syncBlock();
      addSums(begin);
      if (latentColumns * warp < a.values) addValues(all, part, piece, begin);
    }
  }
};

// attend_many attends, with the same bits as attend. Grid (ceil(heads/16), ceil(T/2)), 256 threads,
// dynamic shared memory of queries and two pieces. Tokens that see most come first.
// cost: shared memory. Every warp reads the queries of a token for 16 positions.
extern "C" __global__ void __launch_bounds__(blockThreads, 1) attend_many(const AnyAttentionArgs a) {
  __shared__ ManyShared s;
  const int token = manyTokens * (gridY() - 1 - blockY());
  waitForPrevious();
  allowNext();
  const int count = *a.count;
  if (token >= count) return;
  Many m(a, s);
  const bool two = token + 1 < count;
  const Place *places = a.table.places + token;
  const bool together = two && places[0].shift == places[1].shift && places[0].position + 1 == places[1].position;
  const LatentRows rows[manyTokens] = {{a, token, blockX()}, {a, token + 1, blockX()}};
  UNROLL for (int k = 0; k < manyTokens; k++) {
    if (k == 0 || two) loadOperands(rows[k], reinterpret_cast<uint4 *>(sharedBytes() + 2 * latentPiece * m.rowBytes + k * m.queryBytes), a);
  }
  float all[manyTokens][8][4] = {}, part[manyTokens][8][4] = {};
  _Pragma("unroll 1") for (int turn = 0; turn < (two && !together ? 2 : 1); turn++) {
    const Seen none{0, -1}, sees = seenBy(a, places[turn].position);
    m.shift = places[turn].shift;
    m.seen[0] = turn == 0 ? sees : none;
    m.seen[1] = turn == 1 ? sees : together ? seenBy(a, sees.last + 1) : none;
    m.attend(all, part, sees.first, sees.last + together);
  }
  syncBlock();
  if (latentColumns * m.warp >= a.values) return;
  // Two lanes exchange pairs of columns, so that each has four adjacent ones of eight.
  const int odd = m.t % 2;
  UNROLL for (int k = 0; k < manyTokens; k++) {
    UNROLL for (int h = 0; h < 2; h++) {
      UNROLL for (int n = 0; n < 8; n += 2) {
        float v[2][2]; // of the lane's eight columns: the lower pair and the upper pair
        UNROLL for (int e = 0; e < 2; e++) {
          const float even = all[k][n][2 * h + e], uneven = all[k][n + 1][2 * h + e];
          const float got = shuffleXor(odd ? even : uneven, 1);
          v[0][e] = odd ? got : even, v[1][e] = odd ? uneven : got;
        }
        const int row = m.g + 8 * h;
        if (k == 0 || two) rows[k].store(a, row, latentColumns * m.warp + 8 * (n + odd) + m.t / 2 * 4, float4{v[0][0], v[0][1], v[1][0], v[1][1]}, s.allSum[k][row]);
      }
    }
  }
}

// join joins the parts of a head. Grid (1, heads, T), 256 threads.
extern "C" __global__ void __launch_bounds__(blockThreads) join(const AnyAttentionArgs a) {
  __shared__ float factors[96]; // as many as joinNumbers has for a row
  const int token = blockZ(), head = blockY();
  const Place place = a.table.places[token];
  waitForPrevious();
  allowNext();
  if (token >= *a.count) return;
  const int segments = place.position / segmentTokens - seenBy(a, place.position).first / segmentTokens + 1;
  float value[anyPasses];
  int row[anyPasses], at[anyPasses];
  UNROLL for (int p = 0; p < anyPasses; p++) at[p] = tidX() + blockThreads * p, row[p] = at[p] < a.values ? 0 : 1;
  const float *part = latentPart(a, token, head / latentHeads, 0) + head % latentHeads * (a.values + 2);
  joinNumbers(value, row, at, part, segments, nullptr, 1, 1, latentHeads, a.values, factors, 96);
  UNROLL for (int p = 0; p < anyPasses; p++) {
    if (row[p] == 0) storeBlock(a.out, token, (head * a.values + at[p]) / 32, tidX() % 32, value[p]);
  }
}
