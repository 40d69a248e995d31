// system.cuh on the host: devices are processes that map the same memory.
#pragma once
#include "device.cuh"
#include <time.h>

INLINE void tellSystem(u32 *p, u32 v) { __atomic_store_n(p, v, __ATOMIC_RELEASE); }
INLINE u32 hearSystem(const u32 *p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
INLINE void writeSystem(u64 *p, u64 a, u64 b) { __atomic_store_n(p, a, __ATOMIC_RELAXED), __atomic_store_n(p + 1, b, __ATOMIC_RELAXED); }
INLINE void readSystem(const u64 *p, u64 &a, u64 &b) { a = __atomic_load_n(p, __ATOMIC_RELAXED), b = __atomic_load_n(p + 1, __ATOMIC_RELAXED); }
INLINE void writeSystem(u64 *p, u64 v) { __atomic_store_n(p, v, __ATOMIC_RELAXED); }
INLINE void fenceSystem() { __atomic_thread_fence(__ATOMIC_ACQ_REL); }
INLINE u64 nanoseconds() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return u64(t.tv_sec) * 1000000000ull + t.tv_nsec;
}
INLINE void pause() { usleep(100); }
