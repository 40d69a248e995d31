// The rows of an exact state at the positions before those of the step's tokens, see plan.Recall.
#include "anypool.cuh"
#include "each.cuh"

struct RecallArgs {
  AnyPool pool; // of float32 keys, with one head
  Table table;
  const s32 *count; // tokens of this step
  Forms out;        // keyDim columns
};

// recall writes zeros for tokens at position 0.
extern "C" __global__ void __launch_bounds__(threads) recall(const RecallArgs a) {
  waitForPrevious();
  allowNext();
  eachBlock(a.out, a.count, a.pool.keyDim, [&](int token, int col) {
    const Place place = a.table.places[token];
    if (place.position == 0) return 0.0f;
    const Numbers row = keyOf<CacheF32>(a.pool, slotIn(a.pool, a.table, place.shift, place.position - 1), 0);
    return numberAt(CacheF32{}, row, col);
  });
}
