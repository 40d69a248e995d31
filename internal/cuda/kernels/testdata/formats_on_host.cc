// Makes tiles of rows of files and reads them as kernels do, on the host: what operands and lines
// say is compared with what the rows hold. It reads, for each format, its name, its rows and
// columns, the rows as in a file, and their values in float32; it prints what differs.
#include "machine.h"
namespace {
#include "formats.cuh"
} // namespace

static int wrong = 0;

// A Tile is one of a format, made as weights.cuh makes it.
template <class F> struct alignas(16) Tile {
  u8 bytes[F::tileBytes];
  float divisor[tileRows];

  Tile(const u8 *rows, int cols, int kt) {
    constexpr int perBlock = F::fileLen / 32;
    const int rowBytes = cols / F::fileLen * F::fileBytes;
    auto block = [&](int row, int b) { return rows + row * rowBytes + (kt * F::blocks + b) / perBlock * F::fileBytes; };
    for (int lane = 0; lane < 32; lane++) {
      F::put(bytes, lane, [&](int step, int r, int e) -> u32 {
        const int b = step / 2;
        return F::fileCode(block(lane / 4 + 8 * (r & 1), b), (b % perBlock) * 32 + columnOf(lane & 3, step & 1, r, e));
      });
    }
    for (int row = 0; row < tileRows; row++) {
      Reach all{0, 0};
      for (int b = 0; b < cols / F::fileLen; b++) {
        const Reach v = F::reach(rows + row * rowBytes + b * F::fileBytes);
        all = Reach{maxOf(all.s, v.s), maxOf(all.m, v.m)};
      }
      const auto by = divisorOf<F>(all);
      divisor[row] = numberOf(by);
      for (int b = 0; b < F::blocks; b += perBlock) putScales<F>(bytes, block(row, b), row, b, by);
    }
  }
};

// Lines are exact but for float32, and for scales that are float32 in the file.
template <class F> constexpr double lineSlack = 1e-6;
template <> constexpr double lineSlack<F8_E4M3_32> = 0x1p-11;

template <class F> void check(const char *name, const u8 *rows, const float *want, int cols) {
  double worst = 0, worstLine = 0;
  for (int kt = 0; kt < cols / F::tileK; kt++) {
    const Tile<F> tile(rows, cols, kt);
    for (int lane = 0; lane < 32; lane++) {
      F w, quarters;
      w.template loadCodes<FromGlobal>(tile.bytes, lane);
      w.template loadScales<FromGlobal>(tile.bytes, lane);
      w.prepare();
      quarters.template loadScales<FromShared>(tile.bytes, lane);
      quarters.prepare();
      for (int step = 0; step < F::tileK / 16; step++) {
        if (step % 4 == 0) quarters.template loadQuarter<FromShared>(tile.bytes, lane, step / 4);
        const uint4 a = w.operand(step), b = quarters.operand(step);
        u32 codes[4];
        w.codes(codes, step);
        for (int r = 0; r < 4; r++) {
          if (wordOf(a, r) != wordOf(b, r)) wrong++, printf("%s: lane %d, step %d: a quarter is loaded otherwise\n", name, lane, step);
          for (int e = 0; e < 2; e++) {
            const int row = lane / 4 + 8 * (r & 1), col = kt * F::tileK + columnOf(lane & 3, step, r, e);
            double size = 0;
            for (int c = col / 32 * 32; c < col / 32 * 32 + 32; c++) size = fmax(size, fabs(want[row * cols + c]));
            const double of = want[row * cols + col], by = tile.divisor[row];
            const Line l = w.line(step, r & 1);
            double line = double(l.d) * (r & 1 && F::lift ? 0x1p-20 : 0x1p-24) * w.codeOf(codes, r, e);
            if (F::minimum) line += l.low;
            worst = fmax(worst, fabs(halfToFloat(u16(wordOf(a, r) >> (16 * e))) * by - of) / (size + 2 * fabs(l.low) * by)); // they may cancel
            worstLine = fmax(worstLine, fabs(line * by - of) / size);
          }
        }
      }
    }
  }
  // A scale, a minimum and the weight are rounded to 11 bits.
  if (!(worst < 0x1.4p-10) || !(worstLine < lineSlack<F>)) wrong++;
  printf("%s: operands %.2g, lines %.2g from the file's\n", name, worst, worstLine);
}

int main() {
  char name[32];
  int rows, cols, bytes;
  while (scanf("%31s %d %d %d", name, &rows, &cols, &bytes) == 4) {
    getchar(); // the end of the line
    u8 *data = static_cast<u8 *>(malloc(bytes));
    float *want = static_cast<float *>(malloc(4 * rows * cols));
    if (rows != tileRows || fread(data, 1, bytes, stdin) != size_t(bytes) || fread(want, 4, rows * cols, stdin) != size_t(rows * cols)) return 2;
#define CHECK(F) \
  if (strcmp(name, #F) == 0) check<F>(name, data, want, cols);
    CHECK(Q4_0) CHECK(Q4_1) CHECK(Q5_0) CHECK(Q5_1) CHECK(Q8_0) CHECK(Q2_K) CHECK(Q3_K) CHECK(Q4_K) CHECK(Q5_K) CHECK(Q6_K) CHECK(IQ4_NL) CHECK(IQ4_XS) CHECK(MXFP4) CHECK(TQ2_0) CHECK(F8_E4M3_32)
    free(data), free(want);
  }
  return wrong > 0;
}
