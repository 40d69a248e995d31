// Package driver speaks to NVIDIA's driver, libcuda, without cgo and without a
// toolkit: devices, contexts, memory, streams, events, modules, launches and
// graphs. It knows no kernels and no models.
//
// The library is looked for when [Open] is called, so a program that imports this
// package starts on a machine without a GPU. A build with the tag nocuda, or for a
// system that has no CUDA, has the same face and an Open that says so.
//
// A [Context] owns one thread of the operating system, and all that belongs to the
// context happens within its [Context.Do]. Nothing in a launch, in the replay of a
// graph or in a copy allocates.
package driver
