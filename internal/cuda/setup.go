package cuda

import (
	"sync/atomic"
	"time"

	"github.com/realizar/realizar/internal/plan"
)

// setup is what making an executable ready took.
type setup struct {
	load    time.Duration
	compile time.Duration
	capture atomic.Int64 // nanoseconds
}

// compiling is what the backend's kernels took so far to build and load.
func (b *Backend) compiling() time.Duration { return time.Duration(b.compiled.Load()) }

// Setup implements [plan.Executable].
func (e *executable) Setup() plan.Setup {
	return plan.Setup{Load: e.setup.load, Compile: e.setup.compile, Capture: time.Duration(e.setup.capture.Load())}
}
