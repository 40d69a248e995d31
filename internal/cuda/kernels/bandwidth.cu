// The read bandwidth of device memory.
#include "device.cuh"

struct ReadArgs {
  const uint4 *p; // [n]
  s64 n;
  u32 *out; // written only if the xor of all reads is one value in 2^128 or so
};

constexpr int ahead = 8; // reads of a thread in flight

extern "C" __global__ void __launch_bounds__(256) readAll(const ReadArgs a) {
  const s64 step = s64(gridX()) * 256 * ahead;
  uint4 sum = {0, 0, 0, 0};
  for (s64 i = s64(blockX()) * 256 * ahead + tidX(); i < a.n; i += step) {
    uint4 v[ahead];
    UNROLL for (int j = 0; j < ahead; j++) v[j] = i + 256 * j < a.n ? loadOnce(a.p + i + 256 * j) : uint4{0, 0, 0, 0};
    UNROLL for (int j = 0; j < ahead; j++) sum = uint4{sum.x ^ v[j].x, sum.y ^ v[j].y, sum.z ^ v[j].z, sum.w ^ v[j].w};
  }
  if (sum.x == 0x9e3779b9 && sum.y == 0x7f4a7c15 && sum.z == 0xbf58476d && sum.w == 0x1ce4e5b9) *a.out = sum.x;
}
