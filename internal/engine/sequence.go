package engine

import (
	"context"
	"fmt"

	"github.com/realizar/realizar/internal/plan"
)

// A Sequence is the state of one sequence of tokens. It is used by one
// goroutine at a time.
type Sequence struct {
	engine *Engine
	prompt int
	length int // positions held, by steps whose results were taken in
	tables []table
	closed bool
}

// An Output is what a token's row is wanted for.
type Output = plan.Row

// A Result is one row's. Its slices are the caller's until yield returns.
type Result struct {
	Index  int // of the token in the ids appended
	Token  int32
	Logits []float32 // [vocab], where wanted
	Hidden []float32 // [d], where wanted

	LogProbability float32 // of Token, where wanted
}

// Append runs ids through the model after what the sequence holds, in chunks
// cut at absolute positions. Outputs name tokens by their index in ids, in
// ascending order; each calls yield with its row's results as soon as these are
// there.
func (s *Sequence) Append(ctx context.Context, ids []int32, outputs []Output, yield func(Result) error) error {
	if err := s.fits(len(ids)); err != nil {
		return err
	}
	if len(ids) == 0 {
		return nil
	}
	return s.run(ctx, &request{ids: ids, outputs: outputs, total: len(ids)}, func(r Result) (bool, error) {
		return true, yield(r)
	})
}

// Decode runs ids through the model after what the sequence holds, chooses a token
// after them, goes on with that one, and so on, until n are chosen or yield wants
// no more. o says what is wanted of each and how it is chosen; the index of a
// result is the number of the token chosen, from 0. When Decode returns, the
// sequence holds ids and the tokens yielded, but for the last.
//
// While one step runs the next is submitted already, with tokens that the device
// alone knows. What such a step leaves behind when it is not wanted lies past the
// sequence's end, where the next step writes.
func (s *Sequence) Decode(ctx context.Context, ids []int32, n int, o Output, yield func(Result) (more bool, err error)) error {
	if len(ids) == 0 || n < 1 {
		return fmt.Errorf("engine: choosing %d tokens after %d does not exist; want 1 or more of both", n, len(ids))
	}
	if err := s.fits(len(ids) + n - 1); err != nil {
		return err
	}
	o.Want |= plan.WantToken
	o.Token = 0
	last := o
	last.Token = int32(len(ids) - 1)
	return s.run(ctx, &request{ids: ids, outputs: []Output{last}, next: o, total: len(ids) + n - 1, first: len(ids) - 1}, yield)
}

// fits says whether the context holds n more tokens.
func (s *Sequence) fits(n int) error {
	if total := s.length + n; total > s.engine.config.Context {
		return fmt.Errorf("engine: %d tokens exceed the context of %d", total, s.engine.config.Context)
	}
	return nil
}

// Close gives the sequence's pages back.
func (s *Sequence) Close() {
	if s.closed {
		return
	}
	s.closed = true
	e := s.engine
	e.mu.Lock()
	for g := range s.tables {
		s.tables[g].drop(e, g, s.tables[g].first+len(s.tables[g].pages))
	}
	e.mu.Unlock()
	e.slots.Release(1)
}
