// cluster.cuh on the host.
#pragma once
#include "matrix.cuh"

#if __CUDA_ARCH__ >= 900
INLINE void arriveCluster() { machine::comeToCluster(); }
INLINE void waitCluster() { machine::awaitCluster(); }
INLINE void syncCluster() {
  arriveCluster();
  waitCluster();
}
INLINE void storeIn(int block, float *p, float v) { sharedOf<float>(machine::placeIn(block, sharedAt(p))) = v; }
#else
INLINE void syncCluster() { syncBlock(); }
#endif
