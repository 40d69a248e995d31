//go:build !amd64

package cpu

// prefetch asks for a number of lines of 64 bytes from p on. Here nobody does.
func prefetch(p *byte, lines int) {}
