//go:build !linux && !darwin && !windows

package cpu

import "github.com/realizar/realizar/internal/plan"

// memory is not read on this system.
func memory() plan.MemoryInfo { return plan.MemoryInfo{} }
