//go:build !linux && !darwin && !windows

package cpu

import "math"

// readTopology counts every logical processor as a core.
func readTopology() topology { return topology{limit: math.MaxInt32} }

// settle does nothing.
func settle([]int) {}
