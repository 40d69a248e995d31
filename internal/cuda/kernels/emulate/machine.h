// A multiprocessor on the host. The threads of a block are fibers that run in turn, each until it
// waits for others; blocks run one after another. A launch comes from the standard input; the
// device's memory is mapped at its own address.
#pragma once
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

namespace machine {

constexpr int maxThreads = 1024, lanes = 32;
constexpr size_t stackBytes = 512 << 10, sharedBytes = 228 << 10;

// The byte of uninitialized memory: numbers of it are NaN.
constexpr int garbage = 0xff;

// A Barrier counts arrivals. Its phase ends when all threads have arrived.
struct Barrier {
  int arrived, phase;
};

struct Thread {
  int id;
  ucontext_t start;
  jmp_buf at;
  bool begun, done, idle; // idle: it has done nothing since it ran last but look for others
  Barrier *waits; // for the end of phase
  int phase;
};

// A Warp is the words that the lanes of a warp exchange, by the parity of the exchange.
struct Warp {
  Barrier barrier;
  uint32_t words[2][lanes][8];
  int turn[lanes];
};

inline Thread threads[maxThreads];
inline Warp warps[maxThreads / lanes];
inline Barrier blockBarrier, namedBarriers[16];
inline int live, threadsOfBlock;
inline Thread *current;
inline ucontext_t scheduler;
inline jmp_buf schedulerAt;
inline char *stacks;
inline int block[3], grid[3];
inline const char *kernelName;
alignas(256) inline unsigned char dynamicShared[sharedBytes];

[[noreturn]] inline void fail(const char *why, int n) {
  fprintf(stderr, "%s, block (%d, %d, %d): %s (%d threads)\n", kernelName, block[0], block[1], block[2], why, n);
  _exit(1);
}

__attribute__((noinline)) inline void wait(Barrier &b, int all) {
  const int phase = b.phase;
  if (++b.arrived == all) {
    b.arrived = 0, b.phase++;
    return;
  }
  current->waits = &b, current->phase = phase;
  if (_setjmp(current->at) == 0) _longjmp(schedulerAt, 1);
}

inline void syncBlock() { wait(blockBarrier, live); }

// pause lets other threads run. again says that the thread did nothing since its last pause.
__attribute__((noinline)) inline void pause(bool again) {
  current->waits = nullptr, current->idle = again;
  if (_setjmp(current->at) == 0) _longjmp(schedulerAt, 1);
}

// exchange gives the other lanes of the warp n words of this lane, and returns the words of all
// lanes.
inline uint32_t (*exchange(const uint32_t *words, int n))[8] {
  Warp &w = warps[current->id / lanes];
  const int lane = current->id % lanes, turn = w.turn[lane] ^= 1;
  for (int i = 0; i < n; i++) w.words[turn][lane][i] = words[i];
  wait(w.barrier, lanes);
  return w.words[turn];
}

typedef void (*Call)(const void *arguments);
struct Kernel {
  const char *name;
  Call call;
};
inline Call call;
inline const void *arguments;

__attribute__((noinline)) inline void run() {
  call(arguments);
  current->done = true;
  live--;
  if (live > 0 && blockBarrier.arrived == live) blockBarrier.arrived = 0, blockBarrier.phase++;
  _longjmp(schedulerAt, 1);
}

__attribute__((noinline)) inline void resume(Thread &t) {
  current = &t;
  if (_setjmp(schedulerAt) != 0) return;
  if (t.begun) _longjmp(t.at, 1);
  t.begun = true;
  setcontext(&t.start);
}

// runBlock runs the threads of a block in ascending or descending order.
inline void runBlock(bool descending) {
  const int n = threadsOfBlock;
  blockBarrier = Barrier{}, live = n;
  memset(namedBarriers, 0, sizeof namedBarriers);
  memset(warps, 0, sizeof warps);
  for (int i = 0; i < n; i++) {
    Thread &t = threads[i];
    t.id = i, t.begun = t.done = false, t.waits = nullptr;
    getcontext(&t.start);
    t.start.uc_stack.ss_sp = stacks + i * stackBytes;
    t.start.uc_stack.ss_size = stackBytes;
    makecontext(&t.start, run, 0);
  }
  while (live > 0) {
    bool any = false;
    for (int k = 0; k < n; k++) {
      Thread &t = threads[descending ? n - 1 - k : k];
      if (t.done || (t.waits && t.waits->phase == t.phase)) continue;
      t.waits = nullptr, t.idle = false;
      resume(t);
      any |= !t.idle;
    }
    if (!any) fail("threads wait for others that never come", live);
  }
}

extern "C" unsigned char __start_emulated_shared[] __attribute__((weak)), __stop_emulated_shared[] __attribute__((weak));

struct Launch {
  int32_t kernel, grid[3], threads, shared, descending, bytes;
};

inline bool readAll(void *to, size_t n) {
  for (size_t at = 0; at < n;) {
    const ssize_t got = read(0, static_cast<char *>(to) + at, n - at);
    if (got <= 0) return false;
    at += got;
  }
  return true;
}

// serve runs launches until the input ends. The device's memory is file descriptor 3; its address
// and size are the program's arguments.
inline int serve(int argc, char **argv, const Kernel *kernels) {
  if (argc != 3) return 2;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto base = reinterpret_cast<void *>(strtoull(argv[1], nullptr, 10));
  const size_t bytes = strtoull(argv[2], nullptr, 10);
  if (mmap(base, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, 3, 0) != base) {
    fprintf(stderr, "cannot map the device's memory: %s\n", strerror(errno));
    return 1;
  }
  stacks = static_cast<char *>(mmap(nullptr, maxThreads * stackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  alignas(16) static unsigned char params[4096];
  for (Launch l; readAll(&l, sizeof l);) {
    if (!readAll(params, l.bytes)) return 1;
    call = kernels[l.kernel].call, arguments = params, kernelName = kernels[l.kernel].name;
    threadsOfBlock = l.threads;
    for (int i = 0; i < 3; i++) grid[i] = l.grid[i];
    const int blocks = grid[0] * grid[1] * grid[2];
    for (int k = 0; k < blocks; k++) {
      const int i = l.descending ? blocks - 1 - k : k;
      block[0] = i % grid[0], block[1] = i / grid[0] % grid[1], block[2] = i / grid[0] / grid[1];
      memset(dynamicShared, garbage, l.shared);
      if (__start_emulated_shared) memset(__start_emulated_shared, garbage, __stop_emulated_shared - __start_emulated_shared);
      runBlock(l.descending);
    }
    const char done = 0;
    if (write(1, &done, 1) != 1) return 1;
  }
  return 0;
}

template <class A> void invoke(void (*kernel)(A), const void *arguments) { kernel(*static_cast<const A *>(arguments)); }

} // namespace machine
