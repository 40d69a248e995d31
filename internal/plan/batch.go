package plan

import (
	"errors"
	"fmt"

	"github.com/realizar/realizar/internal/sample"
)

// A Batch is the input of one step: flat arrays, ready to copy to a device. A batch without tokens only
// copies pages: it has States, and nothing else.
//
// Tokens are grouped by sequence. Those of sequence s are Start[s] <= t < Start[s+1], at
// consecutive positions. Before the step its state holds all positions below the first of these.
type Batch struct {
	Tokens    []int32 // [T] ids; ignored if From names a row
	From      []int32 // nil, or [T]: the row of the previous step whose sampled token this is, or -1
	Positions []int32 // [T] absolute, from 0
	Start     []int32 // [S+1] index of each sequence's first token, then T

	// Lengths [S] choose rotary frequencies that depend on the sequence's length. A sequence's
	// length is that of its whole prompt, however it is cut into steps. A token beyond it counts by
	// its own position.
	Lengths []int32

	// Input [T] of [Program.Inputs] is what [Input] reads; nil if the program has no inputs, and in
	// steps of its head. If it has, all tokens are known: From is nil.
	Input [][]float32

	Tables []PageTable // by Group
	Rows   []Row       // [R] in ascending order of Token
	States []StateOp   // run in order before the step
	Head   bool        // run the program's head instead of its first part, see [Head]
	Late   bool        // tokens are sampled when [Executable.Choose] is called
	Trace  bool        // measure the time by layer, see [Result.Layers]
	Timed  bool        // measure [Result.Times], which costs little
	Spans  bool        // measure [Result.Spans]: every kernel is launched and timed by itself

	// Observe, if not nil, is called with each value that the step's own kernels write, right after
	// it is written. x is [rows, columns] and is valid during the call. Values that kernels keep to
	// themselves, or do not write as float32 alone, are left out. Observe requires
	// [Limits.Observed]; the step waits for it.
	Observe func(v Value, x []float32)

	Axes []int32 // nil if all are 0, or [T, 2]: second and third position of each token, see [Program.Axes]
}

// A PageTable maps the sequences of a step to the pages of one group of states.
//
// For states per token, page First[s]+i of sequence s, which holds positions from
// (First[s]+i)*PageTokens on, is page Pages[Start[s]+i] of the pool. Pages before First[s] have
// been freed: no token of the step sees them.
//
// For states per sequence, a step reads the state of sequence s from slot Pages[2*s], -1 if the
// sequence has none yet, and writes the state after the step to slot Pages[2*s+1], -1 if the step
// does not reach the next state of a group with Every: see [Group.Taken]. The two differ, so that a
// step can be run again. A written slot does not change until it is allocated again. First is 0.
type PageTable struct {
	Pages []int32
	Start []int32 // [S+1]
	First []int32 // [S]
}

// Reset makes t the table of no sequences. It keeps the memory.
func (t *PageTable) Reset() {
	t.Pages, t.Start, t.First = t.Pages[:0], append(t.Start[:0], 0), t.First[:0]
}

// Add adds a sequence with pages first, first+1 and so on, for states per token.
func (t *PageTable) Add(first int, pages ...int32) {
	t.Pages = append(t.Pages, pages...)
	t.Start, t.First = append(t.Start, int32(len(t.Pages))), append(t.First, int32(first))
}

// AddSlots adds a sequence, for states per sequence. Its state is read from slot in, or from none
// if in is -1, and written to slot out, or to none if out is -1.
func (t *PageTable) AddSlots(in, out int32) { t.Add(0, in, out) }

// Slots returns the slots of sequence s, for states per sequence.
func (t *PageTable) Slots(s int) (in, out int32) { return t.Pages[2*s], t.Pages[2*s+1] }

// A Want is a set of outputs that are wanted for a row.
type Want uint8

// The outputs of a row.
const (
	WantToken  Want = 1 << iota // a sampled token
	WantLogits                  // the logits, before adjustments, masks and sampling
	WantHidden                  // the hidden state that the head reads

	// WantLogProbability asks for the log-probability of the sampled token. It has no effect
	// without [WantToken]. See [sample.LogProbability].
	WantLogProbability
)

// A Row is a token of the step with wanted outputs.
type Row struct {
	Token    int32 // index into Batch.Tokens
	Want     Want
	Sampling sample.Params
	Mask     int32 // id of [Executable.SetMask], from 1; 0 allows all tokens

	// Adjustments are the biases of tokens and the counts for penalties, in ascending order of
	// Token, without duplicates. They lack one count: if From names a row of the previous step for
	// the row's own token, that token has been chosen once more.
	Adjustments []sample.Adjustment
}

// A StateOp copies a page to or from host memory before a step.
type StateOp struct {
	Kind  StateOpKind
	Group int
	Page  int32  // the page saved or restored
	Host  []byte // [Limits.PageBytes] bytes from [Executable.AllocHost] that SavePage fills and RestorePage reads
}

// A StateOpKind is the direction of a [StateOp].
type StateOpKind uint8

// The operations on pages.
const (
	SavePage    StateOpKind = iota // Host = Page; Host is filled when the step is done
	RestorePage                    // Page = Host
)

// ErrBatch reports a batch that the program cannot run.
var ErrBatch = errors.New("plan: malformed batch")

// Seqs returns the number of sequences.
func (b *Batch) Seqs() int { return max(0, len(b.Start)-1) }

// Size returns the value of d in the step.
func (b *Batch) Size(d Dim) int {
	switch d {
	case Tokens:
		return len(b.Tokens)
	case Seqs:
		return b.Seqs()
	case Rows:
		return len(b.Rows)
	}
	return int(d)
}

// OnlyStates reports whether b only copies pages, perhaps none.
func (b *Batch) OnlyStates() bool { return len(b.Tokens) == 0 && b.States != nil }

// Length returns the length by which the rotary frequencies of token t of sequence s are chosen.
func (b *Batch) Length(s, t int) int { return int(max(b.Lengths[s], b.Positions[t]+1)) }

// Axis returns the position of token t along [PositionAttr.Axis].
func (b *Batch) Axis(axis, t int) int32 {
	switch {
	case axis == 0:
		return b.Positions[t]
	case b.Axes == nil:
		return 0
	}
	return b.Axes[2*t+axis-1]
}

// inputs returns how many rows of input b needs.
func (b *Batch) inputs(p *Program) int {
	if p.Inputs == 0 || b.Head {
		return 0
	}
	return len(b.Tokens)
}

// Validate checks everything about b that could make a backend access wrong memory. previous is the
// number of rows of the previous step.
func (b *Batch) Validate(p *Program, l *Limits, previous int) error {
	bad := func(format string, a ...any) error {
		return fmt.Errorf("%w: %w", ErrBatch, fmt.Errorf(format, a...))
	}
	t, s := len(b.Tokens), b.Seqs()
	if b.OnlyStates() {
		if s > 0 || len(b.Rows) > 0 || b.Head || b.Late {
			return bad("a step without tokens has %d sequences, %d rows, head %v, late %v; it can only copy pages", s, len(b.Rows), b.Head, b.Late)
		}
		return b.validateStates(p, l)
	}
	switch {
	case b.Head && p.Head == nil:
		return bad("a step of the head, which the program does not have")
	case b.Axes != nil && p.Axes == [2]int{}:
		return fmt.Errorf("plan: second and third positions of tokens for a program that has only one position: %w", errors.ErrUnsupported)
	case t == 0 || t > l.Tokens:
		return bad("%d tokens, want 1 to %d", t, l.Tokens)
	case s == 0 || s > l.Seqs:
		return bad("%d sequences, want 1 to %d", s, l.Seqs)
	case len(b.Rows) > l.Rows:
		return bad("%d rows, want at most %d", len(b.Rows), l.Rows)
	case b.Observe != nil && !l.Observed:
		return bad("a batch with Observe needs an executable compiled with Limits.Observed")
	case len(b.Positions) != t || (b.From != nil && len(b.From) != t):
		return bad("%d tokens have %d positions and %d origins", t, len(b.Positions), len(b.From))
	case len(b.Input) != b.inputs(p):
		return bad("%d rows of input for %d tokens of a program with %d columns of input, want %d", len(b.Input), t, p.Inputs, b.inputs(p))
	case p.Inputs > 0 && b.From != nil:
		return bad("%d origins of tokens; tokens of a program with inputs are known, so From must be nil", len(b.From))
	case b.Axes != nil && len(b.Axes) != 2*t:
		return bad("%d tokens have %d second and third positions", t, len(b.Axes))
	case len(b.Lengths) != s:
		return bad("%d sequences have %d lengths", s, len(b.Lengths))
	case b.Start[0] != 0 || int(b.Start[s]) != t:
		return bad("sequences cover tokens %d to %d of %d", b.Start[0], b.Start[s], t)
	case len(b.Tables) != len(p.Groups):
		return bad("%d page tables for %d groups of states", len(b.Tables), len(p.Groups))
	}
	for i, id := range b.Tokens {
		if b.From != nil && b.From[i] >= 0 {
			if int(b.From[i]) >= previous {
				return bad("token %d comes from row %d of a step of %d rows", i, b.From[i], previous)
			}
		} else if id < 0 || int(id) >= p.Vocab {
			return bad("token id %d at %d is outside the vocabulary of %d", id, i, p.Vocab)
		}
	}
	for i, row := range b.Input {
		if len(row) != p.Inputs {
			return bad("the input of token %d has %d columns, want %d", i, len(row), p.Inputs)
		}
	}
	for i, v := range b.Axes {
		if n := p.Axes[i%2]; v < 0 || int(v) >= max(1, n) {
			return bad("position %d of axis %d at %d is outside a table of %d", v, 1+i%2, i/2, n)
		}
	}
	for q := range s {
		lo, hi := b.Start[q], b.Start[q+1]
		if lo >= hi || int(hi) > t {
			return bad("sequence %d has tokens %d to %d of %d", q, lo, hi, t)
		}
		if b.Positions[lo] < 0 {
			return bad("sequence %d starts at position %d", q, b.Positions[lo])
		}
		if p.Whole && (b.Positions[lo] != 0 || hi-lo != b.Lengths[q]) {
			return bad("sequence %d has positions %d to %d of %d in the step; the program needs all of them in one step", q, b.Positions[lo], b.Positions[hi-1], b.Lengths[q])
		}
		if p.Positions > 0 && int(b.Positions[hi-1]) >= p.Positions {
			return bad("sequence %d goes on to position %d of %d", q, b.Positions[hi-1], p.Positions)
		}
		for i := lo + 1; i < hi; i++ {
			if b.Positions[i] != b.Positions[i-1]+1 {
				return bad("sequence %d: position %d follows %d", q, b.Positions[i], b.Positions[i-1])
			}
		}
	}
	for g := range b.Tables {
		if b.Head && !p.Uses(g, true) {
			continue
		}
		if err := b.Tables[g].validate(p.Groups[g], g, b, l); err != nil {
			return bad("%w", err)
		}
	}
	last := int32(-1)
	for i, r := range b.Rows {
		if r.Token <= last || int(r.Token) >= t {
			return bad("row %d is for token %d, after a row for token %d of %d; want ascending tokens", i, r.Token, last, t)
		}
		last = r.Token
		if r.Mask < 0 || int(r.Mask) > l.Masks {
			return bad("row %d has mask %d of %d", i, r.Mask, l.Masks)
		}
		if err := r.Sampling.Validate(); err != nil {
			return bad("row %d: %w", i, err)
		}
		if err := sample.ValidateAdjustments(r.Adjustments, int(p.Shapes[p.Logits][1])); err != nil {
			return bad("row %d: %w", i, err)
		}
	}
	return b.validateStates(p, l)
}

func (b *Batch) validateStates(p *Program, l *Limits) error {
	for i, op := range b.States {
		if err := op.validate(p, l); err != nil {
			return fmt.Errorf("%w: state operation %d: %w", ErrBatch, i, err)
		}
	}
	return nil
}

func (pt *PageTable) validate(grp Group, g int, b *Batch, l *Limits) error {
	s := b.Seqs()
	if len(pt.Start) != s+1 || len(pt.First) != s || pt.Start[0] != 0 || int(pt.Start[s]) != len(pt.Pages) {
		return fmt.Errorf("group %d: a page table of %d starts, %d firsts, %d pages for %d sequences", g, len(pt.Start), len(pt.First), len(pt.Pages), s)
	}
	for q := range s {
		lo, hi := pt.Start[q], pt.Start[q+1]
		if hi < lo || int(hi) > len(pt.Pages) {
			return fmt.Errorf("group %d: sequence %d has pages %d to %d of %d", g, q, lo, hi, len(pt.Pages))
		}
		if int(hi-lo) > l.Pages[g] {
			return fmt.Errorf("group %d: sequence %d has %d pages of a pool of %d", g, q, hi-lo, l.Pages[g])
		}
		first, end := int(b.Positions[b.Start[q]]), int(b.Positions[b.Start[q+1]-1])+1
		if grp.Kind == PerSequence {
			if err := pt.validateSlots(grp, g, q, first, end, l.Pages[g]); err != nil {
				return err
			}
			continue
		}
		have := int(pt.First[q]) * l.PageTokens
		if pt.First[q] < 0 || have > grp.FirstVisible(first) || have+int(hi-lo)*l.PageTokens < end {
			return fmt.Errorf("group %d: sequence %d sees positions %d to %d, its pages hold %d to %d",
				g, q, grp.FirstVisible(first), end, have, have+int(hi-lo)*l.PageTokens)
		}
		for _, page := range pt.Pages[lo:hi] {
			if page < 0 || int(page) >= l.Pages[g] {
				return fmt.Errorf("group %d: page %d of %d", g, page, l.Pages[g])
			}
		}
	}
	return nil
}

// validateSlots checks the slots of sequence q, which continues at position first and goes on to
// end, in a pool of n slots.
func (pt *PageTable) validateSlots(grp Group, g, q, first, end, n int) error {
	if int(pt.Start[q]) != 2*q || int(pt.Start[q+1]) != 2*q+2 || pt.First[q] != 0 {
		return fmt.Errorf("group %d: sequence %d has pages %d to %d from %d on, want two slots", g, q, pt.Start[q], pt.Start[q+1], pt.First[q])
	}
	in, out := pt.Slots(q)
	from, to := grp.Taken(first), grp.Taken(end)
	if in < -1 || int(in) >= n || out < -1 || int(out) >= n || in >= 0 && in == out || (in < 0) != (from == 0) || (out < 0) != (to == from) {
		return fmt.Errorf("group %d: sequence %d goes on from position %d to %d, and from slot %d with its state after %d tokens to slot %d with that after %d, of %d slots",
			g, q, first, end, in, from, out, to, n)
	}
	return nil
}

func (op *StateOp) validate(p *Program, l *Limits) error {
	if op.Group < 0 || op.Group >= len(p.Groups) {
		return fmt.Errorf("group %d of %d", op.Group, len(p.Groups))
	}
	if n := l.Pages[op.Group]; op.Page < 0 || int(op.Page) >= n {
		return fmt.Errorf("page %d of %d", op.Page, n)
	}
	if op.Kind > RestorePage {
		return fmt.Errorf("kind %d does not exist", op.Kind)
	}
	size, err := l.PageBytes(p, op.Group)
	if err != nil {
		return err
	}
	if len(op.Host) != size {
		return fmt.Errorf("%d bytes for a page of %d", len(op.Host), size)
	}
	return nil
}
