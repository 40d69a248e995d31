package mesh

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// Each query head is in one part, with the key/value head that it reads.
func TestAttentionHeads(t *testing.T) {
	for _, c := range []struct {
		heads, kv, parts int
		q, k             string
	}{
		{8, 8, 2, "0:4 4:8", "0:4 4:8"},
		{32, 8, 4, "0:8 8:16 16:24 24:32", "0:2 2:4 4:6 6:8"},
		{9, 3, 2, "0:3 3:9", "0:1 1:3"},
		{14, 2, 4, "0:3 3:7 7:10 10:14", "0:1 0:1 1:2 1:2"},
		{6, 2, 3, "0:1 1:3 3:6", "0:1 0:1 1:2"},
		{16, 1, 4, "0:4 4:8 8:12 12:16", "0:1 0:1 0:1 0:1"},
		{4, 2, 8, "", ""},
	} {
		q, k := attentionHeads(c.heads, c.kv, c.parts)
		if q.String() != c.q || k.String() != c.k {
			t.Errorf("%d heads of %d in %d parts: %v of %v, want %s of %s", c.heads, c.kv, c.parts, q, k, c.q, c.k)
		}
	}
	for heads := 1; heads <= 40; heads++ {
		for kv := 1; kv <= heads; kv++ {
			for parts := 1; parts <= 9 && heads%kv == 0; parts++ {
				q, k := attentionHeads(heads, kv, parts)
				if q == nil {
					continue
				}
				next, group := 0, heads/kv
				for i, r := range q {
					if r.Lo != next || r.Len() < 1 || k[i].Lo != r.Lo/group || k[i].Hi != (r.Hi-1)/group+1 || r.Len()%k[i].Len() != 0 {
						t.Fatalf("%d heads of %d in %d parts: %v of %v", heads, kv, parts, q, k)
					}
					next = r.Hi
				}
				if next != heads {
					t.Fatalf("%d heads of %d in %d parts: %v", heads, kv, parts, q)
				}
			}
		}
	}
}

func TestEven(t *testing.T) {
	for _, c := range []struct {
		n, unit, parts int
		want           string
	}{
		{64, 16, 2, "0:32 32:64"}, {80, 16, 4, "0:16 16:32 32:48 48:80"}, {70, 16, 4, "0:16 16:32 32:48 48:70"}, {48, 16, 4, ""}, {97, 16, 1, "0:97"},
	} {
		if got := even(c.n, c.unit, c.parts); got.String() != c.want {
			t.Errorf("%d by %d in %d parts: %v, want %s", c.n, c.unit, c.parts, got, c.want)
		}
	}
}

// A layer of a dense model in two parts.
func TestPartition(t *testing.T) {
	parts, err := Partition(plantest.Model(t, nil), 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	var layer []string
	for i, part := range parts {
		p := part.Program
		for j := range p.Nodes {
			if n := &p.Nodes[j]; n.Layer == 1 && i == 1 {
				layer = append(layer, fmt.Sprintf("%%%d %v = %v", n.Out, p.Shapes[n.Out], n))
			}
		}
	}
	const want = `%21 [T 256] = rmsnorm %20 1.norm:F32 {group 256, eps 1e-05}
%22 [T 64] = linear %21 1.q:BF16 1.qb:F32
%23 [T 32] = linear %21 1.k:BF16
%24 [T 32] = rmsnorm %23 1.kn:F32 {group 32, eps 1e-05}
%25 [T 32] = linear %21 1.v:Q6_K
%26 [T 64] = rope %22 {neox, dim 32, freqs 1 to 0.000177828}
%27 [T 32] = rope %24 {neox, dim 32, freqs 1 to 0.000177828}
%28 [T 64] = attention %26 %27 %25 {heads 2/1, dim 32, scale 0.17, window 50} @1
%29 [T 128] = gather %28 {0:64 64:128}
%30 [T 128] = linear %29 1.o:Q5_0
%31 [T 256] = gather %30 {0:128 128:256}
%32 [T 256] = add %20 %31
%33 [T 256] = rmsnorm %32 1.norm2:F32 {group 256, eps 1e-05}
%34 [T 128] = linear %33 1.gate:BF16
%35 [T 128] = linear %33 1.up:BF16
%36 [T 128] = glu %34 %35 {silu}
%37 [T 256] = gather %36 {0:128 128:256}
%38 [T 128] = linear %37 1.down:Q4_0
%39 [T 256] = gather %38 {0:128 128:256}
%40 [T 256] = add %32 %39`
	if got := strings.Join(layer, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A layer in two parts whose device adds sums: the output projections have columns, and nothing is
// gathered.
func TestPartitionSums(t *testing.T) {
	all := func(*tensor.Tensor) bool { return true }
	parts, err := Partition(plantest.SumsModel(t, nil), 2, all)
	if err != nil {
		t.Fatal(err)
	}
	var layer []string
	p := parts[1].Program
	for j := range p.Nodes {
		if n := &p.Nodes[j]; n.Layer == 1 && n.Op != plan.Rope {
			layer = append(layer, fmt.Sprintf("%%%d %v = %v", n.Out, p.Shapes[n.Out], n))
		}
	}
	const want = `%16 [T 256] = rmsnorm %15 norm:F32 {group 256, eps 1e-05}
%17 [T 512] = linear %16 q:BF16
%18 [T 128] = linear %16 k:BF16
%19 [T 128] = linear %16 v:BF16
%22 [T 512] = attention %20 %21 %19 {heads 8/2, dim 64, scale 0.12} @1
%23 [T 256] = linear %22 1.o:BF16 bias:F32 {columns 0:512 512:1024}
%24 [T 256] = map %23 {scale 0.5}
%25 [T 256] = add %15 %24
%26 [T 256] = rmsnorm %25 norm:F32 {group 256, eps 1e-05}
%27 [T 512] = linear %26 gate:BF16
%28 [T 512] = linear %26 up:BF16 bias:F32
%29 [T 512] = glu %27 %28 {silu}
%30 [T 256] = linear %29 1.down:BF16 bias:F32 {columns 0:512 512:1024}
%31 [T 256] = add %25 %30`
	if got := strings.Join(layer, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for i, part := range parts {
		for w, of := range part.origin {
			if whole, first := w.Whole(); whole != w && (whole != of || w.Shape[1] != 512 || first != 512*i || w.Shape[0] != of.Shape[0]) {
				t.Errorf("part %d has columns %d to %d of %s %v", i, first, first+w.Shape[1], of.Name, of.Shape)
			}
		}
	}
	for _, n := range parts[0].Program.Nodes {
		if n.Op == plan.Gather && n.Layer != plan.NoLayer {
			t.Errorf("layer %d gathers", n.Layer)
		}
	}
	if _, err := cpu.New(1).Compile(t.Context(), parts[0].Program, plantest.LimitsFor(parts[0].Program, 8, 1, 64, 16, plan.Limits{}), nil); err == nil || !strings.Contains(err.Error(), "do not add the sums of parts") {
		t.Errorf("the processor: %v", err)
	}
}

// All parts have the same nodes with results of the same rows, whole outputs, and between them every
// row of every weight. Their states have all heads.
func TestParts(t *testing.T) {
	for name, model := range map[string]func(*testing.T, func(*tensor.Tensor)) *plan.Program{
		"dense": plantest.Model, "experts": plantest.MoEModel, "latent": plantest.LatentModel, "delta": plantest.DeltaModel, "forms": plantest.FormsModel,
	} {
		p := model(t, nil)
		for n := 1; n <= 8; n++ {
			parts, err := Partition(p, n, nil)
			if err != nil {
				t.Fatalf("%s, %d parts: %v", name, n, err)
			}
			rows, bytes := map[*tensor.Tensor]int{}, 0
			for i := range parts {
				q := parts[i].Program
				for of, w := range invert(parts[i].origin) {
					rows[of] += w
				}
				bytes += parts[i].Weights()
				for j := range q.Nodes {
					a, b := &q.Nodes[j], &parts[0].Program.Nodes[j]
					if a.Op != b.Op || a.Out != b.Out || !slices.Equal(a.In, b.In) || q.Shapes[a.Out][0] != parts[0].Program.Shapes[b.Out][0] {
						t.Fatalf("%s, part %d of %d: node %v, in part 0 %v", name, i, n, a, b)
					}
				}
				if len(q.Nodes) != len(parts[0].Program.Nodes) || q.Shapes[q.Logits] != p.Shapes[p.Logits] || q.Shapes[q.Hidden] != p.Shapes[p.Hidden] || q.Shapes[q.Residual] != p.Shapes[p.Residual] {
					t.Errorf("%s, part %d of %d has other outputs", name, i, n)
				}
			}
			whole := 0
			for _, w := range p.Weights() {
				if whole += w.Size(); rows[w] < w.Shape[0] {
					t.Errorf("%s, %d parts have %d of %d rows of %s", name, n, rows[w], w.Shape[0], w.Name)
				}
			}
			if n == 2 && name != "delta" && bytes > whole*3/2 {
				t.Errorf("%s: two parts have %d bytes of weights of %d", name, bytes, whole)
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

// A part has the heads of the keys and values that a head's attention reads, and so stores those in the
// first part of the program, and all of the hidden states. By layer, the last part has the head.
func TestHead(t *testing.T) {
	p := plantest.HeadModel(t)
	parts, err := Partition(p, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, part := range parts {
		q := part.Program
		var stored []string
		for j := range q.Nodes[:q.Head.First] {
			if n := &q.Nodes[j]; n.Op == plan.Store {
				var cols []plan.Dim
				for _, v := range n.In {
					cols = append(cols, q.Shapes[v][1])
				}
				stored = append(stored, fmt.Sprint(q.States[n.State].Name, " ", cols))
			}
		}
		var states []string
		for _, s := range q.States {
			states = append(states, fmt.Sprint(s.Name, " ", s.KVHeads))
		}
		if got, want := fmt.Sprint(stored, states), "[hidden [64] kv [32 32]] [hidden 1 kv 1]"; got != want {
			t.Errorf("part %d stores %s, want %s", i, got, want)
		}
		if _, hidden, logits := q.Outputs(true); int(q.Nodes[q.Head.First].Out) > int(hidden) || q.Shapes[logits] != p.Shapes[p.Head.Logits] {
			t.Errorf("part %d has a head with the outputs %d and %d", i, hidden, logits)
		}
	}
	if parts, err = Layers(p, Equal(3)); err != nil {
		t.Fatal(err)
	}
	for i, part := range parts {
		q := part.Program
		if (q.Head != nil) != (i == 2) || i < 2 && len(q.States) > 0 || i == 2 && (len(q.States) != len(p.States) || q.Shapes[q.Head.Logits] != p.Shapes[p.Head.Logits]) {
			t.Errorf("part %d by layer has the head %+v and %d states", i, q.Head, len(q.States))
		}
	}
}

// invert returns how many rows of each weight a part has.
func invert(origin map[*tensor.Tensor]*tensor.Tensor) map[*tensor.Tensor]int {
	rows := map[*tensor.Tensor]int{}
	for w, of := range origin {
		rows[of] += w.Shape[0]
	}
	return rows
}

// What cannot be divided is an error with its name.
func TestPartitionErrors(t *testing.T) {
	if _, err := Partition(plantest.Model(t, nil), 0, nil); err == nil || err.Error() != "mesh: 0 parts of a program; want at least 1" {
		t.Error(err)
	}
	bias := &tensor.Tensor{Name: "bias", DType: tensor.Q8_0, Shape: []int{64}, Data: make([]byte, 68)}
	if err := divisible(bias, plan.Cut{{Lo: 0, Hi: 16}, {Lo: 16, Hi: 64}}); err == nil || err.Error() != "mesh: bias: Q8_0 cannot be cut at 0:16 16:64: its format has blocks of 32" {
		t.Error(err)
	}
}
