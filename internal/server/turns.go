package server

import (
	"context"
	"runtime"
)

// Decoding a large body, rendering its template and tokenizing it keep a core busy for long. Large
// requests therefore take turns: the capacity of the channel is the number that run at one time. So
// the engine and small requests, which need a core for a moment only, do not wait behind many large
// ones. A request gives up its turn while it waits for its client.
type turns chan struct{}

func newTurns() turns { return make(turns, max(1, runtime.NumCPU()/2)) }

// largeBytes is the size in bytes from which a body is large.
const largeBytes = 64 << 10

// turn waits until x may use a core, if x is large. done ends the turn.
func (x *Exchange) turn() (done func(), err error) {
	if x.size < largeBytes {
		return func() {}, nil
	}
	select {
	case x.Server.turns <- struct{}{}:
		return func() { <-x.Server.turns }, nil
	case <-x.work.Done():
		return nil, context.Cause(x.work)
	}
}
