// Package machine says what the process may take of the machine: memory and processor
// time, within the limits of the control groups that it is in, and who sets them.
package machine

import "math"

// Memory is what there is of it, in bytes.
type Memory struct {
	Total, Free int64 // 0 where the system does not say
	// Limit names what bounds Total, or Free, to less than the machine has: the file of a
	// control group. Empty: nothing does.
	Limit string
}

// Time is how much processor time the process may take.
type Time struct {
	Limit int    // in whole processors, at least one; math.MaxInt32 without a limit
	By    string // the file of the control group that sets it
}

// noLimit is that of a process that may take all processors.
var noLimit = Time{Limit: math.MaxInt32}
