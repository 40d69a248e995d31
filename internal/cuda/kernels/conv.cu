// Causal convolutions over the tokens of a sequence, column by column.
#include "chain.cuh"
#include "each.cuh"
#include "slots.cuh"

struct ConvArgs {
  const float *x;      // [T, xStride]
  s32 xStride;         // elements
  s32 cols;            // of x and out
  const float *w;      // [cols, width]
  const float *bias;   // [cols], or 0
  s32 width;
  s32 mapped;          // 1: function applies to the sums
  Slots state;         // [width-1, cols] each: the rows of x before the step
  const s32 *sequence; // [T]
  const s32 *starts;   // [S+1] first token of each sequence, and T
  const s32 *count;    // rows of this step
  Forms out;           // cols columns
  Function function;
  s32 pad;
};

constexpr int mostConvs = 3;

struct ConvsArgs {
  ConvArgs of[mostConvs];
};

// A ConvRows is what a thread has: columns of consecutive rows.
template <class V> struct ConvRows {
  int col, n;      // the first column; how many exist
  int first, last; // tokens of the rows' sequence
  const ConvArgs &a;
  const float *before; // its state before the step, or 0

  METHOD ConvRows(const ConvArgs &a, int col) : col(col), n(a.cols - col), last(0), a(a) {}

  // enter makes the sequence that of a row.
  METHOD void enter(int row) {
    const int s = a.sequence[row];
    first = a.starts[s], last = a.starts[s + 1], before = slotBefore(a.state, s);
  }
  // at returns row t of x, or of what the state has of it.
  METHOD V at(int t) const {
    if (t >= first) return columnsAt<V>(a.x + s64(t) * a.xStride + col);
    return before ? someAt<V>(before + s64(t - first + a.width - 1) * a.cols + col, n) : V{};
  }
  // weights returns those of the i-th of width rows.
  METHOD V weights(int i) const {
    return byColumn<V>([&](int e) ALWAYS { return e < n ? a.w[s64(col + e) * a.width + i] : 0.0f; });
  }
  METHOD V bias() const { return a.bias ? someAt<V>(a.bias + col, n) : V{}; }
  // keep writes the i-th row of the sequence's state.
  METHOD void keep(int row, int i, V v) const {
    float *after = slotAfter(a.state, a.sequence[row]) + s64(i) * a.cols + col;
    UNROLL for (int e = 0; e < columnsOf<V>; e++) {
      if (e < n) after[e] = numberOf(v, e);
    }
  }
  METHOD void store(int row, V sum) const {
    if (a.mapped) sum = byColumn<V>([&](int e) ALWAYS { return functionOf(a.function, numberOf(sum, e)); });
    storeSome(a.out, row, col, n, sum);
  }
};

// convolveBy writes rows [from, end). The thread of a sequence's last row also writes the state: no
// slot is both read and written. The rows of x that a sum needs stay in registers: WIDTH is their
// number.
template <int WIDTH, class V> INLINE void convolveBy(ConvRows<V> &r, int from, int end) {
  constexpr int past = WIDTH - 1;
  const V bias = r.bias();
  V w[WIDTH], x[WIDTH];
  UNROLL for (int i = 0; i < WIDTH; i++) w[i] = r.weights(i);
  for (int row = from; row < end; row++) {
    if (row >= r.last) {
      r.enter(row);
      UNROLL for (int i = 0; i < past; i++) x[i] = r.at(row - past + i);
    }
    x[past] = r.at(row);
    V sum = bias;
    UNROLL for (int i = 0; i < WIDTH; i++) sum = sum + w[i] * x[i];
    UNROLL for (int i = 0; i < past; i++) x[i] = x[i + 1];
    if (row + 1 == r.last) {
      UNROLL for (int i = 0; i < past; i++) r.keep(row, i, x[i]);
    }
    r.store(row, sum);
  }
}

// convolveAny is convolveBy for any width.
template <class V> INLINE void convolveAny(ConvRows<V> &r, int from, int end) {
  const int past = r.a.width - 1;
  for (int row = from; row < end; row++) {
    if (row >= r.last) r.enter(row);
    V sum = r.bias();
    for (int i = 0; i <= past; i++) sum = sum + r.weights(i) * r.at(row - past + i);
    if (row + 1 == r.last) {
      for (int i = 0; i < past; i++) r.keep(row, i, r.at(row - past + 1 + i));
    }
    r.store(row, sum);
  }
}

template <class V> INLINE void convolve(const ConvArgs &a) {
  const int col = columnsOf<V> * (blockX() * threads + tidX()), count = *a.count, each = (count + gridY() - 1) / gridY();
  const int from = blockY() * each, end = minOf(from + each, count);
  if (col >= a.out.stride || from >= end) return;
  ConvRows<V> r(a, col);
  if (a.width == 4) convolveBy<4>(r, from, end);
  else if (a.width == 3) convolveBy<3>(r, from, end);
  else convolveAny(r, from, end);
}

// conv writes weighted sums of width rows. Grid (blocks of columns, blocks of rows, convolutions).
template <class V> INLINE void convOf(const ConvsArgs &a) {
  static_assert(mostConvs == 3);
  if (blockZ() == 0) convolve<V>(a.of[0]);
  else if (blockZ() == 1) convolve<V>(a.of[1]);
  else convolve<V>(a.of[2]);
}
BY_COLUMNS(conv, convOf, ConvsArgs)
