// Elementwise kernels: chains of operations, a copy into other forms, the mean of rows, and the search
// for values that are not finite.
#include "chain.cuh"
#include "each.cuh"

constexpr int maxLinks = 4;

struct ChainArgs {
  const float *x;   // [T, stride]
  s32 stride;       // elements
  s32 cols;         // of x and out
  const s32 *count; // rows of this step
  Forms out;        // cols columns
  Link links[maxLinks];
  s32 length;
  s32 pad;
};

// chain applies operations to each value, in order.
template <class V> INLINE void chainOf(const ChainArgs &a) {
  eachColumn<V>(a.out, a.count, a.cols, [&](int row, int col, int) ALWAYS {
    V v = columnsAt<V>(a.x + s64(row) * a.stride + col);
    _Pragma("unroll 1") for (int i = 0; i < a.length; i++) v = linkOf(a.links[i], row, col, v);
    return v;
  });
}
BY_COLUMNS(chain, chainOf, ChainArgs)

struct ConvertArgs {
  const float *x;   // [rows of x, stride]
  s32 stride;       // elements
  s32 cols;         // of x and out
  const s32 *at;    // [count] row of x for each row of out; 0: the same row
  const s32 *count; // rows of this step
  Forms out;        // cols columns
};

// convert copies rows into the forms of out.
extern "C" __global__ void __launch_bounds__(threads) convert(const ConvertArgs a) {
  waitForPrevious();
  allowNext();
  eachBlock(a.out, a.count, a.cols, [&](int row, int col) { return a.x[s64(a.at ? a.at[row] : row) * a.stride + col]; });
}

struct MeanArgs {
  const float *x;      // [T, stride]
  s32 stride;          // elements
  s32 cols;            // of x and out
  const s32 *rows;     // [count] a token of the sequence of each row of out
  const s32 *sequence; // [T]
  const s32 *starts;   // [S+1] first token of each sequence, and T
  const s32 *count;    // rows of out
  Forms out;           // cols columns
};

// mean writes the means of the rows of whole sequences, added from the first token on.
extern "C" __global__ void __launch_bounds__(threads) mean(const MeanArgs a) {
  waitForPrevious();
  allowNext();
  eachBlock(a.out, a.count, a.cols, [&](int row, int col) {
    const int s = a.sequence[a.rows[row]], first = a.starts[s], end = a.starts[s + 1];
    const float *x = a.x + col;
    double sum = 0;
#pragma unroll 4
    for (int t = first; t < end; t++) sum = sum + double(x[s64(t) * a.stride]);
    return float(sum / double(end - first));
  });
}

struct FiniteArgs {
  const float *x;      // [T, stride]
  s32 stride;          // elements
  s32 cols;            // of x
  const s32 *count;    // rows of this step
  const s32 *sequence; // [T] sequence of each row
  s32 *bad;            // [S] lowered to 0 where the sequence has a value that is not finite
};

// One access reads a Vector; the compiler splits those of a struct.
typedef float Vector __attribute__((ext_vector_type(4)));

// finite checks one row per block.
extern "C" __global__ void __launch_bounds__(threads) finite(const FiniteArgs a) {
  waitForPrevious();
  allowNext();
  const int row = blockX();
  if (row >= *a.count) return;
  const float *x = a.x + s64(row) * a.stride;
  const int fours = (u64(x) & 15) == 0 ? a.cols / 4 : 0;
  bool good = true;
#pragma unroll 4
  for (int i = tidX(); i < fours; i += threads) {
    const Vector v = reinterpret_cast<const Vector *>(x)[i];
    good = good && isFinite(v.x) && isFinite(v.y) && isFinite(v.z) && isFinite(v.w);
  }
  for (int i = 4 * fours + tidX(); i < a.cols; i += threads) good = good && isFinite(x[i]);
  if (ballot(good) != 0xffffffffu && (tidX() & 31) == 0) atomicMinDevice(a.bad + a.sequence[row], 0);
}
