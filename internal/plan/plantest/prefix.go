package plantest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/longtest"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// sharers are sequences that decode a token each, at the given positions. Their first tokens are the
// same, and the whole pages of these are too.
type sharers struct {
	tokens    int
	positions []int
}

// spread returns n positions from first on.
func spread(n, first, apart int) []int {
	var all []int
	for i := range n {
		all = append(all, first+i*i*apart%97)
	}
	return all
}

// prefixes checks that tokens have the same bits whether sequences that begin alike have the same
// pages or copies of them, and beside others or alone.
func prefixes(t *testing.T, b plan.Backend) {
	wide := plan.AttentionAttr{Heads: 8, KVHeads: 2, HeadDim: 128, Scale: 0.09}
	equal := plan.AttentionAttr{Heads: 2, KVHeads: 2, HeadDim: 64, Scale: 0.125}
	eighth := plan.AttentionAttr{Heads: 8, KVHeads: 1, HeadDim: 64, Scale: 0.125}
	capped := plan.AttentionAttr{Heads: 7, KVHeads: 1, HeadDim: 128, Scale: 0.2, Softcap: 5}
	long := plan.AttentionAttr{Heads: 1, KVHeads: 1, HeadDim: 64, Scale: 0.125}
	for i, c := range []struct {
		attr       plan.AttentionAttr
		sinks      bool
		pageTokens int
		all        []sharers
	}{
		{eighth, false, 32, []sharers{{0, []int{3, 300}}}},
		{eighth, false, 32, []sharers{{255, []int{255, 300}}}},
		{eighth, false, 32, []sharers{{256, []int{256, 257}}}},
		{wide, true, 16, []sharers{{1000, []int{1000, 1003, 1030, 1279, 1800}}}},
		{wide, false, 24, []sharers{{264, []int{264, 300}}, {800, []int{811, 812, 1500}}, {0, []int{700}}}},
		{equal, true, 32, []sharers{{512, spread(5, 520, 7)}, {256, []int{256, 511, 512}}, {768, []int{1100, 800}}, {0, []int{0, 256}}}},
		{capped, true, 32, []sharers{{300, spread(11, 300, 13)}}},
		{plan.AttentionAttr{Heads: 40, KVHeads: 1, HeadDim: 64, Scale: 0.125}, false, 32, []sharers{{256, spread(3, 270, 5)}}},
		{plan.AttentionAttr{Heads: 4, KVHeads: 2, HeadDim: 32, Scale: 0.2}, false, 32, []sharers{{600, spread(4, 600, 5)}}},
		{plan.AttentionAttr{Heads: 4, KVHeads: 2, HeadDim: 64, Scale: 0.2, Window: 300}, false, 32, []sharers{{600, spread(4, 600, 5)}}},
		{eighth, true, 32, []sharers{{256, spread(64, 256, 3)}}},
		{wide, false, 32, []sharers{{1000, spread(64, 1001, 11)}}},
		{plan.AttentionAttr{Heads: 8, KVHeads: 4, HeadDim: 64, Scale: 0.125}, true, 32, []sharers{{512, spread(64, 700, 11)}}},
		{equal, true, 32, []sharers{{2048, spread(65, 2230, 1)}}},                               // parts of all segments exceed their room
		{long, true, 32, []sharers{{4096, spread(63, 4300, 5)}, {0, []int{900}}}},               // and these have several blocks behind the prefix
		{long, false, 32, []sharers{{2100, spread(40, 2100, 5)}, {1100, spread(24, 1100, 11)}}}, // prefixes of unlike lengths
	} {
		caches := []tensor.DType{tensor.F16, tensor.Q8_0}
		for _, cache := range longtest.Cases(caches, caches[i%2:i%2+1]) {
			name := fmt.Sprintf("%d: %v, sinks %v, %v cache in pages of %d", i, c.attr, c.sinks, cache, c.pageTokens)
			t.Run(name, func(t *testing.T) { prefixesOf(t, b, c.attr, c.sinks, cache, c.pageTokens, c.all) })
		}
	}
}

// normedAttention returns a program of one attention whose queries and keys are normalized and
// rotated, or of latent attention whose queries are normalized.
func normedAttention(t *testing.T, a plan.AttentionAttr, sinks bool) *plan.Program {
	const width = 64
	rng := newRand(31)
	weight := func(name string, rows int) *tensor.Tensor {
		return Weight(rng, name, tensor.F32, 1/math.Sqrt(width), rows, width)
	}
	r := plan.RopeAttr{HeadDim: a.HeadDim, Dims: a.HeadDim, Scale: 1}
	for i := range a.HeadDim / 2 {
		r.Freqs = append(r.Freqs, math.Pow(1e4, -2*float64(i)/float64(a.HeadDim)))
	}
	return build(t, func(b *plan.Builder) {
		x := b.Embed(Weight(rng, "table", tensor.F32, 1, modelVocab, width))
		q := b.RMSNorm(b.Linear(x, weight("q", a.Heads*a.HeadDim), nil), vector(rng, "qn", 1, 0.1, a.HeadDim), 1e-5)
		var logits *tensor.Tensor
		if sinks {
			logits = Weight(rng, "sinks", tensor.F32, 2, a.Heads)
		}
		if a.Latent {
			s := b.State(plan.State{Name: "kv", Kind: plan.PerToken, KVHeads: a.KVHeads, HeadDim: a.HeadDim, Window: a.Window})
			y := b.Pick(b.LatentAttention(q, b.Linear(x, weight("c", a.KVHeads*a.ValueDim), nil), b.Linear(x, weight("r", a.KVHeads*(a.HeadDim-a.ValueDim)), nil), logits, s, a))
			b.Output(y, y)
			return
		}
		k := b.RMSNorm(b.Linear(x, weight("k", a.KVHeads*a.HeadDim), nil), vector(rng, "kn", 1, 0.1, a.HeadDim), 1e-5)
		v := b.Linear(x, weight("v", a.KVHeads*a.HeadDim), nil)
		s := b.State(plan.State{Name: "kv", Kind: plan.PerToken, KVHeads: a.KVHeads, HeadDim: a.HeadDim, ValueDim: a.HeadDim, Window: a.Window})
		y := b.Pick(b.Attention(b.Rope(q, r), b.Rope(k, r), v, logits, s, a))
		b.Output(y, y)
	})
}

// fillPage fills a page with keys and values: finite numbers in 16 bits, or bytes and their scales.
func fillPage(page []byte, rng *rand.Rand) {
	for i := range len(page) / 2 {
		v := rng.Uint32()
		page[2*i], page[2*i+1] = byte(v), byte(v>>8&0x83|(8+v>>16%5)<<2) // of magnitudes from 2^-7 to 2^-2
	}
}

// A pageFiller runs steps of sequences whose pages have random keys and values, in place of those of
// tokens before. The program has one group of states.
type pageFiller struct {
	exe        plan.Executable
	group      plan.Group
	pageTokens int
	rng        *rand.Rand
	free       []int
	size       int            // of a page, in bytes
	fill       []plan.StateOp // for the next step
}

func newPageFiller(t *testing.T, exe plan.Executable, p *plan.Program, lim *plan.Limits, seed uint64) *pageFiller {
	t.Helper()
	size, err := lim.PageBytes(p, 0)
	if err != nil {
		t.Fatal(err)
	}
	rng := newRand(seed)
	return &pageFiller{exe: exe, group: p.Groups[0], pageTokens: lim.PageTokens, rng: rng, free: rng.Perm(lim.Pages[0]), size: size}
}

// content returns the content of a page, in host memory.
func (f *pageFiller) content(t *testing.T) []byte {
	t.Helper()
	host, err := f.exe.AllocHost(f.size)
	if err != nil {
		t.Fatal(err)
	}
	fillPage(host, f.rng)
	return host
}

// take returns a page that has the content of host from the next step on.
func (f *pageFiller) take(host []byte) int32 {
	page := int32(f.free[0])
	f.free = f.free[1:]
	f.fill = append(f.fill, plan.StateOp{Kind: plan.RestorePage, Page: page, Host: host})
	return page
}

// A portion is the tokens of a sequence in a step, from a position on, and all its pages.
type portion struct {
	position int
	tokens   []int32
	pages    []int32
}

// run runs a step and returns the logits of all tokens.
func (f *pageFiller) run(t *testing.T, all ...portion) [][]float32 {
	t.Helper()
	x := &plan.Batch{Start: []int32{0}, Tables: make([]plan.PageTable, 1), States: f.fill}
	x.Tables[0].Reset()
	f.fill = nil
	for _, o := range all {
		for i, id := range o.tokens {
			x.Rows = append(x.Rows, plan.Row{Token: int32(len(x.Tokens)), Want: plan.WantLogits})
			x.Tokens, x.Positions = append(x.Tokens, id), append(x.Positions, int32(o.position+i))
		}
		x.Start, x.Lengths = append(x.Start, int32(len(x.Tokens))), append(x.Lengths, 1)
		first, end := f.group.FirstVisible(o.position)/f.pageTokens, (o.position+len(o.tokens)-1)/f.pageTokens+1
		x.Tables[0].Add(first, o.pages[first:end]...)
	}
	s, err := f.exe.Submit(x)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release()
	res, err := s.Wait(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range res.Err {
		if err != nil {
			t.Fatal(err)
		}
	}
	var logits [][]float32
	for _, row := range res.Logits {
		logits = append(logits, slices.Clone(row))
	}
	return logits
}

func prefixesOf(t *testing.T, b plan.Backend, a plan.AttentionAttr, sinks bool, cache tensor.DType, pageTokens int, all []sharers) {
	const steps = 2
	p := normedAttention(t, a, sinks)
	seqs, pages := 0, 0
	pagesOf := func(position int) int { return (position + steps + pageTokens - 1) / pageTokens }
	for _, s := range all {
		for _, position := range s.positions {
			seqs, pages = seqs+1, pages+2*pagesOf(position)
		}
	}
	lim := plan.Limits{Tokens: seqs, Seqs: seqs, Rows: seqs, PageTokens: pageTokens, Pages: []int{pages}, Cache: cache}
	exe, err := b.Compile(context.Background(), p, lim, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = exe.Close() }()

	f := newPageFiller(t, exe, p, &lim, uint64(seqs))
	// A sequence's pages, those that it has in common with others and its own, and copies of all.
	type sequence struct {
		position       int
		shared, copied []int32
	}
	var list []sequence
	for _, s := range all {
		var hosts [][]byte
		var common []int32
		for range s.tokens / pageTokens {
			hosts = append(hosts, f.content(t))
			common = append(common, f.take(hosts[len(hosts)-1]))
		}
		for _, position := range s.positions {
			q := sequence{position: position, shared: slices.Clone(common)}
			for i := range pagesOf(position) {
				if i < len(common) {
					q.copied = append(q.copied, f.take(hosts[i]))
					continue
				}
				host := f.content(t)
				q.shared, q.copied = append(q.shared, f.take(host)), append(q.copied, f.take(host))
			}
			list = append(list, q)
		}
	}
	f.rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })

	// run decodes a token of sequences from to end-1 and returns their logits.
	run := func(from, end, step int, tables func(q *sequence) []int32) [][]float32 {
		t.Helper()
		var all []portion
		for i := from; i < end; i++ {
			q := &list[i]
			all = append(all, portion{q.position + step, []int32{int32((i*7 + step) % modelVocab)}, tables(q)})
		}
		return f.run(t, all...)
	}
	shared, copied := func(q *sequence) []int32 { return q.shared }, func(q *sequence) []int32 { return q.copied }
	for step := range steps {
		got := run(0, seqs, step, shared)
		same(t, fmt.Sprintf("step %d, on copies", step), run(0, seqs, step, copied), got)
		for i := 0; i < seqs; i += longtest.Cases(1, 1+seqs/12) {
			same(t, fmt.Sprintf("step %d, sequence %d at %d alone", step, i, list[i].position), run(i, i+1, step, shared), got[i:i+1])
		}
	}
}
