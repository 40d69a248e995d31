package cpu

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/longtest"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// A decode step allocates nothing, with one sequence or eight.
func TestStepsDoNotAllocate(t *testing.T) {
	for name, p := range models(t) {
		t.Run(name, func(t *testing.T) { allocatesNothing(t, p) })
	}
}

// models are programs that together have every operation of a decoder.
func models(t *testing.T) map[string]*plan.Program {
	return map[string]*plan.Program{"dense": plantest.Model(t, nil), "experts": plantest.MoEModel(t, nil), "beside": beside(t), "latent": plantest.LatentModel(t, nil), "sparse": plantest.SparseModel(t, nil), "compressed": plantest.CompressedModel(t, nil)}
}

// beside returns a program with maps and gates after products that share their input.
func beside(t *testing.T) *plan.Program {
	t.Helper()
	const d = 96
	rng := rand.New(rand.NewPCG(5, 6))
	weight := func(rows int) *tensor.Tensor { return plantest.Weight(rng, "w", tensor.Q8_0, 0.15, rows, d) }
	p, err := plan.Build(func(b *plan.Builder) {
		x := b.Embed(plantest.Weight(rng, "embed", tensor.F32, 1, 97, d))
		h := b.RMSNorm(x, plantest.Weight(rng, "norm", tensor.F32, 1, d), 1e-5)
		up := b.Activate(b.Linear(h, weight(d), nil), plan.GELU)                                     // read only as a record
		side := b.Scale(b.Linear(h, weight(d), plantest.Weight(rng, "bias", tensor.F32, 1, d)), 0.5) // read in both forms
		x = b.Add(x, b.Linear(b.Linear(h, weight(d), nil), weight(d), nil))
		x = b.Add(x, b.Add(side, b.Add(b.Linear(up, weight(d), nil), b.Linear(side, weight(d), nil))))
		h = b.RMSNorm(x, plantest.Weight(rng, "norm", tensor.F32, 1, d), 1e-5)
		x = b.Add(x, b.GLU(b.Scale(b.Linear(h, weight(d), nil), 2), b.Linear(h, weight(d), nil), plan.GLUAttr{Act: plan.SiLU, Limit: 1}))
		h = b.RMSNorm(x, plantest.Weight(rng, "norm", tensor.F32, 1, d), 1e-5)
		g := b.GLU(b.Linear(h, weight(64), nil), b.Linear(h, weight(64), nil), plan.GLUAttr{Act: plan.QuickGELU, Limit: 1, Shift: 1})
		x = b.Add(x, b.Scale(b.Linear(g, plantest.Weight(rng, "w", tensor.Q8_0, 0.15, d, 64), nil), 0.3))
		h = b.Pick(x)
		b.Output(h, b.Softcap(b.Linear(h, weight(97), nil), 3))
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func allocatesNothing(t *testing.T, p *plan.Program) {
	for _, tier := range tiers() {
		if !longtest.Wanted() && tier.name == "generic" {
			continue
		}
		for _, seqs := range []int{1, 8} {
			for _, activations := range []tensor.DType{tensor.F32, tensor.Q8_0} {
				b, err := New(2).WithTier(tier.name)
				if err != nil {
					t.Fatal(err)
				}
				base := plan.Limits{Cache: tensor.F16, Activations: activations}
				exe, err := b.Compile(context.Background(), p, plantest.LimitsFor(p, seqs, seqs, 64, 16, base), nil)
				if err != nil {
					t.Fatal(err)
				}
				batch := lockstep(p, seqs)
				step := func() {
					for i := range batch.Positions {
						batch.Positions[i] = (batch.Positions[i] + 1) % 16
					}
					s, err := exe.Submit(batch)
					if err != nil {
						t.Fatal(err)
					}
					if _, err := s.Wait(context.Background()); err != nil {
						t.Fatal(err)
					}
					s.Release()
				}
				for range 20 {
					step()
				}
				if n := testing.AllocsPerRun(50, step); n > 0 {
					t.Errorf("%s, %d sequences, %v activations: %v allocations a step", tier.name, seqs, activations, n)
				}
				if err := exe.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// lockstep returns a batch of one token for each sequence.
func lockstep(p *plan.Program, seqs int) *plan.Batch {
	b := &plan.Batch{Start: []int32{0}}
	for i := range int32(seqs) {
		b.Tokens = append(b.Tokens, i+3)
		b.Positions = append(b.Positions, 0)
		b.Start = append(b.Start, i+1)
		b.Lengths = append(b.Lengths, 1)
		b.Rows = append(b.Rows, plan.Row{Token: i, Want: plan.WantToken | plan.WantLogProbability})
	}
	for range p.Groups {
		table := plan.PageTable{Start: []int32{0}}
		for i := range int32(seqs) {
			table.Pages = append(table.Pages, i)
			table.Start = append(table.Start, i+1)
			table.First = append(table.First, 0)
		}
		b.Tables = append(b.Tables, table)
	}
	return b
}

// Fused stages have the same bits as single nodes.
func TestPassesChangeNoBit(t *testing.T) {
	for name, p := range models(t) {
		t.Run(name, func(t *testing.T) { passesChangeNoBit(t, p) })
	}
}

func passesChangeNoBit(t *testing.T, p *plan.Program) {
	for _, tier := range tiers() {
		b, err := New(2).WithTier(tier.name)
		if err != nil {
			t.Fatal(err)
		}
		var want [][]float32
		for _, passes := range []bool{true, false} {
			b.passes = passes
			lim := plantest.LimitsFor(p, 32, 1, 64, 16, plan.Limits{Cache: tensor.F16, Activations: tensor.Q8_0})
			if joined := len(b.layout(p, &lim, false).stages) < len(p.Nodes); joined != passes {
				t.Fatalf("passes %v: some nodes are fused: %v", passes, joined)
			}
			r, err := plantest.NewRunner(b, p, lim)
			if err != nil {
				t.Fatal(err)
			}
			s := r.Add([]int32{5, 9, 2, 70, 11, 3, 3, 8, 40, 41, 42, 96, 0, 1, 7, 20, 33, 50}, 7)
			if err := r.Run(); err != nil {
				t.Fatal(err)
			}
			_ = r.Exe.Close()
			if want == nil {
				want = s.Logits
				continue
			}
			for i := range want {
				for j, v := range s.Logits[i] {
					if v != want[i][j] {
						t.Fatalf("%s: logit %d of token %d is %v fused, %v apart", tier.name, j, i, want[i][j], v)
					}
				}
			}
		}
	}
}

// The bits do not depend on the number of workers.
func TestThreadsChangeNoBit(t *testing.T) {
	for name, p := range models(t) {
		t.Run(name, func(t *testing.T) { threadsChangeNoBit(t, p) })
	}
}

func threadsChangeNoBit(t *testing.T, p *plan.Program) {
	list := make([]int32, 70)
	for i := range list {
		list[i] = int32(i * 31 % 97)
	}
	for _, tier := range Tiers() {
		for _, base := range []plan.Limits{{Cache: tensor.F32}, {Cache: tensor.F16, Activations: tensor.Q8_0}} {
			var want [][]float32
			for _, threads := range []int{1, 2, 3} {
				b, err := New(threads).WithTier(tier)
				if err != nil {
					t.Fatal(err)
				}
				r, err := plantest.NewRunner(b, p, plantest.LimitsFor(p, 64, 1, 96, 16, base))
				if err != nil {
					t.Fatal(err)
				}
				s := r.Add(list, 33)
				if err := r.Run(); err != nil {
					t.Fatal(err)
				}
				_ = r.Exe.Close()
				if want == nil {
					want = s.Logits
				}
				for i := range want {
					if !slices.Equal(s.Logits[i], want[i]) {
						t.Fatalf("%s, %v activations: token %d has other bits with %d threads", tier, base.Activations, i, threads)
					}
				}
			}
		}
	}
}

// A step without rows does not compute the head.
func TestNoRowsNoHead(t *testing.T) {
	p := plantest.Model(t, nil)
	for _, activations := range []tensor.DType{tensor.F32, tensor.Q8_0} {
		exe, err := New(1).Compile(context.Background(), p, plantest.LimitsFor(p, 4, 1, 64, 16, plan.Limits{Cache: tensor.F16, Activations: activations}), nil)
		if err != nil {
			t.Fatal(err)
		}
		e := exe.(*executable)
		batch := lockstep(p, 1)
		batch.Rows = nil
		s, err := exe.Submit(batch)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, k := range e.code.kernels[len(e.code.kernels)-1] {
			if n := k.size(); n != 0 {
				t.Errorf("%v activations: the head has %d items", activations, n)
			}
		}
		if err := exe.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
