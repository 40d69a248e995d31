package cuda

import (
	"sync/atomic"
	"time"

	"github.com/realizar/realizar/internal/plan"
)

// setup records how long it took to prepare an executable.
type setup struct {
	load    time.Duration
	compile time.Duration
	capture atomic.Int64 // nanoseconds
}

// Setup implements [plan.Executable].
func (e *executable) Setup() plan.Setup {
	return plan.Setup{Load: e.setup.load, Compile: e.setup.compile, Capture: time.Duration(e.setup.capture.Load())}
}
