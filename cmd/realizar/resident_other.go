//go:build !linux

package main

// residentMemory is not known on this system.
func residentMemory() (now, peak *int64) { return nil, nil }
