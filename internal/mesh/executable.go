package mesh

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/realizar/realizar/internal/plan"
)

// An executable is the executables of all parts, which run every step together. Each part samples
// all tokens, from the same logits.
type executable struct {
	p      *plan.Program
	lim    plan.Limits
	parts  []plan.Executable
	pages  pageLayout
	host   map[*byte][]byte // memory from AllocHost, by its begin
	freed  []freed          // memory that steps in flight may use
	wanted int              // number of rows of the step submitted last
	begun  uint64           // steps submitted
	done   atomic.Uint64    // steps waited for
	late   *step
	closed bool
	steps  plan.StepPool[step]
}

// A freed is memory that FreeHost has been given.
type freed struct {
	memory []byte
	begun  uint64 // steps submitted before
}

// A step is the step of all parts.
type step struct {
	plan.PooledStep
	e       *executable
	batches []plan.Batch // by part
	rows    []plan.Row   // of parts other than the first
	steps   []plan.Step  // by part

	done atomic.Bool // has been waited for
}

// Submit implements [plan.Executable].
func (e *executable) Submit(b *plan.Batch) (plan.Step, error) {
	if e.closed {
		return nil, errors.New("mesh: the executable is closed")
	}
	if e.late != nil {
		return nil, errors.New("mesh: the previous step is late and needs Choose first")
	}
	if err := b.Validate(e.p, &e.lim, e.wanted); err != nil {
		return nil, err
	}
	s := e.steps.Take()
	s.Batch, s.steps = b, s.steps[:0]
	s.done.Store(false)
	s.rows = append(s.rows[:0], b.Rows...)
	for i := range s.rows {
		s.rows[i].Want &^= plan.WantLogits | plan.WantHidden | plan.WantLogProbability
	}
	s.steps = append(s.steps, make([]plan.Step, len(e.parts))...)
	err := e.each(func(i int, part plan.Executable) (err error) {
		ops, mine := s.batches[i].States[:0], *b
		mine.States = e.pages.operations(ops, b.States, i)
		if i > 0 {
			mine.Rows, mine.Trace, mine.Timed, mine.Spans = s.rows, false, false, false
		}
		s.batches[i] = mine
		s.steps[i], err = part.Submit(&s.batches[i])
		return err
	})
	if err != nil {
		begun := func(part plan.Step) bool { return part != nil }
		e.closed = slices.ContainsFunc(s.steps, begun) // they wait for the others
		return nil, err
	}
	e.begun++
	if e.wanted = len(b.Rows); b.Late {
		e.late = s
	}
	return s, nil
}

// Wait implements [plan.Step]. The error of a step is that of the part in which it arose, and a
// sequence fails if it fails in any part.
func (s *step) Wait(ctx context.Context) (*plan.Result, error) {
	var results []*plan.Result
	var failed error
	for _, part := range s.steps {
		r, err := part.Wait(ctx)
		if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return nil, err
		}
		if err != nil && (failed == nil || errors.Is(failed, plan.ErrPeer)) {
			failed = err
		}
		results = append(results, r)
	}
	if !s.done.Swap(true) {
		s.e.done.Add(1)
	}
	if failed != nil {
		return nil, failed
	}
	result := results[0]
	for _, r := range results[1:] {
		result.Err = merge(result.Err, r.Err)
	}
	for part, r := range results {
		for i, token := range r.Tokens {
			if token != result.Tokens[i] && (result.Err == nil || result.Err[s.sequence(i)] == nil) {
				return nil, fmt.Errorf("mesh: part %d of %d has sampled other tokens than the first; one of the devices is faulty", part, len(s.steps))
			}
		}
	}
	return result, nil
}

// sequence returns the sequence of a row.
func (s *step) sequence(row int) int {
	return sort.Search(s.Batch.Seqs(), func(q int) bool { return s.Batch.Start[q+1] > s.Batch.Rows[row].Token })
}

// merge returns the errors of sequences in two parts, which may be nil. An error that is not a number
// that is not finite has priority, because other parts may see that as its consequence.
func merge(a, b []error) []error {
	if a == nil || b == nil {
		return append(a, b...)
	}
	for q, err := range b {
		if err != nil && (a[q] == nil || errors.Is(a[q], plan.ErrNotFinite) && !errors.Is(err, plan.ErrNotFinite)) {
			a[q] = err
		}
	}
	return a
}

// Release implements [plan.Step].
func (s *step) Release() {
	if !s.done.Load() {
		return // it is left to the garbage collector
	}
	for _, part := range s.steps {
		part.Release()
	}
	s.Abandon()
}

// Choose implements [plan.Executable].
func (e *executable) Choose(s plan.Step) error {
	if e.late == nil || s != plan.Step(e.late) {
		return errors.New("mesh: Choose of a step that is not the one submitted last")
	}
	late := e.late
	e.late = nil
	return e.each(func(i int, part plan.Executable) error { return part.Choose(late.steps[i]) })
}

// SetMask implements [plan.Executable].
func (e *executable) SetMask(id int32, words []uint32) error {
	return e.each(func(_ int, part plan.Executable) error { return part.SetMask(id, words) })
}

// AllocHost implements [plan.Executable]. The memory is that of the first part; those of one kind of
// device share the host's.
func (e *executable) AllocHost(n int) ([]byte, error) {
	if e.closed {
		return nil, errors.New("mesh: the executable is closed")
	}
	if err := e.reclaim(); err != nil {
		return nil, err
	}
	b, err := e.parts[0].AllocHost(n)
	if err == nil {
		e.host[unsafe.SliceData(b)] = b
	}
	return b, err
}

// FreeHost implements [plan.Executable].
func (e *executable) FreeHost(b []byte) error {
	start := unsafe.SliceData(b)
	memory, found := e.host[start]
	if !found {
		return fmt.Errorf("mesh: FreeHost of memory at %p, which AllocHost did not return", start)
	}
	delete(e.host, start)
	e.freed = append(e.freed, freed{memory, e.begun})
	return e.reclaim()
}

// reclaim frees memory for which FreeHost was called, once all parts are done with the steps
// submitted before; the rest is freed later, or by Close. As steps are done in their order, n that
// have been waited for mean that the first n are done.
func (e *executable) reclaim() error {
	done := e.done.Load()
	for len(e.freed) > 0 && e.freed[0].begun <= done {
		if err := e.parts[0].FreeHost(e.freed[0].memory); err != nil {
			return err
		}
		e.freed = e.freed[1:]
	}
	return nil
}

// Setup implements [plan.Executable]. Parts are made ready one after the other.
func (e *executable) Setup() plan.Setup {
	var all plan.Setup
	for _, part := range e.parts {
		s := part.Setup()
		all.Load, all.Compile, all.Capture = all.Load+s.Load, all.Compile+s.Compile, all.Capture+s.Capture
	}
	return all
}

// Close implements [plan.Executable].
func (e *executable) Close() error {
	e.closed, e.host, e.freed = true, nil, nil
	return e.each(func(_ int, part plan.Executable) error { return part.Close() })
}

// each calls do for all parts at the same time: a part's call may wait for another part's.
func (e *executable) each(do func(i int, part plan.Executable) error) error {
	errs := make([]error, len(e.parts))
	var all sync.WaitGroup
	for i, part := range e.parts {
		all.Go(func() {
			if err := do(i, part); err != nil {
				errs[i] = fmt.Errorf("mesh: part %d of %d: %w", i, len(e.parts), err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
