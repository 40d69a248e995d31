package arch_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// routes returns the experts of each token, in all layers.
func routes(t *testing.T, b plan.Backend, p *plan.Program, ids []int32, limits plan.Limits) []string {
	t.Helper()
	all := make([]string, len(ids))
	for i := range p.Nodes {
		n := &p.Nodes[i]
		a, ok := n.Attr.(plan.ExpertsAttr)
		if !ok {
			continue
		}
		bias := make([]float32, len(a.Gate)+a.Identity)
		if n.Bias != nil {
			var err error
			if bias, err = n.Bias.Float32s(); err != nil {
				t.Fatal(err)
			}
		}
		for token, scores := range logitsOf(t, b, upTo(p, i), ids, limits) {
			all[token] += fmt.Sprint(chosen(scores, bias, &a.Route))
		}
	}
	return all
}

// upTo returns the program up to the logits of the router of node i.
func upTo(p *plan.Program, i int) *plan.Program {
	q, router := *p, p.Nodes[i].In[1]
	out := plan.Value(len(p.Shapes))
	q.Shapes = append(slices.Clip(p.Shapes), [2]plan.Dim{plan.Rows, p.Shapes[router][1]})
	q.Nodes = append(slices.Clip(p.Nodes[:i]), plan.Node{Op: plan.Pick, In: []plan.Value{router}, Attr: plan.PickAttr{}, State: plan.NoState, Layer: plan.NoLayer, Out: out})
	q.Residual, q.Hidden, q.Logits = router, out, out
	return &q
}

// chosen returns the experts with the highest scores, in order.
func chosen(logits, bias []float32, a *plan.RouteAttr) []int {
	by, sum := make([]float64, len(logits)), 0.0
	for i, v := range logits {
		switch by[i] = float64(v); a.Score {
		case plan.SigmoidEach:
			by[i] = 1 / (1 + math.Exp(-by[i]))
		case plan.SoftmaxAll:
			by[i] = math.Exp(by[i])
		}
		sum += by[i]
	}
	for i := range by {
		if a.Score == plan.SoftmaxAll {
			by[i] /= sum
		}
		by[i] += float64(bias[i])
	}
	candidates := make([]int, len(by))
	for i := range candidates {
		candidates[i] = i
	}
	if a.Groups > 1 {
		size, of := len(by)/a.Groups, make([]float64, a.Groups)
		for g := range of {
			for _, i := range highest(by, candidates[g*size:(g+1)*size], a.GroupTop) {
				of[g] += by[i]
			}
		}
		best := highest(of, candidates[:a.Groups], a.GroupsUsed)
		candidates = slices.DeleteFunc(candidates, func(i int) bool { return !slices.Contains(best, i/size) })
	}
	order := highest(by, candidates, a.Used)
	if a.Score == plan.SparseMixer {
		return counted(by, order, a.Jitter)
	}
	slices.Sort(order)
	return order
}

// counted returns the experts that [plan.SparseMixer] chooses, best first, each followed by those whose
// logits count for its weight.
func counted(logits []float64, experts []int, jitter float64) (all []int) {
	for k, e := range experts {
		all = append(all, e)
		s := logits[e]
		for i, t := range logits {
			if !slices.Contains(experts[:k+1], i) && s-t <= 2*jitter*max(math.Abs(t), s) {
				all = append(all, i)
			}
		}
	}
	return all
}

// highest returns the n candidates with the highest values; of equal ones the first.
func highest(by []float64, candidates []int, n int) []int {
	order := slices.Clone(candidates)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(by[b], by[a]) })
	return order[:n]
}

// onlySameExperts keeps only the rows of tokens that have the same experts as with float32:
// rounding may change the choice between two similar experts. before is the number of tokens before
// the first removed one; later tokens attend to results of other experts.
func onlySameExperts(t *testing.T, b plan.Backend, p *plan.Program, ids []int32, limits plan.Limits, rows ...*[][]float32) (before int) {
	t.Helper()
	if !slices.ContainsFunc(p.Nodes, func(n plan.Node) bool { return n.Op == plan.Experts }) {
		return len(ids)
	}
	got, want := routes(t, b, p, ids, limits), routes(t, b, p, ids, plan.Limits{Cache: tensor.F32})
	same := 0
	for i := range want {
		if got[i] == want[i] {
			for _, r := range rows {
				(*r)[same] = (*r)[i]
			}
			same++
		}
		if same == i+1 {
			before = same
		}
	}
	if 2*same < len(want) {
		t.Fatalf("%d of %d tokens have the same experts as with float32", same, len(want))
	}
	for _, r := range rows {
		*r = (*r)[:same]
	}
	return before
}

// With 8-bit activations, logits are near those of float32 for tokens with the same experts.
func TestExpertActivations(t *testing.T) {
	m := newMixture(qwen3Norms)
	for name, w := range m {
		if len(w.Shape) == 2 && w.Shape[1]%32 == 0 && w.Shape[0] > tinyExperts {
			values, err := w.Float32s()
			if err != nil {
				t.Fatal(err)
			}
			q := &tensor.Tensor{DType: tensor.Q8_0, Shape: w.Shape, Data: make([]byte, w.Elems()/32*34)}
			if err := tensor.Quantize(tensor.Q8_0, q.Data, values); err != nil {
				t.Fatal(err)
			}
			m[name] = q
		}
	}
	built, err := buildFile(t, m.write(t, ggufQwen3MoE))
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]int32, 60)
	for i := range ids {
		ids[i] = int32(i * i % 40)
	}
	want := logitsOf(t, cpu.Reference(), built.Program, ids, plan.Limits{Cache: tensor.F32})
	for name, b := range backends(t) {
		limits := plan.Limits{Cache: tensor.F32, Activations: b.Rounds()}
		got, want := logitsOf(t, b, built.Program, ids, limits), slices.Clone(want)
		onlySameExperts(t, b, built.Program, ids, limits, &got, &want)
		if d := relative(got, want); !(d > 0 && d < 5e-2) {
			t.Errorf("%s: relative error %.3g over %d tokens, want below 0.05", name, d, len(want))
		}
	}
}
