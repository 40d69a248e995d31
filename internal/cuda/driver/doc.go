// Package driver calls NVIDIA's driver, libcuda, without cgo and without a toolkit: devices,
// contexts, memory, streams, events, modules, launches and graphs. It knows nothing about kernels
// and models.
//
// [Open] loads the library, so a program that imports this package also starts on a machine without
// a GPU. A build with the tag nocuda, or for a system without CUDA, has the same API and an Open
// that returns an error.
//
// A [Context] owns one operating system thread, and all use of the context's resources happens
// within [Context.Do]. Launches, graph launches and copies do not allocate.
package driver
