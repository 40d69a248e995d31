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
	"github.com/realizar/realizar/internal/random"
	"github.com/realizar/realizar/internal/sample"
	"github.com/realizar/realizar/tensor"
)

const (
	modelVocab  = 97
	modelHidden = 256
)

// Model returns a small decoder of 97 tokens with every operation, a windowed layer, a layer with a
// softcap and sinks, and weights of several dtypes. change, if not nil, may alter the weights of
// norms and products.
func Model(t *testing.T, change func(*tensor.Tensor)) *plan.Program {
	rng := newRand(11)
	weight := func(name string, d tensor.DType, rows, cols int) *tensor.Tensor {
		w := Weight(rng, name, d, 0.06, rows, cols)
		if change != nil {
			change(w)
		}
		return w
	}
	norm := func(name string, n int) *tensor.Tensor {
		w := vector(rng, name, 1, 0.1, n)
		if change != nil {
			change(w)
		}
		return w
	}
	const heads, kvHeads, headDim, ffn = 4, 2, 32, 256
	return build(t, func(b *plan.Builder) {
		x := b.Embed(Weight(rng, "embed", tensor.F16, 1, modelVocab, modelHidden))
		for i, d := range []tensor.DType{tensor.Q4_K, tensor.BF16, tensor.Q8_0} {
			b.Layer(i)
			name := func(s string) string { return fmt.Sprintf("%d.%s", i, s) }
			a := plan.AttentionAttr{Heads: heads, KVHeads: kvHeads, HeadDim: headDim, Scale: 0.17}
			var sinks *tensor.Tensor
			switch i {
			case 1:
				a.Window = 50
			case 2:
				a.Softcap, sinks = 2, vector(rng, name("sinks"), 0, 2, heads)
			}
			h := b.RMSNorm(x, norm(name("norm"), modelHidden), 1e-5)
			r := plan.RopeAttr{HeadDim: headDim, Dims: headDim, Freqs: powers(1e4, headDim), Scale: 1}
			q := b.Linear(h, weight(name("q"), d, heads*headDim, modelHidden), vector(rng, name("qb"), 0, 0.1, heads*headDim))
			k := b.RMSNorm(b.Linear(h, weight(name("k"), d, kvHeads*headDim, modelHidden), nil), norm(name("kn"), headDim), 1e-5)
			v := b.Linear(h, weight(name("v"), tensor.Q6_K, kvHeads*headDim, modelHidden), nil)
			st := b.State(plan.State{Name: name("kv"), Kind: plan.PerToken, KVHeads: kvHeads, HeadDim: headDim, ValueDim: headDim, Window: a.Window})
			y := b.Attention(b.Rope(q, r), b.Rope(k, r), v, sinks, st, a)
			x = b.Add(x, b.Linear(y, weight(name("o"), tensor.Q5_0, modelHidden, heads*headDim), nil))
			h = b.RMSNorm(x, norm(name("norm2"), modelHidden), 1e-5)
			g := b.GLU(b.Linear(h, weight(name("gate"), d, ffn, modelHidden), nil), b.Linear(h, weight(name("up"), d, ffn, modelHidden), nil), plan.GLUAttr{Act: plan.SiLU})
			x = b.Add(x, b.Linear(g, weight(name("down"), tensor.Q4_0, modelHidden, ffn), nil))
		}
		b.Layer(plan.NoLayer)
		h := b.RMSNorm(b.Pick(x), norm("last", modelHidden), 1e-5)
		b.Output(h, b.Linear(h, weight("head", tensor.Q8_0, modelVocab, modelHidden), nil))
	})
}

// sizes are the tokens per step; a sequence must have the same bits for all of them.
var sizes = []int{1, 2, 7, 8, 16, 17, 64, 65, 256}

func runner(t *testing.T, b plan.Backend, p *plan.Program, tokens, seqs, context int, base plan.Limits) *Runner {
	t.Helper()
	r, err := NewRunner(b, p, LimitsFor(p, tokens, seqs, context, 16, base))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Exe.Close() })
	return r
}

// logits returns the logits of a sequence in steps of chunk tokens, beside others. It drops them all.
func (r *Runner) logits(t *testing.T, list []int32, chunk int, beside ...*Seq) [][]float32 {
	t.Helper()
	s := r.Add(list, chunk)
	if err := r.Run(); err != nil {
		t.Fatal(err)
	}
	for _, other := range append(beside, s) {
		r.Drop(other)
	}
	return s.Logits
}

func sameBits(t *testing.T, b plan.Backend) {
	for name, model := range Models {
		tokens := 257 + 3
		if name != "dense" {
			tokens = 130 // the other model covers long contexts and other caches
		}
		t.Run(name, func(t *testing.T) {
			sameBitsOf(t, b, model(t, nil), tokens)
		})
	}
}

func sameBitsOf(t *testing.T, b plan.Backend, p *plan.Program, tokens int) {
	list := ids(newRand(21), tokens, modelVocab)
	some := map[tensor.DType][]int{tensor.F32: {7, 64}, tensor.F16: {1, 17, 256}, tensor.Q8_0: {65}, tensor.F8_E4M3: {1, 66}}
	for _, base := range []plan.Limits{{Cache: tensor.F32}, {Cache: tensor.F16, Activations: b.Rounds()}, {Cache: tensor.Q8_0}, {Cache: tensor.F8_E4M3}} {
		bytes := plan.HeadUnit(base.Cache) > 1
		if bytes && tokens < 256 {
			continue
		}
		r := runner(t, b, p, 600, 3, 300, base)
		run := func(chunk int, beside ...*Seq) [][]float32 {
			t.Helper()
			return r.logits(t, list, chunk, beside...)
		}
		want := run(len(list))
		all := sizes
		if tokens < 256 {
			all = []int{1, 7, 17, 65}
		}
		for _, chunk := range longtest.Cases(all, some[base.Cache]) {
			if bytes && chunk > 1 && chunk < 64 || chunk > tokens {
				continue // the cache's dtype and the step's size are independent
			}
			same(t, fmt.Sprintf("%v cache, %v activations, steps of %d", base.Cache, base.Activations, chunk), run(chunk), want)
		}
		if !longtest.Wanted() && base.Cache != tensor.F16 {
			continue
		}
		other := ids(newRand(22), tokens+30, modelVocab)
		same(t, "beside others", run(64, r.Add(other, 1), r.Add(other[:31], 31)), want)
		same(t, "beside others in small steps", run(1, r.Add(other, 7), r.Add(other[100:], 64)), want)
	}
}

func same(t *testing.T, what string, got, want [][]float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d rows, want %d", what, len(got), len(want))
	}
	for i := range want {
		if !slices.Equal(got[i], want[i]) {
			t.Fatalf("%s: row %d has other bits", what, i)
		}
		if blank(want[i]) {
			t.Fatalf("%s: row %d is zeros, as that of a device that computes nothing", what, i)
		}
	}
}

// blank reports whether a row is zeros alone.
func blank(row []float32) bool {
	return len(row) > 0 && !slices.ContainsFunc(row, func(v float32) bool { return v != 0 })
}

// A sequence whose pages were saved, overwritten and restored elsewhere continues with the same
// bits.
func states(t *testing.T, b plan.Backend) {
	for name, model := range Models {
		for _, cache := range Caches {
			t.Run(fmt.Sprintf("%s, %v", name, cache), func(t *testing.T) {
				movedStates(t, b, model(t, nil), cache)
			})
		}
	}
}

func movedStates(t *testing.T, b plan.Backend, p *plan.Program, cache tensor.DType) {
	list := ids(newRand(23), 100, modelVocab)
	r := runner(t, b, p, 100, 3, 100, plan.Limits{Cache: cache, Activations: b.Rounds()})
	whole := r.Add(list, 100)
	if err := r.Run(); err != nil {
		t.Fatal(err)
	}
	r.Drop(whole)
	first := r.Add(list[:70], 64)
	if err := r.Run(); err != nil {
		t.Fatal(err)
	}
	var save, restore []plan.StateOp
	moved := make([][]int32, len(p.Groups))
	for g := range p.Groups {
		size, err := r.Limits.PageBytes(p, g)
		if err != nil {
			t.Fatal(err)
		}
		zeros, err := r.Exe.AllocHost(size)
		if err != nil {
			t.Fatal(err)
		}
		clear(zeros)
		for _, page := range first.tables[g] {
			if page < 0 {
				moved[g] = append(moved[g], page)
				continue
			}
			to := r.free[g][0]
			r.free[g] = r.free[g][1:]
			moved[g] = append(moved[g], to)
			host, err := r.Exe.AllocHost(size)
			if err != nil {
				t.Fatal(err)
			}
			save = append(save, plan.StateOp{Kind: plan.SavePage, Group: g, Page: page, Host: host}, plan.StateOp{Kind: plan.RestorePage, Group: g, Page: page, Host: zeros})
			restore = append(restore, plan.StateOp{Kind: plan.RestorePage, Group: g, Page: to, Host: host})
		}
	}
	r.ops = save
	between := r.Add(ids(newRand(24), 3, modelVocab), 3) // a sequence whose steps save and overwrite pages
	if err := r.Run(); err != nil {
		t.Fatal(err)
	}
	r.Drop(between)
	r.ops = restore
	first.IDs, first.tables = list, moved
	if err := r.Run(); err != nil {
		t.Fatal(err)
	}
	same(t, "restored", first.Logits, whole.Logits)
}

// Host memory for pages is freed when the steps that use it are done. Only memory that AllocHost
// returned can be freed. Close frees the rest.
func hostMemory(t *testing.T, b plan.Backend) {
	p := Model(t, nil)
	r := runner(t, b, p, 64, 2, 64, plan.Limits{Cache: tensor.F16})
	if _, err := r.Exe.AllocHost(0); err == nil {
		t.Error("AllocHost of 0 bytes has no error")
	}
	size, err := r.Limits.PageBytes(p, 0)
	if err != nil {
		t.Fatal(err)
	}
	pages, err := r.Exe.AllocHost(3 * size)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Exe.AllocHost(size); err != nil {
		t.Fatal(err)
	}
	if len(pages) != 3*size {
		t.Fatalf("%d bytes, want %d", len(pages), 3*size)
	}
	rng := newRand(25)
	for i := range pages {
		pages[i] = byte(rng.Uint32())
	}
	step := func(ops ...plan.StateOp) plan.Step {
		t.Helper()
		tables := make([]plan.PageTable, len(p.Groups))
		for g := range tables {
			tables[g] = plan.PageTable{Pages: []int32{0}, Start: []int32{0, 1}, First: []int32{0}}
		}
		s, err := r.Exe.Submit(&plan.Batch{
			Tokens: []int32{1}, Positions: []int32{0}, Start: []int32{0, 1}, Lengths: []int32{1}, Tables: tables, States: ops,
		})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	// Two steps in flight: the second restores and saves what the first saved.
	a, other, c := pages[:size], pages[size:2*size], pages[2*size:]
	steps := []plan.Step{
		step(plan.StateOp{Kind: plan.RestorePage, Page: 2, Host: a}),
		step(plan.StateOp{Kind: plan.SavePage, Page: 2, Host: c}, plan.StateOp{Kind: plan.RestorePage, Page: 2, Host: other}),
	}
	for _, s := range steps {
		wait(t, s)
		s.Release()
	}
	if !slices.Equal(a, c) {
		t.Error("a restored page has other bytes")
	}
	if r.Exe.FreeHost(a[1:]) == nil {
		t.Error("FreeHost of memory that AllocHost did not return has no error")
	}
	last := step(plan.StateOp{Kind: plan.SavePage, Page: 2, Host: c}, plan.StateOp{Kind: plan.RestorePage, Page: 3, Host: a})
	if err := r.Exe.FreeHost(a); err != nil { // FreeHost needs only the beginning
		t.Error(err)
	}
	wait(t, last)
	if r.Exe.FreeHost(a) == nil {
		t.Error("FreeHost a second time has no error")
	}
}

func sampling(t *testing.T, b plan.Backend) {
	p := Model(t, nil)
	exe, err := b.Compile(context.Background(), p, LimitsFor(p, 8, 2, 32, 16, plan.Limits{Cache: tensor.F32}), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = exe.Close() }()
	tables := []plan.PageTable{
		{Pages: []int32{2, 1, 0, 3}, Start: []int32{0, 2, 4}, First: []int32{0, 0}},
		{Pages: []int32{1, 0, 3, 2}, Start: []int32{0, 2, 4}, First: []int32{0, 0}},
	}
	masks := map[int32][]uint32{1: maskOf(modelVocab, 41)}
	if err := exe.SetMask(1, masks[1]); err != nil {
		t.Fatal(err)
	}
	first := &plan.Batch{
		Tokens: []int32{5, 6, 7, 8, 9}, Positions: []int32{0, 1, 2, 0, 1}, Start: []int32{0, 3, 5}, Lengths: []int32{3, 2}, Tables: tables,
		Rows: []plan.Row{
			{Token: 1, Want: plan.WantToken | plan.WantLogits | plan.WantLogProbability},
			{Token: 2, Want: plan.WantToken | plan.WantLogits | plan.WantLogProbability, Sampling: sample.Params{Temperature: 3, TopK: 50, Seed: 7}},
			{Token: 3, Want: plan.WantToken | plan.WantLogits | plan.WantLogProbability, Mask: 1},
			{Token: 4, Want: plan.WantToken | plan.WantLogits, Sampling: sample.Params{Temperature: 5, Seed: 8}},
		},
	}
	// Two steps are submitted before either is waited for. The second begins with sampled tokens
	// that the host does not know yet.
	second := &plan.Batch{
		Tokens: []int32{0, 0}, From: []int32{1, 3}, Positions: []int32{3, 2}, Start: []int32{0, 1, 2}, Lengths: []int32{3, 2}, Tables: tables,
		Rows: []plan.Row{{Token: 0, Want: plan.WantLogits}, {Token: 1, Want: plan.WantLogits | plan.WantLogProbability}},
	}
	steps := make([]plan.Step, 2)
	for i, batch := range []*plan.Batch{first, second} {
		if steps[i], err = exe.Submit(batch); err != nil {
			t.Fatal(err)
		}
	}
	res, err := steps[0].Wait(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	later, err := steps[1].Wait(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	logProbabilities(t, first.Rows, res)
	logProbabilities(t, second.Rows, later)
	var s sample.Sampler
	for i, row := range first.Rows {
		if row.Want&plan.WantLogits == 0 {
			continue
		}
		want, err := s.Token(res.Logits[i], &row.Sampling, masks[row.Mask], nil, -1, int(first.Positions[row.Token])+1)
		if err != nil {
			t.Fatal(err)
		}
		if res.Tokens[i] != want {
			t.Errorf("row %d: token %d, the sampler chooses %d", i, res.Tokens[i], want)
		}
	}
	if res.Tokens[2] != 41 {
		t.Errorf("a mask of token 41 alone gives %d", res.Tokens[2])
	}
	third := &plan.Batch{
		Tokens: []int32{res.Tokens[1], res.Tokens[3]}, Positions: second.Positions, Start: second.Start, Lengths: second.Lengths, Tables: tables, Rows: second.Rows,
	}
	step, err := exe.Submit(third)
	if err != nil {
		t.Fatal(err)
	}
	again, err := step.Wait(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	same(t, "tokens by reference", later.Logits, again.Logits)
}

// logProbabilities checks the log-probabilities of a step whose rows also want logits.
func logProbabilities(t *testing.T, rows []plan.Row, res *plan.Result) {
	t.Helper()
	if len(res.LogProbabilities) != len(rows) {
		t.Fatalf("%d log-probabilities of %d rows", len(res.LogProbabilities), len(rows))
	}
	for i, row := range rows {
		want := 0.0
		if row.Want&plan.WantLogProbability != 0 && res.Tokens[i] >= 0 {
			sum := 0.0
			for _, v := range res.Logits[i] {
				sum += math.Exp(float64(v))
			}
			want = float64(res.Logits[i][res.Tokens[i]]) - math.Log(sum)
		}
		if got := float64(res.LogProbabilities[i]); !(math.Abs(got-want) <= 1e-5) {
			t.Errorf("row %d: token %d has the log-probability %v, want %v", i, res.Tokens[i], got, want)
		}
	}
}

// A value that is not finite fails only its sequence. The error names the layer where it arose.
func notFinite(t *testing.T, b plan.Backend) {
	for _, c := range []struct {
		weight string
		layer  int
		norm   string  // norm whose output the weight multiplies, or the gate before it
		by     float32 // factor for the norm for which its output still fits float32
	}{{"1.down", 1, "1.norm2", 1e17}, {"2.k", 2, "2.norm", 1e34}, {"0.v", 0, "0.norm", 1e34}, {"head", plan.NoLayer, "last", 1e34}} {
		activations := tensor.F32
		if c.layer != 1 { // either layer is right
			activations = b.Rounds()
		}
		p := Model(t, func(w *tensor.Tensor) {
			switch w.Name {
			case c.weight:
				scales := random.Scales(w.DType)
				for at := 0; at < len(w.Data); at += w.DType.BlockBytes() {
					binary.LittleEndian.PutUint16(w.Data[at+scales[0]:], 0x7bff) // largest float16
				}
			case c.norm:
				for i := range w.Elems() {
					binary.LittleEndian.PutUint32(w.Data[4*i:], math.Float32bits(c.by))
				}
			}
		})
		var where *plan.NotFiniteError
		r := runner(t, b, p, 8, 1, 16, plan.Limits{Cache: tensor.F32, Activations: activations})
		r.Add([]int32{1, 2, 3, 4}, 4)
		err := r.Run()
		if !errors.Is(err, plan.ErrNotFinite) || !errors.As(err, &where) {
			t.Errorf("%s: error %v", c.weight, err)
		} else if where.Layer != c.layer {
			t.Errorf("%s: said to begin in %s", c.weight, where.Where)
		}
	}

	// One token's embedding is too large to be doubled. Only the sequence that uses it fails.
	table := Weight(newRand(1), "embed", tensor.F32, 1, 4, 8)
	binary.LittleEndian.PutUint32(table.Data[3*8*4:], math.Float32bits(math.MaxFloat32))
	p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value { return b.Add(x, x) })
	exe, err := b.Compile(context.Background(), p, plan.Limits{Tokens: 4, Seqs: 3, Rows: 4, PageTokens: 4, Cache: tensor.F32}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = exe.Close() }()
	step, err := exe.Submit(&plan.Batch{
		Tokens: []int32{0, 3, 1}, Positions: []int32{0, 0, 0}, Start: []int32{0, 1, 2, 3}, Lengths: []int32{1, 1, 1}, Tables: []plan.PageTable{},
		Rows: []plan.Row{{Token: 0, Want: plan.WantToken}, {Token: 1, Want: plan.WantToken}, {Token: 2, Want: plan.WantToken}},
	})
	if err != nil {
		t.Fatal(err)
	}
	res, err := step.Wait(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Err) != 3 || res.Err[0] != nil || res.Err[1] == nil || res.Err[2] != nil || res.Tokens[0] < 0 || res.Tokens[1] != -1 {
		t.Errorf("errors %v, tokens %v", res.Err, res.Tokens)
	}

	// A value that an F16 cache cannot hold is an error too; an F32 cache holds it, and an
	// F8_E4M3 cache does not. A Q8_0 cache may do either, because its numbers may be multiplied in
	// float16.
	big := Weight(newRand(2), "embed", tensor.F32, 1e5, 4, 32)
	p = single(t, big, func(b *plan.Builder, x plan.Value) plan.Value {
		st := b.State(plan.State{Name: "kv", Kind: plan.PerToken, KVHeads: 1, HeadDim: 32, ValueDim: 32})
		return b.Attention(x, x, x, nil, st, plan.AttentionAttr{Heads: 1, KVHeads: 1, HeadDim: 32, Scale: 1e-9})
	})
	for cache, fails := range map[tensor.DType]bool{tensor.F16: true, tensor.F32: false, tensor.F8_E4M3: true} {
		r := runner(t, b, p, 4, 1, 4, plan.Limits{Cache: cache})
		r.Add([]int32{0, 1}, 2)
		if err := r.Run(); (err != nil) != fails {
			t.Errorf("values about 1e5 in an %v cache: error %v", cache, err)
		}
	}
}

// A step fails after its page was given to another sequence. The search for the value that is not
// finite changes nothing that later steps have written.
func notFiniteReused(t *testing.T, b plan.Backend) {
	const dim = 32
	table := Weight(newRand(3), "embed", tensor.F32, 1, 4, dim)
	for i := range dim {
		binary.LittleEndian.PutUint32(table.Data[4*(3*dim+i):], math.Float32bits(math.MaxFloat32))
	}
	p := single(t, table, func(b *plan.Builder, x plan.Value) plan.Value {
		st := b.State(plan.State{Name: "kv", Kind: plan.PerToken, KVHeads: 1, HeadDim: dim, ValueDim: dim})
		return b.Add(b.Attention(x, x, x, nil, st, plan.AttentionAttr{Heads: 1, KVHeads: 1, HeadDim: dim, Scale: 0.2}), b.Add(x, x))
	})
	batch := func(position int32, tokens []int32, pages ...int32) *plan.Batch {
		x := &plan.Batch{Start: []int32{0}, Tables: make([]plan.PageTable, 1)}
		x.Tables[0].Reset()
		for i, token := range tokens {
			x.Tokens, x.Positions, x.Start = append(x.Tokens, token), append(x.Positions, position), append(x.Start, int32(i+1))
			x.Lengths, x.Rows = append(x.Lengths, 8), append(x.Rows, plan.Row{Token: int32(i), Want: plan.WantLogits})
			x.Tables[0].Add(0, pages[i])
		}
		return x
	}
	// The second sequence fails and the first one ends; the next step reuses its page.
	last := func(before ...*plan.Batch) []float32 {
		exe, err := b.Compile(context.Background(), p, plan.Limits{Tokens: 2, Seqs: 2, Rows: 2, PageTokens: 4, Pages: []int{2}, Cache: tensor.F32}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = exe.Close() }()
		var steps []plan.Step
		for _, x := range before {
			step, err := exe.Submit(x)
			if err != nil {
				t.Fatal(err)
			}
			steps = append(steps, step)
		}
		for i, step := range steps {
			res, err := step.Wait(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if fails := before[i].Seqs() > 1; fails != (len(res.Err) > 1 && res.Err[0] == nil && res.Err[1] != nil) {
				t.Errorf("step %d: errors %v", i, res.Err)
			}
		}
		step, err := exe.Submit(batch(1, []int32{2}, 0))
		if err != nil {
			t.Fatal(err)
		}
		res, err := step.Wait(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if len(res.Err) > 0 && res.Err[0] != nil {
			t.Fatal(res.Err[0])
		}
		return slices.Clone(res.Logits[0])
	}
	want := last(batch(0, []int32{1}, 0))
	if got := last(batch(0, []int32{0, 3}, 0, 1), batch(0, []int32{1}, 0)); !slices.Equal(got, want) {
		t.Errorf("after a step that failed, a page has other values: %v, want %v", got[:4], want[:4])
	}
}

// A malformed batch is an error, not a wrong memory access.
func malformed(t *testing.T, b plan.Backend) {
	p := Model(t, nil)
	lim := LimitsFor(p, 8, 2, 32, 16, plan.Limits{Cache: tensor.F32})
	exe, err := b.Compile(context.Background(), p, lim, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = exe.Close() }()
	size, err := lim.PageBytes(p, 0)
	if err != nil {
		t.Fatal(err)
	}
	page, err := exe.AllocHost(size)
	if err != nil {
		t.Fatal(err)
	}
	good := func() *plan.Batch {
		table := plan.PageTable{Pages: []int32{0, 1, 2, 3}, Start: []int32{0, 2, 4}, First: []int32{0, 0}}
		return &plan.Batch{
			Tokens: []int32{5, 6, 8}, Positions: []int32{0, 1, 0}, Start: []int32{0, 2, 3}, Lengths: []int32{2, 1},
			Tables: []plan.PageTable{table, table}, Rows: []plan.Row{{Token: 1}, {Token: 2}},
		}
	}
	if step, err := exe.Submit(good()); err != nil {
		t.Fatal(err)
	} else if _, err := step.Wait(context.Background()); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(b *plan.Batch){
		"no tokens":              func(b *plan.Batch) { *b = plan.Batch{} },
		"inputs of others":       func(b *plan.Batch) { b.Input = [][]float32{{1}, {1}, {1}} },
		"too many tokens":        func(b *plan.Batch) { b.Tokens = make([]int32, 9) },
		"id outside":             func(b *plan.Batch) { b.Tokens[1] = modelVocab },
		"negative id":            func(b *plan.Batch) { b.Tokens[1] = -1 },
		"a row that is not":      func(b *plan.Batch) { b.From = []int32{-1, 2, -1} },
		"positions apart":        func(b *plan.Batch) { b.Positions[1] = 2 },
		"negative position":      func(b *plan.Batch) { b.Positions[2] = -1 },
		"position without page":  func(b *plan.Batch) { b.Positions[2] = 32 },
		"position past the page": func(b *plan.Batch) { b.Positions[2] = math.MaxInt32 },
		"empty sequence":         func(b *plan.Batch) { b.Start[1] = 3 },
		"start beyond":           func(b *plan.Batch) { b.Start[1] = 70 },
		"page outside":           func(b *plan.Batch) { b.Tables[1].Pages = []int32{0, 1, 2, 4} },
		"page negative":          func(b *plan.Batch) { b.Tables[1].Pages = []int32{0, -1, 2, 3} },
		"no table":               func(b *plan.Batch) { b.Tables = b.Tables[:1] },
		"table too short":        func(b *plan.Batch) { b.Tables[0].Start = []int32{0, 4} },
		"first too late":         func(b *plan.Batch) { b.Tables[0].First = []int32{1, 0} },
		"rows out of order":      func(b *plan.Batch) { b.Rows[0].Token = 2 },
		"row outside":            func(b *plan.Batch) { b.Rows[1].Token = 3 },
		"mask outside":           func(b *plan.Batch) { b.Rows[0].Mask = 5 },
		"mask negative":          func(b *plan.Batch) { b.Rows[0].Mask = -1 },
		"sampling":               func(b *plan.Batch) { b.Rows[0].Sampling.Temperature = float32(math.NaN()) },
		"adjustments": func(b *plan.Batch) {
			b.Rows[0].Adjustments = []sample.Adjustment{{Token: 4}, {Token: 4}}
		},
		"adjustment outside": func(b *plan.Batch) { b.Rows[0].Adjustments = []sample.Adjustment{{Token: modelVocab}} },
		"adjustment NaN": func(b *plan.Batch) {
			b.Rows[0].Adjustments = []sample.Adjustment{{Token: 4, Bias: float32(math.NaN())}}
		},
		"state page":  func(b *plan.Batch) { b.States = []plan.StateOp{{Kind: plan.RestorePage, Page: 4, Host: page}} },
		"state group": func(b *plan.Batch) { b.States = []plan.StateOp{{Kind: plan.RestorePage, Group: 2, Host: page}} },
		"state kind":  func(b *plan.Batch) { b.States = []plan.StateOp{{Kind: plan.RestorePage + 1, Host: page}} },
		"state bytes": func(b *plan.Batch) { b.States = []plan.StateOp{{Kind: plan.SavePage, Host: make([]byte, 1)}} },
		"lengths":     func(b *plan.Batch) { b.Lengths = b.Lengths[:1] },
	} {
		batch := good()
		spoil(batch)
		if _, err := exe.Submit(batch); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
