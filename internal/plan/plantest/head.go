package plantest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/longtest"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// supported skips the test if the backend says that it does not support p.
func supported(t *testing.T, b plan.Backend, p *plan.Program, lim plan.Limits) {
	t.Helper()
	exe, err := b.Compile(context.Background(), p, lim, nil)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := exe.Close(); err != nil {
		t.Fatal(err)
	}
}

// recalled checks that every token gets the row of the position before it, exact in every cache, in
// whichever step and beside whichever sequences it was stored.
func recalled(t *testing.T, b plan.Backend) {
	for i, c := range []struct{ width, window, pageTokens int }{{1, 2, 1}, {31, 2, 4}, {64, 0, 16}, {130, 2, 5}, {260, 40, 32}} {
		rng := newRand(uint64(c.width))
		table := Weight(rng, "table", tensor.F32, 1, 23, c.width)
		p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value {
			st := b.State(plan.State{Name: "hidden", Kind: plan.PerToken, KVHeads: 1, HeadDim: c.width, Window: c.window, Exact: true})
			b.Store(st, x)
			return b.Recall(st)
		})
		lim := LimitsFor(p, 90, 3, 40, c.pageTokens, plan.Limits{Cache: Caches[i%len(Caches)]})
		supported(t, b, p, lim)
		r, err := NewRunner(b, p, lim)
		if err != nil {
			t.Fatal(err)
		}
		steps := [][3]int{{40, 1, 7}, {1, 1, 1}, {2, 33, 5}}
		for _, chunks := range longtest.Cases(steps, steps[i%3:][:1]) {
			var seqs []*Seq
			for k, n := range []int{40, 9, 21} {
				seqs = append(seqs, r.Add(ids(rng, n, 23), chunks[k]))
			}
			if err := r.Run(); err != nil {
				t.Fatal(err)
			}
			for k, s := range seqs {
				x := rowsOf(matrix(table), s.IDs)
				want := append([][]float64{make([]float64, c.width)}, x[:len(x)-1]...)
				near(t, fmt.Sprintf("%d columns, window %d, steps of %d", c.width, c.window, chunks[k]), s.Logits, want, 0, 0)
				r.Drop(s)
			}
		}
		if err := r.Exe.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

const (
	headVocab = 41
	headCols  = 64
	headAfter = 4 // layers of the first part
)

// A headed is a program with a head: of tokens with a residual stream x after some layers, an
// embedding e, and the hidden state g of the position before,
//
//	z = 2e + wo·attention(e + g)
//
// is the head's hidden state, and g is x, or z of a step of the head.
type headed struct {
	attr               plan.AttentionAttr
	x, e               *tensor.Tensor
	layers             []*tensor.Tensor
	wq, wk, wv, wo, w2 *tensor.Tensor
	sinks              *tensor.Tensor
	ids                []int32
	p                  *plan.Program
}

func newHeaded(t *testing.T, a plan.AttentionAttr, sinks bool, change func(e *tensor.Tensor)) *headed {
	rng := newRand(uint64(a.Heads*a.HeadDim + a.Window))
	w := func(name string, scale float64, rows, cols int) *tensor.Tensor {
		return Weight(rng, name, tensor.F32, scale, rows, cols)
	}
	h := &headed{attr: a, ids: []int32{3, 0, 7, 40, 12, 11}}
	h.attr.First = 1
	h.x, h.e = w("x", 1, headVocab, headCols), w("e", 0.3, headVocab, headCols)
	// v is the rest of the keys in latent attention.
	second := a.Values()
	if a.Latent {
		second = a.HeadDim - a.ValueDim
	}
	h.wq, h.wk = w("q", 0.1, a.Heads*a.HeadDim, headCols), w("k", 0.1, a.KVHeads*a.HeadDim, headCols)
	if a.Latent {
		h.wk = w("c", 0.1, a.KVHeads*a.ValueDim, headCols)
	}
	h.wv, h.wo, h.w2 = w("v", 0.1, a.KVHeads*second, headCols), w("o", 0.1, headCols, a.Heads*a.Values()), w("out", 0.3, len(h.ids), headCols)
	if sinks {
		h.sinks = Weight(rng, "sinks", tensor.F32, 1, a.Heads)
	}
	if change != nil {
		change(h.e)
	}
	h.p = build(t, func(b *plan.Builder) {
		x := b.Embed(h.x)
		for i := range headAfter {
			b.Layer(i)
			h.layers = append(h.layers, w(fmt.Sprint("layer", i), 0.1, headCols, headCols))
			x = b.Add(x, b.Linear(x, h.layers[i], nil))
		}
		b.Layer(plan.NoLayer)
		first := b.Pick(x)
		b.Output(first, b.Linear(first, w("first", 1, headVocab, headCols), nil))
		hidden := b.State(plan.State{Name: "hidden", Kind: plan.PerToken, KVHeads: 1, HeadDim: headCols, Window: 2, Exact: true})
		b.Store(hidden, x)
		layer := func() plan.Value {
			b.Layer(headAfter)
			defer b.Layer(plan.NoLayer)
			e := b.Embed(h.e)
			u := b.Add(e, b.Recall(hidden))
			s := plan.State{Name: "kv", Kind: plan.PerToken, KVHeads: a.KVHeads, HeadDim: a.HeadDim, ValueDim: a.Values(), Window: a.Window}
			q, k, v := b.Linear(u, h.wq, nil), b.Linear(u, h.wk, nil), b.Linear(u, h.wv, nil)
			var y plan.Value
			if a.Latent {
				s.ValueDim = 0
				y = b.LatentAttention(q, k, v, h.sinks, b.State(s), h.attr)
			} else {
				y = b.Attention(q, k, v, h.sinks, b.State(s), h.attr)
			}
			return b.Add(b.Linear(y, h.wo, nil), b.Add(e, e))
		}
		layer()
		b.Head()
		z := layer()
		b.Store(hidden, z)
		o := b.Pick(z)
		b.Output(o, b.Spread(b.Linear(o, h.w2, nil), h.ids, headVocab))
	})
	return h
}

// HeadModel returns a small program with a head.
func HeadModel(t *testing.T) *plan.Program {
	return newHeaded(t, plan.AttentionAttr{Heads: 4, KVHeads: 2, HeadDim: 32, Scale: 0.17}, false, nil).p
}

// predictions returns in float64 the columns of the logits that a chain of the head has: for a
// sequence that has done n tokens of list, and goes on with the others.
func (h *headed) predictions(list []int32, n int, cache tensor.DType) [][]float64 {
	a := &h.attr
	x := rowsOf(matrix(h.x), list[:n])
	for _, w := range h.layers {
		x = sums(x, product(x, matrix(w), nil))
	}
	embedded, g := rowsOf(matrix(h.e), list), append([][]float64{make([]float64, headCols)}, x...)
	var outs [][]float64
	for i := n; i < len(list); i++ {
		u := sums(embedded[:i+1], g)
		k, v := product(u, matrix(h.wk), nil), product(u, matrix(h.wv), nil)
		if a.Latent {
			k = kept(joined(k, v, a.KVHeads), a.KVHeads, cache)
			v = beginnings(k, a.KVHeads, a.ValueDim)
		} else {
			k, v = kept(k, a.KVHeads, cache), kept(v, a.KVHeads, cache)
		}
		first := min(1, i)
		if a.Window > 0 {
			first = max(first, i-a.Window+1)
		}
		seen := make([][]float64, i+1)
		for p := first; p <= i; p++ {
			seen[i] = append(seen[i], float64(p))
		}
		var sinks []float64
		if h.sinks != nil {
			sinks = matrix(h.sinks)[0]
		}
		y := attendedAt(product(u, matrix(h.wq), nil), k, v, sinks, a, seen)[i:]
		z := sums(product(y, matrix(h.wo), nil), sums(embedded[i:i+1], embedded[i:i+1]))
		outs, g = append(outs, z[0]), append(g, z[0])
	}
	return product(outs, matrix(h.w2), nil)
}

// sums returns the sums of rows.
func sums(x, y [][]float64) [][]float64 {
	var all [][]float64
	for i := range x {
		row := slices.Clone(x[i])
		for j := range row {
			row[j] += y[i][j]
		}
		all = append(all, row)
	}
	return all
}

// nearPredictions compares the logits of a chain with those columns. All others are absent.
func (h *headed) nearPredictions(t *testing.T, what string, got [][]float32, want [][]float64, tolerance float64) {
	t.Helper()
	var columns [][]float32
	for i, row := range got {
		columns = append(columns, nil)
		for _, id := range h.ids {
			columns[i] = append(columns[i], row[id])
		}
		for id, v := range row {
			if !slices.Contains(h.ids, int32(id)) && v != float32(plan.Absent) {
				t.Fatalf("%s: row %d, column %d is %v, want %v", what, i, id, v, plan.Absent)
			}
		}
	}
	near(t, what, columns, want, tolerance, 0)
}

// A chain is what the head runs for a sequence: tokens from the first that the sequence has not done.
type chain struct {
	s      *Seq
	tokens []int32
	logits [][]float32
}

// predict runs the head once for each token of the chains, which have equally many, and returns the
// last step's result. change, if not nil, may alter a step.
func (r *Runner) predict(change func(*plan.Batch), chains ...*chain) (res *plan.Result, err error) {
	for i := range chains[0].tokens {
		b := &plan.Batch{Head: true, Start: []int32{0}, Tables: make([]plan.PageTable, len(r.Program.Groups))}
		for g := range b.Tables {
			b.Tables[g].Reset()
		}
		for k, c := range chains {
			at := len(c.s.Logits) + i
			b.Tokens, b.Positions = append(b.Tokens, c.tokens[i]), append(b.Positions, int32(at))
			b.Start, b.Lengths = append(b.Start, int32(k+1)), append(b.Lengths, int32(len(c.s.IDs)))
			b.Rows = append(b.Rows, plan.Row{Token: int32(k), Want: plan.WantLogits | plan.WantToken | plan.WantHidden})
			for g := range b.Tables {
				if !r.Program.Uses(g, true) {
					b.Tables[g].Add(0)
				} else {
					r.page(c.s, g, len(c.s.Logits), at+1, &b.Tables[g])
				}
			}
		}
		if change != nil {
			change(b)
		}
		step, err := r.Exe.Submit(b)
		if err != nil {
			return nil, err
		}
		if res, err = step.Wait(context.Background()); err != nil {
			return nil, err
		}
		for k, c := range chains {
			c.logits = append(c.logits, res.Logits[k])
		}
		if err := errors.Join(res.Err...); err != nil {
			return res, err
		}
	}
	return res, nil
}

// heads compares what heads predict with float64, and their bits alone, beside others, after steps of
// other sizes, and after drafts that were wrong.
func heads(t *testing.T, b plan.Backend) {
	for i, c := range []struct {
		attr       plan.AttentionAttr
		sinks      bool
		tokens     int
		pageTokens int
	}{
		{plan.AttentionAttr{Heads: 4, KVHeads: 2, HeadDim: 32, Scale: 0.17}, false, 40, 16},
		{plan.AttentionAttr{Heads: 8, KVHeads: 1, HeadDim: 64, Scale: 0.12, Softcap: 2}, true, 20, 4},
		{plan.AttentionAttr{Heads: 4, KVHeads: 4, HeadDim: 32, Scale: 0.17, Window: 7}, true, 33, 8},
		{plan.AttentionAttr{Heads: 4, KVHeads: 1, HeadDim: 96, ValueDim: 64, Latent: true, Scale: 0.1}, false, 40, 32},
		{plan.AttentionAttr{Heads: 2, KVHeads: 2, HeadDim: 32, ValueDim: 64, Scale: 0.17}, false, 300, 32},
	} {
		at := i % len(Caches)
		for _, cache := range longtest.Cases(Caches, Caches[at:at+1]) {
			t.Run(fmt.Sprintf("%v, %v cache", c.attr, cache), func(t *testing.T) {
				headsOf(t, b, newHeaded(t, c.attr, c.sinks, nil), cache, c.tokens, c.pageTokens)
			})
		}
	}
}

func headsOf(t *testing.T, b plan.Backend, h *headed, cache tensor.DType, tokens, pageTokens int) {
	const ahead = 3
	lim := LimitsFor(h.p, tokens+40, 3, tokens+2*ahead, pageTokens, plan.Limits{Cache: cache})
	supported(t, b, h.p, lim)
	r, err := NewRunner(b, h.p, lim)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Exe.Close() }()
	lists := [][]int32{ids(newRand(41), tokens+2*ahead, headVocab), ids(newRand(42), 1+ahead, headVocab), ids(newRand(43), 18+ahead, headVocab)}
	// run runs the sequences of lists up to the last tokens, in steps of so many, then the head.
	run := func(chunk int, change func(*plan.Batch), lists ...[]int32) (chains []*chain) {
		t.Helper()
		for _, list := range lists {
			n := len(list) - ahead
			chains = append(chains, &chain{s: r.Add(list[:n], chunk), tokens: list[n:]})
		}
		if err := r.Run(); err != nil {
			t.Fatal(err)
		}
		res, err := r.predict(change, chains...)
		if err != nil {
			t.Fatal(err)
		}
		for k, c := range chains {
			best := h.ids[0]
			for _, id := range h.ids {
				if v := res.Logits[k]; v[id] > v[best] || v[id] == v[best] && id < best {
					best = id
				}
			}
			if res.Tokens[k] != best || len(res.Hidden[k]) != headCols {
				t.Errorf("the head samples %d with %d hidden values, want %d with %d", res.Tokens[k], len(res.Hidden[k]), best, headCols)
			}
			r.Drop(c.s)
		}
		return chains
	}
	long := lists[0][:tokens+ahead]
	together := run(tokens, nil, long, lists[1], lists[2])
	for k, list := range [][]int32{long, lists[1], lists[2]} {
		h.nearPredictions(t, fmt.Sprintf("%d tokens", len(list)-ahead), together[k].logits, h.predictions(list, len(list)-ahead, cache), 2*tolerances[cache])
	}
	for _, chunk := range longtest.Cases([]int{1, 2, 7, 16, 17}, []int{1, 17}) {
		if 64*chunk < tokens {
			continue // shorter sequences have such steps
		}
		same(t, fmt.Sprintf("alone, steps of %d", chunk), run(chunk, nil, long)[0].logits, together[0].logits)
	}
	same(t, "timed", run(9, func(b *plan.Batch) { b.Timed, b.Trace, b.Spans = true, true, true }, long)[0].logits, together[0].logits)

	// A step runs the known token and two drafts, and the second draft is wrong. The head goes on as
	// if it had never been.
	whole := lists[0]
	want := run(tokens, nil, whole[:tokens+2+ahead])[0].logits
	s := r.Add(whole[:tokens], 11)
	if err := r.Run(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.predict(nil, &chain{s: s, tokens: []int32{whole[tokens], whole[tokens+1], (whole[tokens+2] + 1) % headVocab}}); err != nil {
		t.Fatal(err)
	}
	s.IDs = append(slices.Clone(whole[:tokens+2]), (whole[tokens+2]+1)%headVocab)
	if err := r.Run(); err != nil {
		t.Fatal(err)
	}
	s.IDs, s.Logits = whole[:tokens+2], s.Logits[:tokens+2]
	after := &chain{s: s, tokens: whole[tokens+2:][:ahead]}
	if _, err := r.predict(nil, after); err != nil {
		t.Fatal(err)
	}
	same(t, "after a wrong draft", after.logits, want)
	r.Drop(s)
}

// headsOfTheFirst checks the head at position 0, which attends to itself, beside one at another.
func headsOfTheFirst(t *testing.T, b plan.Backend) {
	h := newHeaded(t, plan.AttentionAttr{Heads: 4, KVHeads: 2, HeadDim: 32, Scale: 0.17}, false, nil)
	lim := LimitsFor(h.p, 8, 2, 16, 16, plan.Limits{Cache: tensor.F32})
	supported(t, b, h.p, lim)
	r, err := NewRunner(b, h.p, lim)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Exe.Close() }()
	first, other := &chain{s: r.Add(nil, 1), tokens: []int32{4, 8}}, &chain{s: r.Add([]int32{1, 2, 3}, 3), tokens: []int32{5, 6}}
	if err := r.Run(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.predict(nil, first, other); err != nil {
		t.Fatal(err)
	}
	h.nearPredictions(t, "from position 0", first.logits, h.predictions([]int32{4, 8}, 0, tensor.F32), 2*tolerances[tensor.F32])
	h.nearPredictions(t, "from position 3", other.logits, h.predictions([]int32{1, 2, 3, 5, 6}, 3, tensor.F32), 2*tolerances[tensor.F32])
}

// headsObserved checks that the values of a step of the head are observed, and a number that is not
// finite is found there; only its sequence fails.
func headsObserved(t *testing.T, b plan.Backend) {
	h := newHeaded(t, plan.AttentionAttr{Heads: 4, KVHeads: 2, HeadDim: 32, Scale: 0.17}, false, func(e *tensor.Tensor) {
		binary.LittleEndian.PutUint32(e.Data[4*5*headCols:], math.Float32bits(math.MaxFloat32)) // of token 5
	})
	lim := LimitsFor(h.p, 16, 2, 16, 16, plan.Limits{Cache: tensor.F32, Observed: true})
	supported(t, b, h.p, lim)
	r, err := NewRunner(b, h.p, lim)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Exe.Close() }()
	fails, other := &chain{s: r.Add([]int32{1, 2, 3}, 3), tokens: []int32{4}}, &chain{s: r.Add([]int32{4, 6}, 2), tokens: []int32{1}}
	if err := r.Run(); err != nil {
		t.Fatal(err)
	}
	seen := map[plan.Value][]float32{}
	res, err := r.predict(func(b *plan.Batch) {
		b.Observe = func(v plan.Value, x []float32) { seen[v] = slices.Clone(x) }
	}, fails, other)
	if err != nil {
		t.Fatal(err)
	}
	for v, want := range map[plan.Value][][]float32{h.p.Head.Logits: res.Logits, h.p.Head.Hidden: res.Hidden} {
		if !slices.Equal(seen[v], slices.Concat(want...)) {
			t.Errorf("%%%d was observed as %v, the step gives %v", v, seen[v], want)
		}
	}
	for v := range seen {
		if v < h.p.Nodes[h.p.Head.First].Out {
			t.Errorf("%%%d of the first part was observed in a step of the head", v)
		}
	}
	fails.tokens = []int32{5}
	var where *plan.NotFiniteError
	res, err = r.predict(nil, fails, other)
	if !errors.As(err, &where) || res.Err[0] == nil || res.Err[1] != nil {
		t.Fatalf("a number that is not finite: errors %v", err)
	}
	if where.Position != 3 {
		t.Errorf("%v, want position 3", where)
	}
}
