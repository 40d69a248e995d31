// Latent attention of many tokens on Hopper: the arithmetic of segment.cuh, on matrix instructions
// of warpgroups.
//
// A block has 32 rows: 16 heads of each of two adjacent tokens. It attends for both at once if they
// are of one sequence; otherwise for one and then for the other, in two turns. One warpgroup copies
// the keys of pieces of 64 positions to shared memory, in parts of 64 numbers. There is room for two
// pieces: a part takes the place of that of the piece before the last one as soon as that is used.
// Another warpgroup computes the scores and weights of a piece, transposed: positions by rows. Two
// more compute the values, by tiles of 64 columns in turns.
#pragma once
#include "hopper.cuh"
#include "latent.cuh"

constexpr int wideLatentThreads = 512, latentRows = manyTokens * latentHeads;
constexpr int mostParts = anyKeyDim / latentColumns;
constexpr int chunkBytes = latentPiece * 16, queryBytes = latentRows * 16; // of 8 numbers of all positions, or rows
constexpr int runBytes = runTokens * 16, partBytes = 8 * chunkBytes; // of a run in a chunk; of a part
constexpr int weightBytes = latentPiece * latentRows * 2;
constexpr int rowApart = latentColumns + 4, tileNumbers = latentRows * rowApart; // of results in shared memory
static_assert(4 * tileNumbers <= 2 * partBytes);

struct WideLatentShared {
  alignas(16) u64 there[2][mostParts], free[2][mostParts]; // barriers: a part has been copied; is used
  u64 weighed[2], used[2];                                 // a piece has its weights; they are used
  alignas(16) Factors by[2][pieceRuns + 1][latentRows]; // of each run of a piece, and of the segment
  float most[2][pieceRuns][2][latentRows];              // the largest products of 16 positions, by slot
  float sum[latentRows];                                // of all weights, at the end
  int turns;
  // A turn: tokens of the sequence at shift.
  Seen seen[manyTokens], sees; // by each token, none by one that is not there; by any of them
  int shift, start, count;     // the first piece's position, the number of pieces
  int done;                    // pieces of the turn before
};

// A WideLatent is a block's work. Most of it is in shared memory: registers are scarce.
struct WideLatent {
  const AnyAttentionArgs &a;
  WideLatentShared &s;
  u32 pieces; // shared memory of the pieces, the weights, the queries
  int warp, lane, g, t; // warp is that of the warpgroup

  METHOD WideLatent(const AnyAttentionArgs &a, WideLatentShared &s, u32 pieces) : a(a), s(s), pieces(pieces) {
    warp = tidX() % 128 / 32, lane = tidX() % 32, g = lane / 4, t = lane % 4;
  }

  METHOD static int token() { return manyTokens * (gridY() - 1 - blockY()); } // the first one

  // begin begins a turn, after so many pieces. A thread does it.
  METHOD void begin(int turn, int done) const {
    const Place *places = a.table.places + token();
    const bool two = token() + 1 < *a.count, together = two && places[0].shift == places[1].shift && places[0].position + 1 == places[1].position;
    const Seen none{0, -1}, sees = seenBy(a, places[turn].position), next = seenBy(a, sees.last + 1);
    s.seen[0] = turn == 0 ? sees : none, s.seen[1] = turn == 1 ? sees : together ? next : none;
    s.sees = together ? Seen{sees.first, next.last} : sees;
    s.shift = places[turn].shift, s.start = sees.first / latentPiece * latentPiece, s.count = (s.sees.last - s.start) / latentPiece + 1;
    s.done = done, s.turns = two && !together ? 2 : 1;
  }

  METHOD int parts() const { return (a.pool.keyDim + latentColumns - 1) / latentColumns; }
  METHOD int tiles() const { return a.values / latentColumns; }
  METHOD u32 pieceAt(int slot) const { return pieces + slot * parts() * partBytes; }
  METHOD u32 weightsAt(int slot) const { return pieces + 2 * parts() * partBytes + slot * weightBytes; }
  METHOD u32 queries() const { return pieces + 2 * parts() * partBytes + 2 * weightBytes; }
  // leave lets the weights and factors of another piece replace these.
  METHOD void leave(int slot) const {
    syncWarp();
    if (lane == 0) arrive(sharedAt(&s.used[slot]));
  }
};

// A Cursor is a warp's place in the pieces: of the two slots the next one, its phase, and where the
// piece begins.
struct Cursor {
  int slot, position, left; // left: pieces of the turn
  u32 parity;
  METHOD Cursor(const WideLatentShared &s) : slot(s.done % 2), position(s.start), left(s.count), parity(s.done / 2 % 2) {}
  METHOD void next() {
    slot ^= 1, parity ^= slot == 0, position += latentPiece, left--;
  }
  // ends reports whether the piece is the last one of a segment, or of the turn.
  METHOD bool ends() const { return left == 1 || (position + latentPiece) % segmentTokens == 0; }
};

// LatentCopies is the warpgroup of copies, and of the sums of weights. A warp copies a run of each
// piece, every other part. It has 8 rows of the sums, and a lane has row lane%8 of them.
struct LatentCopies {
  static constexpr int step = 4 / pieceRuns;
  static constexpr u32 freeAfter = sizeof(WideLatentShared::there); // the barriers of free parts
  WideLatent &w;
  int run, first; // the first part
  float sum = 0, allSum = 0; // of the segment so far, and of all before it

  METHOD LatentCopies(WideLatent &w) : w(w), run(w.warp % pieceRuns), first(w.warp / pieceRuns) {}

  // copyRun copies the parts of a run to a slot. Its keys begin at from, and its chunks are apart
  // bytes from each other.
  METHOD void copyRun(const Cursor &c, const u8 *from, const s64 apart) const {
    if (!elected()) return;
    const AnyPool &pool = w.a.pool;
    u32 to = w.pieceAt(c.slot) + first * partBytes + run * runBytes, there = sharedAt(&w.s.there[c.slot][first]);
    from += 8 * first * apart;
    _Pragma("unroll 1") for (int left = pool.keyDim / 8 - 8 * first; left > 0; left -= 8 * step, to += step * partBytes, there += 8 * step, from += 8 * step * apart) {
      awaitPhase(there + freeAfter, c.parity ^ 1);
      arriveWith(there, minOf(8, left) * runBytes);
      UNROLL for (int i = 0; i < 8; i++) {
        if (i < 4 || left > 4) copyBulk(to + i * chunkBytes, from + i * apart, runBytes, there);
      }
    }
  }

  // copySome copies the n rows from row lo on, which some token sees. The other rows become 0.
  METHOD void copySome(const Cursor &c, const u8 *from, int lo, int n) const {
    const AnyPool &pool = w.a.pool;
    const s64 apart = pool.rows * 16;
    for (int part = first; part < w.parts(); part += step) {
      const int chunks = minOf(8, pool.keyDim / 8 - 8 * part);
      const u32 to = w.pieceAt(c.slot) + part * partBytes + run * runBytes, there = sharedAt(&w.s.there[c.slot][part]);
      awaitPhase(there + freeAfter, c.parity ^ 1);
      for (int i = 0; i < chunks; i++) {
        if (w.lane < lo || w.lane >= lo + n) storeChunk(to + i * chunkBytes + w.lane * 16, uint4{});
      }
      showCopies();
      syncWarp();
      if (!elected()) continue;
      arriveWith(there, 16 * chunks * n);
      for (int i = 0; i < chunks && n > 0; i++) copyBulk(to + i * chunkBytes + lo * 16, from + (8 * part + i) * apart + lo * 16, 16 * n, there);
    }
  }

  // addSums adds the sums of a piece's weights.
  METHOD void addSums(const Cursor &c) {
    awaitPhase(sharedAt(&w.s.weighed[c.slot]), c.parity);
    const Factors *by = &w.s.by[c.slot][0][8 * w.warp + w.lane % 8];
    u32 m[pieceRuns][4];
    UNROLL for (int r = 0; r < pieceRuns; r++) loadTransposed(m[r], w.weightsAt(c.slot) + (4 * r + w.lane / 8) * queryBytes + 128 * w.warp + w.lane % 8 * 16);
    float next[pieceRuns][4] = {};
    const uint4 ones{halfOnes, halfOnes, halfOnes, halfOnes};
    UNROLL for (int i = 0; i < 2; i++) {
      UNROLL for (int r = 0; r < pieceRuns; r++) addHalfProducts(next[r], ones, m[r][2 * i], m[r][2 * i + 1]);
    }
    UNROLL for (int r = 0; r < pieceRuns; r++) {
      const float even = shuffleFrom(next[r][0], w.lane % 8 / 2), odd = shuffleFrom(next[r][1], w.lane % 8 / 2);
      sum = by[r * latentRows].joined(sum, w.lane % 2 ? odd : even);
    }
    if (c.ends()) allSum = by[pieceRuns * latentRows].joined(allSum, sum), sum = 0;
    w.leave(c.slot);
  }
  METHOD void close() { w.s.sum[8 * w.warp + w.lane % 8] = allSum; }

  // turn copies all pieces. Two later, it adds the sums of a piece.
  METHOD void turn() {
    const AnyPool &pool = w.a.pool;
    Cursor c(w.s), before(w.s);
    int at = c.position + run * runTokens; // in the page that pages begins with
    const s32 *pages = w.a.table.pages + w.s.shift + at / pool.pageTokens;
    at %= pool.pageTokens;
    const auto pageOf = [&](int position) ALWAYS { return w.s.sees.some(position, runTokens) ? *pages : 0; };
    int next = pageOf(c.position + run * runTokens);
    _Pragma("unroll 1") for (; c.left > 0; c.next()) {
      const int position = c.position + run * runTokens;
      const u8 *from = pool.base + next * pool.apart + at * 16;
      for (at += latentPiece; at >= pool.pageTokens; at -= pool.pageTokens) pages++;
      next = pageOf(position + latentPiece);
      if (before.left - c.left == 2) addSums(before), before.next();
      if (w.s.sees.all(position, runTokens)) {
        if (pool.rows == runTokens) copyRun(c, from, runBytes); // what the compiler knows is added faster
        else copyRun(c, from, pool.rows * 16);
      } else {
        const int lo = minOf(maxOf(w.s.sees.first - position, 0), runTokens);
        copySome(c, from, lo, maxOf(minOf(w.s.sees.last + 1 - position, runTokens) - lo, 0));
      }
      syncWarp();
    }
    for (; before.left > 0; before.next()) addSums(before);
  }
};

// LatentScores is the warpgroup of scores and weights. A thread computes scores of positions g and
// g+8 of the warp's 16, and rows 2t and 2t+1 of each 8. For factors, a warp has 8 rows, and a lane
// has row lane%8 of them.
struct LatentScores {
  WideLatent &w;
  int row, run; // the lane's row; the run of the warp's positions
  float by;     // of a product
  float top = -infinity, allTop = -infinity; // of the segment so far, and of all before it

  METHOD LatentScores(WideLatent &w) : w(w), row(8 * w.warp + w.lane % 8), run(w.warp / 2), by(w.a.scale * log2e) {}

  METHOD float topOfRun(int slot, int r, int row) const { return topOf(maxOf(w.s.most[slot][r][0][row], w.s.most[slot][r][1][row]), by); }

  // score computes the products of a piece. Element 4n + 2h + e is of position g+8h and row 8n + 2t + e.
  METHOD void score(float (&x)[16], const Cursor &c) const {
    UNROLL for (int i = 0; i < 16; i++) x[i] = 0;
    u64 query = piecesOfRows(w.queries(), queryBytes);
    u64 key = piecesOfRows(w.pieceAt(c.slot), chunkBytes);
    u32 there = sharedAt(w.s.there[c.slot]);
    const auto multiply = [&](int steps) ALWAYS {
      awaitPhase(there, c.parity);
      beginProducts();
      UNROLL for (int i = 0; i < steps; i++) multiplyShared<false, true>(x, later(key, 2 * chunkBytes * i), later(query, 2 * queryBytes * i));
      endProducts();
      there += 8, key = later(key, partBytes), query = later(query, 2 * queryBytes * steps);
    };
    const int dim = w.a.pool.keyDim;
    _Pragma("unroll 1") for (int left = dim / latentColumns; left > 0; left--) multiply(4);
    if (dim % latentColumns > 0) multiply(2);
    awaitProducts<0>();
    hold(x);
  }

  // keepMost writes the largest products of the warp's positions.
  METHOD void keepMost(int slot, const float (&x)[16]) const {
    float v[8]; // of rows 8n + 2t + e, by 2n + e. A lane ends with that of n = g/2 and e = g%2.
    UNROLL for (int i = 0; i < 8; i++) v[i] = maxOf(x[i / 2 * 4 + i % 2], x[i / 2 * 4 + 2 + i % 2]);
    UNROLL for (int m = 4; m > 0; m /= 2) {
      const bool upper = w.g & m;
      UNROLL for (int i = 0; i < m; i++) v[i] = maxOf(oneOf(upper, v[m + i], v[i]), shuffleXor(oneOf(upper, v[i], v[m + i]), 4 * m));
    }
    w.s.most[slot][run][w.warp % 2][8 * (w.g / 2) + 2 * w.t + w.g % 2] = v[0];
  }

  // keepWeights writes the weights of the warp's positions: by 8 positions, 8 rows, and position. If
  // WHOLE is false, some have no product.
  template <bool WHOLE> METHOD void keepWeights(int slot, u32 to, const float (&x)[16]) const {
    UNROLL for (int n = 0; n < 4; n++) {
      const float2 low = *reinterpret_cast<const float2 *>(&w.s.most[slot][run][0][8 * n + 2 * w.t]), high = *reinterpret_cast<const float2 *>(&w.s.most[slot][run][1][8 * n + 2 * w.t]);
      const float top[2] = {topOf(maxOf(low.x, high.x), by), topOf(maxOf(low.y, high.y), by)};
      UNROLL for (int h = 0; h < 2; h++) {
        float v[2];
        UNROLL for (int e = 0; e < 2; e++) {
          const float product = x[4 * n + 2 * h + e];
          v[e] = !WHOLE && product == -infinity ? 0 : weightOf(product, by, top[e]);
        }
        storeWord(to + h * queryBytes + 128 * n, halvesOf(v[0], v[1]));
      }
    }
  }

  // turn computes the weights of all pieces.
  METHOD void turn() {
    const Seen seen = w.s.seen[row / latentHeads]; // by the lane's row
    const Seen all{maxOf(w.s.seen[0].first, w.s.seen[1].first), minOf(w.s.seen[0].last, w.s.seen[1].last)};
    _Pragma("unroll 1") for (Cursor c(w.s); c.left > 0; c.next()) {
      float x[16];
      score(x, c);
      const bool whole = all.all(c.position, latentPiece);
      if (!whole) {
        UNROLL for (int i = 0; i < 16; i++) {
          const int at = c.position + 16 * w.warp + w.g + i % 4 / 2 * 8;
          const Seen &by = w.s.seen[i / 8];
          if (at < by.first || at > by.last) x[i] = -infinity;
        }
      }
      keepMost(c.slot, x);
      if (w.lane == 0) { // parts without values are used
        for (int part = w.tiles(); part < w.parts(); part++) arrive(sharedAt(&w.s.free[c.slot][part]));
      }
      awaitPhase(sharedAt(&w.s.used[c.slot]), c.parity ^ 1);
      syncSome<128>(1);
      const u32 weights = w.weightsAt(c.slot), mine = weights + 2 * w.warp * queryBytes + 16 * w.g + 4 * w.t;
      if (whole) keepWeights<true>(c.slot, mine, x);
      else keepWeights<false>(c.slot, mine, x);
      Factors *by = &w.s.by[c.slot][0][row];
      UNROLL for (int r = 0; r < pieceRuns; r++) {
        Factors f{1, 0};
        if (seen.some(c.position + r * runTokens, runTokens)) f = factorsOf(top, topOfRun(c.slot, r, row));
        by[r * latentRows] = f;
      }
      if (c.ends()) {
        Factors f{1, 0};
        if (top > -infinity) f = factorsOf(allTop, top); // the row sees some of the segment
        by[pieceRuns * latentRows] = f;
        top = -infinity;
      }
      showCopies();
      arrive(sharedAt(&w.s.weighed[c.slot]));
    }
  }
};

// LatentValues is a warpgroup of values, with tiles group, group+2 and so on, N at most. It computes
// N: where there are fewer, the last one again. Number 4n + 2h + e of a tile is of column 16*warp +
// g + 8h of its 64, and of row 8n + 2t + e.
template <int N> struct LatentValues {
  WideLatent &w;
  int group;
  float all[N][16] = {}, part[N][16] = {}; // of all segments before, and of the segment

  METHOD LatentValues(WideLatent &w, int group) : w(w), group(group) {}

  // RowFactors are those of rows 2t and 2t+1 of each 8.
  struct RowFactors {
    float4 f[4];
    METHOD RowFactors(const Factors *by) {
      UNROLL for (int n = 0; n < 4; n++) f[n] = *reinterpret_cast<const float4 *>(by + 8 * n);
    }
    // join joins numbers of a run or a segment.
    METHOD void join(float (&to)[16], const float (&next)[16]) const {
      UNROLL for (int i = 0; i < 16; i++) {
        const Factors of = i % 2 ? Factors{f[i / 4].z, f[i / 4].w} : Factors{f[i / 4].x, f[i / 4].y};
        to[i] = of.joined(to[i], next[i]);
      }
    }
  };

  // add adds the values of a piece. That it has weights says that its parts have been copied.
  METHOD void add(const Cursor &c) {
    const u64 values = columnsOfPieces(w.pieceAt(c.slot), 128, chunkBytes), weights = columnsOfPieces(w.weightsAt(c.slot), queryBytes, 128);
    const u32 free = sharedAt(w.s.free[c.slot]);
    const Factors *by = &w.s.by[c.slot][0][2 * w.t];
    const int tiles = w.tiles();
    awaitPhase(sharedAt(&w.s.weighed[c.slot]), c.parity);
    float x[2][16];
    const auto multiply = [&](int i) ALWAYS { // run i/N and tile i%N
      const int r = i / N, tile = minOf(2 * (i % N) + group, tiles - 1);
      const u64 mine = later(values, partBytes * tile + r * runBytes), by = later(weights, 4 * r * queryBytes);
      beginProducts();
      multiplyShared<true, false>(x[i % 2], mine, by);
      multiplyShared<true, true>(x[i % 2], later(mine, 256), later(by, 2 * queryBytes));
      endProducts();
    };
    multiply(0);
    UNROLL for (int r = 0; r < pieceRuns; r++) {
      const RowFactors rows(by + r * latentRows);
      UNROLL for (int j = 0; j < N; j++) {
        const int i = r * N + j;
        if (i + 1 < pieceRuns * N) {
          multiply(i + 1);
          awaitProducts<1>();
        } else {
          awaitProducts<0>();
        }
        hold(x[i % 2]);
        if (r + 1 == pieceRuns && w.lane == 0 && 2 * j + group < tiles) arrive(free + 8 * (2 * j + group));
        rows.join(part[j], x[i % 2]);
        hold(part[j]);
      }
    }
  }

  // turn adds the values of all pieces.
  METHOD void turn() {
    _Pragma("unroll 1") for (Cursor c(w.s); c.left > 0; c.next()) {
      _Pragma("unroll 1") for (;; c.next()) {
        add(c);
        if (c.ends()) break;
        w.leave(c.slot);
      }
      const RowFactors rows(&w.s.by[c.slot][pieceRuns][2 * w.t]);
      UNROLL for (int j = 0; j < N; j++) {
        rows.join(all[j], part[j]);
        UNROLL for (int i = 0; i < 16; i++) part[j][i] = 0;
      }
      w.leave(c.slot);
    }
  }

  // keep writes the values to the memory of the pieces: by tile, row and column.
  METHOD void keep(float *to) const {
    UNROLL for (int j = 0; j < N; j++) {
      const int tile = 2 * j + group;
      if (tile >= w.tiles()) break;
      UNROLL for (int i = 0; i < 16; i++) to[tile * tileNumbers + (i / 4 * 8 + 2 * w.t + i % 2) * rowApart + 16 * w.warp + w.g + i % 4 / 2 * 8] = all[j][i];
    }
  }
};

// storeRows writes the results of a turn, of which keep has written the numbers.
INLINE void storeRows(const AnyAttentionArgs &a, const WideLatentShared &s, const float *from) {
  constexpr int fours = latentColumns / 4;
  const int n = a.values * latentRows / 4;
  for (int i = tidX(); i < n; i += wideLatentThreads) {
    const int at = i % fours * 4, row = i / fours % latentRows, tile = i / (fours * latentRows), k = row / latentHeads;
    if (s.seen[k].last < 0) continue;
    const float4 v = *reinterpret_cast<const float4 *>(from + tile * tileNumbers + row * rowApart + at);
    LatentRows(a, WideLatent::token() + k, blockX()).store(a, row % latentHeads, latentColumns * tile + at, v, s.sum[row]);
  }
}

// attendLatents attends, with the same bits as attend of latent.cu. Grid (ceil(heads/16), ceil(T/2)), 512
// threads, shared memory of two pieces, the weights of two pieces and the queries. Pages hold whole
// runs. Blocks of tokens that see most come first.
// cost: shared memory, which the matrix units read both operands from.
template <int N> INLINE void attendLatents(const AnyAttentionArgs &a) {
  extern __shared__ uint4 raw[];
  __shared__ WideLatentShared s;
  if (tidX() == 0) {
    for (int i = 0; i < 2; i++) {
      for (int part = 0; part < mostParts; part++) makeBarrier(sharedAt(&s.there[i][part]), pieceRuns), makeBarrier(sharedAt(&s.free[i][part]), 4);
      makeBarrier(sharedAt(&s.weighed[i]), 128);
      makeBarrier(sharedAt(&s.used[i]), 12);
    }
    showBarriers();
  }
  waitForPrevious();
  allowNext();
  if (WideLatent::token() >= *a.count) return;
  WideLatent w(a, s, sharedAt(raw));
  if (tidX() == 0) w.begin(0, 0);
  syncBlock();
  const int group = tidX() / 128;
  if (group > 0) { // the queries
    UNROLL for (int k = 0; k < manyTokens; k++) {
      if (w.token() + k >= *a.count) break;
      LatentRows(a, w.token() + k, blockX()).load<6>(a, tidX() - 128, wideLatentThreads - 128, [&](int row, int at, uint2 four) ALWAYS {
        storeHalf(w.queries() + at / 8 * queryBytes + (latentHeads * k + row) * 16 + at % 8 * 2, four);
      });
    }
    showCopies();
    syncSome<wideLatentThreads - 128>(4);
  }
  // A turn begins with new sums: those of a token of another sequence are no numbers if this one has
  // keys that are not.
  float *results = reinterpret_cast<float *>(raw);
  const auto eachTurn = [&](const auto &attend) ALWAYS {
    _Pragma("unroll 1") for (int turn = 0;;) {
      attend();
      syncBlock();
      storeRows(a, s, results);
      if (++turn == s.turns) return;
      showCopies(); // the next turn's come after the results
      syncBlock();
      if (tidX() == 0) w.begin(turn, s.done + s.count);
      syncBlock();
    }
  };
  if (group == 0) {
    fewerRegisters<56>();
    eachTurn([&]() ALWAYS {
      LatentCopies copies(w);
      copies.turn();
      copies.close();
      syncBlock(); // all values have been added
    });
  } else if (group == 1) {
    fewerRegisters<72>();
    eachTurn([&]() ALWAYS {
      LatentScores scores(w);
      scores.turn();
      syncBlock();
    });
  } else {
    moreRegisters<192>();
    eachTurn([&]() ALWAYS {
      LatentValues<N> values(w, group - 2);
      values.turn();
      syncBlock();
      values.keep(results);
    });
  }
}

// attend_256 and attend_512 are for values of at most so many numbers.
extern "C" __global__ void __launch_bounds__(wideLatentThreads, 1) attend_256(const AnyAttentionArgs a) { attendLatents<2>(a); }
extern "C" __global__ void __launch_bounds__(wideLatentThreads, 1) attend_512(const AnyAttentionArgs a) { attendLatents<4>(a); }
