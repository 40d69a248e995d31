package cpu

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/sample"
)

// An executable is a compiled program with its memory. One step runs at a time,
// in the order of Submit.
type executable struct {
	p       *plan.Program
	lim     plan.Limits
	scratch *plan.Scratch
	buffers [][]float32
	pools   []*kvPool  // by state
	kernels [][]kernel // by node
	tier    tier
	workers *workers
	desks   []desk // by worker
	sampler sample.Sampler

	last   *step // submitted last
	closed bool

	// The step that runs.
	batch    *plan.Batch
	seq      []int32 // [T] sequence of each token
	ids      []int32 // [T] token ids, those of earlier rows filled in
	sampled  []int32 // [R] of the step before
	overflow []int   // [S] layer whose keys or values the cache cannot hold, or -1
}

type step struct {
	done   chan struct{}
	rows   int
	result plan.Result
	err    error
}

// Wait implements [plan.Step].
func (s *step) Wait(ctx context.Context) (*plan.Result, error) {
	select {
	case <-s.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s.err != nil {
		return nil, s.err
	}
	return &s.result, nil
}

// Submit implements [plan.Executable].
func (e *executable) Submit(b *plan.Batch) (plan.Step, error) {
	if e.closed {
		return nil, errors.New("cpu: the executable is closed")
	}
	before := e.last
	previous := 0
	if before != nil {
		previous = before.rows
	}
	if err := b.Validate(e.p, &e.lim, previous); err != nil {
		return nil, err
	}
	s := &step{done: make(chan struct{}), rows: len(b.Rows)}
	e.last = s
	go func() {
		defer close(s.done)
		if before != nil {
			<-before.done
		}
		defer func() {
			if r := recover(); r != nil {
				s.err = fmt.Errorf("cpu: internal error: %v", r)
			}
		}()
		e.run(b, s)
	}()
	return s, nil
}

// Close implements [plan.Executable].
func (e *executable) Close() error {
	if e.closed {
		return nil
	}
	e.closed = true
	if e.last != nil {
		<-e.last.done
	}
	e.workers.close()
	return nil
}

func (e *executable) run(b *plan.Batch, s *step) {
	e.batch = b
	failed := e.resolve(b)
	for i := range b.States {
		e.apply(&b.States[i])
	}
	e.overflow = fill(e.overflow, b.Seqs(), -1)
	for _, ks := range e.kernels {
		e.do(ks)
	}
	e.check(&failed)
	s.result = plan.Result{Tokens: make([]int32, len(b.Rows)), Logits: make([][]float32, len(b.Rows)), Hidden: make([][]float32, len(b.Rows))}
	for i := range b.Rows {
		s.result.Tokens[i] = e.output(i, &s.result, &failed)
	}
	if failed.any {
		e.diagnose(&failed)
		s.result.Err = failed.err
	}
	e.sampled = append(e.sampled[:0], s.result.Tokens...)
}

func (e *executable) do(ks []kernel) {
	for i := range ks {
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
func (e *executable) resolve(b *plan.Batch) failures {
	f := failures{err: make([]error, b.Seqs())}
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
			f.set(e.seq[t], fmt.Errorf("cpu: row %d of the step before gave no token", r))
		}
	}
	return f
}

// output fills in what row i is wanted for and returns its token or -1.
func (e *executable) output(i int, res *plan.Result, f *failures) int32 {
	row := &e.batch.Rows[i]
	logits := e.row(e.p.Logits, i)
	if row.Want&plan.WantLogits != 0 {
		res.Logits[i] = slices.Clone(logits)
	}
	if row.Want&plan.WantHidden != 0 {
		res.Hidden[i] = slices.Clone(e.row(e.p.Hidden, i))
	}
	if !finite(logits) {
		f.set(e.seq[row.Token], plan.ErrNotFinite)
	}
	if row.Want&plan.WantToken == 0 || f.err[e.seq[row.Token]] != nil {
		return -1
	}
	id, err := e.sampler.Token(logits, &row.Sampling, row.Mask, int(e.batch.Positions[row.Token])+1)
	if err != nil {
		f.set(e.seq[row.Token], err)
		return -1
	}
	return id
}

func (e *executable) size(v plan.Value) int {
	switch d := e.p.Shapes[v][0]; d {
	case plan.Tokens:
		return len(e.batch.Tokens)
	case plan.Seqs:
		return e.batch.Seqs()
	case plan.Rows:
		return len(e.batch.Rows)
	default:
		return int(d)
	}
}

// row is row r of value v.
func (e *executable) row(v plan.Value, r int) []float32 {
	c := int(e.p.Shapes[v][1])
	return e.buffers[e.scratch.Buffer[v]][r*c : (r+1)*c : (r+1)*c]
}

// wrote says that elements lo to hi of row r of value v are final.
func (e *executable) wrote(v plan.Value, r, lo, hi int) {}
