// The choice of the next token from a row of logits, bit for bit as the engine's package sample
// defines it. survey reads every logit once. choose takes the best one, or with a temperature makes
// the selections.
//
// Steps with a row that has adjustments or typical sampling use kernels of their own, so that other
// steps do not pay for them. surveyAdjusted first reads what depends on the model's logits alone,
// then replaces logits by adjusted ones; chooseAdjusted restores the model's logits.
//
// Only the last few candidates are sorted. A selection adds weights, which are integers, in buckets
// by rank, finds the bucket in which the running sum reaches its target, and lists the tokens of
// that bucket alone. Buckets only narrow the search: the choice of buckets does not change the
// result.
//
// choose runs one cluster of gridX blocks per row, and is launched with that cluster size; before
// sm_90, gridX is 1. All blocks of a row hold the same state and make the same decisions; they
// share the passes over the logits and synchronize at barriers.
#include "cluster.cuh"

enum { wantToken = 1, wantLogits = 2, wantHidden = 4, wantLogProbability = 8 };
enum { statusGood, statusNotFinite, statusEmptyMask, statusNoLogit };

constexpr int surveyThreads = 256;
constexpr int surveyTokens = 4 * surveyThreads; // tokens that a block takes at a time
constexpr int chooseThreads = 1024;
constexpr int segment = 128;        // tokens whose exponentials a warp adds
constexpr int digitBits = 11;       // bits by which a round of a selection narrows
constexpr int buckets = 1 << digitBits;
constexpr int listed = chooseThreads; // candidates that are sorted at once
constexpr int maxRounds = 32;       // 4 selections of at most 7 rounds each, and 2 sums
constexpr int informationBits = 20; // binary places of a token's information
constexpr float largest = 3.402823466e+38f;

struct alignas(16) Adjustment { // ascending by token
  s32 token;  // in the extra one: -1, or the last token if no other adjustment has it
  // -Inf forbids the token. While an adjusted logit is in its place, bias keeps the model's logit.
  float bias;
  s32 count;  // how often the token was chosen
  u8 prompt;  // whether it is in the prompt
  u8 pad[3];
};

struct alignas(16) RowParams { // [rows]
  float temperature; // 0 is greedy
  float topP;        // 0 and 1 keep all
  float minP;        // 0 keeps all
  s32 topK;          // 0 keeps all
  u64 seed;
  u64 position;      // absolute, of the token that is chosen
  u32 choice;
  u32 want;          // bits as above; without wantToken no token is chosen
  s32 mask;          // index into masks, or -1: all tokens are allowed
  // The remaining fields are read by the kernels for adjusted rows only.
  s32 last;          // index into ids of a token chosen once more than its adjustment says, or -1
  float typical;     // 0 and 1 keep all
  float repetition;  // 1 changes nothing
  float frequency;
  float presence;
  s32 adjusted;      // number of adjustments; if last is not -1, an extra one follows
  s32 pad;
  // in the device's memory or in pinned memory of the host, or 0: no adjustments and no last token
  Adjustment *adjustments;
};

struct RowResult { // [rows]
  s32 token;            // -1 if none is wanted or the row failed
  s32 status;           // as above; a row that wants no token fails only with statusNotFinite
  float logProbability; // of token, under the softmax of all logits; 0 if not wanted
  u32 pad;
};

struct SampleArgs {
  float *logits;       // [rows, stride], of which vocab columns are used
  s32 stride;          // elements from row to row
  s32 vocab;           // at least 1
  // [rows launched], 16-byte aligned; those from count on are read but ignored
  const RowParams *params;
  const u32 *masks;    // [masks, maskWords], bit i%32 of word i/32 allows token i
  s32 maskWords;
  const s32 *count;    // rows of this step; more may be launched
  u8 *scratch;         // [rows, scratchStride], 16-byte aligned; needs no initialization
  s64 scratchStride;   // bytes, a multiple of 16, at least scratchBytes(vocab, blocks)
  RowResult *results;
  s32 *sampled;        // [rows], the tokens again, for the next step
  s32 blocks;          // gridX of survey; changes no result
  s32 pad;
  const s32 *ids;      // [T] tokens of the step
};

// What a block of survey found.
struct Survey {
  u64 best, worst; // the least and the largest rank of allowed logits above -Inf
  s32 allowed;     // tokens that the mask allows
  s32 alive;       // allowed tokens with a logit above -Inf
  u32 broken;      // whether a logit is NaN or +Inf
  u32 pad;
};
static_assert(sizeof(Survey) == 32);

// The sum of exp(logit - top) over a segment whose largest logit is top.
struct Exponentials {
  double sum;
  float top;
  u32 pad;
};
static_assert(sizeof(Exponentials) == 16);

// A row's scratch memory. survey clears sums and counts. A round of choose uses one of the two
// sums, and clears it when all blocks have read it.
struct Scratch {
  u64 sums[2][buckets];
  u64 list[listed];       // ranks of the candidates of a round, in any order
  s32 counts[maxRounds];  // numbers of candidates, which may exceed listed
  // Survey [blocks] and Exponentials [ceil(vocab/segment)] follow.
};
constexpr s64 scratchBytes(s64 vocab, s64 blocks) {
  return sizeof(Scratch) + sizeof(Survey) * blocks + sizeof(Exponentials) * ((vocab + segment - 1) / segment);
}
static_assert(scratchBytes(151936, 128) == 41088 + 4096 + 18992);

INLINE Scratch *scratchOf(const SampleArgs &a, int row) { return (Scratch *)(a.scratch + s64(row) * a.scratchStride); }
INLINE Survey *surveysOf(Scratch *s) { return (Survey *)(s + 1); }
INLINE Exponentials *exponentialsOf(Scratch *s, int blocks) { return (Exponentials *)(surveysOf(s) + blocks); }

INLINE u32 addShared(u32 *p, u32 v) { return __scoped_atomic_fetch_add(p, v, __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP); }
INLINE u64 minOf(u64 a, u64 b) { return a < b ? a : b; }
INLINE u64 maxOf(u64 a, u64 b) { return a > b ? a : b; }
INLINE u64 shuffleFrom(u64 v, int lane) { return u64(shuffleFrom(u32(v >> 32), lane)) << 32 | shuffleFrom(u32(v), lane); }
INLINE u64 bitsOf(double v) { return __builtin_bit_cast(u64, v); }
INLINE double doubleOf(u64 v) { return __builtin_bit_cast(double, v); }
INLINE double warpSum(double v) {
#pragma unroll
  for (int m = 16; m; m >>= 1) v = v + doubleOf(shuffleXor(bitsOf(v), m));
  return v;
}
INLINE u64 warpSum(u64 v) {
#pragma unroll
  for (int m = 16; m; m >>= 1) v += shuffleXor(v, m);
  return v;
}
INLINE u64 warpMax(u64 v) {
#pragma unroll
  for (int m = 16; m; m >>= 1) v = maxOf(v, shuffleXor(v, m));
  return v;
}

// rankOf makes one integer of a logit and its token: ascending rank is descending logit, then
// ascending id. It does not represent NaN, nor the sign of 0, since -0 equals 0. logitOf returns
// the logit of a rank.
INLINE u32 turned(u32 b) { return b ^ (~u32(s32(b) >> 31) >> 1); }
INLINE u64 rankOf(float logit, u32 id) {
  u32 b = asBits(logit);
  if (b == 0x80000000u) b = 0;
  return u64(turned(b)) << 32 | id;
}
INLINE float logitOf(u64 rank) { return asFloat(turned(u32(rank >> 32))); }

// readParams reads the parameters of a row that a kernel needs.
template <bool adjusting> INLINE RowParams readParams(const RowParams *p) {
  struct alignas(16) {
    uint4 v[5];
  } w = {{read16(p), read16((const u8 *)p + 16), read16((const u8 *)p + 32), {0, 0, 0, 0}, {0, 0, 0, 0}}};
  if constexpr (adjusting) {
    w.v[3] = read16((const u8 *)p + 48);
    w.v[4] = read16((const u8 *)p + 64);
  }
  return __builtin_bit_cast(RowParams, w);
}

// A row's logits and mask.
struct Row {
  const float *logits;
  const u32 *mask; // 0 allows all
  u32 vocab;
  bool wide;       // logits are 16-byte aligned
};
INLINE Row rowOf(const SampleArgs &a, const RowParams &p, int row) {
  const float *l = a.logits + s64(row) * a.stride;
  return {l, p.mask < 0 ? nullptr : a.masks + s64(p.mask) * a.maskWords, u32(a.vocab), (u64(l) & 15) == 0};
}

// fourLogits returns the logits of tokens i to i+3, -Inf for those beyond the vocabulary. i is a
// multiple of 4.
INLINE float4 fourLogits(const Row &r, u32 i) {
  if (r.wide && i + 4 <= r.vocab) return __builtin_bit_cast(float4, read16(r.logits + i));
  const float none = asFloat(0xff800000u);
  return {i < r.vocab ? r.logits[i] : none, i + 1 < r.vocab ? r.logits[i + 1] : none,
          i + 2 < r.vocab ? r.logits[i + 2] : none, i + 3 < r.vocab ? r.logits[i + 3] : none};
}
// fourAllowed returns in bits 0 to 3 which of tokens i to i+3 are allowed.
INLINE u32 fourAllowed(const Row &r, u32 i) {
  if (i >= r.vocab) return 0;
  const u32 in = r.vocab - i >= 4 ? 15 : (1u << (r.vocab - i)) - 1;
  return r.mask ? r.mask[i >> 5] >> (i & 31) & in : in;
}

// eachToken calls f for every allowed token above -Inf in this block's share of a row.
template <typename F> INLINE void eachToken(const Row &r, F f) {
  const u32 step = 4 * chooseThreads * gridX();
  u32 i = 4 * (chooseThreads * blockX() + tidX());
  float4 next = fourLogits(r, i); // loaded one step ahead
  u32 nextAllowed = fourAllowed(r, i);
  while (i < r.vocab) {
    const float v[4] = {next.x, next.y, next.z, next.w};
    const u32 open = nextAllowed, at = i;
    i += step;
    next = fourLogits(r, i);
    nextAllowed = fourAllowed(r, i);
#pragma unroll
    for (int k = 0; k < 4; k++)
      if ((open >> k & 1) && v[k] >= -largest) f(v[k], at + k);
  }
}

// A Scale is the parameters of weightOf.
struct Scale {
  double best, temperature;
  float bestLogit;
  float weightless; // the weight is certainly 0 if a logit is further below the best
  int shift;        // S: the weight of the best logit is 2^S
};
INLINE Scale scaleOf(float best, float temperature, u32 vocab) {
  const int shift = 63 - (32 - __builtin_clz(vocab));
  return {best, temperature, best, temperature * (float(shift + 2) * 0.6931472f), shift};
}

// weightOf returns floor(2^S * e^((logit - best)/temperature)). Its operations and their order are
// part of the definition of the choice; none may be fused.
INLINE u64 weightOf(const Scale &s, float logit) {
  if (s.bestLogit - logit > s.weightless) return 0; // no need to divide
  const double x = (double(logit) - s.best) / s.temperature;
  const double y = x * 1.44269504088896338700;
  if (!(y >= double(-s.shift - 1))) return 0;
  const int k = int(y - 0.5);
  double r = x - double(k) * 0x1.62e42feep-01;
  r = r - double(k) * 0x1.a39ef35793c76p-33;
  const double q = r * r;
  double even = q * (1.0 / 479001600) + 1.0 / 3628800;
  even = even * q + 1.0 / 40320;
  even = even * q + 1.0 / 720;
  even = even * q + 1.0 / 24;
  even = even * q + 0.5;
  even = even * q + 1;
  double odd = q * (1.0 / 39916800) + 1.0 / 362880;
  odd = odd * q + 1.0 / 5040;
  odd = odd * q + 1.0 / 120;
  odd = odd * q + 1.0 / 6;
  odd = odd * q + 1;
  const double e = even + r * odd;
  return u64(s64(e * doubleOf(u64(1023 + k + s.shift) << 52)));
}

// informationOf returns floor(2^20 * (best - logit)/temperature) for a logit whose weight may be
// above 0.
INLINE u64 informationOf(const Scale &s, float logit) {
  const double x = (double(logit) - s.best) / s.temperature;
  return u64(-x * double(1 << informationBits));
}
// distanceOf makes one integer of the distance of a token's information from the mean and of the
// token's id. It ascends in the order in which typical sampling keeps tokens.
constexpr u64 largestDistance = (1ull << 58) - 1; // information is below 2^26
INLINE u64 distanceOf(const Scale &s, float logit, u32 id, u64 mean) {
  const u64 v = informationOf(s, logit);
  return (v > mean ? v - mean : mean - v) << 32 | id;
}
// meanOf returns floor(2^20 * sum/total), which is below 2^26.
INLINE u64 meanOf(u64 sum, u64 total) {
  u64 mean = sum / total, rest = sum % total;
  for (int i = 0; i < informationBits; i++) {
    mean <<= 1;
    rest <<= 1; // both are below 2^63
    if (rest >= total) {
      rest -= total;
      mean++;
    }
  }
  return mean;
}

INLINE u64 upperProduct(u64 a, u64 b) { return u64((unsigned __int128)a * b >> 64); }

// ceilProduct returns ceil(f*n), for f in (0, 1] and n below 2^63.
INLINE u64 ceilProduct(float f, u64 n) {
  const u32 b = asBits(f);
  const int exponent = int(b >> 23 & 255);
  // f = significand / 2^places, with 23 to 149 places.
  const u64 significand = exponent ? (b & 0x7fffffu) | 0x800000u : b & 0x7fffffu;
  const int places = exponent ? 150 - exponent : 149;
  const u64 high = upperProduct(significand, n), low = significand * n;
  if (places < 64) return (high << (64 - places) | low >> places) + ((low & ((1ull << places) - 1)) != 0);
  // high has at most 23 bits.
  const int rest = minOf(places - 64, 63);
  return (high >> rest) + ((low | (high & ((1ull << rest) - 1))) != 0);
}

// uniform returns 64 random bits: words 1 and 0 of Philox4x32-10.
INLINE u64 uniform(const RowParams &p) {
  u32 c0 = u32(p.position), c1 = u32(p.position >> 32), c2 = p.choice, c3 = 0;
  u32 k0 = u32(p.seed), k1 = u32(p.seed >> 32);
#pragma unroll
  for (int i = 0; i < 10; i++) {
    const u64 m0 = u64(0xD2511F53u) * c0, m1 = u64(0xCD9E8D57u) * c2;
    c0 = u32(m1 >> 32) ^ c1 ^ k0;
    c1 = u32(m1);
    c2 = u32(m0 >> 32) ^ c3 ^ k1;
    c3 = u32(m0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return u64(c1) << 32 | c0;
}

// expBelow returns e^v for v up to 0, or 0 if that is not a normal number.
INLINE float expBelow(float v) { return v > -87.0f ? expOf(v) : 0.0f; }

// logarithm returns ln v of a normal number v. Near 1, where ln v is small, it is as exact as
// elsewhere.
INLINE double logarithm(double v) {
  u64 b = bitsOf(v);
  int k = int(b >> 52) - 1023;
  double m = doubleOf((b & 0xfffffffffffffull) | 0x3ff0000000000000ull);
  if (m > 1.4142135623730951) {
    m = m * 0.5;
    k++;
  }
  // ln m = 2 atanh z, and |z| is at most 0.172.
  const double z = (m - 1) / (m + 1), q = z * z;
  double s = 1.0 / 17;
  s = s * q + 1.0 / 15;
  s = s * q + 1.0 / 13;
  s = s * q + 1.0 / 11;
  s = s * q + 1.0 / 9;
  s = s * q + 1.0 / 7;
  s = s * q + 1.0 / 5;
  s = s * q + 1.0 / 3;
  s = s * q + 1;
  return 2 * z * s + double(k) * 0.69314718055994531;
}

// adjustedLogit returns the adjusted logit. Its operations and their order are part of the
// definition of the choice; none may be fused.
INLINE float finite(float v) { return minOf(maxOf(v, -largest), largest); }
INLINE float adjustedLogit(float logit, const Adjustment &x, const RowParams &p) {
  if (!isFinite(logit)) return logit;
  if (x.bias < -largest) return asFloat(0xff800000u);
  logit = finite(logit + x.bias);
  if (p.repetition != 1 && (x.prompt || x.count > 0)) logit = finite(logit > 0 ? divide(logit, p.repetition) : logit * p.repetition);
  if (x.count > 0) {
    logit = finite(logit - p.frequency * float(x.count));
    logit = finite(logit - p.presence);
  }
  return logit;
}

// firstFrom returns the index of the first of n adjustments whose token is at least token.
INLINE int firstFrom(const Adjustment *of, int n, u32 token) {
  int from = 0;
  while (n > 0) {
    const int half = n / 2;
    if (u32(of[from + half].token) < token) {
      from += half + 1;
      n -= half + 1;
    } else {
      n = half;
    }
  }
  return from;
}

// adjust adjusts the logits of tokens first to end-1, the block's own. It returns how many of the
// calling thread's tokens it forbids that the mask allows.
INLINE int adjust(const SampleArgs &a, const Row &r, const RowParams &p, int row, u32 first, u32 end) {
  Adjustment *of = p.adjustments;
  float *logits = a.logits + s64(row) * a.stride;
  const int last = p.last < 0 ? -1 : a.ids[p.last];
  int forbidden = 0;
  const int upTo = firstFrom(of, p.adjusted, end);
  for (int i = firstFrom(of, p.adjusted, first) + tidX(); i < upTo; i += surveyThreads) {
    Adjustment x = of[i];
    if (x.token == last) x.count++;
    const float logit = logits[x.token];
    of[i].bias = logit;
    logits[x.token] = adjustedLogit(logit, x, p);
    if (x.bias < -largest) forbidden += r.mask ? r.mask[x.token >> 5] >> (x.token & 31) & 1 : 1;
  }
  if (tidX() == 0 && last >= 0 && u32(last) >= first && u32(last) < end) {
    const int i = firstFrom(of, p.adjusted, last);
    if (i == p.adjusted || of[i].token != last) {
      const float logit = logits[last];
      of[p.adjusted] = {last, logit, 1, 0, {}};
      logits[last] = adjustedLogit(logit, {last, 0, 1, 0, {}}, p);
    }
  }
  return forbidden;
}

// restore restores the model's logits. One block does it for a row, when no other block reads them.
INLINE void restore(const SampleArgs &a, const RowParams &p, int row) {
  const Adjustment *of = p.adjustments;
  float *logits = a.logits + s64(row) * a.stride;
  const int n = p.adjusted + (p.last >= 0);
  for (int i = tidX(); i < n; i += chooseThreads)
    if (of[i].token >= 0) logits[of[i].token] = of[i].bias;
}

// exponentiate writes a warp's term of the softmax, from four logits per thread.
INLINE void exponentiate(const float (&v)[4], Exponentials *to) {
  const float top = warpMax(maxOf(maxOf(v[0], v[1]), maxOf(v[2], v[3])));
  double sum = 0;
#pragma unroll
  for (int k = 0; k < 4; k++) sum = sum + double(expBelow(v[k] - top));
  sum = warpSum(sum);
  if ((tidX() & 31) == 0) *to = {sum, top, 0};
}

// surveyRow reads all logits of a row.
template <bool adjusting> INLINE void surveyRow(const SampleArgs &a) {
  waitForPrevious();
  allowNext();
  const int row = blockY();
  // from count on too, so that the two loads overlap
  const RowParams p = readParams<adjusting>(a.params + row);
  if (row >= *a.count) return;
  const Row r = rowOf(a, p, row);
  Scratch *scratch = scratchOf(a, row);
  const bool choosing = p.want & wantToken;
  bool adding = choosing && (p.want & wantLogProbability);
  const int lane = tidX() & 31, warp = tidX() >> 5;

  if (choosing && p.temperature > 0) {
    u64 *sums = scratch->sums[0];
    for (int i = surveyThreads * blockX() + tidX(); i < 2 * buckets; i += surveyThreads * gridX()) sums[i] = 0;
    if (blockX() == 0 && tidX() < maxRounds) scratch->counts[tidX()] = 0;
  }

  const u32 share = (r.vocab + gridX() - 1) / gridX();
  const u32 span = (share + surveyTokens - 1) / surveyTokens * surveyTokens;
  const u32 first = span * blockX(), end = first < r.vocab ? (r.vocab - first < span ? r.vocab : first + span) : first;
  Exponentials *exponentials = exponentialsOf(scratch, a.blocks);
  u64 best = ~0ull, worst = 0;
  int allowed = 0, alive = 0;
  bool broken = false;
  if constexpr (adjusting) {
    if (choosing && p.adjustments) {
      if (adding)
        for (u32 base = first; base < end; base += surveyTokens) {
          const float4 four = fourLogits(r, base + 4 * tidX());
          const float v[4] = {four.x, four.y, four.z, four.w};
          if (base + segment * warp < r.vocab) exponentiate(v, exponentials + (base + segment * warp) / segment);
        }
      adding = false;
      syncBlock();
      allowed = -adjust(a, r, p, row, first, end);
      syncBlock();
    }
  }
  float4 next = fourLogits(r, first + 4 * tidX());
  u32 nextAllowed = fourAllowed(r, first + 4 * tidX());
  for (u32 base = first; base < end; base += surveyTokens) {
    const u32 i = base + 4 * tidX();
    const float v[4] = {next.x, next.y, next.z, next.w};
    const u32 open = nextAllowed;
    if (base + surveyTokens < end) {
      next = fourLogits(r, i + surveyTokens);
      nextAllowed = fourAllowed(r, i + surveyTokens);
    }
    allowed += __builtin_popcount(open);
#pragma unroll
    for (int k = 0; k < 4; k++) {
      broken |= !(v[k] <= largest);
      if ((open >> k & 1) && v[k] >= -largest) {
        const u64 rank = rankOf(v[k], i + k);
        best = minOf(best, rank);
        worst = maxOf(worst, rank);
        alive++;
      }
    }
    // Segments, and so their exponentials, do not depend on spans.
    if (adding && base + segment * warp < r.vocab) exponentiate(v, exponentials + (base + segment * warp) / segment);
  }

#pragma unroll
  for (int m = 16; m; m >>= 1) {
    best = minOf(best, shuffleXor(best, m));
    worst = maxOf(worst, shuffleXor(worst, m));
  }
  allowed = warpSum(allowed);
  alive = warpSum(alive);
  broken = ballot(broken) != 0;
  __shared__ Survey warps[surveyThreads / 32];
  if (lane == 0) warps[warp] = {best, worst, allowed, alive, broken, 0};
  syncBlock();
  if (tidX() == 0) {
    Survey s = warps[0];
#pragma unroll
    for (int w = 1; w < surveyThreads / 32; w++) {
      s.best = minOf(s.best, warps[w].best);
      s.worst = maxOf(s.worst, warps[w].worst);
      s.allowed += warps[w].allowed;
      s.alive += warps[w].alive;
      s.broken |= warps[w].broken;
    }
    surveysOf(scratch)[blockX()] = s;
  }
}

// The surveys. Grid (blocks, rows), 256 threads. Block b takes tokens b*span to (b+1)*span-1, where
// span is vocab/blocks, rounded up to a multiple of 1,024.
extern "C" __global__ void __launch_bounds__(surveyThreads) survey(const SampleArgs a) { surveyRow<false>(a); }
extern "C" __global__ void __launch_bounds__(surveyThreads) surveyAdjusted(const SampleArgs a) { surveyRow<true>(a); }

// foldSurveys returns the combined findings of all blocks of survey, to every lane of a warp.
INLINE Survey foldSurveys(const Survey *of, int blocks) {
  Survey s = {~0ull, 0, 0, 0, 0, 0};
  for (int b = tidX() & 31; b < blocks; b += 128) {
    Survey o[4]; // four reads at a time; past the end, the last one repeated and not counted
#pragma unroll
    for (int k = 0; k < 4; k++) {
      const Survey *from = of + minOf(b + 32 * k, blocks - 1);
      struct alignas(16) {
        uint4 v[2];
      } w = {{read16(from), read16((const u8 *)from + 16)}};
      o[k] = __builtin_bit_cast(Survey, w);
    }
#pragma unroll
    for (int k = 0; k < 4; k++) {
      s.best = minOf(s.best, o[k].best);
      s.worst = maxOf(s.worst, o[k].worst);
      if (b + 32 * k < blocks) {
        s.allowed += o[k].allowed;
        s.alive += o[k].alive;
      }
      s.broken |= o[k].broken;
    }
  }
#pragma unroll
  for (int m = 16; m; m >>= 1) {
    s.best = minOf(s.best, shuffleXor(s.best, m));
    s.worst = maxOf(s.worst, shuffleXor(s.worst, m));
  }
  s.allowed = warpSum(s.allowed);
  s.alive = warpSum(s.alive);
  s.broken = ballot(s.broken != 0) != 0;
  return s;
}

struct Shared {
  u32 low[buckets], high[buckets]; // sums of this block's share
  u64 keys[2][listed];
  u64 warps[32];
  u64 before; // the running sum at the start of bucket
  u64 found;  // the rank at which a selection ended
  u32 bucket;
  u32 here;   // candidates that this block listed
  int from;   // where they begin in the row's list
};

// scanBlock returns the sum of v over this thread and those before it, and sets total to the sum
// over all threads. Shared memory may be reused at once.
INLINE u64 scanBlock(u64 v, Shared &s, u64 &total) {
  const int lane = tidX() & 31, warp = tidX() >> 5;
#pragma unroll
  for (int d = 1; d < 32; d <<= 1) {
    const u64 o = shuffleFrom(v, (lane - d) & 31);
    if (lane >= d) v += o;
  }
  if (lane == 31) s.warps[warp] = v;
  syncBlock();
  u64 w = s.warps[lane];
#pragma unroll
  for (int d = 1; d < 32; d <<= 1) {
    const u64 o = shuffleFrom(w, (lane - d) & 31);
    if (lane >= d) w += o;
  }
  total = shuffleFrom(w, 31);
  const u64 before = shuffleFrom(w, (warp - 1) & 31);
  syncBlock();
  return warp ? before + v : v;
}

// sortBlock sorts the keys of the threads. All but the first n keys must be the largest key.
INLINE u64 sortBlock(u64 key, int n, Shared &s) {
  const int t = tidX();
  int size = 32, side = 0;
  while (size < n) size <<= 1;
  const bool idle = t >= size; // as is its whole warp
  for (int run = 2; run <= size; run <<= 1)
    for (int gap = run >> 1; gap; gap >>= 1) {
      u64 other = key;
      if (gap >= 32) {
        s.keys[side][t] = key;
        syncBlock();
        other = s.keys[side][t ^ gap];
        side ^= 1;
      } else if (!idle) {
        other = shuffleXor(key, gap);
      }
      const bool least = ((t & gap) == 0) == ((t & run) == 0);
      if (least != (key < other)) key = other;
    }
  return key;
}

// The four selections, in order. Each keeps the tokens up to the one at which it ends; typical
// sampling does so in an order of its own.
enum Stage { stageTopK, stageTypical, stageTopP, stageDraw, stages };

// chooseRow chooses the token of a row.
template <bool adjusting> INLINE void chooseRow(const SampleArgs &a) {
  waitForPrevious();
  allowNext();
  const int row = blockY();
  // from count on too, so that the two loads overlap
  const RowParams p = readParams<adjusting>(a.params + row);
  if (row >= *a.count) return;
  Scratch *scratch = scratchOf(a, row);
  const Survey all = foldSurveys(surveysOf(scratch), a.blocks);
  const bool choosing = p.want & wantToken;
  int status = statusGood;
  if (all.broken) status = statusNotFinite;
  else if (choosing && all.allowed == 0) status = statusEmptyMask;
  else if (choosing && all.alive == 0) status = statusNoLogit;
  if (!choosing || status != statusGood) {
    if (blockX() == 0 && tidX() == 0) {
      a.results[row] = {-1, status, 0, 0};
      a.sampled[row] = -1;
    }
    if constexpr (adjusting)
      if (choosing && p.adjustments && blockX() == 0) restore(a, p, row);
    return;
  }

  __shared__ Shared s;
  u64 chosen = all.best;
  if (p.temperature > 0) {
    const Row r = rowOf(a, p, row);
    const Scale scale = scaleOf(logitOf(all.best), p.temperature, r.vocab);
    u64 last = all.worst; // the kept tokens have ranks up to this
    int round = 0;
    // After typical sampling, their distance from mean is also at most reach.
    [[maybe_unused]] u64 mean = 0, reach = ~0ull;
    u64 heaviest = 1ull << scale.shift;
    for (int stage = 0; stage < stages; stage++) {
      if (stage == stageTopK && (p.topK <= 0 || p.topK >= all.alive)) continue;
      if (stage == stageTypical && !(adjusting && p.typical > 0 && p.typical < 1)) continue;
      if (stage == stageTopP && !(p.topP > 0 && p.topP < 1)) continue;
      const bool typical = adjusting && stage == stageTypical;
      const u64 least = stage == stageDraw && p.minP > 0 ? ceilProduct(p.minP, heaviest) : 1;
      const auto valueOf = [&](float logit, [[maybe_unused]] u32 id) -> u64 {
        if (stage == stageTopK) return 1;
        const u64 w = weightOf(scale, logit);
        if constexpr (adjusting)
          if (w && reach != ~0ull && distanceOf(scale, logit, id, mean) > reach) return 0;
        return w >= least ? w : 0;
      };
      // keptWeight returns the weight of a token that the previous selections kept, or else 0.
      [[maybe_unused]] const auto keptWeight = [&](float logit, u32 id) -> u64 {
        return rankOf(logit, id) <= last ? valueOf(logit, id) : 0;
      };
      if constexpr (adjusting)
        if (typical) {
          u64 sum = 0, total = 0;
          eachToken(r, [&](float logit, u32 id) {
            const u64 w = keptWeight(logit, id);
            if (w == 0) return;
            const u64 v = informationOf(scale, logit);
            sum += upperProduct(w, v) << (64 - informationBits) | w * v >> informationBits;
            total += w;
          });
          sum = warpSum(sum);
          total = warpSum(total);
          u64 *sums = scratch->sums[round & 1];
          if ((tidX() & 31) == 0 && total) {
            addGlobal(sums, sum);
            addGlobal(sums + 1, total);
          }
          syncCluster();
          mean = meanOf(readGlobal(sums), readGlobal(sums + 1));
          syncCluster();
          if (blockX() == 0 && tidX() < 2) sums[tidX()] = 0;
          round++;
        }

      // The first round's buckets are equal steps of the logit down from the best, small ones where
      // the selection probably ends; the last bucket has the rest. If the bucket that matters has
      // too many tokens, the following rounds use the bits of ranks, from the start, which
      // terminates for any input.
      const float spread = minOf(scale.bestLogit - logitOf(last), largest);
      float range = minOf(spread, 16 * p.temperature);
      if (stage == stageTopK) range = p.topK <= all.alive / 16 ? spread * 0.5f : spread;
      const float steps = range > 0 ? minOf(divide(float(buckets - 1), range), largest) : 0.0f;
      bool even = true;
      u64 lo = all.best, hi = last, before = 0, target = 0;
      int width = 0;
      if (typical) {
        even = false;
        lo = 0;
        hi = largestDistance;
        width = 58 - digitBits;
      }
      const auto bucketOf = [&](float logit, u64 rank) -> u32 {
        if (!even) return u32((rank - lo) >> width);
        const float at = (scale.bestLogit - logit) * steps;
        return at < float(buckets - 1) ? u32(at) : buckets - 1;
      };

      for (bool first = true;; first = false, round++) {
        u64 *sums = scratch->sums[round & 1];
        for (int i = tidX(); i < buckets; i += chooseThreads) s.low[i] = s.high[i] = 0;
        if (tidX() == 0) {
          s.here = 0;
          s.bucket = buckets - 1;
          s.before = before;
          s.found = lo;
        }
        syncBlock();

        // The sums of this block's share, then of all blocks.
        const float floor = logitOf(typical ? last : hi);
        // placeOf returns the place of a token in the order of the selection, or more than hi if it
        // has none.
        const auto placeOf = [&](float logit, u32 id) -> u64 {
          const u64 rank = rankOf(logit, id);
          if (!typical) return rank;
          return rank <= last && weightOf(scale, logit) ? distanceOf(scale, logit, id, mean) : ~0ull;
        };
        u64 rest = 0; // of the last bucket, which may have very many tokens
        eachToken(r, [&](float logit, u32 id) {
          if (logit < floor) return;
          const u64 rank = placeOf(logit, id);
          if (rank < lo || rank > hi) return;
          const u64 v = valueOf(logit, id);
          if (v == 0) return;
          const u32 b = bucketOf(logit, rank);
          if (b == buckets - 1) {
            rest += v;
            return;
          }
          const u32 low = u32(v), was = addShared(&s.low[b], low);
          const u32 high = u32(v >> 32) + (was + low < was);
          if (high) addShared(&s.high[b], high);
        });
        rest = warpSum(rest);
        if ((tidX() & 31) == 0 && rest) addGlobal(sums + buckets - 1, rest);
        syncBlock();
        for (int i = tidX(); i < buckets - 1; i += chooseThreads) {
          const u64 v = u64(s.high[i]) << 32 | s.low[i];
          if (v) addGlobal(sums + i, v);
        }
        syncCluster();

        const u64 sum0 = readGlobal(sums + 2 * tidX()), sum1 = readGlobal(sums + 2 * tidX() + 1);
        u64 total;
        const u64 end1 = before + scanBlock(sum0 + sum1, s, total), end0 = end1 - sum1, end = end0 - sum0;
        if (first) {
          if (stage == stageTopK) target = u64(p.topK);
          else if (typical) target = ceilProduct(p.typical, total);
          else if (stage == stageTopP) target = ceilProduct(p.topP, total);
          else target = upperProduct(uniform(p), total) + 1;
        }
        if (end < target && target <= end1) {
          s.bucket = 2 * tidX() + (target > end0);
          s.before = target > end0 ? end0 : end;
        }
        syncBlock();
        const u32 bucket = s.bucket;
        before = s.before;

        // The candidates of that bucket.
        eachToken(r, [&](float logit, u32 id) {
          if (logit < floor) return;
          const u64 rank = placeOf(logit, id);
          if (rank < lo || rank > hi || bucketOf(logit, rank) != bucket || valueOf(logit, id) == 0) return;
          const u32 at = addShared(&s.here, 1);
          if (at < listed) s.keys[0][at] = rank;
        });
        syncBlock();
        const int here = int(s.here);
        if (tidX() == 0 && here) s.from = takeGlobal(&scratch->counts[round], here);
        syncBlock();
        if (tidX() < here && s.from + tidX() < listed) scratch->list[s.from + tidX()] = s.keys[0][tidX()];
        syncCluster();
        for (int i = chooseThreads * blockX() + tidX(); i < buckets; i += chooseThreads * gridX()) sums[i] = 0;

        const int n = readGlobal(&scratch->counts[round]);
        if (n <= listed) {
          const u64 key = sortBlock(tidX() < n ? readGlobal(&scratch->list[tidX()]) : ~0ull, n, s);
          const u32 id = u32(key);
          const u64 v = tidX() < n ? valueOf(typical ? r.logits[id] : logitOf(key), id) : 0;
          const u64 upTo = before + scanBlock(v, s, total);
          if (upTo - v < target && target <= upTo) s.found = key;
          syncBlock();
          if (typical) reach = s.found;
          else last = s.found;
          round++;
          syncBlock();
          break;
        }
        if (even) {
          even = false;
          before = 0;
        } else {
          lo += u64(bucket) << width;
          hi = minOf(hi, lo + ((1ull << width) - 1));
        }
        width = maxOf(0, 64 - __builtin_clzll((hi - lo) | 1) - digitBits);
      }

      if constexpr (adjusting)
        if (typical && p.minP > 0) {
          heaviest = 0;
          eachToken(r, [&](float logit, u32 id) { heaviest = maxOf(heaviest, keptWeight(logit, id)); });
          heaviest = warpMax(heaviest);
          u64 *sums = scratch->sums[round & 1];
          if ((tidX() & 31) == 0 && heaviest) raiseGlobal(sums, heaviest);
          syncCluster();
          heaviest = readGlobal(sums);
          syncCluster();
          if (blockX() == 0 && tidX() == 0) sums[0] = 0;
          round++;
        }
    }
    chosen = last;
  }
  if (blockX() != 0) return;
  float logit = logitOf(chosen);
  if constexpr (adjusting)
    if (p.adjustments) {
      restore(a, p, row);
      syncBlock();
      logit = a.logits[s64(row) * a.stride + u32(chosen)];
    }

  // The order of the additions depends only on the vocabulary size.
  float logProbability = 0;
  if (p.want & wantLogProbability) {
    const Exponentials *e = exponentialsOf(scratch, a.blocks);
    const int segments = (a.vocab - 1) / segment + 1, lane = tidX() & 31;
    float top = asFloat(0xff800000u);
    for (int i = tidX(); i < segments; i += chooseThreads) top = maxOf(top, e[i].top);
    top = warpMax(top);
    syncBlock();
    if (lane == 0) s.warps[tidX() >> 5] = asBits(top);
    syncBlock();
    top = warpMax(asFloat(u32(s.warps[lane])));
    double sum = 0;
    for (int i = tidX(); i < segments; i += chooseThreads) sum = sum + e[i].sum * double(expBelow(e[i].top - top));
    sum = warpSum(sum);
    syncBlock();
    if (lane == 0) s.warps[tidX() >> 5] = bitsOf(sum);
    syncBlock();
    sum = warpSum(doubleOf(s.warps[lane]));
    logProbability = float(double(logit) - double(top) - logarithm(sum));
  }
  if (tidX() == 0) {
    a.results[row] = {s32(u32(chosen)), statusGood, logProbability, 0};
    a.sampled[row] = s32(u32(chosen));
  }
}

// The choices. Grid (C, rows) in clusters of (C, 1), 1,024 threads.
extern "C" __global__ void __launch_bounds__(chooseThreads, 1) choose(const SampleArgs a) { chooseRow<false>(a); }
extern "C" __global__ void __launch_bounds__(chooseThreads, 1) chooseAdjusted(const SampleArgs a) { chooseRow<true>(a); }
