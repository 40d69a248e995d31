// Latent attention: all heads of a token attend to one row of the cache per position, whose leading
// numbers are the values. The arithmetic is that of segment.cuh, except that numbers 8t to 8t+7 of
// 32 are columns 2t, 2t+1, 2t+8 and 2t+9 of one step of the instruction and then of the next, and
// positions 4t to 4t+3 of 16 likewise.
//
// A block has 16 heads of a token, the rows of the instruction. For each segment, each warp computes
// the weights of a run. Then each warp computes 64 columns of the values of all runs. So every
// number of a key is read once for its scores and once for the values, for all 16 heads.
#include "anyattention.cuh"
#include "half.cuh"
#include "matrix.cuh"

constexpr int latentHeads = 16, latentColumns = 64; // of a warp
constexpr int latentStride = anyKeyDim + 8; // numbers between queries in shared memory

struct LatentShared {
  alignas(16) u16 q[latentHeads][latentStride];
  alignas(16) uint4 weight[runs][2][32]; // operands: of each half of a run, by lane
  s64 place[segmentTokens];              // where the keys of a segment begin, in bytes
  float top[runs][latentHeads], sum[runs][latentHeads];
  // What the sums so far and the next ones are multiplied by: of each run, and of the segment.
  float before[runs + 1][latentHeads], next[runs + 1][latentHeads];
  float allTop[latentHeads], allSum[latentHeads], segmentTop[latentHeads], segmentSum[latentHeads];
};

// A Latent is the work of a block.
struct Latent {
  const AnyAttentionArgs &a;
  LatentShared &s;
  int token, head, heads; // head: the first of heads
  int first, last;        // positions that the token sees
  Place place;
  int warp, lane, g, t;
  s64 chunkApart; // bytes between chunks of 8 numbers of a key
  bool mine;      // the warp has columns of the values

  METHOD Latent(const AnyAttentionArgs &a, LatentShared &s) : a(a), s(s) {
    token = blockZ(), head = blockY() * latentHeads, heads = minOf(latentHeads, a.heads - head);
    place = a.table.places[token];
    last = place.position, first = a.window > 0 ? maxOf(0, last - a.window + 1) : 0;
    warp = tidX() / 32, lane = tidX() % 32, g = lane / 4, t = lane % 4;
    chunkApart = s64(a.pool.rows) * 16;
    mine = latentColumns * warp < a.values;
  }

  METHOD void loadQueries() {
    const float *q = a.q + s64(token) * a.stride + s64(head) * a.pool.keyDim;
    const int dim = a.pool.keyDim;
    for (int i = tidX(); i < latentHeads * dim / 4; i += blockThreads) {
      const int row = 4 * i / dim, at = 4 * i % dim;
      const float4 v = row < heads ? *reinterpret_cast<const float4 *>(q + 4 * i) : float4{};
      *reinterpret_cast<uint2 *>(&s.q[row][at]) = uint2{halvesOf(v.x, v.y), halvesOf(v.z, v.w)};
    }
    if (tidX() < latentHeads) s.allTop[tidX()] = -infinity, s.allSum[tidX()] = 0;
  }

  // score computes the weights of the warp's run of a segment.
  METHOD void score(int begin) {
    const int from = begin + warp * runTokens;
    s.place[tidX()] = 0;
    if (begin + tidX() >= first && begin + tidX() <= last) {
      const Slot slot = slotIn(a.pool, a.table, place.shift, begin + tidX());
      s.place[tidX()] = slot.page + slot.at * 16;
    }
    syncWarp(); // the warp reads the places of its own run
    if (from > last || from + runTokens <= first) {
      if (lane < latentHeads) s.top[warp][lane] = -infinity, s.sum[warp][lane] = 0;
      return;
    }
    // Column c of the 8 columns n has position 16(n/2) + 4(c/2) + 2(n%2) + c%2 of the run. Those that
    // are not seen read a row that is.
    const u8 *key[4];
    const int seen = minOf(maxOf(from, first), last) - begin;
    UNROLL for (int n = 0; n < 4; n++) {
      const int at = warp * runTokens + 16 * (n / 2) + 4 * (g / 2) + 2 * (n % 2) + g % 2;
      key[n] = a.pool.base + s.place[begin + at >= first && begin + at <= last ? at : seen] + t * chunkApart;
    }
    float x[4][4] = {};
    constexpr int ahead = 3; // of 32 numbers of the keys
    const int all = a.pool.keyDim / 32;
    uint4 k[ahead][4];
    auto load = [&](uint4 (&to)[4], int j) ALWAYS {
      UNROLL for (int n = 0; n < 4; n++) {
        if (j < all) to[n] = *reinterpret_cast<const uint4 *>(key[n] + 4 * j * chunkApart);
      }
    };
    UNROLL for (int j = 0; j < ahead; j++) load(k[j], j);
    _Pragma("unroll 1") for (int j = 0; j < all; j += ahead) {
      UNROLL for (int i = 0; i < ahead; i++) {
        if (j + i >= all) break;
        const uint4 q = *reinterpret_cast<const uint4 *>(&s.q[g][32 * (j + i) + 8 * t]), p = *reinterpret_cast<const uint4 *>(&s.q[g + 8][32 * (j + i) + 8 * t]);
        UNROLL for (int n = 0; n < 4; n++) {
          addHalfProducts(x[n], uint4{q.x, p.x, q.y, p.y}, k[i][n].x, k[i][n].y);
          addHalfProducts(x[n], uint4{q.z, p.z, q.w, p.w}, k[i][n].z, k[i][n].w);
        }
        load(k[i], j + i + ahead);
      }
    }
    const float by = a.scale * log2e;
    float most[2] = {-infinity, -infinity}, top[2];
    UNROLL for (int n = 0; n < 4; n++) {
      UNROLL for (int i = 0; i < 4; i++) {
        const int at = from + 16 * (n / 2) + 4 * t + 2 * (n % 2) + i % 2;
        if (at < first || at > last) x[n][i] = -infinity;
        most[i / 2] = maxOf(most[i / 2], x[n][i]);
      }
    }
    UNROLL for (int h = 0; h < 2; h++) {
      most[h] = maxOf(most[h], shuffleXor(most[h], 1));
      most[h] = maxOf(most[h], shuffleXor(most[h], 2));
      top[h] = topOf(most[h], by);
    }
    float sum[4] = {};
    UNROLL for (int half = 0; half < 2; half++) {
      u32 w[2][2]; // by 8 columns and row
      UNROLL for (int n = 0; n < 2; n++) {
        UNROLL for (int h = 0; h < 2; h++) {
          float v[2];
          UNROLL for (int i = 0; i < 2; i++) {
            const float product = x[2 * half + n][2 * h + i];
            v[i] = product == -infinity ? 0 : weightOf(product, by, top[h]);
          }
          w[n][h] = halvesOf(v[0], v[1]);
        }
      }
      const uint4 operand{w[0][0], w[0][1], w[1][0], w[1][1]};
      s.weight[warp][half][lane] = operand;
      addHalfProducts(sum, operand, halfOnes, halfOnes);
    }
    if (t == 0) {
      s.top[warp][g] = top[0], s.sum[warp][g] = sum[0];
      s.top[warp][g + 8] = top[1], s.sum[warp][g + 8] = sum[2];
    }
  }

  METHOD bool seen(int begin, int run) const { return begin + run * runTokens <= last && begin + (run + 1) * runTokens > first; }

  // joinRuns computes the factors of a segment's runs, and of the segment itself.
  METHOD void joinRuns(int begin) {
    if (tidX() >= latentHeads) return;
    const int row = tidX();
    float top = -infinity, sum = 0;
    for (int r = 0; r < runs; r++) {
      if (seen(begin, r)) joinFactors(r, row, top, sum, s.top[r][row], s.sum[r][row]);
    }
    s.segmentTop[row] = top, s.segmentSum[row] = sum;
    joinFactors(runs, row, s.allTop[row], s.allSum[row], top, sum);
  }
  METHOD void joinFactors(int at, int row, float &top, float &sum, float nextTop, float nextSum) {
    const float most = maxOf(top, nextTop), x = exp2Of(top - most), y = exp2Of(nextTop - most);
    s.before[at][row] = x, s.next[at][row] = y;
    top = most, sum = fma(nextSum, y, sum * x);
  }

  // Number 2h+e of value n of a lane is of row g+8h and column 16t + 8e + n of the warp's.
  METHOD void add(float (&all)[8][4], const float (&next)[8][4], int at) const {
    UNROLL for (int h = 0; h < 2; h++) {
      const float x = s.before[at][g + 8 * h], y = s.next[at][g + 8 * h];
      UNROLL for (int n = 0; n < 8; n++) {
        UNROLL for (int e = 0; e < 2; e++) all[n][2 * h + e] = fma(next[n][2 * h + e], y, all[n][2 * h + e] * x);
      }
    }
  }

  // values sets part to the warp's columns of a segment's values.
  METHOD void values(float (&part)[8][4], int begin) const {
    UNROLL for (int n = 0; n < 8; n++) {
      UNROLL for (int i = 0; i < 4; i++) part[n][i] = 0;
    }
    const u8 *chunk = a.pool.base + (8 * warp + g) * chunkApart;
    uint4 v[2][4];
    // Positions that are not seen have a weight of 0, and read a row that is seen.
    const int some = minOf(maxOf(begin, first), last) - begin;
    auto load = [&](uint4 (&to)[4], int run, int half) ALWAYS {
      UNROLL for (int i = 0; i < 4; i++) {
        const int at = run * runTokens + 16 * half + 4 * t + i;
        to[i] = *reinterpret_cast<const uint4 *>(chunk + s.place[begin + at >= first && begin + at <= last ? at : some]);
      }
    };
    const int from = maxOf(0, first - begin) / runTokens, end = minOf(last - begin, segmentTokens - 1) / runTokens + 1;
    load(v[0], from, 0);
    _Pragma("unroll 1") for (int run = from; run < end; run++) {
      float x[8][4] = {};
      UNROLL for (int half = 0; half < 2; half++) {
        if (half == 0) load(v[1], run, 1);
        else if (run + 1 < end) load(v[0], run + 1, 0);
        const uint4 w = s.weight[run][half][lane];
        UNROLL for (int n = 0; n < 8; n++) {
          auto word = [&](int i) ALWAYS { const uint4 &of = v[half][i]; return n / 2 == 0 ? of.x : n / 2 == 1 ? of.y : n / 2 == 2 ? of.z : of.w; };
          const u32 b0 = n % 2 ? highHalves(word(0), word(1)) : lowHalves(word(0), word(1));
          const u32 b1 = n % 2 ? highHalves(word(2), word(3)) : lowHalves(word(2), word(3));
          addHalfProducts(x[n], w, b0, b1);
        }
      }
      add(part, x, run);
    }
  }

  // each calls f with the first of 4 columns of a row of the warp's values, and these.
  template <class Of> METHOD void each(float (&all)[8][4], const Of &f) const {
    UNROLL for (int h = 0; h < 2; h++) {
      UNROLL for (int e = 0; e < 2; e++) {
        UNROLL for (int n = 0; n < 8; n += 4) f(g + 8 * h, latentColumns * warp + 16 * t + 8 * e + n, float4{all[n][2 * h + e], all[n + 1][2 * h + e], all[n + 2][2 * h + e], all[n + 3][2 * h + e]});
      }
    }
  }

  // store divides four columns of a row by the sum of its weights, and writes them.
  METHOD void store(int row, int column, float4 v, float sum) const {
    if (row >= heads) return;
    const int col = (head + row) * a.values + column;
    UNROLL for (int i = 0; i < 4; i++) v[i] = divide(v[i], sum);
    storeFour(a.out, token, col, v);
    if (head + row == a.heads - 1 && column == a.values - 4) { // the padding, too
      for (int c = col + 4; c < a.out.stride; c += 4) storeFour(a.out, token, c, float4{});
    }
  }
};

// The segments of a token that sees many are divided among blocks, which write their parts to
// [T][groups][maxSegments][16][values+2]: the top, the sum of weights, the weighted values. Another
// kernel joins them.
INLINE float *latentPart(const AnyAttentionArgs &a, int token, int group, int segment) {
  const s64 groups = (a.heads + latentHeads - 1) / latentHeads;
  return a.partial + ((token * groups + group) * a.maxSegments + segment) * latentHeads * (a.values + 2);
}

// attend attends. Grid (split ? segments : 1, ceil(heads/16), T), 256 threads.
extern "C" __global__ void __launch_bounds__(blockThreads, 1) attend(const AnyAttentionArgs a) {
  __shared__ LatentShared s;
  Latent l(a, s);
  waitForPrevious();
  allowNext();
  if (l.token >= *a.count) return;
  const int lowest = l.first / segmentTokens, segments = l.last / segmentTokens - lowest + 1;
  if (blockX() >= segments) return;
  l.loadQueries();
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
        float *to = latentPart(a, l.token, blockY(), i) + 2;
        l.each(part, [&](int row, int column, float4 v) ALWAYS {
          float2 *four = reinterpret_cast<float2 *>(to + row * (a.values + 2) + column);
          four[0] = float2{v.x, v.y}, four[1] = float2{v.z, v.w};
        });
      } else {
        l.add(all, part, runs);
      }
    }
    if (a.split && tidX() < latentHeads) {
      float *to = latentPart(a, l.token, blockY(), i) + tidX() * (a.values + 2);
      to[0] = s.segmentTop[tidX()], to[1] = s.segmentSum[tidX()];
    }
    syncBlock(); // all warps have read weights and factors
  }
  if (a.split || !l.mine) return;
  l.each(all, [&](int row, int column, float4 v) ALWAYS { l.store(row, column, v, s.allSum[row]); });
}

// join joins the parts of a head. Grid (1, heads, T), 256 threads.
extern "C" __global__ void __launch_bounds__(blockThreads) join(const AnyAttentionArgs a) {
  __shared__ float factors[96]; // as many as joinNumbers has for a row
  const int token = blockZ(), head = blockY();
  const Place place = a.table.places[token];
  waitForPrevious();
  allowNext();
  if (token >= *a.count) return;
  const int first = a.window > 0 ? maxOf(0, place.position - a.window + 1) : 0;
  const int segments = place.position / segmentTokens - first / segmentTokens + 1;
  float value[anyPasses];
  int row[anyPasses], at[anyPasses];
  UNROLL for (int p = 0; p < anyPasses; p++) at[p] = tidX() + blockThreads * p, row[p] = at[p] < a.values ? 0 : 1;
  const float *part = latentPart(a, token, head / latentHeads, 0) + head % latentHeads * (a.values + 2);
  joinNumbers(value, row, at, part, segments, nullptr, 1, 1, latentHeads, a.values, factors, 96);
  UNROLL for (int p = 0; p < anyPasses; p++) {
    if (row[p] == 0) storeBlock(a.out, token, (head * a.values + at[p]) / 32, tidX() % 32, value[p]);
  }
}
