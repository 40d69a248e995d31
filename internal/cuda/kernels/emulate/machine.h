// A multiprocessor on the host. The threads of a block are fibers that run in turn, each until it
// waits for others, and so do the blocks of a cluster; clusters run one after another. A launch comes
// from the standard input; the device's memory is mapped at its own address.
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

constexpr int maxThreads = 8 * 1024, lanes = 32, maxBlocks = 8;
constexpr size_t stackBytes = 512 << 10, sharedBytes = 228 << 10, namedBytes = 512 << 10;

// The byte of uninitialized memory: numbers of it are NaN.
constexpr int garbage = 0xff;

// A Barrier counts arrivals. Its phase ends when all threads have arrived.
struct Barrier {
  int arrived, phase;
};

struct Warp;
struct Thread {
  int id; // in its block
  Warp *warp;
  ucontext_t start;
  jmp_buf begin, at; // begin: of the fiber, for the launches after its first
  bool made, begun, done, idle; // idle: it has done nothing since it ran last but look for others
  Barrier *waits; // for the end of phase
  int phase, clusterPhase;
};

// A Warp is the words that the lanes of a warp exchange, by the parity of the exchange.
struct Warp {
  Barrier barrier;
  uint32_t words[2][lanes][8];
  int turn[lanes];
};

// A Block is a block of a cluster. Its variables in shared memory are at the addresses that the
// compiler gave them while it runs, and in named else.
struct Block {
  int index[3], live;
  Barrier barrier, namedBarriers[16];
  unsigned char *shared, *named;
};

inline Thread threads[maxThreads];
inline Warp warps[maxThreads / lanes];
inline Block blocks[maxBlocks], *here; // here: the one that runs
inline Barrier clusterBarrier;
inline int threadsOfBlock, blocksOfCluster, cluster[2]; // cluster: its dimensions
inline Thread *current;
inline ucontext_t scheduler;
inline jmp_buf schedulerAt;
inline char *stacks;
inline int grid[3];
inline const char *kernelName;
alignas(1024) inline unsigned char dynamicShared[maxBlocks][sharedBytes], namedShared[maxBlocks][namedBytes];

[[noreturn]] inline void fail(const char *why, int n) {
  fprintf(stderr, "%s, block (%d, %d, %d): %s (%d threads)\n", kernelName, here->index[0], here->index[1], here->index[2], why, n);
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

inline void syncBlock() { wait(here->barrier, here->live); }

// pause lets other threads run. again says that the thread did nothing since its last pause.
__attribute__((noinline)) inline void pause(bool again) {
  current->waits = nullptr, current->idle = again;
  if (_setjmp(current->at) == 0) _longjmp(schedulerAt, 1);
}

// exchange gives the other lanes of the warp n words of this lane, and returns the words of all
// lanes.
inline uint32_t (*exchange(const uint32_t *words, int n))[8] {
  Warp &w = *current->warp;
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
  _setjmp(current->begin);
  call(arguments);
  current->done = true;
  Barrier &b = here->barrier;
  here->live--;
  if (here->live > 0 && b.arrived == here->live) b.arrived = 0, b.phase++;
  _longjmp(schedulerAt, 1);
}

__attribute__((noinline)) inline void resume(Thread &t) {
  current = &t;
  if (_setjmp(schedulerAt) != 0) return;
  if (t.begun) _longjmp(t.at, 1);
  t.begun = true;
  if (t.made) _longjmp(t.begin, 1);
  t.made = true;
  setcontext(&t.start);
}

extern "C" unsigned char __start_emulated_shared[] __attribute__((weak)), __stop_emulated_shared[] __attribute__((weak));
inline size_t namedSize() { return __start_emulated_shared ? __stop_emulated_shared - __start_emulated_shared : 0; }

// enter lets a block run.
inline void enter(Block &b) {
  if (here == &b) return;
  if (here && namedSize() > 0) {
    memcpy(here->named, __start_emulated_shared, namedSize());
    memcpy(__start_emulated_shared, b.named, namedSize());
  }
  here = &b;
}

// placeIn converts an address in the shared memory of the block that runs to that in another's.
inline uint32_t placeIn(int block, uint32_t address) {
  Block &b = blocks[block];
  const auto at = [](const void *p) { return uint32_t(uintptr_t(p)); };
  if (&b == here) return address;
  const uint32_t offset = address - at(__start_emulated_shared);
  return offset < namedSize() ? at(b.named) + offset : address - at(here->shared) + at(b.shared);
}

// comeToCluster and awaitCluster are a barrier of all threads of the cluster.
inline void comeToCluster() {
  current->clusterPhase = clusterBarrier.phase;
  if (++clusterBarrier.arrived == threadsOfBlock * blocksOfCluster) clusterBarrier.arrived = 0, clusterBarrier.phase++;
}
inline void awaitCluster() {
  for (bool again = false; clusterBarrier.phase == current->clusterPhase; again = true) pause(again);
}

// runCluster runs the threads of a cluster's blocks in ascending or descending order. The blocks have
// their indices.
inline void runCluster(int shared, bool descending) {
  const int n = threadsOfBlock;
  clusterBarrier = Barrier{}, here = nullptr;
  memset(warps, 0, sizeof(Warp) * ((n + lanes - 1) / lanes * blocksOfCluster));
  if (namedSize() > namedBytes) {
    fprintf(stderr, "%s: %zu bytes of variables in shared memory, room for %zu\n", kernelName, namedSize(), namedBytes);
    _exit(1);
  }
  for (int k = 0; k < blocksOfCluster; k++) {
    Block &b = blocks[k];
    b.live = n, b.barrier = Barrier{}, b.shared = dynamicShared[k], b.named = namedShared[k];
    memset(b.namedBarriers, 0, sizeof b.namedBarriers);
    memset(b.shared, garbage, shared);
    memset(b.named, garbage, namedSize());
    for (int i = 0; i < n; i++) {
      const int at = k * n + i;
      Thread &t = threads[at];
      t.id = i, t.begun = t.done = false, t.waits = nullptr, t.warp = &warps[k * ((n + lanes - 1) / lanes) + i / lanes];
      if (t.made) continue;
      getcontext(&t.start);
      t.start.uc_stack.ss_sp = stacks + at * stackBytes;
      t.start.uc_stack.ss_size = stackBytes;
      makecontext(&t.start, run, 0);
    }
  }
  if (namedSize() > 0) memset(__start_emulated_shared, garbage, namedSize());
  for (bool live = true; live;) {
    bool any = false;
    live = false;
    for (int k = 0; k < blocksOfCluster; k++) {
      Block &b = blocks[descending ? blocksOfCluster - 1 - k : k];
      if (b.live == 0) continue;
      enter(b);
      Thread *const own = threads + (&b - blocks) * n;
      for (int i = 0; i < n; i++) {
        Thread &t = own[descending ? n - 1 - i : i];
        if (t.done || (t.waits && t.waits->phase == t.phase)) continue;
        t.waits = nullptr, t.idle = false;
        resume(t);
        any |= !t.idle;
      }
      live |= b.live > 0;
    }
    if (live && !any) fail("threads wait for others that never come", here->live);
  }
}

struct Launch {
  int32_t kernel, grid[3], threads, shared, descending, bytes, cluster[2];
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
    for (int i = 0; i < 2; i++) cluster[i] = l.cluster[i];
    blocksOfCluster = cluster[0] * cluster[1];
    const int columns = grid[0] / cluster[0], rows = grid[1] / cluster[1], clusters = columns * rows * grid[2];
    if (blocksOfCluster > maxBlocks || columns * cluster[0] != grid[0] || rows * cluster[1] != grid[1]) {
      fprintf(stderr, "%s: clusters of %d x %d blocks of a grid of %d x %d; they must divide it, and have at most %d\n", kernelName, cluster[0], cluster[1], grid[0], grid[1], maxBlocks);
      return 1;
    }
    for (int k = 0; k < clusters; k++) {
      const int i = l.descending ? clusters - 1 - k : k;
      for (int b = 0; b < blocksOfCluster; b++) {
        int *index = blocks[b].index;
        index[0] = i % columns * cluster[0] + b % cluster[0], index[1] = i / columns % rows * cluster[1] + b / cluster[0], index[2] = i / columns / rows;
      }
      runCluster(l.shared, l.descending);
    }
    const char done = 0;
    if (write(1, &done, 1) != 1) return 1;
  }
  return 0;
}

template <class A> void invoke(void (*kernel)(A), const void *arguments) { kernel(*static_cast<const A *>(arguments)); }

} // namespace machine
