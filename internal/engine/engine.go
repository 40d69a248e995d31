// Package engine runs sequences of tokens on one executable. It gives out the
// pages of their states, cuts prompts into chunks and makes every step of what all
// sequences want: a token of each that decodes, and chunks of prompts. It knows
// token ids only: no text, no architecture, no hardware.
package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// The shape of steps and pages.
const (
	pageTokens  = 32
	chunkTokens = 256 // of prompts, at most, in one step
	chunkRows   = 16  // outputs of a prompt that have room in every step
	stepsAhead  = 2   // steps under way at one time: while one runs, the next is ready
	tokensAhead = 3   // chosen for a sequence, or being chosen, before its caller has taken in the first

	windowAhead = chunkTokens + tokensAhead // positions for which a window has pages, before it moves on
)

// Config is what an engine is sized by.
type Config struct {
	Context  int          // positions of one sequence, at most
	Parallel int          // sequences that hold state at one time
	Cache    tensor.DType // of keys and values
	// Activations are what quantised weights are multiplied with: F32, or Q8_0.
	Activations tensor.DType
}

// Limits are the sizes that c takes of p. Beside a chunk of prompts there is room
// for a token of every other sequence, so that neither waits for the other.
func (c Config) Limits(p *plan.Program) plan.Limits {
	others := c.Parallel - 1
	l := plan.Limits{
		Tokens: min(chunkTokens, c.Context) + others, Seqs: c.Parallel, Rows: min(chunkRows, c.Context) + others,
		PageTokens: pageTokens, Cache: c.Cache, Activations: c.Activations,
	}
	for _, g := range p.Groups {
		l.Pages = append(l.Pages, c.Parallel*c.pages(g))
	}
	return l
}

// pages is what one sequence holds of group g at most. A window that starts in
// one page and ends in another takes one more than its length does.
func (c Config) pages(g plan.Group) int {
	all := (c.Context + pageTokens - 1) / pageTokens
	if g.Window == 0 {
		return all
	}
	return min(all, (g.Window+windowAhead+pageTokens-2)/pageTokens+1)
}

// ahead is how many positions of a sequence may be submitted beyond those that it
// holds for certain. Where it has the pages, two chunks.
func ahead(p *plan.Program) int {
	if slices.ContainsFunc(p.Groups, func(g plan.Group) bool { return g.Window > 0 }) {
		return windowAhead
	}
	return stepsAhead * chunkTokens
}

// Memory is what an engine takes on a backend, in bytes.
type Memory struct {
	Weights int // beside those of the program
	States  int
	Scratch int // of a step
}

// check says whether c can be counted with.
func (c Config) check() error {
	if c.Context < 1 || c.Parallel < 1 || c.Parallel > math.MaxInt32-chunkTokens {
		return fmt.Errorf("engine: a context of %d for %d sequences does not exist", c.Context, c.Parallel)
	}
	return nil
}

// Memory is what p takes on b.
func (c Config) Memory(p *plan.Program, b plan.Backend) (m Memory, err error) {
	if err := c.check(); err != nil {
		return Memory{}, err
	}
	l := c.Limits(p)
	if m.States, err = l.StateBytes(p); err != nil {
		return Memory{}, err
	}
	m.Weights, m.Scratch = b.Weights(p, l), b.Scratch(p, l)
	return m, nil
}

// An Engine serves many goroutines. One goroutine of its own makes all steps.
type Engine struct {
	program *plan.Program
	config  Config
	limits  plan.Limits
	ahead   int                 // see [ahead]
	slots   *semaphore.Weighted // Parallel
	open    context.Context     // ends, with ErrClosed, when the engine is closed
	end     context.CancelCauseFunc
	exe     plan.Executable // used by the scheduler alone
	done    chan struct{}   // closed when the scheduler has ended
	failure error           // of closing the executable

	mu       sync.Mutex
	work     *sync.Cond // there may be something to submit, or the end
	closed   bool
	free     [][]int32  // pages by group
	requests []*request // that are not submitted to their end, in the order in which they came
	flights  []*flight  // under way; the oldest first
	steps    uint64     // submitted
	spare    []*flight  // for others to use
}

// ErrClosed says that the engine was closed.
var ErrClosed = errors.New("the model is closed")

// New compiles p on b, which loads its weights.
func New(ctx context.Context, p *plan.Program, b plan.Backend, c Config, loaded plan.Loaded) (*Engine, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	e := &Engine{program: p, config: c, limits: c.Limits(p), ahead: ahead(p), slots: semaphore.NewWeighted(int64(c.Parallel)), done: make(chan struct{})}
	e.work = sync.NewCond(&e.mu)
	e.open, e.end = context.WithCancelCause(context.Background())
	exe, err := b.Compile(ctx, p, e.limits, loaded)
	if err != nil {
		return nil, err
	}
	e.exe = exe
	for _, n := range e.limits.Pages {
		free := make([]int32, n)
		for i := range free {
			free[i] = int32(n - 1 - i)
		}
		e.free = append(e.free, free)
	}
	go e.schedule()
	return e, nil
}

// Context is the number of positions of one sequence.
func (e *Engine) Context() int { return e.config.Context }

// Close ends what waits or runs with [ErrClosed], waits for the steps under way
// and frees everything. Sequences may be closed before or after it.
func (e *Engine) Close() error {
	e.end(ErrClosed)
	e.mu.Lock()
	e.closed = true
	e.work.Signal()
	e.mu.Unlock()
	<-e.done
	return e.failure
}

// NewSequence waits for room for a sequence whose prompt has that many tokens.
// The sequence must be closed.
func (e *Engine) NewSequence(ctx context.Context, prompt int) (*Sequence, error) {
	ctx, stop := e.during(ctx)
	defer stop()
	err := e.slots.Acquire(ctx, 1)
	if err == nil && e.open.Err() != nil {
		e.slots.Release(1)
		err = ErrClosed
	}
	if err != nil {
		return nil, ended(ctx, err)
	}
	return &Sequence{engine: e, prompt: prompt, tables: make([]table, len(e.program.Groups))}, nil
}

// during is ctx until the engine is closed.
func (e *Engine) during(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(e.open, func() { cancel(ErrClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// ended is err, or where ctx has ended both its error and the cause of that.
func ended(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, ErrClosed) || errors.Is(cause, ctx.Err()):
		return cause
	}
	return fmt.Errorf("%w: %w", ctx.Err(), cause)
}
