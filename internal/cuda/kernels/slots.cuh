// States per sequence: slots of float32. A sequence reads one slot and writes another.
#pragma once
#include "device.cuh"

struct Slots {
  char *base;
  s64 apart;        // bytes from a slot to the next
  // [S][2] each sequence's slot before the step, -1 for zeros, and after it
  const s32 *slots;
};

// slotBefore returns the state of sequence s before the step, or 0 if it is all zeros.
INLINE const float *slotBefore(const Slots &a, int s) {
  const int slot = a.slots[2 * s];
  return slot < 0 ? nullptr : reinterpret_cast<const float *>(a.base + slot * a.apart);
}

// slotAfter returns where to write the whole state of sequence s after the step.
INLINE float *slotAfter(const Slots &a, int s) { return reinterpret_cast<float *>(a.base + a.slots[2 * s + 1] * a.apart); }
