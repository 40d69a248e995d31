// Package drivertest is a CUDA driver without a GPU, for tests. Its functions keep device memory in
// host memory, perform a stream's work at once, and record launches without running them. They are
// called like the real library, with C's calling conventions.
//
// A [Fake] is stricter than the real driver about contexts: it rejects every call that needs a
// context on a thread without a current one. A test that leaves a resource undestroyed fails.
package drivertest
