// Tiles of attention: what a block computes at a time, consecutive tokens of one sequence and the
// query heads of one KV head.
#pragma once
#include "segment.cuh"

struct Tile {
  int token, n;        // the tile's first token in the step, and the number of tokens
  int position, shift; // of the first token, see Place
};

// tileOf sets t to tile number index, where per is the number of tokens in a tile, and returns
// whether there is one. Tiles do not cross sequences. With longer set, sequences of one token have
// none. All lanes of a warp take part.
INLINE bool tileOf(Tile &t, const AttentionArgs &a, int index, int per, bool longer = false) {
  const int lane = tidX() % 32, seqs = *a.seqs;
  for (int first = 0, before = 0; first < seqs; first += 32) {
    const int q = first + lane;
    const int begin = q < seqs ? a.starts[q] : 0, end = q < seqs ? a.starts[q + 1] : 0;
    const int tiles = longer && end - begin == 1 ? 0 : (end - begin + per - 1) / per;
    int upTo = tiles;
    UNROLL for (int m = 1; m < 32; m *= 2) {
      const int other = int(shuffleFrom(u32(upTo), (lane - m) & 31));
      if (lane >= m) upTo += other;
    }
    upTo += before;
    const u32 beyond = ballot(index < upTo);
    if (beyond) {
      const int from = __builtin_ctz(beyond);
      const int mine = begin + (index - (upTo - tiles)) * per;
      t.token = int(shuffleFrom(u32(mine), from));
      t.n = int(shuffleFrom(u32(minOf(per, end - mine)), from));
      const Place place = a.table.places[t.token];
      t.position = place.position, t.shift = place.shift;
      return true;
    }
    before = int(shuffleFrom(u32(upTo), 31));
  }
  return false;
}

// tilesOf returns the number of tiles of a step.
INLINE int tilesOf(const AttentionArgs &a, int per, bool longer) {
  int tiles = 0;
  for (int q = tidX() % 32, seqs = *a.seqs; q < seqs; q += 32) {
    const int n = a.starts[q + 1] - a.starts[q];
    tiles += longer && n == 1 ? 0 : (n + per - 1) / per;
  }
  UNROLL for (int m = 1; m < 32; m *= 2) tiles += int(shuffleXor(u32(tiles), m));
  return tiles;
}

// A Share is the heads of a group of blocks: n heads of a KV head, at most rows. tokens is the
// number of tokens whose heads fill a tile of that many rows.
struct Share {
  int kvHead, head, n, tokens;
  METHOD Share() {}
  METHOD Share(const AttentionArgs &a, int group, int rows) {
    const int share = a.heads / a.kvHeads, chunks = (share + rows - 1) / rows;
    kvHead = group / chunks;
    const int skipped = group % chunks * rows;
    head = kvHead * share + skipped, n = minOf(rows, share - skipped);
    tokens = rows / minOf(rows, share);
  }
};
