// Attention of eight rows at a time: how a block computes a segment. Each of its warps has a run.
#pragma once
#include "run.cuh"

constexpr int eightRows = 8;

// Eight is the shared memory that the warps of a block exchange data through, for heads of D
// elements, or for D = 0 of any length, and H rows at most. It holds width elements of each row's
// values at a time. Element k of a thread is element at(k) of row row(k).
template <int D, int H = eightRows> struct Eight {
  static constexpr int dim = D ? D : maxHeadDim;
  static constexpr int width = dim < 128 ? dim : 128, blocks = width / 64;
  static constexpr int passes = dim / width, each = H * width / blockThreads, count = passes * each;
  // Rows are 8 words longer than a multiple of 32, so reads have no bank conflicts.
  alignas(16) u16 q[eightRows][dim + 16];
  alignas(16) float slot[runs][H][width + 4];
  alignas(16) float top[eightRows][runs], sum[eightRows][runs]; // of runs

  METHOD static int row(int k) { return (tidX() + k % each * blockThreads) / width; }
  METHOD static int at(int k) { return (tidX() + k % each * blockThreads) % width + k / each * width; }
};

// putRun writes pass p of this warp's run for the other warps: the values of rows, with their tops
// and sums.
template <int D, int H>
INLINE void putRun(Eight<D, H> &s, const Values (&value)[Eight<D>::dim / 64], const float (&sum)[4], const float (&top)[2], int rows, int p) {
  using E = Eight<D, H>;
  const int warp = tidX() / 32, lane = tidX() % 32, g = lane / 4, t = lane % 4;
  UNROLL for (int h = 0; h < 2; h++) {
    if (2 * t + h >= rows) continue;
    UNROLL for (int b = 0; b < E::blocks; b++) {
      const Values &v = value[p * E::blocks + b];
      float *to = s.slot[warp][2 * t + h] + 64 * b + 8 * g;
      *reinterpret_cast<float4 *>(to) = float4{v[0][h], v[0][2 + h], v[1][h], v[1][2 + h]};
      *reinterpret_cast<float4 *>(to + 4) = float4{v[2][h], v[2][2 + h], v[3][h], v[3][2 + h]};
    }
    if (p == 0 && g == 0) s.top[2 * t + h][warp] = top[h], s.sum[2 * t + h][warp] = sum[h];
  }
}

// joined returns an element of a row's segment, joined from the runs that the warps have put.
template <int D, int H> INLINE Part joined(const Eight<D, H> &s, int row, int at) {
  Part part{lowest, 0, 0};
  UNROLL for (int r = 0; r < runs; r++) join(part, Part{s.top[row][r], s.sum[row][r], s.slot[r][row][at % Eight<D>::width]});
  return part;
}

// storeNumber writes an element of a result. Those of a warp are adjacent.
INLINE void storeNumber(const Forms &out, int token, int head, int at, int dim, bool whole, float v) {
  if (whole) storeBlock(out, token, (head * dim + at) / 32, tidX() % 32, v);
  else out.f32[s64(token) * out.stride + head * dim + at] = v;
}

// storeNumbers writes the results of rows.
template <int D, int H, class TokenOf, class HeadOf>
INLINE void storeNumbers(const float (&value)[Eight<D, H>::count], const Forms &out, int rows, int dim, const TokenOf &tokenOf, const HeadOf &headOf) {
  using E = Eight<D, H>;
  UNROLL for (int k = 0; k < E::count; k++) {
    const int row = E::row(k), at = E::at(k);
    if (row < rows && at < dim) storeNumber(out, tokenOf(row), headOf(row), at, dim, D || dim % 32 == 0, value[k]);
  }
}
