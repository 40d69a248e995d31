// Blocks that work on a row together: a cluster, or where there are none, a block.
#pragma once
#if __CUDA_ARCH__ >= 900
#include "hopper.cuh"

struct Team {
  const int rank, size;
  METHOD Team() : rank(rankInCluster<0>()), size(sizeOfCluster<0>()) {}
  // meet waits until all threads of the team have come. They see what the others have stored. come
  // and await are its halves.
  METHOD void come() const { comeToCluster(); }
  METHOD void await() const { awaitCluster(); }
  METHOD void meet() const { meetCluster(); }
  // store writes to p in the shared memory of a block.
  METHOD void store(int block, float *p, float v) const { storeIn(placeIn(block, sharedAt(p)), v); }
};
#else
#include "device.cuh"

struct Team {
  static constexpr int rank = 0, size = 1;
  METHOD void come() const { syncBlock(); }
  METHOD void await() const {}
  METHOD void meet() const { syncBlock(); }
  METHOD void store(int, float *p, float v) const { *p = v; }
};
#endif
