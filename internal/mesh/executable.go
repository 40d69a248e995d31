package mesh

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync/atomic"
	"time"

	"github.com/realizar/realizar/internal/plan"
)

// An executable runs every step in all parts together, see [Partition]. Each part samples all tokens,
// from the same logits.
type executable struct {
	*group
	late  *step
	steps plan.StepPool[step]
}

func newExecutable(g *group) *executable {
	e := &executable{group: g}
	e.steps.New = func(s plan.PooledStep) *step {
		return &step{e: e, PooledStep: s, batches: make([]plan.Batch, len(g.parts))}
	}
	return e
}

// A step is the step of all parts.
type step struct {
	plan.PooledStep
	e       *executable
	batches []plan.Batch // by part
	rows    []plan.Row   // of parts other than the first
	spans   []plan.Span  // of all parts
	steps   []plan.Step  // by part

	done atomic.Bool // has been waited for
}

// Submit implements [plan.Executable].
func (e *executable) Submit(b *plan.Batch) (plan.Step, error) {
	if err := e.check(b, e.late != nil); err != nil {
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
	err := e.each(func(i int, part *member) (err error) {
		ops, mine := s.batches[i].States[:0], *b
		mine.States = e.pages.operations(ops, b.States, i)
		if i > 0 {
			mine.Rows, mine.Trace, mine.Timed = s.rows, false, false
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
	s.Result = *results[0]
	result := &s.Result
	if s.spans = s.spans[:0]; s.Batch.Spans {
		for part, r := range results {
			s.spans = appendSpans(s.spans, r.Spans, part, 0)
		}
		result.Spans = s.spans
	}
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

// appendSpans appends the spans of a part of a program whose step begins at the time at.
func appendSpans(all, of []plan.Span, part int, at time.Duration) []plan.Span {
	for _, span := range of {
		span.Device, span.Begin = part, span.Begin+at
		all = append(all, span)
	}
	return all
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
	return e.each(func(i int, part *member) error { return part.Choose(late.steps[i]) })
}

// SetMask implements [plan.Executable].
func (e *executable) SetMask(id int32, words []uint32) error {
	return e.each(func(_ int, part *member) error { return part.SetMask(id, words) })
}
