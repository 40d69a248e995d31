package cpu

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/sample"
	"github.com/realizar/realizar/tensor"
)

// An executable is a compiled program with its memory. It runs one step at a time, in the order of
// Submit.
type executable struct {
	backend  *Backend
	p        *plan.Program
	lim      plan.Limits
	code     *code
	weights  map[*tensor.Tensor]*interleaved   // weights of products
	copies   map[*tensor.Tensor]*tensor.Tensor // derived weights that are not interleaved
	memory   []byte                            // for weights
	pools    []*pagePool                       // by state
	zeros    []float32                         // zeros, as long as the largest state per sequence
	pages    pageMemory                        // memory of pools
	tier     tier
	workers  *workers
	desks    []desk           // by worker
	spaces   map[*space]any   // scratch memory by kind
	bounds   [][]float32      // nil, or the bounds of a [Replay], by value
	samplers []sample.Sampler // for rows at the same time
	masks    []uint32         // see SetMask
	host     map[*byte][]byte // from AllocHost, by first byte
	setup    plan.Setup
	port     *port // to the other parts, or nil

	wanted int   // number of rows of the step submitted last
	late   *step // the step submitted last, if it waits for Choose
	closed bool

	steps plan.StepPool[step]

	// The running step.
	batch    *plan.Batch
	seq      []int32   // [T] sequence of each token
	seen     []float32 // a value to observe
	ids      []int32   // [T] token ids, with sampled tokens filled in
	sampled  []int32   // [R] tokens of the previous step
	overflow []int     // [S] layer whose keys or values the cache cannot represent, or -1
	failed   failures
}

// A step is running, or done and not yet released.
type step struct {
	plan.PooledStep
	e *executable

	logits, hidden []float32                // memory of the result's rows
	failed         []error                  // by row
	next           atomic.Int32             // row
	choose         func(worker, lo, hi int) // the method rows; a new method value for each step would be an allocation
	clock          clock
	chosen         chan struct{} // holds one value after Choose
}

// Submit implements [plan.Executable].
func (e *executable) Submit(b *plan.Batch) (plan.Step, error) {
	if e.closed {
		return nil, errors.New("cpu: the executable is closed")
	}
	if e.late != nil {
		return nil, errors.New("cpu: the previous step is late and needs Choose first")
	}
	if err := b.Validate(e.p, &e.lim, e.wanted); err != nil {
		return nil, err
	}
	s := e.steps.Take()
	s.Batch, e.wanted = b, len(b.Rows)
	if b.Late {
		e.late = s
	}
	e.workers.post(s)
	return s, nil
}

// Choose implements [plan.Executable].
func (e *executable) Choose(s plan.Step) error {
	if s != e.late {
		return errors.New("cpu: Choose of a step that is not the one submitted last")
	}
	e.late.chosen <- struct{}{}
	e.late = nil
	return nil
}

// Setup implements [plan.Executable].
func (e *executable) Setup() plan.Setup { return e.setup }

// Close implements [plan.Executable].
func (e *executable) Close() error {
	if !e.closed {
		e.closed = true
		if e.late != nil {
			e.late.chosen <- struct{}{} // Choose will not be called
			e.late = nil
		}
		e.workers.close()
		e.port.leave()
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
	s.attempt(s.e.forward)
	if s.Batch.Late {
		<-s.chosen
	}
	if s.Err == nil {
		s.attempt(s.e.output)
	}
	s.Finish()
}

// attempt runs a part of the step. A panic becomes the step's error.
func (s *step) attempt(part func(*step)) {
	defer func() {
		if r := recover(); r != nil {
			s.fail(r)
		}
	}()
	part(s)
}

// fail turns a panic into the step's error. The next step may already be submitted; it cannot
// continue from this step's rows.
func (s *step) fail(recovered any) {
	s.Err = fmt.Errorf("cpu: internal error: %v", recovered)
	if fault := tensor.Fault(recovered); fault != nil {
		s.Err = fmt.Errorf("cpu: %w", fault)
	}
	if p := s.e.port; p != nil {
		if err, ok := recovered.(error); ok && errors.Is(err, plan.ErrPeer) {
			s.Err = err
		}
		p.fail(s.Err)
	}
	s.e.sampled = fill(s.e.sampled, len(s.Batch.Rows), -1)
}

// forward runs the program.
func (e *executable) forward(s *step) {
	b := s.Batch
	if e.port != nil {
		e.port.begin()
	}
	e.batch = b
	e.resolve(b)
	for i := range b.States {
		e.apply(&b.States[i])
	}
	if b.OnlyStates() {
		return
	}
	e.reachSlots()
	e.overflow = fill(e.overflow, b.Seqs(), -1)
	s.clock.start(e)
	e.run(&s.clock)
	e.check(&e.failed)
	s.clock.lap()
}

// maxSamplers is the most rows that are sampled at the same time: a sampler holds memory for each
// token of the vocabulary.
const maxSamplers = 8

// output fills in the step's result.
func (e *executable) output(s *step) {
	s.begin()
	s.next.Store(0)
	e.workers.share(min(len(s.Batch.Rows), len(e.samplers)), 1, s.choose)
	for i, err := range s.failed {
		seq := e.seq[s.Batch.Rows[i].Token]
		if err != nil {
			e.failed.set(seq, err)
		}
		if e.failed.err[seq] != nil {
			s.Result.Tokens[i] = -1
		}
	}
	s.clock.lap()
	s.measured()
	if e.failed.any {
		e.diagnose(&e.failed)
		s.Result.Err = slices.Clone(e.failed.err)
	}
	e.sampled = append(e.sampled[:0], s.Result.Tokens...)
}

// aheadTokens is the number of tokens up to which a step is bound by memory rather than by
// arithmetic, approximately.
const aheadTokens = 8

// run runs the kernels of e's code for the part of the program that the step runs.
func (e *executable) run(clock *clock) {
	lo, hi := e.code.part(e.batch.Head)
	for i := lo; i < hi; i++ {
		e.do(e.code.kernels[i])
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

// failures holds a step's errors by sequence.
type failures struct {
	any   bool
	err   []error // [S]
	found []int   // [S] the stage in which diagnose found the error
}

func (f *failures) set(seq int32, err error) {
	if f.err[seq] == nil {
		f.any, f.err[seq] = true, err
	}
}

// resolve sets each token's sequence and id.
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
			e.failed.set(e.seq[t], fmt.Errorf("cpu: row %d of the previous step has no token", r))
		}
	}
}

// rows computes the outputs of rows until none are left. Only one worker at a time has part number
// part.
func (s *step) rows(_, part, _ int) {
	n := len(s.Batch.Rows)
	for i := int(s.next.Add(1)) - 1; i < n; i = int(s.next.Add(1)) - 1 {
		s.failed[i] = s.row(&s.e.samplers[part], i)
	}
}

// begin allocates the results.
func (s *step) begin() {
	e, rows := s.e, len(s.Batch.Rows)
	s.failed = fill(s.failed, rows, nil)
	s.Result = plan.Result{
		Tokens: fill(s.Result.Tokens, rows, -1), Logits: fill(s.Result.Logits, rows, nil), Hidden: fill(s.Result.Hidden, rows, nil),
		LogProbabilities: fill(s.Result.LogProbabilities, rows, 0),
	}
	_, hidden, logits := e.p.Outputs(s.Batch.Head)
	s.logits = s.room(s.logits, s.Result.Logits, plan.WantLogits, logits)
	s.hidden = s.room(s.hidden, s.Result.Hidden, plan.WantHidden, hidden)
}

// room returns memory, larger if needed, and slices it into a row of v for each row of the batch
// that wants it.
func (s *step) room(memory []float32, rows [][]float32, want plan.Want, v plan.Value) []float32 {
	n, cols := 0, int(s.e.p.Shapes[v][1])
	for i := range s.Batch.Rows {
		if s.Batch.Rows[i].Want&want != 0 {
			n++
		}
	}
	memory = slices.Grow(memory[:0], n*cols)
	for i := range s.Batch.Rows {
		if s.Batch.Rows[i].Want&want != 0 {
			at := len(memory)
			memory = memory[:at+cols]
			rows[i] = memory[at:len(memory):len(memory)]
		}
	}
	return memory
}

// row computes the outputs that row i wants. Workers compute the rows of a step in any order.
func (s *step) row(sampler *sample.Sampler, i int) error {
	e := s.e
	row := &s.Batch.Rows[i]
	_, hidden, output := e.p.Outputs(s.Batch.Head)
	logits := e.row(output, i)
	if row.Want&plan.WantLogits != 0 {
		copy(s.Result.Logits[i], logits)
	}
	if row.Want&plan.WantHidden != 0 {
		copy(s.Result.Hidden[i], e.row(hidden, i))
	}
	if !e.tier.vector.finite(logits) {
		return plan.ErrNotFinite
	}
	if failed := e.failed.err[e.seq[row.Token]]; failed != nil || row.Want&plan.WantToken == 0 {
		return failed
	}
	last := int32(-1) // token that the row's adjustments do not count yet
	if s.Batch.From != nil && s.Batch.From[row.Token] >= 0 {
		last = e.ids[row.Token]
	}
	id, err := sampler.Token(logits, &row.Sampling, e.mask(row.Mask), row.Adjustments, last, int(s.Batch.Positions[row.Token])+1)
	if err != nil {
		return err
	}
	s.Result.Tokens[i] = id
	if row.Want&plan.WantLogProbability != 0 {
		s.Result.LogProbabilities[i] = float32(sample.LogProbability(logits, id))
	}
	return nil
}

func (e *executable) size(v plan.Value) int { return e.batch.Size(e.p.Shapes[v][0]) }
