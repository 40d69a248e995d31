// The coefficients of hyper-connections, in float64, see plan.ConnectAttr.
#include "doubles.cuh"
#include "forms.cuh"

struct ConnectArgs {
  const float *x;     // [T, stride]
  s32 stride;         // elements
  s32 streams;        // n, at most connectThreads
  const float *scale; // [3], or [1] where iterations is 0
  const float *base;  // [cols]
  double eps;
  s32 iterations;     // 0: only the coefficients before the layer
  s32 cols;           // of x and out: n, or n*(2+n)
  const s32 *count;   // rows of this step
  Forms out;          // cols columns
};

constexpr int connectThreads = 64;

// divided divides n numbers, apart elements from each other, by their sum plus eps.
INLINE void divided(double *x, int apart, int n, double eps) {
  double sum = eps;
  for (int i = 0; i < n; i++) sum = sum + x[i * apart];
  for (int i = 0; i < n; i++) x[i * apart] = x[i * apart] / sum;
}

// connect computes one row per block. A thread has a row or a column of the matrix. Grid (T),
// shared memory of 8*n*n bytes.
extern "C" __global__ void __launch_bounds__(connectThreads) connect(const ConnectArgs a) {
  extern __shared__ double matrix[]; // [n, n]
  waitForPrevious();
  allowNext();
  const int row = blockX(), i = tidX(), lane = i % 32, n = a.streams;
  if (row >= *a.count) return;
  const float *x = a.x + s64(row) * a.stride;
  const auto logit = [&](int at, int part) ALWAYS { return double(x[at]) * double(a.scale[part]) + double(a.base[at]); };
  const auto sigmoid = [&](int at, int part) ALWAYS { return 1 / (1 + exponential(-logit(at, part))); };
  if (a.iterations > 0 && i < n) {
    double *own = matrix + i * n, top = -infinity, sum = 0;
    for (int k = 0; k < n; k++) {
      own[k] = logit(2 * n + i * n + k, 2);
      top = own[k] > top ? own[k] : top;
    }
    for (int k = 0; k < n; k++) {
      own[k] = exponential(own[k] - top);
      sum = sum + own[k];
    }
    for (int k = 0; k < n; k++) own[k] = own[k] / sum + a.eps;
  }
  for (int step = 0; step < a.iterations; step++) {
    if (step > 0 && i < n) divided(matrix + i * n, 1, n, a.eps);
    syncBlock();
    if (i < n) divided(matrix + i, n, n, a.eps);
    syncBlock();
  }
  for (int block = i / 32; 32 * block < a.cols; block += connectThreads / 32) {
    const int col = 32 * block + lane, k = (col - n) / (1 + n), j = (col - n) % (1 + n) - 1;
    double v = 0;
    if (col < n) v = sigmoid(col, 0) + a.eps;
    else if (col < a.cols) v = j < 0 ? 2 * sigmoid(n + k, 1) : matrix[j * n + k];
    storeBlock(a.out, row, block, lane, float(v));
  }
}
