package server

import (
	"context"
	"runtime"
)

// Reading a large body, its template and its tokenizer keep a core busy for long. So that the
// engine and small requests, which need one for a moment only, do not wait behind many of
// them, large ones take turns: so many have theirs at one time. It is not kept while a
// request waits for its client.
type turns chan struct{}

func newTurns() turns { return make(turns, max(1, runtime.NumCPU()/2)) }

// largeBytes is the size of a body from which on a request is large.
const largeBytes = 64 << 10

// turn waits until x may have a core for itself, where it is large, and returns what ends
// that.
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
