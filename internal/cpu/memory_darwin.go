package cpu

import (
	"golang.org/x/sys/unix"

	"github.com/realizar/realizar/internal/plan"
)

// memory is what the machine has; what of it is free the system does not say in
// one number.
func memory() plan.MemoryInfo {
	total, err := unix.SysctlUint64("hw.memsize")
	if err != nil || total > 1<<62 {
		return plan.MemoryInfo{}
	}
	return plan.MemoryInfo{Total: int64(total)}
}
