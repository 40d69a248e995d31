package check

import (
	"context"
	"errors"
	"slices"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/sample"
)

// An executable does one step at a time, and gives it to whoever waits for it when it
// has been looked at.
type executable struct {
	plan.Executable
	program *plan.Program
	limits  plan.Limits // as they were asked for
	options Options
	watch   *watch // nil where operations are not compared, or not any longer
	sampler sample.Sampler

	steps  int
	late   *step              // the step submitted last, where Choose is to come
	chosen []int32            // [R] tokens of the step before
	masks  map[int32][]uint32 // that were set
}

// A step is done, or chooses its tokens late.
type step struct {
	plan.Step
	batch  *plan.Batch
	tokens []int32 // with those of the step before
	result plan.Result
	err    error
}

// Wait implements [plan.Step].
func (s *step) Wait(context.Context) (*plan.Result, error) {
	if s.err != nil {
		return nil, s.err
	}
	return &s.result, nil
}

// SetMask implements [plan.Executable].
func (e *executable) SetMask(id int32, words []uint32) error {
	if err := e.Executable.SetMask(id, words); err != nil {
		return err
	}
	e.masks[id] = append(e.masks[id][:0], words...)
	return nil
}

// Submit implements [plan.Executable], but that it waits for the device.
func (e *executable) Submit(b *plan.Batch) (plan.Step, error) {
	if e.late != nil {
		return nil, errors.New("check: the step before has not chosen its tokens")
	}
	// Before the device does, the reference goes by what the batch says.
	if err := b.Validate(e.program, &e.limits, len(e.chosen)); err != nil {
		return nil, err
	}
	batch, tokens := *b, e.tokens(b)
	if e.options.Argmax {
		batch.Rows = slices.Clone(b.Rows)
		for i := range batch.Rows {
			if batch.Rows[i].Want&plan.WantToken != 0 {
				batch.Rows[i].Want |= plan.WantLogits
			}
		}
	}
	if e.watch != nil {
		if err := e.watch.begin(b, tokens); err != nil {
			return nil, err
		}
		batch.Observe = e.watch.observe
		if b.Observe != nil {
			batch.Observe = func(v plan.Value, x []float32) {
				e.watch.observe(v, x)
				b.Observe(v, x)
			}
		}
	}
	inner, err := e.Executable.Submit(&batch)
	if err != nil {
		return nil, err
	}
	e.steps++
	s := &step{Step: inner, batch: b, tokens: tokens}
	if b.Late {
		e.late = s
	} else {
		e.finish(s)
	}
	return s, nil
}

// Choose implements [plan.Executable], but that it waits for the device.
func (e *executable) Choose(of plan.Step) error {
	if of != e.late {
		return errors.New("check: only the step submitted last can choose its tokens")
	}
	s := e.late
	e.late = nil
	if err := e.Executable.Choose(s.Step); err != nil {
		return err
	}
	e.finish(s)
	return nil
}

// finish waits for s and looks at it.
func (e *executable) finish(s *step) {
	res, err := s.Step.Wait(context.Background())
	if err == nil && e.watch != nil {
		err = e.watch.finish()
	}
	if err != nil {
		e.chosen = slices.Repeat([]int32{-1}, len(s.batch.Rows))
	} else {
		s.result = *res
		s.result.Logits = slices.Clone(res.Logits)
		e.chosen = append(e.chosen[:0], res.Tokens...)
		e.look(s.batch, s.tokens, s)
	}
	s.err = errors.Join(err, e.forget())
}

// tokens are b's, with those that were chosen in the step before.
func (e *executable) tokens(b *plan.Batch) []int32 {
	ids := slices.Clone(b.Tokens)
	for t, row := range b.From {
		if row >= 0 {
			ids[t] = max(0, e.chosen[row]) // there is none where the sequence has failed
		}
	}
	return ids
}

// look puts what the checks find in the place of the errors of s, and takes out of it
// what the batch did not ask for.
func (e *executable) look(b *plan.Batch, tokens []int32, s *step) {
	failed := make([]error, b.Seqs())
	copy(failed, s.result.Err)
	found := false
	report := func(seq int, err error) {
		// What is not finite, or has no token to be chosen, is an error already.
		if err != nil && failed[seq] == nil {
			failed[seq], found = err, true
		}
	}
	if e.watch != nil {
		for seq := range failed {
			if d := e.watch.drifted[seq]; d != nil {
				d.Step = e.steps
				report(seq, d)
			}
		}
	}
	for i := range b.Rows {
		row, seq := &b.Rows[i], sequenceOf(b, int(b.Rows[i].Token))
		if e.options.Argmax && row.Want&plan.WantToken != 0 && failed[seq] == nil {
			report(seq, e.choice(b, i, tokens, &s.result))
		}
		if row.Want&plan.WantLogits == 0 {
			s.result.Logits[i] = nil
		}
	}
	if found {
		s.result.Err = failed
	}
}

// choice is the difference between the token that row i has and the one that the host
// chooses of the same logits, if there is one.
func (e *executable) choice(b *plan.Batch, i int, tokens []int32, res *plan.Result) error {
	row, logits, last := &b.Rows[i], res.Logits[i], int32(-1)
	if b.From != nil && b.From[row.Token] >= 0 {
		last = tokens[row.Token]
	}
	position := int(b.Positions[row.Token])
	want, err := e.sampler.Token(logits, &row.Sampling, e.masks[row.Mask], row.Adjustments, last, position+1)
	got := res.Tokens[i]
	if err == nil && got == want {
		return nil
	}
	t := &TokenError{Step: e.steps, Position: position, Greedy: row.Sampling.Temperature == 0, Device: got, Host: -1, Err: err}
	if got >= 0 && int(got) < len(logits) {
		t.DeviceLogit = logits[got]
	}
	if err == nil {
		t.Host, t.HostLogit = want, logits[want]
	}
	return t
}

// forget drops the reference when it has seen all that it is to see.
func (e *executable) forget() error {
	if e.watch == nil || e.steps < e.options.Reference {
		return nil
	}
	r := e.watch.reference
	e.watch = nil
	return r.Close()
}

// Close implements [plan.Executable].
func (e *executable) Close() error {
	err := e.Executable.Close()
	if e.watch != nil {
		err = errors.Join(err, e.watch.reference.Close())
		e.watch = nil
	}
	return err
}

// sequenceOf is the sequence of token t.
func sequenceOf(b *plan.Batch, t int) int {
	seq, found := slices.BinarySearch(b.Start, int32(t))
	if !found {
		seq--
	}
	return seq
}
