// The state-space layer of Mamba-2 in its dual form, see plan.StateSpaceAttr. Every row is computed
// from the state at the start of its chunk and the rows of the chunk. Gates are summed in float64.
#include "recurrent.cuh"

struct StateSpaceArgs {
  const float *x;          // [T, xStride] x of all heads, then B and C of all groups
  const float *dt;         // [T, dtStride] steps of heads, or 0: all steps are 1
  s32 xStride, dtStride;   // elements
  s32 heads, headDim;
  s32 groups, states;
  float stepMin, stepMax;  // stepMax 0: no limit
  const float *a, *skip, *bias; // [heads]; skip and bias are 0 if dt is
  Slots state;             // [heads][states][headDim]
  RowsPool rows;           // s*x [heads*headDim], B [groups*states], s*A [heads]
  Table table;
  const s32 *starts;       // [S+1] first token of each sequence, then T
  const s32 *seqs;         // number of sequences in this step
  const s32 *count;        // tokens of this step
  Forms y;                 // heads*headDim columns; f32 alone if headDim is not a multiple of 32
};

INLINE float stepOf(const StateSpaceArgs &a, int token, int h) {
  if (!a.dt) return 1;
  float s = softplusOf(a.dt[s64(token) * a.dtStride + h] + a.bias[h]);
  s = s < a.stepMin ? a.stepMin : s; // keeps NaN
  return a.stepMax > 0 && s > a.stepMax ? a.stepMax : s;
}

// rows writes the exact state per token. Grid (blocks of 256 numbers of a row, T).
extern "C" __global__ void __launch_bounds__(recurrentThreads) rows(const StateSpaceArgs a) {
  waitForPrevious();
  allowNext();
  const int i = blockX() * recurrentThreads + tidX(), token = blockY(), values = a.heads * a.headDim, inputs = values + a.groups * a.states;
  if (token >= *a.count || i >= inputs + a.heads) return;
  const Place place = a.table.places[token];
  const float *x = a.x + s64(token) * a.xStride;
  float v;
  if (i < values) v = stepOf(a, token, i / a.headDim) * x[i];
  else if (i < inputs) v = x[i];
  else v = stepOf(a, token, i - inputs) * a.a[i - inputs];
  rowAt(a.rows, a.table, place.shift, place.position)[i] = v;
}

// A StateSpaceShared is a block's data for W columns of a head: s*x of the chunk, the weights of
// its rows, and partial sums.
template <int W> struct StateSpaceShared {
  float x[chunkTokens][W];
  float part[recurrentThreads / W][W];
  float weight[chunkTokens], decay[chunkTokens];
  double sum[chunkTokens]; // of s*A up to each row
};

// stateSpace computes W columns of a head of a sequence, token after token. A thread has some of
// the state's rows of one column. Grid (blocks of columns, heads, sequences), shared memory of
// 4*states*(W+1) bytes.
template <int W> INLINE void stateSpace(const StateSpaceArgs &a) {
  constexpr int parts = recurrentThreads / W;
  extern __shared__ float numbers[]; // the state [states][W], and outputs [states]
  __shared__ StateSpaceShared<W> s;
  waitForPrevious();
  allowNext();
  const int seq = blockZ(), h = blockY(), warp = tidX() / 32, lane = tidX() % 32, c = tidX() % W, part = tidX() / W;
  if (seq >= *a.seqs) return;
  const int states = a.states, col = blockX() * W + c, g = h / (a.heads / a.groups);
  const int first = a.starts[seq], end = a.starts[seq + 1];
  const Place place = a.table.places[first];
  const bool there = col < a.headDim, whole = a.headDim % 32 == 0;
  const int each = (states + parts - 1) / parts, from = minOf(part * each, states), to = minOf(from + each, states);
  float *outputs = numbers + states * W;
  const auto rowOf = [&](int position) ALWAYS { return rowAt(a.rows, a.table, place.shift, position); };
  const int inputs = a.heads * a.headDim + g * states, decays = a.heads * a.headDim + a.groups * states + h;

  const float *before = slotBefore(a.state, seq);
  for (int n = from; n < to; n++) numbers[n * W + c] = before && there ? before[(s64(h) * states + n) * a.headDim + col] : 0.0f;
  int begin = place.position / chunkTokens * chunkTokens;
  for (int j = part; j < place.position - begin; j += parts) s.x[j][c] = there ? rowOf(begin + j)[h * a.headDim + col] : 0.0f;
  for (int j = tidX(); j < place.position - begin; j += recurrentThreads) s.decay[j] = rowOf(begin + j)[decays];
  syncBlock();
  if (tidX() == 0) {
    double sum = 0;
    for (int j = 0; j < place.position - begin; j++) s.sum[j] = sum = sum + double(s.decay[j]);
  }
  syncBlock();

  // the position after which the state is stored
  const int last = (place.position + end - first) / chunkTokens * chunkTokens;
  for (int token = first; token < end; token++) {
    const int position = place.position + token - first, at = position - begin;
    const float *x = a.x + s64(token) * a.xStride, *row = rowOf(position);
    for (int n = tidX(); n < states; n += recurrentThreads) outputs[n] = x[a.heads * a.headDim + (a.groups + g) * states + n];
    if (part == 0) s.x[at][c] = there ? row[h * a.headDim + col] : 0.0f;
    if (tidX() == 0) s.sum[at] = (at > 0 ? s.sum[at - 1] : 0.0) + double(row[decays]);
    syncBlock();

    for (int j = warp; j <= at; j += recurrentThreads / 32) {
      const float *in = rowOf(begin + j) + inputs;
      float dot = 0;
      for (int n = lane; n < states; n += 32) dot = fma(outputs[n], in[n], dot);
      dot = warpSum(dot);
      if (lane == 0) s.weight[j] = dot * expOf(float(s.sum[at] - s.sum[j]));
    }
    float y = 0;
    for (int n = from; n < to; n++) y = fma(outputs[n], numbers[n * W + c], y);
    s.part[part][c] = y;
    syncBlock();

    if (part == 0) {
      y = 0;
      UNROLL for (int p = 0; p < parts; p++) y = y + s.part[p][c];
      y = y * expOf(float(s.sum[at]));
      for (int j = 0; j <= at; j++) y = fma(s.weight[j], s.x[j][c], y);
      if (there && a.skip) y = fma(a.skip[h], x[h * a.headDim + col], y);
      if (there) storeColumn(a.y, token, h * a.headDim + col, whole, y);
    }
    syncBlock();
    if (at + 1 < chunkTokens) continue;

    if (tidX() < chunkTokens) s.decay[tidX()] = expOf(float(s.sum[at] - s.sum[tidX()]));
    syncBlock();
    const float by = expOf(float(s.sum[at]));
    for (int n = from; n < to; n++) {
      float v = numbers[n * W + c] * by;
      for (int j = 0; j < chunkTokens; j++) v = fma(rowOf(begin + j)[inputs + n] * s.decay[j], s.x[j][c], v);
      numbers[n * W + c] = v;
    }
    syncBlock();
    begin += chunkTokens;
    if (begin == last && there) {
      float *after = slotAfter(a.state, seq);
      for (int n = from; n < to; n++) after[(s64(h) * states + n) * a.headDim + col] = numbers[n * W + c];
    }
  }
}

extern "C" __global__ void __launch_bounds__(recurrentThreads) statespace_32(const StateSpaceArgs a) { stateSpace<32>(a); }
extern "C" __global__ void __launch_bounds__(recurrentThreads) statespace_64(const StateSpaceArgs a) { stateSpace<64>(a); }
