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

// convolve writes the weighted sums of width rows. The warp of a sequence's last row also writes the
// state: no slot is both read and written.
INLINE void convolve(const ConvArgs &a) {
  const int past = a.width - 1;
  eachBlock(a.out, a.count, a.cols, [&](int row, int col) {
    const int s = a.sequence[row], first = a.starts[s];
    const float *before = slotBefore(a.state, s);
    const auto at = [&](int t) {
      if (t >= first) return a.x[s64(t) * a.xStride + col];
      return before ? before[s64(t - first + past) * a.cols + col] : 0.0f;
    };
    float sum = a.bias ? a.bias[col] : 0.0f;
    for (int i = 0; i < a.width; i++) sum = sum + a.w[s64(col) * a.width + i] * at(row - past + i);
    if (row + 1 == a.starts[s + 1]) {
      float *after = slotAfter(a.state, s);
      for (int i = 0; i < past; i++) after[s64(i) * a.cols + col] = at(row - past + 1 + i);
    }
    return a.mapped ? functionOf(a.function, sum) : sum;
  });
}

// Grid (blocks of columns, rows, convolutions).
extern "C" __global__ void __launch_bounds__(threads) conv(const ConvsArgs a) {
  waitForPrevious();
  allowNext();
  UNROLL for (int i = 0; i < mostConvs; i++) {
    if (blockZ() == i) convolve(a.of[i]);
  }
}
