package check

import (
	"context"
	"errors"
	"slices"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/sample"
)

// An executable runs one step at a time and checks it before Wait returns it.
type executable struct {
	plan.Executable
	program *plan.Program
	limits  plan.Limits // as the caller passed them
	options Options
	watch   *watch // nil if operations are not compared, or no longer
	sampler sample.Sampler

	steps  int
	late   *step              // the step submitted last, if Choose is still to be called
	chosen []int32            // [R] tokens of the previous step
	masks  map[int32][]uint32 // masks set so far
}

// A step is done, or waits for Choose.
type step struct {
	plan.Step
	batch  *plan.Batch
	tokens []int32 // with the previous step's sampled tokens
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

// Submit implements [plan.Executable], except that it waits for the device.
func (e *executable) Submit(b *plan.Batch) (plan.Step, error) {
	if e.late != nil {
		return nil, errors.New("check: the previous step is late and needs Choose first")
	}
	// The reference reads the batch before the device validates it.
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

// Choose implements [plan.Executable], except that it waits for the device.
func (e *executable) Choose(of plan.Step) error {
	if of != e.late {
		return errors.New("check: Choose of a step that is not the one submitted last")
	}
	s := e.late
	e.late = nil
	if err := e.Executable.Choose(s.Step); err != nil {
		return err
	}
	e.finish(s)
	return nil
}

// finish waits for s and checks it.
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

// tokens returns b's tokens, with those sampled in the previous step filled in.
func (e *executable) tokens(b *plan.Batch) []int32 {
	ids := slices.Clone(b.Tokens)
	for t, row := range b.From {
		if row >= 0 {
			ids[t] = max(0, e.chosen[row]) // -1 if the sequence has failed
		}
	}
	return ids
}

// look sets the errors of s to what the checks find, and removes from s what the batch did not ask
// for.
func (e *executable) look(b *plan.Batch, tokens []int32, s *step) {
	failed := make([]error, b.Seqs())
	copy(failed, s.result.Err)
	found := false
	report := func(seq int, err error) {
		// A sequence whose values are not finite, or that has no token, already has an error.
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

// choice returns an error if row i's token is not the one that the host samples from the same
// logits.
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

// forget drops the reference after the last step to compare.
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

// sequenceOf returns the sequence of token t.
func sequenceOf(b *plan.Batch, t int) int {
	seq, found := slices.BinarySearch(b.Start, int32(t))
	if !found {
		seq--
	}
	return seq
}
