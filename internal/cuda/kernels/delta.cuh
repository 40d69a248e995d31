// What the kernels of the gated delta rule share.
#pragma once
#include "recurrent.cuh"

constexpr int deltaDim = 256; // maximum of keyDim and valueDim

// A product over a key is the sum of those over its parts, each from zero.
constexpr int deltaParts = 4, partMost = deltaDim / deltaParts;

// partOf is how many numbers of a key a part has: a multiple of 4. The last parts may have fewer.
INLINE int partOf(int keyDim) { return (keyDim + 15) / 16 * 4; }

struct DeltaArgs {
  const float *q, *k, *v, *beta, *gate; // [T, stride] each
  s32 qStride, kStride, vStride, betaStride, gateStride; // elements
  s32 keyHeads, heads, keyDim, valueDim;
  s32 tiled;                 // 1: head h has key h % keyHeads; 0: h / (heads/keyHeads)
  s32 gates;                 // gates of a head: 1 or keyDim
  float most;                // maximum of beta
  float floor;               // least gate; 0: none
  float by;                  // factor of queries
  s32 pad;
  const float *rate;         // [heads]
  const float *bias;         // [heads*gates]
  float *queries;            // [T][keyHeads*keyDim] normalised; these three are scratch memory
  float *betas;              // [T][heads]
  float *pairs;              // [T][keys with gates of their own][2][chunkTokens], see pairs
  Slots state;               // [heads][keyDim][valueDim]
  RowsPool rows;             // by key head: k [keyDim], then sums of gates and u of its heads
  Table table;
  const s32 *sequence;       // [T]
  const s32 *starts;         // [S+1] first token of each sequence, and T
  const s32 *seqs;           // sequences of this step
  const s32 *count;          // tokens
  Forms out;                 // heads*valueDim columns; f32 only, unless 32 divides valueDim
};

// A DeltaHead is the offsets of a head's fields in a row.
struct DeltaHead {
  int key, k, sums, u;
  METHOD DeltaHead(const DeltaArgs &a, int h) {
    const int shared = a.heads / a.keyHeads, which = a.tiled ? h / a.keyHeads : h % shared;
    key = a.tiled ? h % a.keyHeads : h / shared;
    k = key * (a.keyDim + shared * (a.gates + a.valueDim));
    sums = k + a.keyDim + which * a.gates;
    u = k + a.keyDim + shared * a.gates + which * a.valueDim;
  }
};

INLINE float4 fourAt(const float *p) { return *reinterpret_cast<const float4 *>(p); }
INLINE void addFour(float4 &sum, float x, float4 v) {
  UNROLL for (int e = 0; e < 4; e++) sum[e] = fma(x, v[e], sum[e]);
}

// A ChunkRows is where the rows of a chunk are, up to the last one known, and without gates by
// channel the sums of a head's gates.
struct ChunkRows {
  float *row[chunkTokens];
  float sum[chunkTokens];
};

// A DeltaRows is a head of a sequence, whose rows in the step begin with token first.
struct DeltaRows {
  const DeltaArgs &a;
  ChunkRows *chunk; // the one whose rows are computed
  int seq, h, first, end;
  Place place;
  DeltaHead head;
  bool channels;

  METHOD DeltaRows(const DeltaArgs &a, ChunkRows &chunk, bool channels)
      : a(a), chunk(&chunk), seq(blockZ()), h(blockY()), first(a.starts[blockZ()]), end(a.starts[blockZ() + 1]), place(a.table.places[first]), head(a, blockY()), channels(channels) {}
  METHOD int positionOf(int token) const { return place.position + token - first; }

  // find finds the first n rows of the chunk that begins at position begin. The block has 64 threads
  // or more, and waits before and after.
  METHOD void find(int begin, int n) {
    if (tidX() >= n) return;
    float *row = rowAt(a.rows, a.table, place.shift, begin + tidX());
    chunk->row[tidX()] = row, chunk->sum[tidX()] = channels ? 0 : row[head.sums];
  }
  METHOD float sumOf(int j, int d) const { return channels ? chunk->row[j][head.sums + d] : chunk->sum[j]; }

  // key returns number d of the key or query of a token, row i of the chunk.
  METHOD float key(bool query, int token, int i, int d) const { return query ? a.queries[(s64(token) * a.keyHeads + head.key) * a.keyDim + d] : chunk->row[i][head.k + d]; }
  // pairsOf returns the products of the key or query of a token and the keys of its chunk.
  METHOD const float *pairsOf(bool query, int token) const {
    return a.pairs + ((s64(token) * (channels ? a.heads : a.keyHeads) + (channels ? h : head.key)) * 2 + (query ? 1 : 0)) * chunkTokens;
  }
  // pair returns the product of the key or query of a token, row i of the chunk, and the key of row
  // j, times its decay.
  METHOD float pair(bool query, int token, int i, int j) const {
    const float v = pairsOf(query, token)[j];
    return channels ? v : v * expOf(chunk->sum[i] - chunk->sum[j]);
  }
  // late returns number d of the key of row j, times its decay at the end of the chunk.
  METHOD float late(int j, int d) const { return chunk->row[j][head.k + d] * expOf(sumOf(chunkTokens - 1, d) - sumOf(j, d)); }
};

constexpr int fewRows = 8; // of a sequence: few goes over them, many over more
