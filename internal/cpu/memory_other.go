//go:build !linux

package cpu

import "github.com/realizar/realizar/internal/plan"

// memory is not read on this system: the planner sees zeros and does not count
// on a limit.
func memory() plan.MemoryInfo { return plan.MemoryInfo{} }
