// Package cuda adds NVIDIA GPUs to the devices that models run on. Import it for its side effect:
//
//	import _ "github.com/realizar/realizar/cuda"
//
// With the package imported, [realizar.Options.Device] "cuda" requires GPUs: the fewest of the
// first 1, 2, 4 or 8 that hold the model, or the first one, to which weights stream. "auto" is the
// same if there is a GPU and the model fits, and else the CPU. "cuda:1" requires GPU number 1 in
// the order of CUDA_VISIBLE_DEVICES, and "cuda:0,1" two that run the model together. A GPU needs
// compute capability 8.0 or later and a driver for CUDA 12.0 or later. Neither cgo nor the CUDA
// toolkit is needed.
//
// A binary with this package loads the driver when a model is opened, so it depends on the system's
// dynamic loader. A binary built with the tag nocuda is static.
//
// [realizar.Options.Device]: https://pkg.go.dev/github.com/realizar/realizar#Options
package cuda
