package plantest

import (
	"context"
	"fmt"
	"testing"

	"github.com/realizar/realizar/internal/longtest"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// tokensAt are so many tokens of a sequence in a step, the first at a position.
type tokensAt struct{ position, n int }

// several checks that the tokens of a sequence in a step, such as drafts that are verified, have the
// bits of tokens that are decoded one by one, and that later tokens see the same keys and values.
func several(t *testing.T, b plan.Backend) {
	for i, c := range []struct {
		attr       plan.AttentionAttr
		sinks      bool
		cache      tensor.DType
		pageTokens int
		all        []tokensAt
	}{
		// 32 is the beginning of a run and 256 that of a segment; see internal/cuda/kernels.
		{plan.AttentionAttr{Heads: 8, KVHeads: 2, HeadDim: 64, Scale: 0.125}, false, tensor.F16, 32, []tokensAt{{30, 4}, {254, 5}, {0, 8}, {100, 1}}},
		{plan.AttentionAttr{Heads: 8, KVHeads: 2, HeadDim: 128, Scale: 0.09}, true, tensor.Q8_0, 32, []tokensAt{{255, 2}}},
		{plan.AttentionAttr{Heads: 8, KVHeads: 2, HeadDim: 128, Scale: 0.09}, true, tensor.F16, 16, []tokensAt{{509, 8}, {31, 3}, {256, 2}}},
		{plan.AttentionAttr{Heads: 7, KVHeads: 1, HeadDim: 64, Scale: 0.2, Window: 270, Softcap: 5}, true, tensor.F8_E4M3, 32, []tokensAt{{255, 6}, {530, 2}, {524, 8}}},
		{plan.AttentionAttr{Heads: 2, KVHeads: 2, HeadDim: 64, Scale: 0.125, Window: 1}, false, tensor.F16, 32, []tokensAt{{254, 8}, {7, 2}}},
		{plan.AttentionAttr{Heads: 6, KVHeads: 2, HeadDim: 96, Scale: 0.1, Window: 5}, true, tensor.F16, 24, []tokensAt{{250, 8}, {20, 3}}},
		{plan.AttentionAttr{Heads: 2, KVHeads: 1, HeadDim: 32, Scale: 0.2, Softcap: 5}, false, tensor.Q8_0, 5, []tokensAt{{253, 4}, {510, 8}, {0, 7}}},
		{plan.AttentionAttr{Heads: 3, KVHeads: 1, HeadDim: 18, Scale: 0.2}, false, tensor.F16, 1, []tokensAt{{31, 2}, {250, 8}}},
		{plan.AttentionAttr{Heads: 20, KVHeads: 1, HeadDim: 64, Scale: 0.125}, true, tensor.F16, 32, []tokensAt{{62, 3}}},
		{plan.AttentionAttr{Heads: 4, KVHeads: 2, HeadDim: 32, Scale: 0.2}, false, tensor.F32, 32, []tokensAt{{254, 4}, {30, 2}}},
		{plan.AttentionAttr{Heads: 2, KVHeads: 1, HeadDim: 64, Scale: 0.125}, true, tensor.F16, 32, manyAt(17, 8, 1100)}, // a block has several segments
		{plan.AttentionAttr{Latent: true, Heads: 16, KVHeads: 1, HeadDim: 576, ValueDim: 512, Scale: 0.05}, false, tensor.F16, 32, []tokensAt{{30, 4}, {254, 5}, {0, 8}, {600, 1}}},
		{plan.AttentionAttr{Latent: true, Heads: 20, KVHeads: 1, HeadDim: 96, ValueDim: 64, Scale: 0.15, Window: 270}, false, tensor.F16, 5, []tokensAt{{509, 8}, {31, 3}, {700, 2}}},
		{plan.AttentionAttr{Latent: true, Heads: 2, KVHeads: 1, HeadDim: 96, ValueDim: 64, Scale: 0.15}, false, tensor.F16, 32, manyAt(17, 8, 1100)},
		{plan.AttentionAttr{Latent: true, Heads: 4, KVHeads: 1, HeadDim: 96, ValueDim: 64, Scale: 0.15}, true, tensor.Q8_0, 32, []tokensAt{{254, 4}}},
	} {
		name := fmt.Sprintf("%d: %v, sinks %v, %v cache in pages of %d", i, c.attr, c.sinks, c.cache, c.pageTokens)
		t.Run(name, func(t *testing.T) { severalOf(t, b, c.attr, c.sinks, c.cache, c.pageTokens, c.all) })
	}
}

// manyAt returns n sequences of up to most tokens, some positions before last.
func manyAt(n, most, last int) (all []tokensAt) {
	for i := range n {
		all = append(all, tokensAt{last - i*i*13%last, 1 + i*5%most})
	}
	return append(all, tokensAt{last, most})
}

func severalOf(t *testing.T, b plan.Backend, a plan.AttentionAttr, sinks bool, cache tensor.DType, pageTokens int, all []tokensAt) {
	p := normedAttention(t, a, sinks)
	tokens, pages := 0, 0
	pagesOf := func(c tokensAt) int { return (c.position + c.n + pageTokens) / pageTokens } // with a token more
	for _, c := range all {
		tokens, pages = tokens+c.n, pages+2*pagesOf(c)
	}
	lim := plan.Limits{Tokens: tokens, Seqs: len(all), Rows: tokens, PageTokens: pageTokens, Pages: []int{pages}, Cache: cache}
	exe, err := b.Compile(context.Background(), p, lim, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = exe.Close() }()
	f := newPageFiller(t, exe, p, &lim, uint64(tokens))
	var together, apart []portion // on pages with the same content
	for i, c := range all {
		o := portion{position: c.position}
		for j := range c.n {
			o.tokens = append(o.tokens, int32((i*7+j*5)%modelVocab))
		}
		copied := o
		for range pagesOf(c) {
			host := f.content(t)
			o.pages, copied.pages = append(o.pages, f.take(host)), append(copied.pages, f.take(host))
		}
		together, apart = append(together, o), append(apart, copied)
	}
	got := f.run(t, together...)
	few := len(all) < 5
	for i, at := 0, 0; i < len(all); at, i = at+all[i].n, i+1 {
		n, o, copied := all[i].n, together[i], apart[i]
		if !longtest.Cases(true, few || i%6 == 0) {
			continue
		}
		what := fmt.Sprintf("%d tokens at %d", n, o.position)
		var want [][]float32
		for j := range n {
			want = append(want, f.run(t, portion{o.position + j, o.tokens[j : j+1], copied.pages})...)
		}
		same(t, what+" beside others", got[at:at+n], want)
		next := []int32{1}
		same(t, what+", the token behind", f.run(t, portion{o.position + n, next, o.pages}), f.run(t, portion{o.position + n, next, copied.pages}))
		if few {
			same(t, what+" alone", f.run(t, o), want)
		}
	}
}
