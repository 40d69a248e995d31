// The exchange of columns among the devices that run the parts of one program.
#include "mail.cuh"

struct AllGatherArgs {
  const float *x;    // [T, stride] the part's columns
  const Forms *outs; // [parts] where each part has the whole value
  Meeting meeting;
  s32 stride;       // elements
  s32 first;        // number of the first column in the whole value
  s32 cols;         // that x has
  s32 padded;       // columns with those of zeros that follow
  s32 width;        // columns that a thread of all_gather writes: 4, or 1 if a part begins or ends between fours
  s32 pad;
  const s32 *count; // rows of this step
  s32 ends[mostParts]; // by part: number of the column behind its last one
};

// storeOne writes the same bits as storeFour, one column.
INLINE void storeOne(const Forms &f, int row, int col, float v) {
  const s64 to = placeOf(row, col, f.stride);
  if (f.f32 && col < f.cols) f.f32[s64(row) * f.stride + col] = v;
  if (f.bf16) f.bf16[to] = floatToBfloat(v);
  if (f.f16) f.f16[to] = floatToHalf(v * f.by);
}

// all_gather writes the columns of x to the whole value of every part, and ends when all parts have
// written to that of this one. The memory of the whole value must be free since the exchange before.
extern "C" __global__ void __launch_bounds__(exchangeThreads) all_gather(const AllGatherArgs a) {
  waitForPrevious();
  allowNext();
  const Meeting &m = a.meeting;
  const int units = a.padded / a.width;
  const s64 all = s64(*a.count) * units;
  for (s64 i = s64(blockX()) * exchangeThreads + tidX(); i < all; i += s64(gridX()) * exchangeThreads) {
    const int row = int(i / units), col = a.width * int(i % units);
    const float *x = a.x + s64(row) * a.stride + col;
    if (a.width == 1) {
      const float one = col < a.cols ? x[0] : 0.0f;
      for (int p = 0; p < m.parts; p++) storeOne(a.outs[(m.part + p) % m.parts], row, a.first + col, one);
      continue;
    }
    float4 v = {0, 0, 0, 0};
    if (col + 4 <= a.cols) {
      v = *reinterpret_cast<const float4 *>(x);
    } else if (col < a.cols) {
      v = float4{x[0], col + 1 < a.cols ? x[1] : 0.0f, col + 2 < a.cols ? x[2] : 0.0f, 0.0f};
    }
    for (int p = 0; p < m.parts; p++) storeFour(a.outs[(m.part + p) % m.parts], row, a.first + col, v);
  }
  fenceSystem();
  if (!last(m) || tidX() >= 32) return;
  const u32 n = m.mine->meetings + 1;
  meet(m, n);
  if (tidX() == 0) ended(m, n);
}

// few is all_gather for few rows, with packets.
extern "C" __global__ void __launch_bounds__(exchangeThreads) few(const AllGatherArgs a) {
  waitForPrevious();
  allowNext();
  const Meeting &m = a.meeting;
  const Forms out = a.outs[m.part];
  const u32 n = m.mine->meetings + 1;
  const int rows = upTo(m, *a.count) - m.first;
  if (rows <= 0) return; // nobody would wait, so it is no meeting: the box of this one's number may still be read
  const int fours = out.stride / 4, stop = a.first + a.cols;
  // each calls f with every four columns of a row of which the thread has them, and their packet.
  auto each = [&](int begin, int end, const auto &f) ALWAYS {
    const int span = end - begin;
    const s64 all = s64(rows) * span;
    for (s64 i = s64(blockX()) * exchangeThreads + tidX(); i < all; i += s64(gridX()) * exchangeThreads) {
      const int row = int(i / span), four = begin + int(i % span);
      f(m.first + row, 4 * four, s64(row) * fours + four);
    }
  };
  auto own = [&](int col) ALWAYS { return col >= a.first && col < stop; };
  auto at = [&](int row, int col) ALWAYS { return a.x[s64(row) * a.stride + col - a.first]; };
  each(a.first / 4, (stop + 3) / 4, [&](int row, int col, s64 packet) ALWAYS {
    const bool whole = own(col) && own(col + 3);
    float4 v;
    UNROLL for (int i = 0; i < 4; i++) v[i] = own(col + i) ? at(row, col + i) : 0;
    for (int i = 1; i < m.parts; i++) {
      Packet *to = boxOf(m, (m.part + i) % m.parts, n) + packet;
      if (whole) {
        send(to, v, n);
        continue;
      }
      UNROLL for (int k = 0; k < 4; k++) {
        if (own(col + k)) writeSystem(&to->of[k], numbered(v[k], n));
      }
    }
  });
  syncBlock(); // all that others wait for is sent before the block waits
  const Packet *box = boxOf(m, m.part, n);
  each(0, fours, [&](int row, int col, s64 packet) ALWAYS {
    float4 v;
    UNROLL for (int i = 0; i < 4; i++) v[i] = own(col + i) ? at(row, col + i) : 0;
    auto awaited = [&](int i) ALWAYS { return col + i < out.cols && !own(col + i); };
    int from = 0; // the first column that another part has
    while (from < 4 && !awaited(from)) from++;
    if (from < 4) {
      int p = 0;
      while (p < m.parts - 1 && col + from >= a.ends[p]) p++;
      wait(m, p, [&]() ALWAYS {
        u64 w[4];
        UNROLL for (int i = 0; i < 4; i += 2) readSystem(&box[packet].of[i], w[i], w[i + 1]);
        bool all = true;
        UNROLL for (int i = 0; i < 4; i++) {
          if (awaited(i)) v[i] = asFloat(u32(w[i])), all = all && u32(w[i] >> 32) == n;
        }
        return all;
      });
    }
    storeFour(out, row, col, v);
  });
  if (last(m) && tidX() == 0) ended(m, n);
}
