package cpu

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// Places of an expert are consecutive, in the order of tokens.
func TestGroupGivesPlaces(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		n, tokens := 1+rng.IntN(12), rng.IntN(40)
		used := 1 + rng.IntN(n)
		s := newExpertSpace(expertSizes{experts: n + rng.IntN(3), choices: 40 * n}, 1)
		s.group(0, used, n) // from an earlier step
		for tok := range tokens {
			for k, e := range rng.Perm(n)[:used] {
				s.chosen[tok*used+k] = int32(e)
			}
		}
		s.group(tokens*used, used, n)
		next, shared := 0, 0
		for _, e := range s.active {
			first, count := s.tokens(e)
			if first != next || count == 0 {
				t.Fatalf("expert %d has %d places from %d, want some from %d", e, count, first, next)
			}
			for i := first + 1; i < first+count; i++ {
				if s.token[i] <= s.token[i-1] {
					t.Fatalf("expert %d: token %d follows %d", e, s.token[i], s.token[i-1])
				}
			}
			if next += count; count > 1 {
				shared += count
			}
		}
		if next != tokens*used || shared != s.shared {
			t.Fatalf("%d places, %d of them shared, want %d and %d", next, s.shared, tokens*used, shared)
		}
		for c, e := range s.chosen[:tokens*used] {
			first, count := s.tokens(e)
			if at := int(s.place[c]); at < first || at >= first+count || int(s.token[at]) != c/used {
				t.Fatalf("choice %d of expert %d has place %d", c, e, at)
			}
		}
	}
}

// Mixtures use as much scratch memory as is planned for them.
func TestExpertRoom(t *testing.T) {
	p := plantest.MoEModel(t, nil)
	for _, activations := range []tensor.DType{tensor.F32, tensor.Q8_0} {
		const tokens, workers = 50, 3
		lim := plantest.LimitsFor(p, tokens, 1, 64, 16, plan.Limits{Cache: tensor.F16, Activations: activations})
		z := New(workers).expertRoom(p, &lim)
		s := newExpertSpace(z, workers)
		n := 4*(len(s.chosen)+len(s.weights)+len(s.place)+len(s.token)+len(s.weight)+len(s.start)+len(s.next)+cap(s.active)+len(s.in)+len(s.hidden)) + len(s.inRec) + len(s.hiddenRec)
		for _, d := range s.desks {
			n += 8*(len(d.scores)+len(d.choice)+len(d.groups)) + len(d.out) + len(d.counted)
		}
		if n != z.bytes(workers) {
			t.Errorf("%v activations: %d bytes, want the planned %d", activations, n, z.bytes(workers))
		}
		if z.choices != 3*tokens || (z.inRec > 0) != (activations == tensor.Q8_0) || z.in == 0 {
			t.Errorf("%v activations: %+v", activations, z)
		}
	}
}

// Interleaved weights and tables are spare; experts that are read in place are not.
func TestSpareExperts(t *testing.T) {
	p := plantest.MoEModel(t, nil)
	lim := plantest.LimitsFor(p, 1, 1, 16, 16, plan.Limits{Cache: tensor.F16, Activations: tensor.Q8_0})
	got := map[string]bool{}
	exe, err := New(1).Compile(context.Background(), p, lim, func(w *tensor.Tensor, spare bool) { got[w.Name] = spare })
	if err != nil {
		t.Fatal(err)
	}
	if err := exe.Close(); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]bool{
		"embed": true, "positions": true, "0.experts.gate.7": true, "1.experts.up.0": true, "1.experts.down.3": true, "1.down": true,
		"2.experts.gate.0": false, "2.experts.down.3": false, "0.experts.down.bias.1": false, "0.experts.router": false, "1.choice": false,
	} {
		if spare, ok := got[name]; spare != want || !ok {
			t.Errorf("%s: spare %v, known %v", name, spare, ok)
		}
	}
}
