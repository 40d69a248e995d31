// Attention of each token to all tokens of its sequence, or to those near it. All of them are in
// the step, and there is no KV cache.
//
// The keys of a sequence are processed 32 at a time, counted from its first token, and joined in
// ascending order (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018), so
// the bits of a token depend only on its sequence.
#include "forms.cuh"

struct BidirectionalArgs {
  const float *q;        // [T, qStride] heads*headDim columns
  const float *k, *v;    // [T, kStride], [T, vStride] kvHeads*headDim columns
  s32 qStride, kStride, vStride; // elements
  s32 share;             // query heads of a key/value head
  s32 headDim;           // 1 to 256
  float scale;           // of q.k, times log2(e)
  s32 window;            // a token sees itself and window-1 tokens before and after it; 0: all
  s32 padded;            // length of a query or key in shared memory
  const s32 *sequence;   // [T]
  const s32 *starts;     // [S+1] first token of each sequence, and T
  const s32 *count;      // tokens of this step
  Forms out;             // heads*headDim columns; f32 only, unless headDim is a multiple of 32
};

constexpr int warps = 8, tileKeys = 32;
constexpr float none = -__builtin_inff();

// copyHeads copies a head of rows first to first+n-1 to shared memory, where rows are apart
// elements from each other. Elements beyond the head, and rows from end on, become 0.
INLINE void copyHeads(float *to, int apart, const float *from, s64 stride, int first, int n, int end, int dim) {
  const int fours = apart / 4;
  for (int i = tidX(); i < n * fours; i += 32 * warps) {
    const int row = i / fours, col = i % fours * 4;
    float4 v = {};
    if (first + row < end && col < dim) {
      const float *x = from + s64(first + row) * stride + col;
      if (dim % 4 == 0) {
        v = *reinterpret_cast<const float4 *>(x);
      } else {
        v.x = x[0];
        if (col + 1 < dim) v.y = x[1];
        if (col + 2 < dim) v.z = x[2];
        if (col + 3 < dim) v.w = x[3];
      }
    }
    *reinterpret_cast<float4 *>(to + row * apart + col) = v;
  }
}

// attend computes 8*Q queries of one head. A warp has Q queries. A lane has one of 32 keys, and
// then every 32nd element of the values, which have up to 32*N elements.
template <int Q, int N> INLINE void attend(const BidirectionalArgs &a) {
  extern __shared__ float4 shared[];
  __shared__ float shares[warps][tileKeys][Q];
  constexpr int queries = warps * Q;
  waitForPrevious();
  allowNext();
  const int head = blockY(), kvHead = head / a.share, dim = a.headDim, warp = tidX() / 32, lane = tidX() & 31;
  const int count = *a.count, firstQuery = blockX() * queries;
  if (firstQuery >= count) return;
  const int lastQuery = minOf(firstQuery + queries, count) - 1;
  float *qs = reinterpret_cast<float *>(shared), *ks = qs + queries * a.padded, *vs = ks + tileKeys * a.padded;
  copyHeads(qs, a.padded, a.q + s64(head) * dim, a.qStride, firstQuery, queries, lastQuery + 1, dim);

  const int mine = firstQuery + warp * Q; // the warp's first query
  const float *q = qs + warp * Q * a.padded;
  float top[Q], sum[Q], value[Q][N];
  UNROLL for (int i = 0; i < Q; i++) {
    top[i] = none, sum[i] = 0;
    UNROLL for (int j = 0; j < N; j++) value[i][j] = 0;
  }
  // A block may have the end of one sequence and the beginning of others.
  const int lastSequence = a.sequence[lastQuery];
  for (int s = a.sequence[firstQuery]; s <= lastSequence; s++) {
    const int begin = a.starts[s], end = a.starts[s + 1];
    int lo[Q], hi[Q]; // keys visible to a query; none if it is in another sequence
    UNROLL for (int i = 0; i < Q; i++) {
      const int t = mine + i;
      lo[i] = hi[i] = 0;
      if (t < begin || t >= end || t > lastQuery) continue;
      lo[i] = a.window > 0 ? maxOf(begin, t + 1 - a.window) : begin;
      hi[i] = a.window > 0 ? minOf(end, t + a.window) : end;
    }
    int from = begin, to = end;
    if (a.window > 0) {
      from = maxOf(begin, maxOf(begin, firstQuery) + 1 - a.window);
      to = minOf(end, minOf(end - 1, lastQuery) + a.window);
    }
    for (int key = begin + (from - begin) / tileKeys * tileKeys; key < to; key += tileKeys) {
      syncBlock();
      copyHeads(ks, a.padded, a.k + s64(kvHead) * dim, a.kStride, key, tileKeys, end, dim);
      copyHeads(vs, 32 * N, a.v + s64(kvHead) * dim, a.vStride, key, tileKeys, end, dim);
      syncBlock();
      bool sees[Q], any = false;
      UNROLL for (int i = 0; i < Q; i++) sees[i] = lo[i] < key + tileKeys && hi[i] > key, any = any || sees[i];
      if (!any) continue;

      float score[Q];
      UNROLL for (int i = 0; i < Q; i++) score[i] = 0;
#pragma unroll 2
      for (int d = 0; d < dim; d += 4) {
        const float4 k = *reinterpret_cast<const float4 *>(ks + lane * a.padded + d);
        UNROLL for (int i = 0; i < Q; i++) {
          const float4 x = *reinterpret_cast<const float4 *>(q + i * a.padded + d);
          score[i] = fma(x.x, k.x, score[i]);
          score[i] = fma(x.y, k.y, score[i]);
          score[i] = fma(x.z, k.z, score[i]);
          score[i] = fma(x.w, k.w, score[i]);
        }
      }
      UNROLL for (int i = 0; i < Q; i++) {
        float share = 0;
        if (sees[i]) {
          const bool visible = key + lane >= lo[i] && key + lane < hi[i];
          const float x = visible ? score[i] * a.scale : none;
          const float next = maxOf(top[i], warpMax(x)), by = exp2Of(top[i] - next);
          share = exp2Of(x - next);
          top[i] = next;
          sum[i] = fma(sum[i], by, warpSum(share));
          UNROLL for (int j = 0; j < N; j++) value[i][j] = value[i][j] * by;
        }
        shares[warp][lane][i] = share;
      }
      syncWarp();
#pragma unroll 4
      for (int i = 0; i < tileKeys; i++) {
        float share[Q];
        UNROLL for (int k = 0; k < Q; k++) share[k] = shares[warp][i][k];
        UNROLL for (int j = 0; j < N; j++) {
          const float x = vs[i * 32 * N + 32 * j + lane];
          UNROLL for (int k = 0; k < Q; k++) {
            if (sees[k]) value[k][j] = fma(share[k], x, value[k][j]);
          }
        }
      }
      syncWarp();
    }
  }

  // The results overwrite the warp's queries, so that a loop stores them.
  float *results = qs + warp * Q * a.padded;
  syncWarp();
  UNROLL for (int i = 0; i < Q; i++) {
    UNROLL for (int j = 0; j < N; j++) {
      if (32 * j + lane < dim) results[i * a.padded + 32 * j + lane] = divide(value[i][j], sum[i]);
    }
  }
  syncWarp();
  for (int i = 0; i < Q && mine + i <= lastQuery; i++) {
    for (int at = 0; at < dim; at += 32) {
      const int d = at + lane;
      const float x = d < dim ? results[i * a.padded + d] : 0.0f;
      if (dim % 32 == 0) {
        storeBlock(a.out, mine + i, (head * dim + at) / 32, lane, x);
      } else if (d < dim) {
        a.out.f32[s64(mine + i) * a.out.stride + head * dim + d] = x;
      }
    }
  }
}

// One kernel for each maximum head length. Grid (tokens / queries of a block, heads), shared memory
// of 4*(queries*padded + 32*padded + 32*maximum head length) bytes.
extern "C" __global__ void __launch_bounds__(32 * warps) bidirectional_64(const BidirectionalArgs a) { attend<4, 2>(a); }
extern "C" __global__ void __launch_bounds__(32 * warps) bidirectional_128(const BidirectionalArgs a) { attend<4, 4>(a); }
extern "C" __global__ void __launch_bounds__(32 * warps) bidirectional_256(const BidirectionalArgs a) { attend<2, 8>(a); }
