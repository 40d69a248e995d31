//go:build !linux && !darwin && !windows

package machine

// ReadMemory returns the zero Memory on this system.
func ReadMemory() Memory { return Memory{} }
