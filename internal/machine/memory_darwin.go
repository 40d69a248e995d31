package machine

import "golang.org/x/sys/unix"

// ReadMemory returns the machine's memory. Free is 0, as the system has no single number for it.
func ReadMemory() Memory {
	total, err := unix.SysctlUint64("hw.memsize")
	if err != nil || total > 1<<62 {
		return Memory{}
	}
	return Memory{Total: int64(total)}
}
