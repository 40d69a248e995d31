package cpu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/sample"
	"github.com/realizar/realizar/tensor"
)

// An executable is a compiled program with its memory. One step runs at a time,
// in the order of Submit.
type executable struct {
	backend   *Backend
	p         *plan.Program
	lim       plan.Limits
	code      *code
	weights   map[*tensor.Tensor]*interleaved   // of products
	copies    map[*tensor.Tensor]*tensor.Tensor // of derived weights that are not interleaved
	memory    []byte                            // of weights
	pools     []*pagePool                       // by state
	zeros     []float32                         // as many as the largest state per sequence has
	pages     pageMemory                        // of pools
	tier      tier
	workers   *workers
	desks     []desk          // by worker
	attention *attentionSpace // nil before the first attention node
	experts   *expertSpace    // nil before the first mixture of experts
	whole     map[plan.State]*bothWays
	bounds    [][]float32 // nil, or by value what a [Replay] knows of it
	sampler   sample.Sampler
	host      map[*byte][]byte // of AllocHost, by where it begins
	setup     plan.Setup

	wanted int // rows of the step submitted last
	closed bool

	mu   sync.Mutex
	free []*step

	// The step that runs.
	batch    *plan.Batch
	seq      []int32   // [T] sequence of each token
	seen     []float32 // a value that is observed
	ids      []int32   // [T] token ids, those of earlier rows filled in
	sampled  []int32   // [R] of the step before
	overflow []int     // [S] layer whose keys or values the cache cannot hold, or -1
	failed   failures
}

// A step is under way, or done and not yet released.
type step struct {
	e      *executable
	batch  *plan.Batch
	done   chan struct{} // holds one when the step is done
	result plan.Result
	err    error

	logits, hidden []float32 // what the result's rows lie in
	clock          clock
}

// Wait implements [plan.Step].
func (s *step) Wait(ctx context.Context) (*plan.Result, error) {
	select {
	case <-s.done:
		s.done <- struct{}{} // for the next one who waits
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s.err != nil {
		return nil, s.err
	}
	return &s.result, nil
}

// Release implements [plan.Step].
func (s *step) Release() {
	select {
	case <-s.done:
	default:
		return // it still runs; nobody will use it again
	}
	s.batch, s.err = nil, nil
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	s.e.free = append(s.e.free, s)
}

func (e *executable) newStep() *step {
	e.mu.Lock()
	defer e.mu.Unlock()
	if last := len(e.free) - 1; last >= 0 {
		s := e.free[last]
		e.free = e.free[:last]
		return s
	}
	return &step{e: e, done: make(chan struct{}, 1)}
}

// Submit implements [plan.Executable].
func (e *executable) Submit(b *plan.Batch) (plan.Step, error) {
	if e.closed {
		return nil, errors.New("cpu: the executable is closed")
	}
	if err := b.Validate(e.p, &e.lim, e.wanted); err != nil {
		return nil, err
	}
	s := e.newStep()
	s.batch, e.wanted = b, len(b.Rows)
	e.workers.post(s)
	return s, nil
}

// Setup implements [plan.Executable].
func (e *executable) Setup() plan.Setup { return e.setup }

// Close implements [plan.Executable].
func (e *executable) Close() error {
	if !e.closed {
		e.closed = true
		e.workers.close()
		release(e.memory)
		e.pages.release()
		for _, b := range e.host {
			release(b)
		}
		e.host = nil
	}
	return nil
}

// run implements [task].
func (s *step) run() {
	defer func() {
		if r := recover(); r != nil {
			s.fail(r)
		}
		s.done <- struct{}{}
	}()
	s.e.step(s)
}

// fail says what the step panicked with. The next step, which may be submitted
// already, can go on from none of its rows.
func (s *step) fail(recovered any) {
	s.err = fmt.Errorf("cpu: internal error: %v", recovered)
	if fault := tensor.Fault(recovered); fault != nil {
		s.err = fmt.Errorf("cpu: %w", fault)
	}
	s.e.sampled = fill(s.e.sampled, len(s.batch.Rows), -1)
}

func (e *executable) step(s *step) {
	b := s.batch
	e.batch = b
	e.resolve(b)
	for i := range b.States {
		e.apply(&b.States[i])
	}
	e.reachSlots()
	e.overflow = fill(e.overflow, b.Seqs(), -1)
	s.clock.start(e)
	e.run(&s.clock)
	e.check(&e.failed)
	s.clock.lap()
	s.begin()
	for i := range b.Rows {
		s.output(i)
	}
	s.clock.lap()
	s.measured()
	if e.failed.any {
		e.diagnose(&e.failed)
		s.result.Err = slices.Clone(e.failed.err)
	}
	e.sampled = append(e.sampled[:0], s.result.Tokens...)
}

// aheadTokens is up to how many tokens a step waits for memory rather than for
// arithmetic, about.
const aheadTokens = 8

// run does the kernels of e's code.
func (e *executable) run(clock *clock) {
	for i, ks := range e.code.kernels {
		e.do(ks)
		clock.lap()
		e.observe(&e.code.stages[i])
	}
}

func (e *executable) do(ks []kernel) {
	for i := range ks {
		if e.workers.then = nil; len(e.batch.Tokens) <= aheadTokens {
			e.workers.then = ks[i].then
		}
		e.workers.share(ks[i].size(), max(1, ks[i].grain), ks[i].run)
	}
}

func fill[T any](s []T, n int, v T) []T {
	s = slices.Grow(s[:0], n)[:n]
	for i := range s {
		s[i] = v
	}
	return s
}

// failures are a step's errors by sequence.
type failures struct {
	any bool
	err []error // [S]
}

func (f *failures) set(seq int32, err error) {
	if f.err[seq] == nil {
		f.any, f.err[seq] = true, err
	}
}

// resolve finds each token's sequence and id.
func (e *executable) resolve(b *plan.Batch) {
	e.failed.any, e.failed.err = false, fill(e.failed.err, b.Seqs(), nil)
	e.seq = e.seq[:0]
	for s := range b.Seqs() {
		for range b.Start[s+1] - b.Start[s] {
			e.seq = append(e.seq, int32(s))
		}
	}
	e.ids = append(e.ids[:0], b.Tokens...)
	for t, r := range b.From {
		if r < 0 {
			continue
		}
		if e.ids[t] = e.sampled[r]; e.ids[t] < 0 {
			e.ids[t] = 0
			e.failed.set(e.seq[t], fmt.Errorf("cpu: row %d of the step before gave no token", r))
		}
	}
}

// begin makes room for the results.
func (s *step) begin() {
	rows, wantLogits, wantHidden := len(s.batch.Rows), 0, 0
	for i := range s.batch.Rows {
		if w := s.batch.Rows[i].Want; w&plan.WantLogits != 0 {
			wantLogits++
		}
		if w := s.batch.Rows[i].Want; w&plan.WantHidden != 0 {
			wantHidden++
		}
	}
	p := s.e.p
	s.result = plan.Result{
		Tokens: fill(s.result.Tokens, rows, -1), Logits: fill(s.result.Logits, rows, nil), Hidden: fill(s.result.Hidden, rows, nil),
		LogProbabilities: fill(s.result.LogProbabilities, rows, 0),
	}
	s.logits = slices.Grow(s.logits[:0], wantLogits*int(p.Shapes[p.Logits][1]))
	s.hidden = slices.Grow(s.hidden[:0], wantHidden*int(p.Shapes[p.Hidden][1]))
}

// output fills in what row i is wanted for.
func (s *step) output(i int) {
	e, f := s.e, &s.e.failed
	row := &s.batch.Rows[i]
	logits := e.row(e.p.Logits, i)
	if row.Want&plan.WantLogits != 0 {
		s.result.Logits[i] = keep(&s.logits, logits)
	}
	if row.Want&plan.WantHidden != 0 {
		s.result.Hidden[i] = keep(&s.hidden, e.row(e.p.Hidden, i))
	}
	if !e.tier.vector.finite(logits) {
		f.set(e.seq[row.Token], plan.ErrNotFinite)
	}
	if row.Want&plan.WantToken == 0 || f.err[e.seq[row.Token]] != nil {
		return
	}
	last := int32(-1) // the token that the row's adjustments cannot know yet
	if s.batch.From != nil && s.batch.From[row.Token] >= 0 {
		last = e.ids[row.Token]
	}
	id, err := e.sampler.Token(logits, &row.Sampling, row.Mask, row.Adjustments, last, int(s.batch.Positions[row.Token])+1)
	if err != nil {
		f.set(e.seq[row.Token], err)
		return
	}
	s.result.Tokens[i] = id
	if row.Want&plan.WantLogProbability != 0 {
		s.result.LogProbabilities[i] = float32(sample.LogProbability(logits, id))
	}
}

// keep copies x to the end of all, where there is room for it, and returns the copy.
func keep(all *[]float32, x []float32) []float32 {
	n := len(*all)
	*all = append(*all, x...)
	return (*all)[n:len(*all):len(*all)]
}

func (e *executable) size(v plan.Value) int { return e.batch.Size(e.p.Shapes[v][0]) }
