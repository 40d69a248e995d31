// States per sequence: slots of float32, of which a sequence reads one and writes another.
#pragma once
#include "device.cuh"

struct Slots {
  char *base;
  s64 apart;        // from a slot to the next, in bytes
  const s32 *slots; // [S][2] of each sequence: as it is before the step, -1 for zeros, and after it
};

// slotBefore is the state of sequence s before the step; 0 stands for zeros.
INLINE const float *slotBefore(const Slots &a, int s) {
  const int slot = a.slots[2 * s];
  return slot < 0 ? nullptr : reinterpret_cast<const float *>(a.base + slot * a.apart);
}

// slotAfter is where all of the state of sequence s after the step is to be written.
INLINE float *slotAfter(const Slots &a, int s) { return reinterpret_cast<float *>(a.base + a.slots[2 * s + 1] * a.apart); }
