// Elementwise kernels: the gate of a unit, a function, a sum of two rows, a copy into other forms,
// the mean of rows, and the search for values that are not finite.
#include "activation.cuh"
#include "each.cuh"

struct GateArgs {
  const float *gate; // [T, gateStride]
  const float *up;   // [T, upStride]
  s32 gateStride;    // elements
  s32 upStride;      // elements
  s32 cols;          // of up and out
  s32 each;          // columns of up for each column of gate
  Unit unit;
  s32 late;          // 1: the unit's limit applies to act(gate), not to gate
  const s32 *count;  // rows of this step
  Forms out;         // cols columns
};

// lateUnitOf is unitOf with a limit of the activation instead of the gate.
INLINE float lateUnitOf(const Unit &u, float gate, float up) {
  const float act = activate(u.act, gate);
  return (act > u.limit ? u.limit : act) * ((up > u.limit ? u.limit : up < -u.limit ? -u.limit : up) + u.shift);
}

// gate writes the unit's values for gate and up.
extern "C" __global__ void __launch_bounds__(threads) gate(const GateArgs a) {
  waitForPrevious();
  allowNext();
  eachBlock(a.out, a.count, a.cols, [&](int row, int col) {
    const float up = a.up[s64(row) * a.upStride + col];
    const float gate = a.gate[s64(row) * a.gateStride + (a.each == 1 ? col : col / a.each)];
    return a.late ? lateUnitOf(a.unit, gate, up) : unitOf(a.unit, gate, up);
  });
}

// In the order of plan.Func.
enum { funcActivate, funcScale, funcSoftcap, funcSoftplus, funcClamp, funcXIELU };

struct MapArgs {
  const float *x; // [T, stride]
  s32 stride;     // elements
  s32 cols;       // of x and out
  s32 which;
  s32 act;  // of funcActivate
  float by; // of funcScale, funcSoftcap and funcClamp
  float p, n, beta, eps; // of funcXIELU
  s32 pad;
  const s32 *count; // rows of this step
  Forms out;        // cols columns
};

// belowOne is exp(x) - 1 for x <= 0. Near 0 it sums nine terms of the series, which leave an error
// of 1e-9.
INLINE float belowOne(float x) {
  if (x < -0.5f) return expOf(within(x, 1000)) - 1;
  float s = 1.0f / 362880;
  s = fma(x, s, 1.0f / 40320);
  s = fma(x, s, 1.0f / 5040);
  s = fma(x, s, 1.0f / 720);
  s = fma(x, s, 1.0f / 120);
  s = fma(x, s, 1.0f / 24);
  s = fma(x, s, 1.0f / 6);
  s = fma(x, s, 0.5f);
  s = fma(x, s, 1.0f);
  return x * s;
}

// functionOf is a function of a value, as plan.Func defines it. NaN stays NaN.
INLINE float functionOf(const MapArgs &a, float x) {
  switch (a.which) {
  case funcActivate: return activate(a.act, x);
  case funcScale: return x * a.by;
  case funcSoftplus: return softplusOf(x);
  case funcClamp: return x > a.by ? a.by : x < -a.by ? -a.by : x;
  case funcXIELU:
    if (x > 0) return x * fma(a.p, x, a.beta);
    return fma(a.n, belowOne(x > a.eps ? a.eps : x) - x, a.beta * x);
  default: return softcapOf(x, a.by);
  }
}

// map writes a function of each value.
extern "C" __global__ void __launch_bounds__(threads) map(const MapArgs a) {
  waitForPrevious();
  allowNext();
  eachBlock(a.out, a.count, a.cols, [&](int row, int col) {
    return functionOf(a, a.x[s64(row) * a.stride + col]);
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
