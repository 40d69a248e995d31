// Weights in F32 times float32.
#include "split.cuh"

LINEAR_OF_FLOATS(F32)

#if __CUDA_ARCH__ >= 900
extern "C" __global__ void __launch_bounds__(256, 1) linear_f32_split(const LinearArgs a) { split<F32>(a); }
#else // without clusters a block does all segments
LINEAR(linear_f32_split, F32, SINGLE(Floats<F32, 1>), 1, false, false, false, 1)
#endif
