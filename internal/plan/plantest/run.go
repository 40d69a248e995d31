package plantest

import (
	"context"
	"fmt"
	"slices"

	"github.com/realizar/realizar/internal/plan"
)

// A Runner runs sequences on an executable with pages scattered over the pools, and collects every
// token's logits.
type Runner struct {
	Program *plan.Program
	Limits  plan.Limits
	Exe     plan.Executable

	free [][]int32 // by group
	seqs []*Seq
	ops  []plan.StateOp // for the next step
}

// A Seq is one sequence of a Runner.
type Seq struct {
	IDs    []int32
	Chunk  int         // tokens per step
	Prompt int         // length that rotary frequencies depend on; 0: that of IDs
	Logits [][]float32 // [tokens fed][vocab]
	tables [][]int32   // by group: all logical pages, -1 if freed; for states per sequence, the slots that the previous step read and wrote
}

// NewRunner compiles p on b with lim, see [LimitsFor].
func NewRunner(b plan.Backend, p *plan.Program, lim plan.Limits) (*Runner, error) {
	exe, err := b.Compile(context.Background(), p, lim, nil)
	if err != nil {
		return nil, err
	}
	r := &Runner{Program: p, Limits: lim, Exe: exe}
	for _, n := range lim.Pages {
		// any order other than the pools' own
		free := make([]int32, 0, n)
		for i := range n {
			free = append(free, int32((i*7+3)%n))
		}
		if n%7 == 0 {
			for i := range free {
				free[i] = int32(n - 1 - i)
			}
		}
		r.free = append(r.free, free)
	}
	return r, nil
}

// LimitsFor returns limits for steps of at most that many tokens and sequences, each sequence of up
// to context tokens.
func LimitsFor(p *plan.Program, tokens, seqs, context, pageTokens int, base plan.Limits) plan.Limits {
	base.Tokens, base.Seqs, base.Rows, base.PageTokens, base.Masks = tokens, seqs, tokens, pageTokens, 2*seqs
	base.Pages = nil
	for _, g := range p.Groups {
		pages := (context + pageTokens - 1) / pageTokens
		if g.Kind == plan.PerSequence {
			pages = 2
		}
		base.Pages = append(base.Pages, seqs*pages)
	}
	return base
}

// Add adds a sequence.
func (r *Runner) Add(ids []int32, chunk int) *Seq {
	s := &Seq{IDs: ids, Chunk: chunk, tables: make([][]int32, len(r.Program.Groups))}
	r.seqs = append(r.seqs, s)
	return s
}

// Drop removes a sequence and frees its pages.
func (r *Runner) Drop(s *Seq) {
	for g, t := range s.tables {
		for _, page := range t {
			if page >= 0 {
				r.free[g] = append(r.free[g], page)
			}
		}
	}
	for i := range r.seqs {
		if r.seqs[i] == s {
			r.seqs = append(r.seqs[:i], r.seqs[i+1:]...)
			return
		}
	}
}

// Step runs one step with every sequence that has tokens left. It reports whether there was one.
func (r *Runner) Step() (bool, error) {
	b := &plan.Batch{Start: []int32{0}, Tables: make([]plan.PageTable, len(r.Program.Groups))}
	for g := range b.Tables {
		b.Tables[g].Reset()
	}
	var who []*Seq
	for _, s := range r.seqs {
		done := len(s.Logits)
		n := min(s.Chunk, len(s.IDs)-done)
		if n <= 0 {
			continue
		}
		for i := range n {
			b.Rows = append(b.Rows, plan.Row{Token: int32(len(b.Tokens)), Want: plan.WantLogits})
			b.Tokens = append(b.Tokens, s.IDs[done+i])
			b.Positions = append(b.Positions, int32(done+i))
			who = append(who, s)
		}
		b.Start = append(b.Start, int32(len(b.Tokens)))
		length := s.Prompt
		if length == 0 {
			length = len(s.IDs)
		}
		b.Lengths = append(b.Lengths, int32(length))
		for g := range b.Tables {
			r.page(s, g, done, done+n, &b.Tables[g])
		}
	}
	if len(who) == 0 {
		return false, nil
	}
	b.States, r.ops = r.ops, nil
	step, err := r.Exe.Submit(b)
	if err != nil {
		return false, err
	}
	defer step.Release()
	res, err := step.Wait(context.Background())
	if err != nil {
		return false, err
	}
	for _, e := range res.Err {
		if e != nil {
			return false, e
		}
	}
	for i, s := range who {
		if len(res.Logits[i]) == 0 {
			return false, fmt.Errorf("no logits for row %d", i)
		}
		s.Logits = append(s.Logits, slices.Clone(res.Logits[i]))
	}
	return true, nil
}

// page gives s pages for positions up to end, frees the pages that no position from start on sees,
// and writes the table.
func (r *Runner) page(s *Seq, g, start, end int, t *plan.PageTable) {
	if r.Program.Groups[g].Kind == plan.PerSequence {
		r.slots(s, g, start, end, t)
		return
	}
	first := r.Program.Groups[g].FirstVisible(start) / r.Limits.PageTokens
	for i := range min(first, len(s.tables[g])) {
		if s.tables[g][i] >= 0 {
			r.free[g] = append(r.free[g], s.tables[g][i])
			s.tables[g][i] = -1
		}
	}
	for len(s.tables[g])*r.Limits.PageTokens < end {
		s.tables[g] = append(s.tables[g], r.free[g][0])
		r.free[g] = r.free[g][1:]
	}
	t.Add(first, s.tables[g][first:]...)
}

// slots makes s read the slot that was written last, and write another if its state is taken again
// on the way from position start to end, and writes the table.
func (r *Runner) slots(s *Seq, g, start, end int, t *plan.PageTable) {
	in, out := int32(-1), int32(-1)
	if n := len(s.tables[g]); n > 0 {
		in = s.tables[g][n-1]
		r.free[g] = append(r.free[g], s.tables[g][:n-1]...)
		s.tables[g] = s.tables[g][n-1:]
	}
	if group := r.Program.Groups[g]; group.Taken(end) > group.Taken(start) {
		out = r.free[g][0]
		r.free[g] = r.free[g][1:]
		s.tables[g] = append(s.tables[g], out)
	}
	t.AddSlots(in, out)
}

// Run runs steps until all sequences are done.
func (r *Runner) Run() error {
	for {
		more, err := r.Step()
		if err != nil || !more {
			return err
		}
	}
}
