// How the devices that run the parts of one program meet. All parts run the same exchanges in the
// same order, each at the same time, in blocks that run in ascending order or all at once.
#pragma once
#include "forms.cuh"
#include "system.cuh"

constexpr int exchangeThreads = 256, mostParts = 8;

// A Mail is what a part hears from the others, in its own memory.
struct Mail {
  u32 from[mostParts]; // by part: the number of the last meeting that it has come to
  u32 meetings;        // that this part has ended
  s32 blocks;          // of the running exchange that have written
  u32 lost;            // 0, or 1 + the part that did not answer in time; from then on nothing waits
  u32 pad;
};

// A Packet is four numbers of a row, each with the number of the meeting in which it is sent. Who
// finds that number has the other, so nothing else needs to be waited for.
struct alignas(16) Packet {
  u64 of[4];
};

// A Peer is where a part has what the others read and write. Its box has room for the packets of
// two meetings: a part that sends those of the next meeting but one has got those of the next one,
// which a part sends when it has read its own of this one. So in a meeting every part sends packets to
// every other one. Parts that do not reach each other's
// memory have their boxes in host memory, and exchange nothing but packets.
struct Peer {
  Mail *mail;
  float *sums; // [rows, stride] of the running exchange; see reduce.cu
  Packet *box; // [2][boxPackets] by the meeting's number, modulo 2
};

// A Meeting is what an exchange knows of the parts.
struct Meeting {
  const Peer *peers; // [parts]
  Mail *mine;
  const float *sums; // of this part; see Peer
  s32 parts, part;
  s64 patience; // ns
  s64 boxPackets;
  s32 first, rows; // those of the step that are exchanged, if packets are: all fit in a box
};

// wait waits until there returns true, which it calls once at least, and notes that part p is lost if
// that takes too long.
template <class There> INLINE void wait(const Meeting &m, int p, const There &there) {
  const bool without = m.mine->lost != 0;
  u64 begun = 0;
  for (int tries = 1; !there() && !without; tries++) {
    if (tries % 32) continue;
    pause();
    if (begun == 0) begun = nanoseconds();
    if (nanoseconds() - begun > u64(m.patience)) {
      m.mine->lost = 1 + p;
      return;
    }
  }
}

// await waits until part p has come to meeting n.
INLINE void await(const Meeting &m, int p, u32 n) {
  wait(m, p, [&]() ALWAYS { return s32(hearSystem(&m.mine->from[p]) - n) >= 0; });
}

// meet tells the other parts that this one has come to meeting n, and waits until they have. The
// first warp calls it. What its lanes have written or seen written is then seen by the other parts.
INLINE void meet(const Meeting &m, u32 n) {
  const int p = tidX();
  const bool peer = p < m.parts && p != m.part;
  if (peer) {
    fenceSystem();
    tellSystem(&m.peers[p].mail->from[m.part], n);
  }
  syncWarp(); // all parts have been told before one is waited for
  if (peer) await(m, p, n);
  syncWarp();
}

// last reports whether the block is the last one of the grid to call it. All of its threads do. If one
// block of every few calls it, of is how many these are.
INLINE bool last(const Meeting &m, int of = 1) {
  __shared__ u32 is;
  syncBlock();
  const int blocks = gridX() / of * gridY();
  if (blocks == 1) return true;
  if (tidX() == 0) is = atomicAddDevice(&m.mine->blocks, 1) == blocks - 1;
  syncBlock();
  return is;
}

// ended notes that all meetings up to n have ended.
INLINE void ended(const Meeting &m, u32 n) { m.mine->meetings = n, m.mine->blocks = 0; }

// upTo returns the end of the meeting's rows.
INLINE int upTo(const Meeting &m, int count) { return minOf(count, m.first + m.rows); }

INLINE Packet *boxOf(const Meeting &m, int part, u32 n) { return m.peers[part].box + (n & 1) * m.boxPackets; }

INLINE u64 numbered(float v, u32 n) { return u64(n) << 32 | asBits(v); }
INLINE void send(Packet *to, float4 v, u32 n) {
  UNROLL for (int i = 0; i < 4; i += 2) writeSystem(&to->of[i], numbered(v[i], n), numbered(v[i + 1], n));
}

// receive sets v to the numbers that part p sends in meeting n, those of packet k where has(k).
template <int K, class Has, class From> INLINE void receive(const Meeting &m, int p, u32 n, float4 (&v)[K], const Has &has, const From &from) {
  wait(m, p, [&]() ALWAYS {
    bool all = true;
    UNROLL for (int k = 0; k < K; k++) {
      if (!has(k)) continue;
      u64 w[4];
      UNROLL for (int i = 0; i < 4; i += 2) readSystem(&from(k)->of[i], w[i], w[i + 1]);
      UNROLL for (int i = 0; i < 4; i++) v[k][i] = asFloat(u32(w[i])), all = all && u32(w[i] >> 32) == n;
    }
    return all;
  });
}
