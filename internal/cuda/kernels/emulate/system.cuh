// system.cuh on the host: devices are processes that map the same memory.
#pragma once
#include "device.cuh"
#include <time.h>

INLINE void tellSystem(u32 *p, u32 v) { __atomic_store_n(p, v, __ATOMIC_RELEASE); }
INLINE u32 hearSystem(const u32 *p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
INLINE void fenceSystem() { __atomic_thread_fence(__ATOMIC_ACQ_REL); }
INLINE u64 nanoseconds() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return u64(t.tv_sec) * 1000000000ull + t.tv_nsec;
}
INLINE void pause() { usleep(100); }
