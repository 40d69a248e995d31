// Operations on rows beside the functions of elementwise.cu: concatenation, multiplication, mixing,
// rotation, other places of columns, and scaling by positions or by statistics of the row.
#include "each.cuh"
#include "rotation.cuh"

struct ConcatArgs {
  const float *x;   // [T, xStride]
  const float *y;   // [T, yStride]
  s32 xStride;      // elements
  s32 yStride;      // elements
  s32 first;        // columns of x
  s32 cols;         // of out
  const s32 *count; // rows of this step
  Forms out;        // cols columns
};

// concat writes the columns of x followed by those of y.
extern "C" __global__ void __launch_bounds__(threads) concat(const ConcatArgs a) {
  waitForPrevious();
  allowNext();
  eachBlock(a.out, a.count, a.cols, [&](int row, int col) {
    return col < a.first ? a.x[s64(row) * a.xStride + col] : a.y[s64(row) * a.yStride + col - a.first];
  });
}

struct MulArgs {
  const float *x;   // [T, xStride]
  const float *y;   // [T, yStride], or a weight [cols] if yStride is 0
  s32 xStride;      // elements
  s32 yStride;      // elements
  s32 single;       // 1: x has one column, which multiplies all of y
  s32 cols;         // of y and out
  const s32 *count; // rows of this step
  Forms out;        // cols columns
};

// mul writes x*y.
extern "C" __global__ void __launch_bounds__(threads) mul(const MulArgs a) {
  waitForPrevious();
  allowNext();
  eachBlock(a.out, a.count, a.cols, [&](int row, int col) {
    return a.x[s64(row) * a.xStride + (a.single ? 0 : col)] * a.y[s64(row) * a.yStride + col];
  });
}

constexpr int mostMixed = 8;

struct MixArgs {
  const float *x[mostMixed]; // [T, stride] each
  const float *by;           // [T, byStride], with one column per value
  s32 n;                     // number of values
  s32 stride;                // of values, elements
  s32 byStride;              // elements
  s32 cols;                  // of values and out
  const s32 *count;          // rows of this step
  Forms out;                 // cols columns
};

// mix writes the sum of the values, each times its column of by, added in ascending order from 0.
extern "C" __global__ void __launch_bounds__(threads) mix(const MixArgs a) {
  waitForPrevious();
  allowNext();
  eachBlock(a.out, a.count, a.cols, [&](int row, int col) {
    float sum = 0;
    UNROLL for (int i = 0; i < mostMixed; i++) {
      if (i < a.n) sum = fma(a.x[i][s64(row) * a.stride + col], a.by[s64(row) * a.byStride + i], sum);
    }
    return sum;
  });
}

struct TemperArgs {
  const float *x;       // [T, stride]
  const s32 *positions; // [T]
  double by;
  s32 every, shift;
  s32 stride;       // elements
  s32 cols;         // of x and out
  const s32 *count; // rows of this step
  Forms out;        // cols columns
};

// logarithm returns ln(v) for v >= 1 with a relative error of 1e-15. With v = m*2^e, m near 1,
// ln(m) is 2 artanh((m-1)/(m+1)); ten terms of its series leave an error of 1e-17.
INLINE double logarithm(double v) {
  const u64 bits = __builtin_bit_cast(u64, v);
  int e = int(bits >> 52) - 1023;
  double m = __builtin_bit_cast(double, (bits & 0x000fffffffffffffull) | 0x3ff0000000000000ull);
  if (m > 1.4142135623730951) m *= 0.5, e++;
  const double u = (m - 1) / (m + 1), q = u * u;
  double s = 1.0 / 19;
  s = __builtin_fma(s, q, 1.0 / 17);
  s = __builtin_fma(s, q, 1.0 / 15);
  s = __builtin_fma(s, q, 1.0 / 13);
  s = __builtin_fma(s, q, 1.0 / 11);
  s = __builtin_fma(s, q, 1.0 / 9);
  s = __builtin_fma(s, q, 1.0 / 7);
  s = __builtin_fma(s, q, 1.0 / 5);
  s = __builtin_fma(s, q, 1.0 / 3);
  s = __builtin_fma(s, q, 1.0);
  return __builtin_fma(double(e), 0.6931471805599453, 2 * u * s);
}

// temper writes x times 1 + by*ln(1 + (position+shift)/every).
extern "C" __global__ void __launch_bounds__(threads) temper(const TemperArgs a) {
  waitForPrevious();
  allowNext();
  eachBlock(a.out, a.count, a.cols, [&](int row, int col) {
    const float by = float(1 + a.by * logarithm(1.0 + (a.positions[row] + a.shift) / a.every));
    return a.x[s64(row) * a.stride + col] * by;
  });
}

struct RotateArgs {
  const float *x;   // [T, stride] heads
  Rotation by;      // of each head's numbers from first on
  s32 stride;       // elements
  s32 headDim;
  s32 first;
  s32 cols;         // of x and out
  const s32 *count; // rows of this step
  Forms out;        // cols columns
};

// rotate writes heads with a part of each rotated.
extern "C" __global__ void __launch_bounds__(threads) rotate(const RotateArgs a) {
  waitForPrevious();
  allowNext();
  eachBlock(a.out, a.count, a.cols, [&](int row, int col) {
    const float *x = a.x + s64(row) * a.stride + col;
    const int i = col % a.headDim - a.first;
    return i < 0 ? x[0] : rotatedAt(a.by, row, x - i, i);
  });
}

struct SpreadColumnsArgs {
  const float *x;   // [T, stride]
  const s32 *from;  // [cols] column of x for each column of out, or -1
  s32 stride;       // elements
  s32 cols;         // of out
  const s32 *count; // rows of this step
  Forms out;        // cols columns
};

constexpr float absent = -1e30f; // plan.Absent

// spread writes columns of x at other places.
extern "C" __global__ void __launch_bounds__(threads) spread(const SpreadColumnsArgs a) {
  waitForPrevious();
  allowNext();
  eachBlock(a.out, a.count, a.cols, [&](int row, int col) {
    const int from = a.from[col];
    return from < 0 ? absent : a.x[s64(row) * a.stride + from];
  });
}

// --- Sums of rows

INLINE double shuffled(double v, int mask) { return __builtin_bit_cast(double, shuffleXor(__builtin_bit_cast(u64, v), mask)); }

// sumOfRow adds of(col) for all columns of a row, in float64: each thread adds every threads-th
// column in ascending order, then the lanes of a warp are added, then the warps.
template <class Of> INLINE double sumOfRow(int cols, double (&parts)[threads / 32], const Of &of) {
  double sum = 0;
  for (int col = tidX(); col < cols; col += threads) sum = sum + of(col);
  UNROLL for (int m = 16; m; m >>= 1) sum = sum + shuffled(sum, m);
  syncBlock(); // all threads have read the previous sums
  if (tidX() % 32 == 0) parts[tidX() / 32] = sum;
  syncBlock();
  sum = 0;
  UNROLL for (int w = 0; w < threads / 32; w++) sum = sum + parts[w];
  return sum;
}

// storeRow writes a row with the columns of(col).
template <class Of> INLINE void storeRow(const Forms &out, int row, int cols, const Of &of) {
  const int lane = tidX() % 32;
  for (int block = tidX() / 32; 32 * block < cols; block += threads / 32) {
    const int col = 32 * block + lane;
    storeBlock(out, row, block, lane, col < cols ? of(col) : 0.0f);
  }
}

struct RescaleArgs {
  const float *x;    // [T, xStride]
  const float *like; // [T, likeStride]
  double eps;
  s32 xStride;      // elements
  s32 likeStride;   // elements
  s32 cols;         // of x, like and out
  s32 pad;
  const s32 *count; // rows of this step
  Forms out;        // cols columns
};

// rescale scales the rows of x to the root mean square of the rows of like. Grid (T), a row per
// block.
extern "C" __global__ void __launch_bounds__(threads) rescale(const RescaleArgs a) {
  __shared__ double parts[threads / 32];
  waitForPrevious();
  allowNext();
  const int row = blockX();
  if (row >= *a.count) return;
  const float *x = a.x + s64(row) * a.xStride, *like = a.like + s64(row) * a.likeStride;
  const double own = sumOfRow(a.cols, parts, [&](int col) { return double(x[col]) * double(x[col]); }) / a.cols;
  const double want = sumOfRow(a.cols, parts, [&](int col) { return double(like[col]) * double(like[col]); }) / a.cols;
  const float by = float(__builtin_sqrt(want / (own < a.eps ? a.eps : own)));
  storeRow(a.out, row, a.cols, [&](int col) { return x[col] * by; });
}

struct SparsifyArgs {
  const float *x; // [T, stride]
  double by;
  s32 stride;       // elements
  s32 cols;         // of x and out
  const s32 *count; // rows of this step
  Forms out;        // cols columns
};

// sparsify writes how far values of a row are above its mean plus by standard deviations, or 0.
// Grid (T), a row per block.
extern "C" __global__ void __launch_bounds__(threads) sparsify(const SparsifyArgs a) {
  __shared__ double parts[threads / 32];
  waitForPrevious();
  allowNext();
  const int row = blockX();
  if (row >= *a.count) return;
  const float *x = a.x + s64(row) * a.stride;
  const double mean = sumOfRow(a.cols, parts, [&](int col) { return double(x[col]); }) / a.cols;
  const double variance = sumOfRow(a.cols, parts, [&](int col) { return (x[col] - mean) * (x[col] - mean); }) / a.cols;
  const float least = float(mean + a.by * __builtin_sqrt(variance));
  storeRow(a.out, row, a.cols, [&](int col) {
    const float v = x[col] - least;
    return v <= 0 ? 0.0f : v; // keeps NaN
  });
}
