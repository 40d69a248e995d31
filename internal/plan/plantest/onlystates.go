package plantest

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// onlyStates checks that steps without tokens restore and save pages, in their order among steps with
// tokens.
func onlyStates(t *testing.T, b plan.Backend) {
	const pageTokens, tokens = 16, 5
	p := normedAttention(t, plan.AttentionAttr{Heads: 4, KVHeads: 2, HeadDim: 32, Scale: 0.17}, false)
	lim := plan.Limits{Tokens: tokens, Seqs: 1, Rows: tokens, PageTokens: pageTokens, Pages: []int{9}, Cache: tensor.F16}
	exe, err := b.Compile(context.Background(), p, lim, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = exe.Close() }()
	f := newPageFiller(t, exe, p, &lim, 7)
	o := portion{position: 2*pageTokens + 3}
	for i := range tokens {
		o.tokens = append(o.tokens, int32(i*5+1))
	}
	contents := [][]byte{f.content(t), f.content(t), f.content(t)}
	take := func() portion {
		o := o
		for _, host := range contents {
			o.pages = append(o.pages[:len(o.pages):len(o.pages)], f.take(host))
		}
		return o
	}
	want := f.run(t, take())
	apart := take()
	copied := &plan.Batch{States: f.fill}
	f.fill = nil
	var saved [][]byte
	for i := range 2 { // the step writes the last page
		to := f.content(t)
		saved = append(saved, to)
		copied.States = append(copied.States, plan.StateOp{Kind: plan.SavePage, Page: apart.pages[i], Host: to})
	}
	step, err := exe.Submit(copied)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "on pages that a step without tokens has restored", f.run(t, apart), want)
	if r := wait(t, step); len(r.Tokens) > 0 || len(r.Logits) > 0 || r.Err != nil {
		t.Errorf("a step without tokens has the result %+v", r)
	}
	step.Release()
	for i := range saved {
		if !bytes.Equal(saved[i], contents[i]) {
			t.Errorf("page %d is saved by a step without tokens with other content", i)
		}
	}
	for name, bad := range map[string]*plan.Batch{
		"rows":                       {States: copied.States, Rows: []plan.Row{{}}},
		"sequences":                  {States: copied.States, Start: []int32{0, 0}},
		"a page that does not exist": {States: []plan.StateOp{{Page: 9, Host: saved[0]}}},
		"nothing":                    {},
	} {
		if _, err := exe.Submit(bad); !errors.Is(err, plan.ErrBatch) {
			t.Errorf("a step without tokens, with %s: %v; want a malformed batch", name, err)
		}
	}
}
