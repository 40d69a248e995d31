// Rows that each combine several tokens, see plan.CompressAttr.
#include "each.cuh"
#include "rows.cuh"

struct CompressArgs {
  const float *x, *gate;  // [T, stride] each
  s32 xStride, gateStride;
  const float *bias;      // [rate, wide]
  s32 rate;               // tokens of a window
  s32 overlap;            // 1: wide is twice cols, and a row includes the previous window
  s32 wide;               // columns of x and gate
  s32 cols;               // of out
  RowsPool rows;          // x, then gate of each token
  Table table;
  const s32 *count;       // tokens of this step
  Forms out;              // cols columns
};

// rows writes x and gate of each token to the state. Grid (blocks of a row's elements, T).
extern "C" __global__ void __launch_bounds__(threads) rows(const CompressArgs a) {
  waitForPrevious();
  allowNext();
  const int i = blockX() * threads + tidX(), token = blockY();
  if (token >= *a.count || i >= 2 * a.wide) return;
  const Place place = a.table.places[token];
  rowAt(a.rows, a.table, place.shift, place.position)[i] =
      i < a.wide ? a.x[s64(token) * a.xStride + i] : a.gate[s64(token) * a.gateStride + i - a.wide];
}

// compress writes the rows of the tokens that complete a window, and zeros for all others. Sums are
// over the window in ascending order.
extern "C" __global__ void __launch_bounds__(threads) compress(const CompressArgs a) {
  waitForPrevious();
  allowNext();
  eachBlock(a.out, a.count, a.cols, [&](int token, int col) {
    const Place place = a.table.places[token];
    const int last = place.position, begin = last + 1 - a.rate; // of the window
    if ((last + 1) % a.rate != 0) return 0.0f;
    const int first = a.overlap ? maxOf(0, begin - a.rate) : begin;
    float top = -__builtin_inff();
    const auto columnOf = [&](int p) ALWAYS { return a.overlap && p >= begin ? a.cols + col : col; };
    const auto rowOf = [&](int p) ALWAYS { return rowAt(a.rows, a.table, place.shift, p) + columnOf(p); };
    const auto logitOf = [&](int p) ALWAYS { return rowOf(p)[a.wide] + a.bias[s64(p % a.rate) * a.wide + columnOf(p)]; };
    for (int p = first; p <= last; p++) top = maxOf(top, logitOf(p));
    float sum = 0, total = 0;
    for (int p = first; p <= last; p++) {
      const float weight = expOf(logitOf(p) - top);
      total = total + weight;
      sum = fma(weight, *rowOf(p), sum);
    }
    return divide(sum, total);
  });
}
