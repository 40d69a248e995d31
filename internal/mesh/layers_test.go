package mesh

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// The last part of a dense model in two parts begins with what the layer before has written.
func TestLayersOfModel(t *testing.T) {
	p := plantest.Model(t, nil)
	parts, err := Layers(p, Equal(2))
	if err != nil {
		t.Fatal(err)
	}
	first, last := parts[0].Program, parts[1].Program
	ends := first.Nodes[len(first.Nodes)-2:]
	got := []string{ends[0].String(), ends[1].String(), fmt.Sprintf("hidden %%%d, logits %%%d, residual %%%d, %d layers, states %d", first.Hidden, first.Logits, first.Residual, first.Layers(), len(first.States))}
	for i := range 3 {
		got = append(got, last.Nodes[i].String())
	}
	got = append(got, fmt.Sprintf("%d columns, %d layers, states %d", last.Inputs, last.Layers(), len(last.States)))
	const want = `add %26 %31
pick %32
hidden %33, logits %33, residual %32, 2 layers, states 2
input {columns 0:256}
rmsnorm %0 2.norm:F32 {group 256, eps 1e-05}
linear %1 2.q:Q8_0 2.qb:F32
256 columns, 3 layers, states 1`
	if got := strings.Join(got, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if of := last.Nodes[0].Attr.(plan.InputAttr).Of; of == nil || of.Op != plan.Add || of.Layer != 1 {
		t.Errorf("the input is that of %v", of)
	}
}

// Parts have all nodes in their order, each state and each weight that is no table of two parts once,
// and return what the next one reads. Layers stay whole if there are enough.
func TestLayers(t *testing.T) {
	for name, model := range plantest.Models {
		p := model(t, nil)
		for n := 1; n <= 5; n++ {
			parts, err := Layers(p, Equal(n))
			if err != nil {
				t.Fatalf("%s, %d parts: %v", name, n, err)
			}
			var nodes, states, wanted []string
			most := 0
			for i := range parts {
				q := parts[i].Program
				most = max(most, parts[i].Weights())
				if parts[i].gives != (i < n-1) || (q.Inputs > 0) != (i > 0) || i > 0 && q.Inputs != int(parts[i-1].Program.Shapes[parts[i-1].Program.Hidden][1]) {
					t.Errorf("%s: part %d of %d gives %v and reads %d columns", name, i, n, parts[i].gives, q.Inputs)
				}
				own := q.Nodes
				if parts[i].gives {
					own = own[:len(own)-1]
					for own[len(own)-1].Op == plan.Concat && own[len(own)-1].Layer == plan.NoLayer {
						own = own[:len(own)-1]
					}
				}
				for j := range own {
					if own[j].Op != plan.Input {
						nodes = append(nodes, own[j].Where())
					}
					if n <= p.Layers() && i > 0 && own[j].Layer != plan.NoLayer && own[j].Layer < parts[i-1].Program.Layers() {
						t.Errorf("%s: layer %d is in two of %d parts", name, own[j].Layer, n)
					}
				}
				for _, s := range q.States {
					states = append(states, s.String())
				}
				for g := range q.Groups {
					if q.Groups[g] != p.Groups[g] {
						t.Errorf("%s: group %d is another one in part %d", name, g, i)
					}
				}
			}
			for i := range p.Nodes {
				wanted = append(wanted, p.Nodes[i].Where())
			}
			if !slices.Equal(nodes, wanted) {
				t.Errorf("%s in %d parts has the nodes\n%q\nwant\n%q", name, n, nodes, wanted)
			}
			wanted = nil
			for _, s := range p.States {
				wanted = append(wanted, s.String())
			}
			if slices.Sort(wanted); !slices.Equal(slices.Sorted(slices.Values(states)), wanted) {
				t.Errorf("%s in %d parts has the states %q, want %q", name, n, states, wanted)
			}
			for _, cache := range []tensor.DType{tensor.F16, tensor.F32} {
				l := plantest.LimitsFor(p, 8, 2, 64, 16, plan.Limits{Cache: cache})
				if _, err := layoutPages(p, parts, &l); err != nil {
					t.Errorf("%s, %d parts: %v", name, n, err)
				}
			}
		}
	}
}

// The part with the most bytes for its share has as few as can be: no other choice of cuts has fewer.
func TestBalanced(t *testing.T) {
	bytes := []int{3, 9, 1, 1, 8, 2, 7, 4, 4, 6}
	cuts := []int{1, 2, 4, 5, 7, 8}
	largest := func(chosen []int, shares []float64) (most float64) {
		from := 0
		for i, to := range append(slices.Clone(chosen), len(bytes)) {
			sum := 0
			for _, n := range bytes[from:to] {
				sum += n
			}
			most, from = max(most, float64(sum)/shares[i]), to
		}
		return most
	}
	all := [][]float64{{0.2, 0.8}, {0.8, 0.2}, {0.6, 0.1, 0.3}, {0.1, 0.2, 0.3, 0.4}}
	for parts := 1; parts <= len(cuts)+1; parts++ {
		all = append(all, Equal(parts))
	}
	for _, shares := range all {
		got, best := balanced(bytes, cuts, shares), math.Inf(1)
		for set := range 1 << len(cuts) {
			var chosen []int
			for i, cut := range cuts {
				if set>>i&1 == 1 {
					chosen = append(chosen, cut)
				}
			}
			if len(chosen) == len(shares)-1 {
				best = min(best, largest(chosen, shares))
			}
		}
		if len(got) != len(shares)-1 || !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) || largest(got, shares) != best {
			t.Errorf("shares %v are cut at %v, the largest has %v bytes for its share, want %v", shares, got, largest(got, shares), best)
		}
	}
}

// A state that layers share keeps them in one part, and what has no row for each token is not handed
// on.
func TestCuts(t *testing.T) {
	weight := func(rows, cols int) *tensor.Tensor {
		return &tensor.Tensor{Name: "w", DType: tensor.F32, Shape: []int{rows, cols}, Data: make([]byte, 4*rows*cols)}
	}
	p, err := plan.Build(func(b *plan.Builder) {
		x := b.Embed(weight(9, 8))
		s := b.State(plan.State{Name: "kv", Kind: plan.PerToken, KVHeads: 1, HeadDim: 8, ValueDim: 8})
		for i := range 3 {
			b.Layer(i)
			if i > 0 {
				x = b.Attention(x, x, x, nil, s, plan.AttentionAttr{Heads: 1, KVHeads: 1, HeadDim: 8, Scale: 1})
			} else {
				x = b.Linear(x, weight(8, 8), nil)
			}
		}
		b.Layer(plan.NoLayer)
		x = b.Pick(x)
		b.Output(x, b.Linear(x, weight(9, 8), nil))
	})
	if err != nil {
		t.Fatal(err)
	}
	// embed | linear | attention, attention | pick, linear
	for _, layers := range []bool{true, false} {
		if got := newFlow(p).cuts(layers); !slices.Equal(got, []int{1, 2, 4}) {
			t.Errorf("layers whole %v: cuts before nodes %v, want 1, 2 and 4", layers, got)
		}
	}
	if _, err := Layers(p, Equal(5)); !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "a model of 3 layers that can be cut in 3 places, in 5 parts; use fewer devices") {
		t.Errorf("5 parts: %v", err)
	}
}

// What cannot be divided by layers is an error with its name.
func TestLayersErrors(t *testing.T) {
	if _, err := Layers(plantest.Model(t, nil), Equal(0)); err == nil || err.Error() != "mesh: 0 parts of a program; want at least 1" {
		t.Error(err)
	}
	part, err := Layers(plantest.Model(t, nil), Equal(2))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Layers(part[1].Program, Equal(2)); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a program with inputs: %v", err)
	}
}
