// Decode attention to a prefix: whole segments with which several sequences begin, on the same
// pages. The pages are read once for all of them. Rows are the query heads of the sequences'
// tokens. The parts of a row are those that decode would compute, and decode continues behind them.
//
// Queries are already normalized and rotated.
#pragma once
#include "attention.cuh"

struct PrefixArgs {
  // A sequence is a prefix here: seqs is the number of prefixes, starts [seqs+1] has the first
  // member of each, and a member's place is that of the last position of the prefix. partial has
  // the layout of keptOf.
  AttentionArgs attention;
  const s32 *members; // [T] tokens, those of a prefix adjacent
};

template <class C, int D> INLINE void attendPrefixes(const PrefixArgs &args) {
  const AttentionArgs &a = args.attention;
  const Share share(a, blockX(), tileRowCount);
  waitForPrevious();
  allowNext();
  Tile t;
  for (int index = blockY(); tileOf(t, a, index, share.tokens); index += gridY()) attendTile<C, D, true>(a, share, t, index, nullptr, args.members);
}

// Grid (kvHeads*ceil(heads/kvHeads/64), tiles of at most 64 rows, split ? segments : 1), 128
// threads, shared memory as for prefill attention. Cost: as for prefill attention.
#define PREFIXES(name, cache, dim) \
  extern "C" __global__ void __launch_bounds__(tileThreads, (dim == 64 ? 3 : 2)) name(const PrefixArgs a) { attendPrefixes<cache, dim>(a); }
