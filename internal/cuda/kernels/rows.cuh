// Exact states per token: rows of float32.
#pragma once
#include "kv.cuh"

// A RowsPool is the pages of an exact state. A page has pageTokens rows of width numbers.
struct RowsPool {
  u8 *base;
  s64 apart; // bytes from a page to the next
  s32 pageTokens;
  s32 width;
};

INLINE float *rowAt(const RowsPool &p, const Table &t, int shift, int position) {
  const int page = position / p.pageTokens;
  return reinterpret_cast<float *>(p.base + t.pages[shift + page] * p.apart) + s64(position - page * p.pageTokens) * p.width;
}
