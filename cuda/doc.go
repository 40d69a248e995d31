// Package cuda adds NVIDIA GPUs to the devices that models run on. Import it for its side effect:
//
//	import _ "github.com/realizar/realizar/cuda"
//
// With the package imported, [realizar.Options.Device] "auto" selects a GPU if there is one and the
// model fits, "cuda" requires a GPU, and "cuda:1" requires GPU number 1 in the order of
// CUDA_VISIBLE_DEVICES; "cuda:0,1" are two that run the model together. The GPU needs compute capability 8.0 or later and a driver for CUDA 12.0 or
// later. Neither cgo nor the CUDA toolkit is needed.
//
// A binary with this package loads the driver when a model is opened, so it depends on the system's
// dynamic loader. A binary built with the tag nocuda is static.
//
// [realizar.Options.Device]: https://pkg.go.dev/github.com/realizar/realizar#Options
package cuda
