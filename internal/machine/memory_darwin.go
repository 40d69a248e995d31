package machine

import "golang.org/x/sys/unix"

// ReadMemory is what the machine has; what of it is free the system does not say in
// one number.
func ReadMemory() Memory {
	total, err := unix.SysctlUint64("hw.memsize")
	if err != nil || total > 1<<62 {
		return Memory{}
	}
	return Memory{Total: int64(total)}
}
