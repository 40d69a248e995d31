// What is done with each value of a row alone: the gate of a unit, a sum of two
// rows, a copy into other forms, and the search for values that are not finite.
#include "activation.cuh"
#include "forms.cuh"

constexpr int threads = 256;

// eachBlock calls of(row, col) for the 32 columns of every row that a warp has, and
// stores what it returns; column col of a row is there only if of is called.
template <typename Of> INLINE void eachBlock(const Forms &out, const s32 *count, int cols, Of of) {
  const int lane = tidX() & 31;
  const int block = blockX() * (threads / 32) + tidX() / 32;
  if (32 * block >= cols) return; // padding: the warp of the last block writes it
  const int col = 32 * block + lane;
  const int rows = *count;
  for (int row = blockY(); row < rows; row += gridY()) {
    storeBlock(out, row, block, lane, col < cols ? of(row, col) : 0.0f);
  }
}

struct GateArgs {
  const float *gate; // [T, gateStride]
  const float *up;   // [T, upStride]
  s32 gateStride;    // elements
  s32 upStride;      // elements
  s32 cols;          // of gate, up and out
  s32 act;           // an activation
  const s32 *count;  // rows of this step
  Forms out;         // cols columns
};

// gate writes activation(gate)*up.
extern "C" __global__ void __launch_bounds__(threads) gate(const GateArgs a) {
  waitForPrevious();
  allowNext();
  eachBlock(a.out, a.count, a.cols, [&](int row, int col) {
    const float up = a.up[s64(row) * a.upStride + col];
    return activate(a.act, a.gate[s64(row) * a.gateStride + col]) * up;
  });
}

struct AddArgs {
  const float *x;   // [T, xStride]
  const float *y;   // [T, yStride]
  s32 xStride;      // elements
  s32 yStride;      // elements
  s32 cols;         // of x, y and out
  s32 pad;
  const s32 *count; // rows of this step
  Forms out;        // cols columns
};

// add writes x+y.
extern "C" __global__ void __launch_bounds__(threads) add(const AddArgs a) {
  waitForPrevious();
  allowNext();
  eachBlock(a.out, a.count, a.cols, [&](int row, int col) { return a.x[s64(row) * a.xStride + col] + a.y[s64(row) * a.yStride + col]; });
}

struct ConvertArgs {
  const float *x;   // [rows of x, xStride]
  s32 xStride;      // elements
  s32 cols;         // of x and out
  const s32 *rows;  // [count] row of x that each row of out is, or 0: the same
  const s32 *count; // rows of this step
  Forms out;        // cols columns
};

// convert copies rows into the forms of out.
extern "C" __global__ void __launch_bounds__(threads) convert(const ConvertArgs a) {
  waitForPrevious();
  allowNext();
  eachBlock(a.out, a.count, a.cols, [&](int row, int col) { return a.x[s64(a.rows ? a.rows[row] : row) * a.xStride + col]; });
}

struct FiniteArgs {
  const float *x;      // [T, xStride]
  s32 xStride;         // elements
  s32 cols;            // of x
  const s32 *count;    // rows of this step
  const s32 *sequence; // [T] sequence of each row
  s32 *bad;            // [S] becomes at most 0 where a row of the sequence has a value that is not finite
};

INLINE void atomicMinDevice(int *p, int v) { asm volatile("red.relaxed.gpu.global.min.s32 [%0], %1;" ::"l"(p), "r"(v) : "memory"); }

// A vector is read by one access; the compiler splits those of a struct.
typedef float Vector __attribute__((ext_vector_type(4)));

// finite looks at a row with each block of threads.
extern "C" __global__ void __launch_bounds__(threads) finite(const FiniteArgs a) {
  waitForPrevious();
  allowNext();
  const int row = blockX();
  if (row >= *a.count) return;
  const float *x = a.x + s64(row) * a.xStride;
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
