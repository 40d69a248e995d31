package arch_test

import (
	"math"
	"math/bits"
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// chooses reports whether p attends to chosen positions. Many positions of tiny models have a score
// of exactly 0, and which of these PyTorch chooses depends on the number of all scores, those of
// later tokens included. Here the lowest are chosen.
func chooses(p *plan.Program) bool {
	return slices.ContainsFunc(p.Nodes, func(n plan.Node) bool { return n.Op == plan.Select })
}

// agreeTied compares the reference with PyTorch's choices among equal scores: all logits and the
// greedy continuation, which the data has from a run over all tokens for each. The given backends must
// agree up to the first token with another choice.
func agreeTied(t *testing.T, m *arch.Model, e expectation, backends map[string]plan.Backend) {
	r := newTiedRunner(t, m.Program, len(e.ids))
	logits := r.run(e.ids)
	rel, clear := relative(logits, e.logits), r.clear
	if t.Logf("relative error %.3g; all choices of the first %d tokens are the same", rel, clear); !(rel < 1e-4) {
		t.Fatalf("relative error %.3g, want below 1e-4", rel)
	}
	for name, b := range backends {
		if rel := relative(logitsOf(t, b, m.Program, e.ids, plan.Limits{Cache: tensor.F32})[:clear], e.logits[:clear]); !(rel < 1e-4) {
			t.Errorf("%s: relative error %.3g of the first %d tokens, want below 1e-4", name, rel, clear)
		}
	}
	ids := e.ids
	for i, want := range e.greedy {
		if e.margin[i] < 1e-3 {
			break
		}
		if got := argmax(logits[len(logits)-1]); got != want {
			t.Fatalf("greedy token %d is %d, want %d", i, got, want)
		}
		ids = append(slices.Clip(ids), want)
		logits = newTiedRunner(t, m.Program, len(ids)).run(ids)
	}
}

// A tiedRunner runs a sequence on the reference, with PyTorch's choices among equal scores.
type tiedRunner struct {
	t      *testing.T
	p      *plan.Program
	replay *cpu.Replay
	limits plan.Limits
	clear  int // tokens before the first whose choice is not the reference's
}

func newTiedRunner(t *testing.T, p *plan.Program, most int) *tiedRunner {
	t.Helper()
	const page = 16
	pages := (most + page - 1) / page
	r := &tiedRunner{t: t, p: p, clear: most, limits: plan.Limits{
		Tokens: most, Seqs: 1, Rows: most, PageTokens: page, Pages: slices.Repeat([]int{pages}, len(p.Groups)), Cache: tensor.F32, Activations: tensor.F32,
	}}
	var err error
	if r.replay, err = cpu.NewReplay(p, r.limits, 2); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.replay.Close() })
	return r
}

// run runs the tokens and returns their logits.
func (r *tiedRunner) run(ids []int32) (logits [][]float32) {
	r.t.Helper()
	b := &plan.Batch{Tokens: ids, Start: []int32{0, int32(len(ids))}, Lengths: []int32{int32(len(ids))}}
	for i := range ids {
		b.Positions = append(b.Positions, int32(i))
		b.Rows = append(b.Rows, plan.Row{Token: int32(i), Want: plan.WantLogits})
	}
	for g := range r.p.Groups {
		table := plan.PageTable{Start: []int32{0}}
		var pages []int32
		for i := range r.limits.Pages[g] {
			pages = append(pages, int32(i))
		}
		table.Add(0, pages...)
		b.Tables = append(b.Tables, table)
	}
	err := b.Validate(r.p, &r.limits, 0)
	if err == nil {
		err = r.replay.Begin(b, ids)
	}
	for i := range r.p.Nodes {
		n := &r.p.Nodes[i]
		if err == nil {
			err = r.replay.Run(n)
		}
		if err != nil {
			r.t.Fatal(err)
		}
		if a, ok := n.Attr.(plan.SelectAttr); ok {
			r.choose(n, &a, len(ids))
		}
	}
	for i := range ids {
		row, _ := r.replay.Row(r.p.Logits, i)
		logits = append(logits, slices.Clone(row))
	}
	return logits
}

// choose replaces a node's choices for tokens tokens.
func (r *tiedRunner) choose(n *plan.Node, a *plan.SelectAttr, tokens int) {
	row := func(in, t int) []float32 {
		x, _ := r.replay.Row(n.In[in], t)
		return x
	}
	var all []float32
	every := max(1, a.Every)
	for t := range tokens {
		seen, list := a.Seen(t), make([]scored, tokens/every)
		for p := range list {
			if list[p] = (scored{score: float32(math.Inf(-1)), pos: p}); p >= seen {
				continue
			}
			sum := float32(0)
			for h, w := range row(2, t) {
				product := 0.0
				for i, k := range row(1, (p+1)*every-1) {
					product += float64(row(0, t)[h*a.HeadDim+i]) * float64(k)
				}
				sum += w * max(0, float32(product))
			}
			list[p].score = sum
		}
		out := slices.Repeat([]float32{-1}, a.Top)
		if a.Top < len(list) {
			nthElement(list, a.Top-1)
			list = list[:a.Top]
		}
		var chosen []int
		for _, s := range list {
			if s.pos < seen {
				chosen = append(chosen, s.pos)
			}
		}
		slices.Sort(chosen)
		for i, p := range chosen {
			out[i] = float32(p)
		}
		if own, _ := r.replay.Row(n.Out, t); !slices.Equal(own, out) {
			r.clear = min(r.clear, t)
		}
		all = append(all, out...)
	}
	r.replay.Set(n.Out, all)
}

// A scored is a position and its score.
type scored struct {
	score float32
	pos   int
}

// before is the order in which PyTorch sorts.
func (s scored) before(o scored) bool { return s.score > o.score }

// nthElement moves the n+1 highest scores to the beginning, as GNU's std::nth_element does, which
// PyTorch calls: quickselect with the median of three elements as pivot (Musser, "Introspective
// Sorting and Selection Algorithms", 1997), and an insertion sort of the last three.
func nthElement(x []scored, n int) {
	lo, hi := 0, len(x)
	for limit := 2 * (bits.Len(uint(len(x))) - 1); hi-lo > 3; limit-- {
		if limit == 0 {
			panic("quickselect degenerates")
		}
		swap := func(i, j int) { x[i], x[j] = x[j], x[i] }
		swap(lo, median(x, lo+1, lo+(hi-lo)/2, hi-1))
		i, j := lo+1, hi
		for {
			for x[i].before(x[lo]) {
				i++
			}
			for j--; x[lo].before(x[j]); j-- {
			}
			if i >= j {
				break
			}
			swap(i, j)
			i++
		}
		if i <= n {
			lo = i
		} else {
			hi = i
		}
	}
	for i := lo + 1; i < hi; i++ {
		for j := i; j > lo && x[j].before(x[j-1]); j-- {
			x[j], x[j-1] = x[j-1], x[j]
		}
	}
}

// median returns the index of the median of three elements; which of equal ones, as in std::nth_element.
func median(x []scored, a, b, c int) int {
	if !x[a].before(x[b]) {
		a, b = b, a
	}
	switch { // a is before b or equal
	case x[b].before(x[c]):
		return b
	case x[a].before(x[c]):
		return c
	}
	return a
}
