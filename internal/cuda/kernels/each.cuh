// The loop of elementwise kernels over rows. A thread has a column of a row, or four: V is float or
// float4. Four are faster where there are blocks for all multiprocessors.
#pragma once
#include "forms.cuh"

constexpr int threads = 256;

template <class V> constexpr int columnsOf = sizeof(V) / sizeof(float);

// byColumn returns of(i) for the number i of each column.
template <class V, typename Of> INLINE V byColumn(const Of &of) {
  if constexpr (columnsOf<V> == 1) return of(0);
  else return V{of(0), of(1), of(2), of(3)};
}

// numberOf returns number i of v.
INLINE float numberOf(float v, int) { return v; }
INLINE float numberOf(const float4 &v, int i) { return v[i]; }

// columnsAt returns columns of a row that is aligned for V.
template <class V> INLINE V columnsAt(const float *row) { return *reinterpret_cast<const V *>(row); }

// someAt returns columns of a row, of which n exist. Those beyond are 0.
template <class V> INLINE V someAt(const float *row, int n) {
  if (n >= columnsOf<V> && u64(row) % sizeof(V) == 0) return columnsAt<V>(row);
  return byColumn<V>([&](int i) ALWAYS { return i < n ? row[i] : 0.0f; });
}

// storeSome stores columns of a row, of which n exist. The others are padding.
INLINE void storeSome(const Forms &f, int row, int col, int n, float v) {
  if (n <= 0) v = 0;
  if (f.f32 && n > 0) f.f32[s64(row) * f.stride + col] = v;
  if (!f.bf16 && !f.f16) return;
  const s64 to = placeOf(row, col, f.stride);
  if (f.bf16) f.bf16[to] = floatToBfloat(v);
  if (f.f16) f.f16[to] = floatToHalf(v * f.by);
}
INLINE void storeSome(const Forms &f, int row, int col, int n, float4 v) {
  UNROLL for (int i = 0; i < 4; i++) {
    if (i >= n) v[i] = 0;
  }
  storeFour(f, row, col, v);
}

// eachColumn calls of(row, col, n) for the columns of a thread in each row, of which n exist, one at
// least, and stores the results. It ignores those of columns that do not exist. Grid as of byColumns
// in lower/columns.go.
template <class V, typename Of> INLINE void eachColumn(const Forms &out, const s32 *count, int cols, const Of &of) {
  const int col = columnsOf<V> * (blockX() * threads + tidX()), n = cols - col;
  if (col >= out.stride) return;
  const int rows = *count;
  for (int row = blockY(); row < rows; row += gridY()) storeSome(out, row, col, n, n > 0 ? of(row, col, n) : V{});
}

// eachBlock is eachColumn for functions of(row, col) of one column.
template <typename Of> INLINE void eachBlock(const Forms &out, const s32 *count, int cols, const Of &of) {
  eachColumn<float>(out, count, cols, [&](int row, int col, int) ALWAYS { return of(row, col); });
}

// BY_COLUMNS defines the kernels of a function by columns: name for threads of one column, name_4 for
// those of four.
#define BY_COLUMNS(name, of, Args)                                               \
  extern "C" __global__ void __launch_bounds__(threads) name(const Args a) {     \
    waitForPrevious();                                                           \
    allowNext();                                                                 \
    of<float>(a);                                                                \
  }                                                                              \
  extern "C" __global__ void __launch_bounds__(threads) name##_4(const Args a) { \
    waitForPrevious();                                                           \
    allowNext();                                                                 \
    of<float4>(a);                                                               \
  }
