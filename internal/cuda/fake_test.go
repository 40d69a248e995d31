package cuda

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// openFake opens a driver without a GPU. It runs no kernels, so all sampled tokens are 0. At the
// end of the test the backend is closed, and nothing may be left.
func openFake(t *testing.T, options drivertest.Options, o Options) (*Backend, *drivertest.Fake) {
	t.Helper()
	f := drivertest.New(t, options)
	o.Driver = f.Driver()
	b, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b, f
}

func newRand() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

const decoderVocab = 40

// decoder returns a model of one layer with matrices of format d.
func decoder(t *testing.T, d tensor.DType) *plan.Program {
	t.Helper()
	const heads, kvHeads, headDim, hidden, ffn = 4, 2, 64, 256, 256
	rng := newRand()
	matrix := func(name string, rows, cols int) *tensor.Tensor { return plantest.Weight(rng, name, d, 1, rows, cols) }
	vector := func(name string, n int) *tensor.Tensor { return plantest.Weight(rng, name, tensor.F32, 1, n) }
	r := plan.RopeAttr{HeadDim: headDim, Dims: headDim, Scale: 1}
	for i := range headDim / 2 {
		r.Freqs = append(r.Freqs, math.Pow(1e4, -2*float64(i)/headDim))
	}
	return program(t, func(b *plan.Builder) {
		x := b.Embed(matrix("embed", decoderVocab, hidden))
		b.Layer(0)
		h := b.RMSNorm(x, vector("norm", hidden), 1e-5)
		q := b.Linear(h, matrix("q", heads*headDim, hidden), nil)
		k := b.Linear(h, matrix("k", kvHeads*headDim, hidden), nil)
		v := b.Linear(h, matrix("v", kvHeads*headDim, hidden), nil)
		s := b.State(plan.State{Name: "kv", Kind: plan.PerToken, KVHeads: kvHeads, HeadDim: headDim, ValueDim: headDim})
		y := b.Attention(b.Rope(q, r), b.Rope(k, r), v, nil, s, plan.AttentionAttr{Heads: heads, KVHeads: kvHeads, HeadDim: headDim, Scale: 0.2})
		x = b.Add(x, b.Linear(y, matrix("o", hidden, heads*headDim), nil))
		h = b.RMSNorm(x, vector("norm2", hidden), 1e-5)
		g := b.GLU(b.Linear(h, matrix("gate", ffn, hidden), nil), b.Linear(h, matrix("up", ffn, hidden), nil), plan.GLUAttr{Act: plan.SiLU})
		x = b.Add(x, b.Linear(g, matrix("down", hidden, ffn), nil))
		b.Layer(plan.NoLayer)
		h = b.RMSNorm(b.Pick(x), vector("last", hidden), 1e-5)
		b.Output(h, b.Linear(h, matrix("head", decoderVocab, hidden), nil))
	})
}

func program(t *testing.T, f func(b *plan.Builder)) *plan.Program {
	t.Helper()
	p, err := plan.Build(f)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Pages of the tests' executables.
const (
	testPageTokens = 16
	testContext    = 64
)

// limitsFor returns limits for steps with the given numbers of tokens and sequences.
func limitsFor(p *plan.Program, tokens, seqs int) plan.Limits {
	return plantest.LimitsFor(p, tokens, seqs, testContext, testPageTokens, plan.Limits{Cache: tensor.F16, Activations: tensor.F16})
}

func compiled(t *testing.T, b *Backend, p *plan.Program, lim plan.Limits) *executable {
	t.Helper()
	x, err := b.Compile(context.Background(), p, lim, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return x.(*executable)
}

// batchOf returns a batch with n tokens of each sequence at a position, and a row for the last of
// them.
func batchOf(p *plan.Program, seqs, position, n int) *plan.Batch {
	return batchWith(p, testContext/testPageTokens, seqs, position, n)
}

// batchWith is batchOf with sequences that have so many pages.
func batchWith(p *plan.Program, pages, seqs, position, n int) *plan.Batch {
	b := &plan.Batch{Start: []int32{0}, Tables: make([]plan.PageTable, len(p.Groups))}
	for g := range b.Tables {
		b.Tables[g].Reset()
	}
	for s := range seqs {
		for i := range n {
			b.Tokens = append(b.Tokens, int32(i%decoderVocab))
			b.Positions = append(b.Positions, int32(position+i))
		}
		b.Start = append(b.Start, int32(len(b.Tokens)))
		b.Lengths = append(b.Lengths, int32(position+n))
		b.Rows = append(b.Rows, plan.Row{Token: int32(len(b.Tokens) - 1), Want: plan.WantToken})
		for g := range b.Tables {
			if of := p.Groups[g]; of.Kind == plan.PerSequence {
				in, out := int32(-1), int32(-1)
				if of.Taken(position) > 0 {
					in = int32(2 * s)
				}
				if of.Taken(position+n) > of.Taken(position) {
					out = int32(2*s + 1)
				}
				b.Tables[g].AddSlots(in, out)
				continue
			}
			var own []int32
			for i := range pages {
				own = append(own, int32(s*pages+i))
			}
			b.Tables[g].Add(0, own...)
		}
	}
	return b
}

// run submits a step and waits for it.
func run(e plan.Executable, b *plan.Batch) error {
	s, err := e.Submit(b)
	if err != nil {
		return err
	}
	defer s.Release()
	r, err := s.Wait(context.Background())
	if err != nil {
		return err
	}
	for _, err := range r.Err {
		if err != nil {
			return err
		}
	}
	return nil
}
