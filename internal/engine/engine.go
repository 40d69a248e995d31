// Package engine runs many requests on one executable: a token of each answer under
// way and chunks of prompts in every step. It gives out the pages of their states,
// finds those again that were computed before, and takes them from the youngest
// where they run short. It knows token ids only: no text, no architecture, no
// hardware.
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/realizar/realizar/internal/plan"
)

// An Engine serves many goroutines. One goroutine of its own makes all steps.
type Engine struct {
	program *plan.Program
	config  Config
	limits  plan.Limits
	exe     plan.Executable // used by the scheduler alone
	closing atomic.Bool
	idle    atomic.Bool   // the scheduler has nothing to do, or is about to see
	ended   chan struct{} // closed when the scheduler has ended
	failure error         // of closing the executable

	mu      sync.Mutex
	work    *sync.Cond // there may be something to submit, or the end
	masked  *sync.Cond // a constraint was asked
	queue   queue
	flights []*flight // under way; the oldest first
	begins  *flight   // is given to the executable now, or nil
	steps   uint64    // submitted
	done    uint64    // the last that is
	spare   []*flight // for others to use
	pace    pace
	stops   bool        // see [sequence]
	order   []*sequence // the scheduler's
	setup   plan.Setup  // of the executable, when it was last asked

	watching watching // the scheduler's alone

	masks  maskTable
	all    []uint32 // see anything
	tree   tree
	pools  []*pool    // by group, of the device's pages
	host   []*pool    // by group, of the host's
	memory [][][]byte // of these, nil where none was needed yet

	matched  []*node // see match
	spans    []int   // see match
	measures measures
}

// ErrClosed says that the engine was closed.
var ErrClosed = errors.New("the model is closed")

// New compiles p on b, which loads its weights.
func New(ctx context.Context, p *plan.Program, b plan.Backend, c Config, loaded plan.Loaded) (*Engine, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	e := &Engine{
		program: p, config: c, limits: c.Limits(p), ended: make(chan struct{}), queue: newQueue(c.Parallel),
		pace:  pace{gap: cmp.Or(c.Gap, gap)},
		stops: slices.ContainsFunc(p.Groups, func(g plan.Group) bool { return g.Kind == plan.PerSequence }),
		masks: newMaskTable(c.Limits(p).Masks), tree: newTree(len(p.Groups)), spans: make([]int, len(p.Groups)), measures: newMeasures(),
	}
	e.work, e.masked = sync.NewCond(&e.mu), sync.NewCond(&e.mu)
	host, err := c.hostPages(p, &e.limits)
	if err != nil {
		return nil, err
	}
	if e.exe, err = b.Compile(ctx, p, e.limits, loaded); err != nil {
		return nil, err
	}
	e.setup = e.exe.Setup()
	for g, n := range e.limits.Pages {
		e.pools = append(e.pools, newPool(n))
		e.host = append(e.host, newPool(host[g]))
		e.memory = append(e.memory, make([][]byte, host[g]))
	}
	if c.Kept != nil {
		e.recall(c.Kept)
	}
	go e.schedule()
	return e, nil
}

// Context is the number of positions of one sequence.
func (e *Engine) Context() int { return e.config.Context }

// Close ends what waits or runs with [ErrClosed], waits for the steps under way
// and frees everything.
func (e *Engine) Close() error {
	e.mu.Lock()
	e.closing.Store(true)
	for _, s := range slices.Concat(e.queue.active, e.queue.waiting) {
		e.cancel(s.run, ErrClosed)
	}
	e.work.Signal()
	e.mu.Unlock()
	<-e.ended
	return e.failure
}

// shut frees what is the executable's.
func (e *Engine) shut() error { return errors.Join(e.freeHost(), e.exe.Close()) }

// ended is err, or where ctx has ended both its error and the cause of that.
func ended(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	cause := context.Cause(ctx)
	if errors.Is(cause, ctx.Err()) {
		return cause
	}
	return fmt.Errorf("%w: %w", ctx.Err(), cause)
}
