// A cache of experts: which of a mixture's experts stay in device memory, and how the others are
// fetched from host memory when tokens have chosen them. The cache changes no bit of the results.
#include "experts.cuh"

// A Missing is an expert to fetch.
struct alignas(8) Missing {
  s32 expert;
  s32 place;
};

// An ExpertUse counts since the start.
struct ExpertUse {
  s64 chosen;  // chosen experts, each once per step
  s64 fetched; // chosen experts that were not on the device
  s64 bytes;   // fetched
};

struct KeepArgs {
  Active *active;   // [*count] in ascending order; keep sets their places
  const s32 *count; // experts that were chosen
  s32 *table;       // [experts] each expert's place in the mixture, -1: none
  s32 *heat;        // [experts] how much they are used, see heatUnit
  s32 *holders;     // [kept] the expert in each of the mixture's places, -1: none
  s32 experts;      // at most maxExperts
  s32 kept;         // places of the mixture, from first on
  s32 first;
  s32 shared;       // first place of experts that stay only for this step
  Missing *missing; // [*missed] the hottest first
  s32 *missed;
  ExpertUse *uses;
  s64 bytes;        // of an expert
};

constexpr int keepThreads = 256;

// An expert's heat grows by a unit for each of its slots, for at most mostSlots of a step, and
// loses a share of itself in each step. So it stays below the largest s32.
constexpr s32 heatUnit = 1 << 16, mostSlots = 255;
constexpr int heatLoss = 6; // 1/64

// keep sets the places of a mixture's chosen experts, and lists which to fetch and where to. The
// hottest missing expert replaces the coldest expert that is not chosen, if that one is colder, and
// so on. The remaining missing experts get places shared with other mixtures, only for this step.
// Grid (1).
extern "C" __global__ void __launch_bounds__(keepThreads) keep(const KeepArgs a) {
  constexpr s32 most = 0x7fffffff;
  constexpr int warps = keepThreads / 32;
  __shared__ s32 slots[maxExperts], hot[maxExperts];    // by expert
  // cold is heat by place, -1 where free. wanted is heat by active expert, -1 where it is not
  // missing.
  __shared__ s32 cold[maxExperts], wanted[maxExperts];
  __shared__ u16 coldest[maxExperts], rank[maxExperts]; // places; by active expert
  __shared__ s32 sums[2][warps];
  waitForPrevious();
  allowNext();
  const int n = *a.count, tid = tidX();

  for (int e = tid; e < a.experts; e += keepThreads) slots[e] = 0;
  syncBlock();
  for (int i = tid; i < n; i += keepThreads) slots[a.active[i].expert] = a.active[i].end - a.active[i].begin;
  syncBlock();
  for (int e = tid; e < a.experts; e += keepThreads) {
    const s32 h = a.heat[e];
    a.heat[e] = hot[e] = h - (h >> heatLoss) + heatUnit * minOf(slots[e], mostSlots);
  }
  syncBlock();
  s32 count[2] = {0, 0}; // missing experts, and those of them that stay
  for (int i = tid; i < n; i += keepThreads) {
    const int e = a.active[i].expert, p = a.table[e];
    wanted[i] = p < 0 ? hot[e] : -1;
    count[0] += p < 0;
    if (p >= 0) a.active[i].place = a.first + p;
  }
  for (int p = tid; p < a.kept; p += keepThreads) {
    const int e = a.holders[p];
    cold[p] = e < 0 ? -1 : slots[e] > 0 ? most : hot[e];
  }
  syncBlock();
  for (int p = tid; p < a.kept; p += keepThreads) {
    const s32 own = cold[p];
    int colder = 0;
#pragma unroll 8
    for (int q = 0; q < a.kept; q++) colder += cold[q] < own || (cold[q] == own && q < p);
    coldest[colder] = u16(p);
  }
  for (int i = tid; i < n; i += keepThreads) {
    const s32 own = wanted[i];
    if (own < 0) continue;
    int hotter = 0;
#pragma unroll 8
    for (int j = 0; j < n; j++) hotter += wanted[j] > own || (wanted[j] == own && j < i);
    rank[i] = u16(hotter);
  }
  syncBlock();
  // Experts that stay have the lowest ranks: the places for later ranks hold ever hotter experts.
  auto stays = [&](int i) ALWAYS { return rank[i] < a.kept && cold[coldest[rank[i]]] < wanted[i]; };
  for (int i = tid; i < n; i += keepThreads) count[1] += wanted[i] >= 0 && stays(i);
  UNROLL for (int k = 0; k < 2; k++) {
    count[k] = warpSum(count[k]);
    if ((tid & 31) == 0) sums[k][tid / 32] = count[k];
  }
  syncBlock();
  UNROLL for (int k = 0; k < 2; k++) {
    count[k] = 0;
    UNROLL for (int w = 0; w < warps; w++) count[k] += sums[k][w];
  }
  for (int i = tid; i < n; i += keepThreads) {
    if (wanted[i] < 0) continue;
    const int e = a.active[i].expert;
    s32 place = a.shared + rank[i] - count[1];
    if (stays(i)) {
      const int p = coldest[rank[i]], old = a.holders[p];
      if (old >= 0) a.table[old] = -1;
      a.table[e] = p;
      a.holders[p] = e;
      place = a.first + p;
    }
    a.active[i].place = place;
    a.missing[rank[i]] = Missing{e, place};
  }
  if (tid == 0) {
    *a.missed = count[0];
    a.uses->chosen += n;
    a.uses->fetched += count[0];
    a.uses->bytes += s64(count[0]) * a.bytes;
  }
}

struct FetchArgs {
  const Missing *missing; // [*missed]
  const s32 *missed;
  const u8 *images;       // of all experts of the mixture, in host memory
  u8 *places;
  s64 bytes;              // of an image, a multiple of 256
  s64 apart;              // bytes from a place to the next
};

constexpr int fetchThreads = 256, fetchAhead = 8; // reads of a thread in flight
constexpr s64 fetchBytes = fetchThreads * fetchAhead * sizeof(uint4);

// fetch copies the missing experts to their places. Blocks take pieces of fetchBytes in turn. Any
// grid.
extern "C" __global__ void __launch_bounds__(fetchThreads) fetch(const FetchArgs a) {
  waitForPrevious();
  allowNext();
  const int pieces = int((a.bytes + fetchBytes - 1) / fetchBytes), all = *a.missed * pieces;
  for (int i = blockX(); i < all; i += gridX()) {
    const Missing m = a.missing[i / pieces];
    const s64 at = s64(i % pieces) * fetchBytes + tidX() * s64(sizeof(uint4));
    const u8 *from = a.images + m.expert * a.bytes;
    u8 *to = a.places + m.place * a.apart;
    uint4 v[fetchAhead];
    UNROLL for (int k = 0; k < fetchAhead; k++) {
      const s64 j = at + k * s64(fetchThreads * sizeof(uint4));
      if (j < a.bytes) v[k] = loadOnce(reinterpret_cast<const uint4 *>(from + j));
    }
    UNROLL for (int k = 0; k < fetchAhead; k++) {
      const s64 j = at + k * s64(fetchThreads * sizeof(uint4));
      if (j < a.bytes) *reinterpret_cast<uint4 *>(to + j) = v[k];
    }
  }
}
