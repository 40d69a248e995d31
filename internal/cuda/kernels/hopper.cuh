// Hopper's instructions for pipelines of copies and products: barriers in shared memory that count
// arrivals and bytes, bulk copies that complete at these barriers, the matrix instructions of a
// warpgroup, and the shared memory of a cluster.
#pragma once
#include "device.cuh"

// A barrier is 8 bytes of shared memory. Its phase ends after the number of arrivals that it was
// made for and the copy of all bytes that these announced. Then the next phase begins.
INLINE void makeBarrier(u32 barrier, int arrivals) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory"); }
INLINE void showBarriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
INLINE void arrive(u32 barrier) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory"); }
INLINE void arriveWith(u32 barrier, int bytes) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory"); }
INLINE void awaitPhase(u32 barrier, u32 parity) {
  asm volatile("{\n.reg .pred p;\nAGAIN%=:\nmbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%0], %1;\n@!p bra AGAIN%=;\n}" ::"r"(barrier), "r"(parity) : "memory");
}

// isOver reports whether a phase has ended. It does not wait.
INLINE bool isOver(u32 barrier, u32 parity) {
  u32 r;
  asm volatile("{ .reg .pred over; mbarrier.test_wait.parity.acquire.cta.shared::cta.b64 over, [%1], %2; selp.u32 %0, 1, 0, over; }" : "=r"(r) : "r"(barrier), "r"(parity) : "memory");
  return r;
}

// uniform returns v, which is the same for all lanes, in a way that tells the compiler so.
INLINE int uniform(int v) { return int(shuffleFrom(u32(v), 0)); }

// arriveAfterCopies arrives when the copies of copyChunk that the thread has begun are done.
INLINE void arriveAfterCopies(u32 barrier) { asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory"); }

// syncSome waits for N threads that name this barrier, of 1 to 15.
template <int N, int BARRIER> INLINE void syncSome() { asm volatile("bar.sync %0, %1;" ::"n"(BARRIER), "n"(N) : "memory"); }
template <int N> INLINE void syncSome(int barrier) { asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(N) : "memory"); }

// copyBulk copies bytes, a multiple of 16, to shared memory and counts them at the barrier.
INLINE void copyBulk(u32 to, const void *from, int bytes, u32 barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from), "r"(bytes), "r"(barrier) : "memory");
}

// elected reports whether the lane is the one that its warp elects. All lanes take part.
INLINE bool elected() {
  u32 r;
  asm volatile("{ .reg .pred one; elect.sync _|one, 0xffffffff; selp.u32 %0, 1, 0, one; }" : "=r"(r));
  return r;
}

// copyBulkTo is copyBulk to the same address of all blocks of the cluster whose bits are set, and
// counts the bytes at the barrier of each.
INLINE void copyBulkTo(u32 blocks, u32 to, const void *from, int bytes, u32 barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(to), "l"(from), "r"(bytes), "r"(barrier), "h"(u16(blocks)) : "memory");
}

template <int N> INLINE void fewerRegisters() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N)); }
template <int N> INLINE void moreRegisters() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N)); }

// Products of a warpgroup: 64 rows of weights in registers, 16 of each warp as for mma.sync, times
// N rows of activations in shared memory. The accumulators are those of N/8 mma.sync side by side.
INLINE void beginProducts() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
INLINE void endProducts() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int LEFT> INLINE void awaitProducts() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory"); }

// oneOf returns a if first is set, else b. The compiler would index an array of numbers instead.
INLINE float oneOf(bool first, float a, float b) {
  float r;
  asm("{ .reg .pred first; setp.ne.u32 first, %3, 0; selp.f32 %0, %1, %2, first; }" : "=f"(r) : "f"(a), "f"(b), "r"(u32(first)));
  return r;
}

// loadIf returns the number at p if there is set, else 0.
INLINE float loadIf(bool there, const float *p) {
  float v = 0;
  asm volatile("{ .reg .pred there; setp.ne.u32 there, %2, 0; @there ld.global.f32 %0, [%1]; }" : "+f"(v) : "l"(p), "r"(int(there)) : "memory");
  return v;
}

// loadShared is a load that the compiler does not move across the instructions of this file.
INLINE uint4 loadShared(const uint4 *p) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(sharedAt(p)) : "memory");
  return v;
}

// hold keeps the compiler from moving accesses of accumulators across it: products in flight write
// them.
template <int N> INLINE void hold(float (&c)[N]) {
  UNROLL for (int i = 0; i < N; i++) asm volatile("" : "+f"(c[i])::"memory");
}

// tileOfRows describes rows of 64 16-bit elements, 128 bytes apart, from a multiple of 1,024 on.
// Addresses in shared memory are below 2^18, so their part of the descriptor needs no mask.
// The index of a piece of 16 bytes in its row is its number xor the row's (modulo 8). Adding 2 to
// the descriptor moves it by 16 columns.
INLINE u64 tileOfRows(u32 at) { return u64(at >> 4) | u64(1) << 16 | u64(64) << 32 | u64(1) << 62; }

// The types of operands. A step is 32 bytes of a row: 16 columns, or 32 of float8 (E4M3).
enum OperandType { InF16, InBF16, InFloat8 };

// multiplyRows adds the products of a step to c.
template <int N, OperandType T> INLINE void multiplyRows(float (&c)[N / 2], uint4 a, u64 x) {
  if constexpr (N == 16 && T == InF16) {
    asm volatile("{ .reg .pred all; setp.eq.u32 all, 0, 0; wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7}, {%8,%9,%10,%11}, %12, all, 1, 1, 0; }"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]) : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(x));
  } else if constexpr (N == 16 && T == InBF16) {
    asm volatile("{ .reg .pred all; setp.eq.u32 all, 0, 0; wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {%0,%1,%2,%3,%4,%5,%6,%7}, {%8,%9,%10,%11}, %12, all, 1, 1, 0; }"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]) : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(x));
  } else if constexpr (N == 32 && T == InF16) {
    asm volatile("{ .reg .pred all; setp.eq.u32 all, 0, 0; wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, {%16,%17,%18,%19}, %20, all, 1, 1, 0; }"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]) : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(x));
  } else if constexpr (N == 32 && T == InBF16) {
    asm volatile("{ .reg .pred all; setp.eq.u32 all, 0, 0; wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, {%16,%17,%18,%19}, %20, all, 1, 1, 0; }"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]) : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(x));
  } else if constexpr (N == 64 && T == InF16) {
    asm volatile("{ .reg .pred all; setp.eq.u32 all, 0, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, {%32,%33,%34,%35}, %36, all, 1, 1, 0; }"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]), "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31]) : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(x));
  } else if constexpr (N == 64 && T == InBF16) {
    asm volatile("{ .reg .pred all; setp.eq.u32 all, 0, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, {%32,%33,%34,%35}, %36, all, 1, 1, 0; }"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]), "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31]) : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(x));
  } else if constexpr (N == 128 && T == InF16) {
    asm volatile("{ .reg .pred all; setp.eq.u32 all, 0, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, {%64,%65,%66,%67}, %68, all, 1, 1, 0; }"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]), "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31]), "+f"(c[32]), "+f"(c[33]), "+f"(c[34]), "+f"(c[35]), "+f"(c[36]), "+f"(c[37]), "+f"(c[38]), "+f"(c[39]), "+f"(c[40]), "+f"(c[41]), "+f"(c[42]), "+f"(c[43]), "+f"(c[44]), "+f"(c[45]), "+f"(c[46]), "+f"(c[47]), "+f"(c[48]), "+f"(c[49]), "+f"(c[50]), "+f"(c[51]), "+f"(c[52]), "+f"(c[53]), "+f"(c[54]), "+f"(c[55]), "+f"(c[56]), "+f"(c[57]), "+f"(c[58]), "+f"(c[59]), "+f"(c[60]), "+f"(c[61]), "+f"(c[62]), "+f"(c[63]) : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(x));
  } else if constexpr (N == 128 && T == InBF16) {
    asm volatile("{ .reg .pred all; setp.eq.u32 all, 0, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, {%64,%65,%66,%67}, %68, all, 1, 1, 0; }"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]), "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31]), "+f"(c[32]), "+f"(c[33]), "+f"(c[34]), "+f"(c[35]), "+f"(c[36]), "+f"(c[37]), "+f"(c[38]), "+f"(c[39]), "+f"(c[40]), "+f"(c[41]), "+f"(c[42]), "+f"(c[43]), "+f"(c[44]), "+f"(c[45]), "+f"(c[46]), "+f"(c[47]), "+f"(c[48]), "+f"(c[49]), "+f"(c[50]), "+f"(c[51]), "+f"(c[52]), "+f"(c[53]), "+f"(c[54]), "+f"(c[55]), "+f"(c[56]), "+f"(c[57]), "+f"(c[58]), "+f"(c[59]), "+f"(c[60]), "+f"(c[61]), "+f"(c[62]), "+f"(c[63]) : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(x));
  } else if constexpr (N == 16 && T == InFloat8) {
    asm volatile("{ .reg .pred all; setp.eq.u32 all, 0, 0; wgmma.mma_async.sync.aligned.m64n16k32.f32.e4m3.e4m3 {%0,%1,%2,%3,%4,%5,%6,%7}, {%8,%9,%10,%11}, %12, all, 1, 1; }"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]) : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(x));
  } else if constexpr (N == 64 && T == InFloat8) {
    asm volatile("{ .reg .pred all; setp.eq.u32 all, 0, 0; wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, {%32,%33,%34,%35}, %36, all, 1, 1; }"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]), "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31]) : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(x));
  } else if constexpr (N == 128 && T == InFloat8) {
    asm volatile("{ .reg .pred all; setp.eq.u32 all, 0, 0; wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, {%64,%65,%66,%67}, %68, all, 1, 1; }"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]), "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31]), "+f"(c[32]), "+f"(c[33]), "+f"(c[34]), "+f"(c[35]), "+f"(c[36]), "+f"(c[37]), "+f"(c[38]), "+f"(c[39]), "+f"(c[40]), "+f"(c[41]), "+f"(c[42]), "+f"(c[43]), "+f"(c[44]), "+f"(c[45]), "+f"(c[46]), "+f"(c[47]), "+f"(c[48]), "+f"(c[49]), "+f"(c[50]), "+f"(c[51]), "+f"(c[52]), "+f"(c[53]), "+f"(c[54]), "+f"(c[55]), "+f"(c[56]), "+f"(c[57]), "+f"(c[58]), "+f"(c[59]), "+f"(c[60]), "+f"(c[61]), "+f"(c[62]), "+f"(c[63]) : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(x));
  }
}

// columnsOfTiles describes 16-bit elements whose columns are N elements of a row: panels of 64
// columns, panelBytes apart. Each has rows of 128 bytes from a multiple of 1,024 on, with pieces
// placed as in tileOfRows. 16 rows are 2,048 bytes.
INLINE u64 columnsOfTiles(u32 at, int panelBytes) { return u64(at >> 4 & 0x3fff) | u64(panelBytes >> 4) << 16 | u64(64) << 32 | u64(1) << 62; }

// piecesOfRows describes rows whose pieces of 8 elements are apart bytes from each other. A piece
// of a row is 16 bytes after that of the row before.
INLINE u64 piecesOfRows(u32 at, int apart) { return u64(at >> 4 & 0x3fff) | u64(apart >> 4) << 16 | u64(8) << 32; }

// multiplyColumns sets c to the products of a step of 16 rows of what columnsOfTiles describes, or
// adds them to c if add is set.
template <int N> INLINE void multiplyColumns(float (&c)[N / 2], uint4 a, u64 x, bool add) {
  if constexpr (N == 64) {
    asm volatile("{ .reg .pred more; setp.ne.u32 more, %37, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, {%32,%33,%34,%35}, %36, more, 1, 1, 1; }"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]), "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31]) : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(x), "r"(int(add)));
  } else {
    static_assert(N == 128);
    asm volatile("{ .reg .pred more; setp.ne.u32 more, %69, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, {%64,%65,%66,%67}, %68, more, 1, 1, 1; }"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]), "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31]), "+f"(c[32]), "+f"(c[33]), "+f"(c[34]), "+f"(c[35]), "+f"(c[36]), "+f"(c[37]), "+f"(c[38]), "+f"(c[39]), "+f"(c[40]), "+f"(c[41]), "+f"(c[42]), "+f"(c[43]), "+f"(c[44]), "+f"(c[45]), "+f"(c[46]), "+f"(c[47]), "+f"(c[48]), "+f"(c[49]), "+f"(c[50]), "+f"(c[51]), "+f"(c[52]), "+f"(c[53]), "+f"(c[54]), "+f"(c[55]), "+f"(c[56]), "+f"(c[57]), "+f"(c[58]), "+f"(c[59]), "+f"(c[60]), "+f"(c[61]), "+f"(c[62]), "+f"(c[63]) : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(x), "r"(int(add)));
  }
}

// columnsOfPieces describes 16-bit elements whose columns are pieces of 8 elements: rows of a piece
// are 16 bytes apart, 8 rows of it and the next 8 are rowsApart bytes apart, and adjacent pieces
// columnsApart.
INLINE u64 columnsOfPieces(u32 at, int rowsApart, int columnsApart) { return u64(at >> 4 & 0x3fff) | u64(rowsApart >> 4) << 16 | u64(columnsApart >> 4) << 32; }

// later moves a descriptor by bytes.
INLINE u64 later(u64 of, int bytes) { return of >> 32 << 32 | u32(u32(of) + (bytes >> 4)); }

// multiplyPieces sets c to the products of a step of 16, or adds them if add is set. Both operands
// are in shared memory, as piecesOfRows describes them.
template <int N> INLINE void multiplyPieces(float (&c)[N / 2], u64 a, u64 x, bool add) {
  if constexpr (N == 32) {
    asm volatile("{ .reg .pred more; setp.ne.u32 more, %18, 0; wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, %16, %17, more, 1, 1, 0, 0; }"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]) : "l"(a), "l"(x), "r"(int(add)));
  } else {
    static_assert(N == 64);
    asm volatile("{ .reg .pred more; setp.ne.u32 more, %34, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, %32, %33, more, 1, 1, 0, 0; }"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]), "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31]) : "l"(a), "l"(x), "r"(int(add)));
  }
}

// multiplyShared sets c, 64 x 32, to the products of a step of 16, or adds them if ADD is set. Both
// operands are in shared memory: a and x as piecesOfRows describes them, or as columnsOfPieces if
// COLUMNS is set.
template <bool COLUMNS, bool ADD> INLINE void multiplyShared(float (&c)[16], u64 a, u64 x) {
  asm volatile("{ .reg .pred more; setp.ne.u32 more, %18, 0; wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, %16, %17, more, 1, 1, %19, %19; }"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]) : "l"(a), "l"(x), "n"(int(ADD)), "n"(int(COLUMNS)));
}

// showCopies makes writes of other kinds of copies to shared memory visible to matrix instructions.
INLINE void showCopies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// The place of this block in its cluster along a dimension (0: x, 1: y), and the number of
// blocks there.
template <int DIM> INLINE int rankInCluster() {
  u32 r;
  if (DIM == 0) asm("mov.u32 %0, %%cluster_ctaid.x;" : "=r"(r));
  if (DIM == 1) asm("mov.u32 %0, %%cluster_ctaid.y;" : "=r"(r));
  return int(r);
}
template <int DIM> INLINE int sizeOfCluster() {
  u32 r;
  if (DIM == 0) asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(r));
  if (DIM == 1) asm("mov.u32 %0, %%cluster_nctaid.y;" : "=r"(r));
  return int(r);
}
// meetCluster waits for all threads of the cluster and makes their writes visible. comeToCluster
// and awaitCluster are its halves; a warp may do other work between them.
INLINE void comeToCluster() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
INLINE void awaitCluster() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
INLINE void meetCluster() {
  comeToCluster();
  awaitCluster();
}

// placeIn converts an address in this block's shared memory to the same one in another block's.
INLINE u32 placeIn(int block, u32 address) {
  u32 there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(block));
  return there;
}
// arriveIn arrives at the barrier of another block.
INLINE void arriveIn(int block, u32 barrier) { asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(placeIn(block, barrier)) : "memory"); }
// storeIn writes to the shared memory of another block; placeIn gives the address.
INLINE void storeIn(u32 at, float v) { asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(at), "f"(v) : "memory"); }
// storeIn writes 16 bytes to the shared memory of another block, and counts them at a barrier
// there. placeIn gives both addresses.
INLINE void storeIn(u32 at, float4 v, u32 barrier) {
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(at), "r"(asBits(v.x)), "r"(asBits(v.y)), "r"(asBits(v.z)), "r"(asBits(v.w)),
               "r"(barrier)
               : "memory");
}
