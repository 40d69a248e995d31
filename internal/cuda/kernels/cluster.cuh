// The blocks of a cluster on Hopper, for threads that need not come together. Before Hopper a block
// is alone.
#pragma once
#include "device.cuh"

#if __CUDA_ARCH__ >= 900
INLINE void syncCluster() { asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory"); }
INLINE void arriveCluster() { asm volatile("barrier.cluster.arrive.release;" ::: "memory"); }
INLINE void waitCluster() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }

// storeIn writes v to shared memory of the given block of the cluster, at p's offset in this block.
INLINE void storeIn(int block, float *p, float v) {
  u64 there;
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(p), "r"(block));
  asm volatile("st.f32 [%0], %1;" ::"l"(there), "f"(v) : "memory");
}
#else
INLINE void syncCluster() { syncBlock(); }
#endif
