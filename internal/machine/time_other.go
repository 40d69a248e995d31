//go:build !linux

package machine

// Processors returns no limit on this system.
func Processors() Time { return noLimit }
