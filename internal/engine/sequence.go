package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/realizar/realizar/internal/plan"
)

// A Sequence is the state of one sequence of tokens. It is used by one
// goroutine at a time.
type Sequence struct {
	engine *Engine
	prompt int
	length int // positions held, by steps that were waited for
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
	if err := s.fits(len(ids)); err != nil {
		return err
	}
	ctx, stop := s.engine.during(ctx)
	defer stop()
	for done := 0; done < len(ids); {
		n := min(len(ids)-done, s.engine.limits.Tokens-s.length%s.engine.limits.Tokens)
		rows := 0
		for rows < len(outputs) && int(outputs[rows].Token) < done+n {
			if rows == s.engine.limits.Rows {
				n = int(outputs[rows].Token) - done
				break
			}
			rows++
		}
		f, err := s.next(ctx, ids[done:done+n], outputs[:rows], done)
		if err != nil {
			return err
		}
		if err := s.finish(ctx, f, done, yield); err != nil {
			return err
		}
		done, outputs = done+n, outputs[rows:]
	}
	return nil
}

// fits says whether the context holds n more tokens.
func (s *Sequence) fits(n int) error {
	if total := s.length + n; total > s.engine.config.Context {
		return fmt.Errorf("engine: %d tokens exceed the context of %d", total, s.engine.config.Context)
	}
	return nil
}

// A Result is one row's. Its slices are the caller's until yield returns.
type Result struct {
	Index  int // of the token in the ids appended
	Token  int32
	Logits []float32 // [vocab], where wanted
	Hidden []float32 // [d], where wanted

	LogProbability float32 // of Token, where wanted
}

// next submits a step of ids after what the sequence holds, when it is its turn.
// outputs count tokens from offset on.
func (s *Sequence) next(ctx context.Context, ids []int32, outputs []Output, offset int) (*flight, error) {
	if err := s.engine.enter(ctx); err != nil {
		return nil, ended(ctx, err)
	}
	defer s.engine.turn.Release(1)
	return s.submit(ids, outputs, offset, nil)
}

// finish waits for f, the sequence's oldest step, and yields its rows.
func (s *Sequence) finish(ctx context.Context, f *flight, offset int, yield func(Result) error) error {
	defer s.engine.leave(f)
	if s.engine.open.Err() != nil {
		return ErrClosed // also where the news has not reached ctx yet
	}
	if err := ctx.Err(); err != nil {
		return ended(ctx, err)
	}
	res, err := s.engine.await(ctx, f)
	if err != nil {
		return ended(ctx, err)
	}
	s.length += len(f.batch.Tokens)
	if res.Err != nil && res.Err[0] != nil {
		return res.Err[0]
	}
	for i := range f.batch.Rows {
		r := Result{
			Index: int(f.batch.Rows[i].Token) + offset, Token: res.Tokens[i], Logits: res.Logits[i], Hidden: res.Hidden[i],
			LogProbability: res.LogProbabilities[i],
		}
		if err := yield(r); err != nil {
			return err
		}
	}
	return nil
}

// submit takes the pages that a step needs and starts it, when it is the
// sequence's turn. Where before is not nil, it is the step submitted last, which
// is this sequence's: the only token is the one that its only row chooses.
func (s *Sequence) submit(ids []int32, outputs []Output, offset int, before *flight) (*flight, error) {
	e := s.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.open.Err() != nil {
		return nil, ErrClosed
	}
	f := e.newFlight()
	b := &f.batch
	start := s.length
	b.Tokens, b.From = append(b.Tokens[:0], ids...), nil
	if before != nil {
		start += len(before.batch.Tokens)
		b.From = firstRow
	}
	b.Positions = b.Positions[:0]
	for i := range ids {
		b.Positions = append(b.Positions, int32(start+i))
	}
	b.Start = append(b.Start[:0], 0, int32(len(ids)))
	b.Lengths = append(b.Lengths[:0], int32(s.prompt))
	b.Rows = b.Rows[:0]
	for _, o := range outputs {
		o.Token -= int32(offset)
		o.Mask = slices.Clone(o.Mask) // a step that nobody waits for any longer still reads it
		b.Rows = append(b.Rows, o)
	}
	for g := range s.tables {
		s.tables[g].cover(e, g, s.length, start+len(ids))
		s.tables[g].write(&b.Tables[g])
	}
	var err error
	if f.step, err = e.exe.Submit(b); err != nil {
		e.spare = append(e.spare, f)
		return nil, err
	}
	f.users = 2
	e.flights, e.last = append(e.flights, f), f
	return f, nil
}

// firstRow says that a step's only token comes from the only row of the one before.
var firstRow = []int32{0}

// cover gives back pages that no token from position held on sees, and takes those
// up to position end.
func (t *table) cover(e *Engine, g, held, end int) {
	t.drop(e, g, e.program.Groups[g].FirstVisible(held)/pageTokens)
	t.grow(e, g, (end+pageTokens-1)/pageTokens)
}

// write makes to the table of a step.
func (t *table) write(to *plan.PageTable) {
	to.Pages = append(to.Pages[:0], t.pages...)
	to.Start = append(to.Start[:0], 0, int32(len(t.pages)))
	to.First = append(to.First[:0], int32(t.first))
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

// Close gives the sequence's pages back. A step under way may still use them: those
// of later owners run after it.
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
