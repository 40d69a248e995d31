// Package cuda lets models run on NVIDIA GPUs. Importing it is all there is to do:
//
//	import _ "github.com/realizar/realizar/cuda"
//
// Then [realizar.Options.Device] "auto" takes a GPU where there is one and the model
// fits, "cuda" insists on one, and "cuda:1" on the one with the number 1, counted as
// CUDA_VISIBLE_DEVICES has it. It takes a GPU of compute capability 8.0 or later and
// a driver for CUDA 12.0 or later, and neither cgo nor a toolkit.
//
// A binary with this package looks for the driver when a model is opened, and so
// needs the system's loader of libraries; one built with the tag nocuda is static.
//
// [realizar.Options.Device]: https://pkg.go.dev/github.com/realizar/realizar#Options
package cuda
