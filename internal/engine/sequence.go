package engine

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"github.com/realizar/realizar/internal/plan"
)

// A Sequence is the state of one sequence of tokens. It is used by one
// goroutine at a time.
type Sequence struct {
	engine *Engine
	prompt int
	length int // positions held
	tables []table
	closed bool
}

// table is the pages of one group.
type table struct {
	first int // logical page of pages[0]
	pages []int32
}

// An Output is what a token's row is wanted for.
type Output = plan.Row

// Append runs ids through the model after what the sequence holds, in chunks
// cut at absolute positions. Outputs name tokens by their index in ids, in
// ascending order; each calls yield with its row's results as soon as these are
// there.
func (s *Sequence) Append(ctx context.Context, ids []int32, outputs []Output, yield func(Result) error) error {
	if total := s.length + len(ids); total > s.engine.config.Context {
		return fmt.Errorf("engine: %d tokens exceed the context of %d", total, s.engine.config.Context)
	}
	ctx, stop := s.engine.during(ctx)
	defer stop()
	for done := 0; done < len(ids); {
		if err := ctx.Err(); err != nil {
			return ended(ctx, err)
		}
		n := min(len(ids)-done, s.engine.limits.Tokens-s.length%s.engine.limits.Tokens)
		rows := 0
		for rows < len(outputs) && int(outputs[rows].Token) < done+n {
			if rows == s.engine.limits.Rows {
				n = int(outputs[rows].Token) - done
				break
			}
			rows++
		}
		if err := s.step(ctx, ids[done:done+n], outputs[:rows], done, yield); err != nil {
			return err
		}
		done, outputs = done+n, outputs[rows:]
	}
	return nil
}

// A Result is one row's. Its slices are the caller's until yield returns.
type Result struct {
	Index  int // of the token in the ids appended
	Token  int32
	Logits []float32 // [vocab], where wanted
	Hidden []float32 // [d], where wanted
}

// step runs ids, of which the first is number offset of what is appended.
func (s *Sequence) step(ctx context.Context, ids []int32, outputs []Output, offset int, yield func(Result) error) error {
	b := &plan.Batch{
		Tokens:  slices.Clone(ids), // a step that nobody waits for any longer still reads them
		Start:   []int32{0, int32(len(ids))},
		Lengths: []int32{int32(s.prompt)},
	}
	for i := range ids {
		b.Positions = append(b.Positions, int32(s.length+i))
	}
	for _, o := range outputs {
		o.Token -= int32(offset)
		o.Mask = slices.Clone(o.Mask)
		b.Rows = append(b.Rows, o)
	}
	// Goroutines that are ready take their place in the queue first: Go would let
	// this one and the worker that it waits for wake each other for milliseconds.
	runtime.Gosched()
	if err := s.engine.turns.Acquire(ctx, 1); err != nil {
		return ended(ctx, err)
	}
	step, err := s.submit(b)
	if err != nil {
		s.engine.turns.Release(1)
		return err
	}
	res, err := step.Wait(ctx)
	if err != nil {
		s.engine.abandon(step)
		return ended(ctx, err)
	}
	s.engine.turns.Release(1)
	defer step.Release()
	if res.Err != nil && res.Err[0] != nil {
		return res.Err[0]
	}
	for i, o := range outputs {
		if err := yield(Result{Index: int(o.Token), Token: res.Tokens[i], Logits: res.Logits[i], Hidden: res.Hidden[i]}); err != nil {
			return err
		}
	}
	return nil
}

// submit takes the pages that the step needs and starts it.
func (s *Sequence) submit(b *plan.Batch) (plan.Step, error) {
	e := s.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.open.Err() != nil {
		return nil, ErrClosed
	}
	end := s.length + len(b.Tokens)
	for g := range s.tables {
		t := &s.tables[g]
		t.drop(e, g, e.program.Groups[g].FirstVisible(s.length)/pageTokens)
		t.grow(e, g, (end+pageTokens-1)/pageTokens)
		b.Tables = append(b.Tables, plan.PageTable{
			Pages: append([]int32(nil), t.pages...),
			Start: []int32{0, int32(len(t.pages))},
			First: []int32{int32(t.first)},
		})
	}
	step, err := e.exe.Submit(b)
	if err != nil {
		return nil, err
	}
	s.length = end
	return step, nil
}

// drop gives back the pages before logical page first.
func (t *table) drop(e *Engine, g, first int) {
	n := min(max(0, first-t.first), len(t.pages))
	e.free[g] = append(e.free[g], t.pages[:n]...)
	t.first, t.pages = t.first+n, t.pages[n:]
}

// grow takes pages up to logical page end. They are there: the engine has made
// room for as many sequences as it lets in.
func (t *table) grow(e *Engine, g, end int) {
	for t.first+len(t.pages) < end {
		last := len(e.free[g]) - 1
		t.pages = append(t.pages, e.free[g][last])
		e.free[g] = e.free[g][:last]
	}
}

// Close gives the sequence's pages back. Steps under way finish first: later
// ones run after them.
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
