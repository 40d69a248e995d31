// The exchange of columns among the devices that run the parts of one program. Each part writes its
// columns into the memory of all parts, tells them, and waits until all have done so.
#include "forms.cuh"
#include "system.cuh"

constexpr int gatherThreads = 256, mostParts = 8;

// A Mail is what a part hears from the others, in its own memory. All parts run the same gathers in
// the same order.
struct Mail {
  u32 from[mostParts]; // by part: gathers whose columns it has written
  u32 gathers;         // that this part has run
  s32 blocks;          // of the running gather that have written
  u32 lost;            // 0, or 1 + the part that did not answer in time; from then on nothing waits
  u32 pad;
};

struct AllGatherArgs {
  const float *x;    // [T, stride] the part's columns
  const Forms *outs; // [parts] where each part has the whole value
  Mail *const *mail; // [parts] of each part
  s32 stride;        // elements
  s32 parts;
  s32 part;
  s32 first;         // number of the first column in the whole value
  s32 cols;          // that x has
  s32 padded;        // columns with those of zeros that follow
  s32 width;         // columns that a thread writes: 4, or 1 if a part begins or ends between fours
  s64 patience;      // ns
  const s32 *count;  // rows of this step
};

// storeOne writes the same bits as storeFour, one column.
INLINE void storeOne(const Forms &f, int row, int col, float v) {
  const s64 to = placeOf(row, col, f.stride);
  if (f.f32 && col < f.cols) f.f32[s64(row) * f.stride + col] = v;
  if (f.bf16) f.bf16[to] = floatToBfloat(v);
  if (f.f16) f.f16[to] = floatToHalf(v * f.by);
}

// all_gather writes the columns of x to the whole value of every part, and ends when all parts have
// written to that of this one. The memory of the whole value must be free since the gather before.
// The next kernel does not begin early: while it waited, it would hold the multiprocessors of a part
// on the same device.
extern "C" __global__ void __launch_bounds__(gatherThreads) all_gather(const AllGatherArgs a) {
  __shared__ u32 last;
  waitForPrevious();
  const int units = a.padded / a.width;
  const s64 all = s64(*a.count) * units;
  for (s64 i = s64(blockX()) * gatherThreads + tidX(); i < all; i += s64(gridX()) * gatherThreads) {
    const int row = int(i / units), col = a.width * int(i % units);
    const float *x = a.x + s64(row) * a.stride + col;
    if (a.width == 1) {
      const float one = col < a.cols ? x[0] : 0.0f;
      for (int p = 0; p < a.parts; p++) storeOne(a.outs[(a.part + p) % a.parts], row, a.first + col, one);
      continue;
    }
    float4 v = {0, 0, 0, 0};
    if (col + 4 <= a.cols) {
      v = *reinterpret_cast<const float4 *>(x);
    } else if (col < a.cols) {
      v = float4{x[0], col + 1 < a.cols ? x[1] : 0.0f, col + 2 < a.cols ? x[2] : 0.0f, 0.0f};
    }
    for (int p = 0; p < a.parts; p++) storeFour(a.outs[(a.part + p) % a.parts], row, a.first + col, v);
  }
  Mail &mine = *a.mail[a.part];
  fenceSystem();
  syncBlock();
  if (tidX() == 0) last = atomicAddDevice(&mine.blocks, 1) == gridX() - 1;
  syncBlock();
  if (!last || tidX() >= 32) return;
  const u32 n = mine.gathers + 1, lost = mine.lost;
  const int p = tidX();
  const bool peer = p < a.parts && p != a.part;
  if (peer) {
    fenceSystem();
    tellSystem(&a.mail[p]->from[a.part], n);
  }
  syncWarp(); // all parts have been told before one is waited for
  if (peer) {
    const u64 begun = nanoseconds();
    while (lost == 0 && s32(hearSystem(&mine.from[p]) - n) < 0) {
      if (nanoseconds() - begun > u64(a.patience)) {
        mine.lost = 1 + p;
        break;
      }
      pause();
    }
  }
  syncWarp();
  if (p == 0) mine.gathers = n, mine.blocks = 0;
}
