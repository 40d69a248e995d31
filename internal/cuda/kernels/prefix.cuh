// Attention in decoding to a prefix: whole segments that several sequences begin with, on the same
// pages. The pages are read once for all of them. Rows are the query heads of their tokens; the
// parts of a row are those that decoding would compute, and decoding goes on behind them.
//
// Queries are normalised and turned before.
#pragma once
#include "attention.cuh"

struct PrefixArgs {
  // Sequences are prefixes here: seqs is how many there are, starts [seqs+1] their members, and a
  // place that of the last position of a member's prefix. partial is as keptOf has it.
  AttentionArgs attention;
  const s32 *members; // [T] tokens, those of a prefix side by side
};

template <class C, int D> INLINE void attendPrefixes(const PrefixArgs &args) {
  const AttentionArgs &a = args.attention;
  const Share share(a, blockX(), tileRowCount);
  waitForPrevious();
  allowNext();
  Tile t;
  for (int index = blockY(); tileOf(t, a, index, share.tokens); index += gridY()) attendTile<C, D, true>(a, share, t, index, nullptr, args.members);
}

// grid (kvHeads*ceil(heads/kvHeads/64), tiles of 64 rows or fewer, split ? segments : 1), 128
// threads, shared memory as attention to prompts has it.
// cost: as there.
#define PREFIXES(name, cache, dim) \
  extern "C" __global__ void __launch_bounds__(tileThreads, (dim == 64 ? 3 : 2)) name(const PrefixArgs a) { attendPrefixes<cache, dim>(a); }
