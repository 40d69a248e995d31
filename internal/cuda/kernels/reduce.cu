// The sum over the columns of a product of which each device has some. Each part has the sum of its
// segments, and the sums of all parts are added as the rest of the tree of pipeline.cuh: results
// have the bits of one device. A team of blocks adds a row, and writes the row's RMS norm, too, if one
// follows.
#include "mail.cuh"
#include "norm.cuh"
#include "team.cuh"
#include "value.cuh"

struct ReduceArgs {
  Forms out, normed;         // of this part: the result, and its norm
  const Forms *outs, *norms; // [parts] those of each part
  Meeting meeting;
  const s32 *count;  // rows of this step
  Matrix matrix;     // turns sums into values
  float divided, scale;
  const float *residual; // [T, residualStride] added to the result, or 0
  s32 residualStride;
  s32 stride;        // of the parts' sums, in elements
  const float *norm; // [cols] weights of the norm, or 0: none; for at most reduceCols columns
  float eps;
  s32 own; // only later sums read the result
};

// A team of blocks has a row, and a warp for each part of the norm's sum of squares. A thread has fours
// times four columns. The sum needs all columns of a row, so rows with more than those of a team have
// no norm.
constexpr int fours = 4, reduceThreads = 32 * normParts, reduceCols = 4 * fours * reduceThreads;

// A Reduce is a thread of a team. It has columns col(0), col(1), ... of a row.
template <int PARTS> struct Reduce {
  const ReduceArgs &a;
  const Team team;
  float4 power[fours], weight[fours];

  METHOD int thread() const { return team.rank * threadsX() + tidX(); }
  METHOD int col(int k) const { return blockY() * reduceCols + 4 * (reduceThreads * k + thread()); }
  METHOD bool has(int k) const { return col(k) < a.out.cols; }

  // No kernel writes what the constructor reads.
  METHOD Reduce(const ReduceArgs &a) : a(a) {
    auto from = [&](const float *p, int k, float4 without) ALWAYS { return p && has(k) ? *reinterpret_cast<const float4 *>(p + col(k)) : without; };
    UNROLL for (int k = 0; k < fours; k++) {
      power[k] = from(a.matrix.powers, k, float4{1, 1, 1, 1}) * a.divided;
      weight[k] = from(a.norm, k, float4{});
      if (a.matrix.bias && has(k)) prefetch(a.matrix.bias + col(k));
    }
  }

  // load sets v to the thread's columns of a row of x, or to 0 if there is no x.
  METHOD void load(float4 (&v)[fours], const float *x, int row, int stride) const {
    UNROLL for (int k = 0; k < fours; k++) v[k] = x && has(k) ? *reinterpret_cast<const float4 *>(x + s64(row) * stride + col(k)) : float4{};
  }

  // total sets v to the sum of N parts from first on: a subtree.
  template <int N, class Get> METHOD void total(float4 (&v)[fours], int first, const Get &get) const {
    if constexpr (N == 1) {
      get(first, v);
    } else {
      float4 more[fours];
      total<N / 2>(v, first, get);
      total<N / 2>(more, first + N / 2, get);
      UNROLL for (int k = 0; k < fours; k++) v[k] = v[k] + more[k];
    }
  }

  // finish adds the sums of all parts, which get(p, v) sets v to, turns them into values, and gives
  // these and their norm to store, after whether it is the norm. The team comes before, and has read
  // the norm's sums of the row before.
  template <class Get, class Store> METHOD void finish(const float4 (&residual)[fours], const Get &get, const Store &store) const {
    float4 y[fours];
    total<PARTS>(y, 0, get);
    UNROLL for (int k = 0; k < fours; k++) {
      y[k] = y[k] * power[k];
      if (a.matrix.bias && has(k)) y[k] = y[k] + *reinterpret_cast<const float4 *>(a.matrix.bias + col(k));
      y[k] = y[k] * a.scale;
      if (a.residual) y[k] = residual[k] + y[k];
      if (!has(k)) y[k] = float4{};
      if (col(k) < a.out.stride) store(false, col(k), y[k]);
    }
    team.await();
    if (!a.norm) return;
    alignas(16) __shared__ float parts[normParts];
    float4 squares = {};
    UNROLL for (int k = 0; k < fours; k++) squares = squaresAdded(squares, y[k]);
    float s = sumOf(squares);
    UNROLL for (int i = 16; i; i >>= 1) s = s + shuffleXor(s, i);
    if (const int lane = tidX() % 32; lane < team.size) team.store(lane, &parts[thread() / 32], s);
    team.meet();
    const float scale = scaleOf(sumOfParts(parts), divide(1.0f, float(a.out.cols)), a.eps);
    UNROLL for (int k = 0; k < fours; k++) {
      if (col(k) < a.out.stride) store(true, col(k), y[k] * scale * weight[k]);
    }
  }
};

// few is for few rows, one for each team: each part sends its sums to all others and adds all of
// them. Grid (rows, parts of a row) of teams.
template <int PARTS> INLINE void few(const ReduceArgs &a) {
  const Meeting &m = a.meeting;
  const Reduce<PARTS> r(a);
  const int at = blockX() / r.team.size, row = m.first + at;
  const bool there = row < upTo(m, *a.count);
  // Nor does the previous kernel, which computes the sums, write the residual.
  float4 own[fours], residual[fours];
  r.load(residual, there ? a.residual : nullptr, row, a.residualStride);
  const s64 ofPart = m.boxPackets / PARTS, ofRow = s64(at) * (a.stride / 4);
  waitForPrevious();
  allowNext();
  if (upTo(m, *a.count) <= m.first) return; // as in gather.cu
  const u32 n = m.mine->meetings + 1;
  r.load(own, there ? m.sums : nullptr, row, a.stride);
  if (there) {
    UNROLL for (int i = 1; i < PARTS; i++) {
      Packet *to = boxOf(m, (m.part + i) % PARTS, n) + m.part * ofPart + ofRow;
      UNROLL for (int k = 0; k < fours; k++) {
        if (r.has(k)) send(to + r.col(k) / 4, own[k], n);
      }
    }
  }
  if (there) {
    r.team.come(); // all that others wait for is sent before the team waits
    const Packet *box = boxOf(m, m.part, n) + ofRow;
    auto get = [&](int p, float4 (&v)[fours]) ALWAYS {
      UNROLL for (int k = 0; k < fours; k++) v[k] = own[k];
      if (p != m.part) receive(m, p, n, v, [&](int k) ALWAYS { return r.has(k); }, [&](int k) ALWAYS { return box + p * ofPart + r.col(k) / 4; });
    };
    r.finish(residual, get, [&](bool norm, int col, float4 v) ALWAYS { storeFour(norm ? a.normed : a.out, row, col, v); });
  }
  if (!there || !a.norm) r.team.meet(); // all of its blocks have read the meeting's number
  if (r.team.rank == 0 && last(m, r.team.size) && tidX() == 0) ended(m, n);
}

// many is for many rows: each part reads the sums of some rows from all others, adds them, and
// writes the values to all. Nobody writes before all have come, so a value needs no memory of its
// own before the exchange. If only later sums read the values, as residuals, they are not written to
// all: each part adds its rows again. Grid (some rows, parts of a row) of teams.
template <int PARTS> INLINE void many(const ReduceArgs &a) {
  const Meeting &m = a.meeting;
  const Reduce<PARTS> r(a);
  waitForPrevious();
  allowNext();
  const u32 n = m.mine->meetings + 1;
  if (tidX() < 32) {
    if (blockX() + blockY() == 0) meet(m, n);
    else if (const int p = tidX(); p < PARTS && p != m.part) await(m, p, n);
  }
  syncBlock();
  const s64 rows = *a.count;
  const int end = int(rows * (m.part + 1) / PARTS);
  for (int row = int(rows * m.part / PARTS) + blockX() / r.team.size; row < end; row += gridX() / r.team.size) {
    float4 residual[fours];
    r.team.come();
    r.load(residual, a.residual, row, a.residualStride);
    auto get = [&](int p, float4 (&v)[fours]) ALWAYS { r.load(v, m.peers[p].sums, row, a.stride); };
    r.finish(residual, get, [&](bool norm, int col, float4 v) ALWAYS {
      const int to = norm || !a.own ? PARTS : 1;
      _Pragma("unroll 1") for (int i = 0; i < to; i++) storeFour((norm ? a.norms : a.outs)[(m.part + i) % PARTS], row, col, v);
    });
  }
  fenceSystem();
  r.team.meet(); // nobody stores in the memory of a block that has ended
  if (!last(m) || tidX() >= 32) return;
  meet(m, n + 1);
  if (tidX() == 0) ended(m, n + 1);
}

#define REDUCE(PARTS)                                                                                           \
  extern "C" __global__ void __launch_bounds__(reduceThreads) few_##PARTS(const ReduceArgs a) { few<PARTS>(a); } \
  extern "C" __global__ void __launch_bounds__(reduceThreads) many_##PARTS(const ReduceArgs a) { many<PARTS>(a); }
REDUCE(2)
REDUCE(4)
REDUCE(8)
