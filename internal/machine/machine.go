// Package machine says how much of the machine the process may use: memory and processor time,
// within the limits of its control groups, and which group sets each limit.
package machine

import "math"

// Memory is an amount of memory in bytes.
type Memory struct {
	Total, Free int64 // 0 if the system does not tell
	// Limit names what bounds Total or Free below the machine's own: the file of a control group.
	// It is empty if nothing does.
	Limit string
}

// Time is the processor time that the process may use.
type Time struct {
	Limit int    // whole processors, at least one; math.MaxInt32 if unlimited
	By    string // file of the control group that sets the limit
}

// noLimit is the time of a process that may use all processors.
var noLimit = Time{Limit: math.MaxInt32}
