// Package drivertest is a CUDA driver without a GPU, for tests: functions that
// keep the device's memory in the host's, do a stream's work at once and record
// launches without running them. They are called as the real library is, through
// C's conventions.
//
// A [Fake] is stricter than the real driver in what belongs to a context: it
// refuses each such call on a thread where no context is current. A test that
// leaves something undestroyed fails.
package drivertest
