//go:build !linux

package cpu

import "testing"

// guarded returns n bytes of memory; this system has no guard page.
func guarded(_ testing.TB, n int) []byte { return make([]byte, n) }
