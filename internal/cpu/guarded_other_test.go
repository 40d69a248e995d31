//go:build !linux

package cpu

import "testing"

// guarded is memory of n bytes; where there is no page to guard it, nothing does.
func guarded(_ testing.TB, n int) []byte { return make([]byte, n) }
