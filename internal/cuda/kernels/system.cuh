// Accesses to memory that several devices share.
#pragma once
#include "device.cuh"

// tellSystem stores v after all that the thread has written or seen written. A device that reads v
// with hearSystem then reads these writes too.
INLINE void tellSystem(u32 *p, u32 v) { asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory"); }
INLINE u32 hearSystem(const u32 *p) {
  u32 r;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(r) : "l"(p) : "memory");
  return r;
}
// writeSystem and readSystem access two neighboring numbers of 64 bits, each as a whole, in no order.
INLINE void writeSystem(u64 *p, u64 a, u64 b) { asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(p), "l"(a), "l"(b) : "memory"); }
INLINE void readSystem(const u64 *p, u64 &a, u64 &b) { asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];" : "=l"(a), "=l"(b) : "l"(p) : "memory"); }
INLINE void writeSystem(u64 *p, u64 v) { asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory"); }
INLINE void fenceSystem() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

// nanoseconds is the time of a clock that never goes back.
INLINE u64 nanoseconds() {
  u64 r;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(r));
  return r;
}
INLINE void pause() { asm volatile("nanosleep.u32 20;"); }
