// Package engine runs many requests on one executable: every step has one token of each decoding
// sequence and chunks of prompts. It allocates the pages of their states, finds cached prefixes,
// and preempts the last sequences if pages run short. It knows token ids only: no text, no
// architecture, no hardware.
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

// An Engine serves many goroutines. One scheduler goroutine makes all steps.
type Engine struct {
	program *plan.Program
	config  Config
	limits  plan.Limits
	exe     plan.Executable // used by the scheduler alone
	closing atomic.Bool
	idle    atomic.Bool   // the scheduler has no work, or is about to check
	ended   chan struct{} // closed when the scheduler has ended
	failure error         // of closing the executable

	mu      sync.Mutex
	work    *sync.Cond // signaled when there may be something to submit, or at the end
	masked  *sync.Cond // signaled when a constraint has returned
	seen    *sync.Cond // signaled when a caller that may end its answer has taken a result
	copies  *sync.Cond // signaled when steps are done that copy pages, and when callers are done with host memory
	queue   queue
	flights []*flight // in flight; the oldest first
	begins  *flight   // being submitted or made to sample, or nil
	steps   uint64    // submitted
	done    uint64    // number of the last step that is done
	spare   []*flight // for reuse
	pace    pace
	drafts  int  // the most drafted tokens in a step
	odds    odds // with which sequences begin
	checks  checkpoints
	order   []claim     // scratch of setQuotas
	asks    []Ask       // see depth
	asked   []*sequence // likewise
	setup   plan.Setup  // of the executable, after the last step was submitted

	group    *Group     // or nil
	arriving []*entrant // requests of the group on their way
	out      bool       // a step has failed, and the group gives no requests

	watching watching // used by the scheduler alone

	masks  maskTable
	all    []uint32 // see anything
	tree   tree
	pools  []*pool    // pages on the device, by group
	host   []*pool    // pages of host memory, by group
	memory [][][]byte // of the host pages, by group; nil until first used

	pageBytes []int // by group

	exports  []*Export       // that are not released
	unsaved  []*Export       // of these, those with pages to save
	imports  []*arrivals     // that wait or are being filled
	scratch  []int32         // a page of each group, for a step of no sequence
	borrowed int             // calls that read or fill host memory
	life     context.Context // ends when the engine is closed
	end      context.CancelFunc

	matched  []*node     // see match
	frozen   []*sequence // see cold; in the step being made
	spans    []int       // see match
	measures measures
}

// ErrClosed reports that the engine was closed.
var ErrClosed = errors.New("the model is closed")

// New compiles p on b, which loads its weights, and starts the scheduler.
func New(ctx context.Context, p *plan.Program, b plan.Backend, c Config, loaded plan.Loaded) (*Engine, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.Drafts.Head && p.Head == nil {
		return nil, errors.New("engine: the program has no head that could draft")
	}
	e := &Engine{
		program: p, config: c, limits: c.Limits(p), ended: make(chan struct{}), queue: newQueue(c.Parallel),
		pace:   pace{gap: cmp.Or(c.Gap, Gap)},
		drafts: c.drafted(p), odds: newOdds(),
		checks: c.checkpoints(p),
		masks:  newMaskTable(c.Limits(p).Masks), tree: newTree(len(p.Groups), c.Events != nil), spans: make([]int, len(p.Groups)), measures: measures{Metrics: NewMetrics()},
	}
	e.work, e.masked, e.seen, e.copies = sync.NewCond(&e.mu), sync.NewCond(&e.mu), sync.NewCond(&e.mu), sync.NewCond(&e.mu)
	e.life, e.end = context.WithCancel(context.Background())
	host, err := c.hostPages(p, &e.limits)
	if err != nil {
		return nil, err
	}
	if e.exe, err = b.Compile(ctx, p, e.limits, loaded); err != nil {
		return nil, err
	}
	e.setup = e.exe.Setup()
	for g, n := range e.limits.Pages {
		size, err := e.limits.PageBytes(p, g)
		if err != nil {
			return nil, errors.Join(err, e.exe.Close())
		}
		e.pageBytes = append(e.pageBytes, size)
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

// Context returns the most positions of one sequence.
func (e *Engine) Context() int { return e.config.Context }

// Close ends waiting and running requests with [ErrClosed], waits for the steps in flight and frees
// all memory.
func (e *Engine) Close() error {
	e.mu.Lock()
	e.closing.Store(true)
	e.end()
	e.copies.Broadcast()
	for _, s := range slices.Concat(e.queue.active, e.queue.waiting) {
		e.cancel(s.run, ErrClosed)
	}
	e.work.Signal()
	e.mu.Unlock()
	<-e.ended
	return e.failure
}

// shut frees host memory and the executable, when callers are done with host memory.
func (e *Engine) shut() error {
	for e.borrowed > 0 {
		e.copies.Wait()
	}
	if e.config.Events != nil {
		e.config.Events(&CacheEvent{Kind: PagesCleared})
	}
	return errors.Join(e.freeHost(), e.exe.Close())
}

// ended returns err, or if ctx has ended, its error and its cause.
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
