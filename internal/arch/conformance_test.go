package arch_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/longtest"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// conformance returns the folder of data made by other programs.
func conformance(t *testing.T) string {
	dir := os.Getenv("REALIZAR_CONFORMANCE")
	if dir == "" {
		t.Skip("REALIZAR_CONFORMANCE is not set; it names the folder of conformance data")
	}
	return dir
}

// An expectation is another program's results for a model.
type expectation struct {
	ids    []int32
	logits [][]float32
	greedy []int32
	margin []float32
	unread []int // columns of logits that are not compared
}

func expected(t *testing.T, path string) expectation {
	t.Helper()
	f, err := modelfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	floats := func(name string) []float32 {
		x, ok := f.Tensor(name)
		if !ok {
			return nil
		}
		values, err := x.Float32s()
		if err != nil {
			t.Fatal(err)
		}
		return values
	}
	ints := func(name string) []int32 {
		var ids []int32
		for _, v := range floats(name) {
			ids = append(ids, int32(v))
		}
		return ids
	}
	e := expectation{ids: ints("input_ids"), greedy: ints("greedy"), margin: floats("margin")}
	if token, ok := padding[filepath.Base(filepath.Dir(path))]; ok {
		e.unread = []int{token}
	}
	l, _ := f.Tensor("logits")
	for row := range slices.Chunk(floats("logits"), l.Cols()) {
		e.logits = append(e.logits, row)
	}
	return e
}

// models returns the conformance cases of registered architectures.
func models(t *testing.T) map[string]string {
	cases := casesIn(conformance(t))
	if len(cases) < 20 {
		t.Fatalf("only %d cases under %s", len(cases), conformance(t))
	}
	return cases
}

// casesIn returns the cases in a folder: paths of expectations by paths of models.
func casesIn(dir string) map[string]string {
	cases := map[string]string{}
	hub, _ := filepath.Glob(filepath.Join(dir, "hf*", "*", "expected.safetensors"))
	for _, path := range hub {
		cases[filepath.Dir(path)] = path
	}
	gguf, _ := filepath.Glob(filepath.Join(dir, "gguf", "*.gguf"))
	for _, path := range gguf {
		cases[path] = filepath.Join(dir, "hf", strings.TrimSuffix(filepath.Base(path), ".gguf"), "expected.safetensors")
	}
	quants, _ := filepath.Glob(filepath.Join(dir, "gguf-quants", "*.gguf"))
	for _, path := range quants {
		cases[path] = strings.TrimSuffix(path, ".gguf") + ".expected.safetensors"
	}
	return cases
}

func relative(got, want [][]float32) float64 {
	var diff, norm float64
	for i := range want {
		for j, w := range want[i] {
			d := float64(got[i][j]) - float64(w)
			diff += d * d
			norm += float64(w) * float64(w)
		}
	}
	return math.Sqrt(diff / norm)
}

func argmax(x []float32) int32 {
	best := 0
	for i, v := range x {
		if v > x[best] {
			best = i
		}
	}
	return int32(best)
}

// backends returns the reference, and the parallel backend on every tier, or on the fastest if long
// tests do not run.
func backends(t *testing.T) map[string]plan.Backend {
	all := map[string]plan.Backend{"reference": cpu.Reference()}
	for _, tier := range longtest.Cases(cpu.Tiers(), cpu.Tiers()[:1]) {
		b, err := cpu.New(3).WithTier(tier)
		if err != nil {
			t.Fatal(err)
		}
		all[tier] = b
	}
	return all
}

// numbers are formats to compute in, and the allowed error of the logits against float64.
type numbers struct {
	limits plan.Limits
	bound  float64
}

// inFloats is float32 throughout.
var inFloats = numbers{plan.Limits{Cache: tensor.F32}, 1e-4}

// rounds returns the formats that b uses by default.
func rounds(b plan.Backend, p *plan.Program) numbers {
	n := numbers{plan.Limits{Cache: tensor.F16, Activations: b.Rounds()}, 5e-2}
	if b.Rounds() == tensor.F16 {
		n.bound = 5e-3
		for i := range p.Nodes {
			if slices.ContainsFunc(p.Nodes[i].Matrices(), func(w *tensor.Tensor) bool { return w.DType == tensor.BF16 }) {
				n.bound = 2.5e-2 // activations are BF16
			}
		}
		if slices.ContainsFunc(p.Nodes, recurrent) {
			n.bound *= 4 // gates are exponentials of rounded products, and states carry errors on
		}
	}
	return n
}

// recurrent reports whether n keeps a state that each token changes.
func recurrent(n plan.Node) bool {
	return n.Op == plan.Scan || n.Op == plan.StateSpace || n.Op == plan.Delta
}

// numbersOf returns all formats of b.
func numbersOf(b plan.Backend, p *plan.Program) []numbers {
	return []numbers{inFloats, {plan.Limits{Cache: tensor.F16}, 2e-3}, rounds(b, p)}
}

// sharpness returns how much larger than usual the scores of a model's attention are, and with them
// the error of keys in 16 bits: the largest scale of scores in multiples of 1/sqrt(HeadDim), at least
// 1.
func sharpness(p *plan.Program) float64 {
	most := 1.0
	for i := range p.Nodes {
		if a, ok := p.Nodes[i].Attr.(plan.AttentionAttr); ok {
			most = max(most, a.Scale*math.Sqrt(float64(a.HeadDim)))
		}
	}
	return most
}

// Logits agree with the other program's. So does the greedy continuation while the margin is clear.
func TestConformance(t *testing.T) {
	for path, want := range models(t) {
		t.Run(filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path), func(t *testing.T) {
			m, err := buildFile(t, path)
			if err != nil {
				t.Fatal(err)
			}
			e, least := expected(t, want), roundedBy(t, m, path, want)
			if chooses(m.Program) {
				agreeTied(t, m, e, backends(t))
				return
			}
			sharp := sharpness(m.Program)
			for name, b := range backends(t) {
				for _, n := range numbersOf(b, m.Program) {
					if n.limits.Cache != tensor.F32 {
						n.bound = max(n.bound*sharp, sensitive[filepath.Base(path)])
					}
					t.Run(fmt.Sprintf("%s, %v cache, %v activations", name, n.limits.Cache, n.limits.Activations), func(t *testing.T) { agree(t, b, m, e, n.limits, max(n.bound, least)) })
				}
			}
		})
	}
}

// sensitive are cases in which the rounding of keys and values to 16 bits has larger effects, with
// their bounds: the results of attention outweigh the stream.
var sensitive = map[string]float64{
	"zamba2": 5e-3,
}

// otherNumbers are the cases whose logits were made with other numbers than those of the file, with the
// error that this causes.
var otherNumbers = map[string]float64{
	"minimax": 6e-3, // transformers computes with tables of powers in BF16, see TestMiniMaxTables
}

// padding are the cases whose logits of a padding token are not compared: when transformers loads
// them, it sets that token's row of the table, which is also the head, to 0.
var padding = map[string]int{
	"youtu": 0,
}

// roundedBy returns the error of a file's logits that the rounding of its weights may cause.
func roundedBy(t *testing.T, m *arch.Model, path, want string) float64 {
	t.Helper()
	if bound, ok := otherNumbers[filepath.Base(path)]; ok {
		return bound
	}
	if strings.HasSuffix(path, ".gguf") && rounded(t, m, filepath.Dir(want)) {
		return 4e-3 // weights keep eight bits of their fractions
	}
	return 0
}

// rounded reports whether a GGUF's weights have fewer bits than those of the checkpoint, whose
// logits are expected. Apart from these bits, program and weights must be the checkpoint's.
func rounded(t *testing.T, m *arch.Model, checkpoint string) bool {
	if _, err := os.Stat(filepath.Join(checkpoint, "config.json")); err != nil {
		return false
	}
	from, err := buildFile(t, checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	nodes := from.Program.Nodes
	if nodes[0].Weight.DType == m.Program.Nodes[0].Weight.DType {
		return false
	}
	if len(nodes) != len(m.Program.Nodes) {
		t.Fatalf("%d nodes, the checkpoint's program has %d", len(m.Program.Nodes), len(nodes))
	}
	for i, n := range m.Program.Nodes {
		got, want := n.Tensors(), nodes[i].Tensors()
		if n.Op != nodes[i].Op || fmt.Sprint(n.In, n.Attr) != fmt.Sprint(nodes[i].In, nodes[i].Attr) || len(got) != len(want) {
			t.Fatalf("node %d is %v %v, the checkpoint's is %v %v", i, n.Where(), n.Attr, nodes[i].Where(), nodes[i].Attr)
		}
		for j := range got {
			x, err := got[j].Float32s()
			y, err2 := want[j].Float32s()
			if err != nil || err2 != nil || len(x) != len(y) {
				t.Fatalf("%s has shape %v (%v), the checkpoint's %v (%v)", got[j].Name, got[j].Shape, err, want[j].Shape, err2)
			}
			for k := range y {
				if !(math.Abs(float64(x[k]-y[k])) <= math.Abs(float64(y[k]))/256) {
					t.Fatalf("%s: element %d is %v, the checkpoint's %v", got[j].Name, k, x[k], y[k])
				}
			}
		}
	}
	return true
}

func agree(t *testing.T, b plan.Backend, m *arch.Model, e expectation, limits plan.Limits, bound float64) {
	r, err := plantest.NewRunner(b, m.Program, plantest.LimitsFor(m.Program, 64, 1, max(128, len(e.ids)+len(e.greedy)), 16, limits))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Exe.Close() }()
	s := r.Add(e.ids, 64)
	if err := r.Run(); err != nil {
		t.Fatal(err)
	}
	got, wanted := slices.Clone(s.Logits), slices.Clone(e.logits)
	for i := range got {
		for _, column := range e.unread {
			got[i] = slices.Clone(got[i])
			got[i][column] = wanted[i][column]
		}
	}
	if limits.Cache != tensor.F32 {
		before := onlySameExperts(t, b, m.Program, e.ids, limits, &got, &wanted)
		if before < len(e.ids) {
			if rel := relative(got[:before], wanted[:before]); before > 0 && !(rel < bound) {
				t.Fatalf("relative error %.3g in the %d tokens before one has other experts, want below %g", rel, before, bound)
			}
			if slices.ContainsFunc(m.Program.Nodes, func(n plan.Node) bool {
				a, ok := n.Attr.(plan.ExpertsAttr)
				return ok && a.Route.Score == plan.SparseMixer
			}) {
				return // a weight may be another by far, and all later tokens attend to it
			}
			bound *= 2 // later tokens attend to results of other experts
			if slices.ContainsFunc(m.Program.Nodes, func(n plan.Node) bool {
				a, ok := n.Attr.(plan.ExpertsAttr)
				return ok && a.Route.Used == 1
			}) {
				bound *= 5 // all that a token's experts compute is another's
			}
		}
	}
	rel := relative(got, wanted)
	if !(rel < bound) {
		t.Fatalf("relative error %.3g, want below %g", rel, bound)
	}
	t.Logf("relative error %.3g", rel)
	if limits.Cache != tensor.F32 {
		return
	}
	s.Prompt = len(e.ids)
	for i, want := range e.greedy {
		if e.margin[i] < 1e-3 {
			break
		}
		if got := argmax(s.Logits[len(s.Logits)-1]); got != want {
			t.Fatalf("greedy token %d is %d, want %d", i, got, want)
		}
		s.IDs = append(slices.Clip(s.IDs), want)
		if err := r.Run(); err != nil {
			t.Fatal(err)
		}
	}
}

// The same holds for models with other options, made by testdata/variants/make.py.
func TestVariants(t *testing.T) {
	dir := os.Getenv("REALIZAR_VARIANTS")
	if dir == "" {
		t.Skip("REALIZAR_VARIANTS is not set; it names what testdata/variants/make.py wrote")
	}
	for path, want := range casesIn(dir) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			m, err := buildFile(t, path)
			if err != nil {
				t.Fatal(err)
			}
			for name, b := range backends(t) {
				t.Run(name, func(t *testing.T) { agree(t, b, m, expected(t, want), inFloats.limits, inFloats.bound) })
			}
		})
	}
}

// The bits of a sequence's logits depend neither on how its prompt is cut nor on the other
// sequences of the step.
func TestSameBits(t *testing.T) {
	for path, want := range models(t) {
		t.Run(filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path), func(t *testing.T) {
			m, err := buildFile(t, path)
			if err != nil {
				t.Fatal(err)
			}
			ids := expected(t, want).ids
			b := cpu.New(3)
			for _, n := range numbersOf(b, m.Program) {
				sameBits(t, b, m, ids, n.limits, longtest.Cases(7, 3))
			}
			if !strings.HasSuffix(path, ".gguf") {
				sameBits(t, cpu.Reference(), m, ids, inFloats.limits, 3)
			}
		})
	}
}

// sameBits checks that logits have the same bits in the first of several ways to run a sequence: in
// steps of other sizes, alone and beside another sequence.
func sameBits(t *testing.T, b plan.Backend, m *arch.Model, ids []int32, limits plan.Limits, steps int) {
	r, err := plantest.NewRunner(b, m.Program, plantest.LimitsFor(m.Program, max(128, 2*len(ids)), 2, max(128, 2*len(ids)), 16, limits))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Exe.Close() }()
	run := func(chunk int, beside []int32) [][]float32 {
		s := r.Add(ids, chunk)
		var other *plantest.Seq
		if beside != nil {
			other = r.Add(beside, 5)
		}
		if err := r.Run(); err != nil {
			t.Fatal(err)
		}
		r.Drop(s)
		if other != nil {
			r.Drop(other)
		}
		return s.Logits
	}
	whole := run(len(ids), nil)
	neighbour := append(slices.Clone(ids[7:]), ids...)
	for _, s := range []struct {
		chunk  int
		beside []int32
	}{{1, nil}, {7, neighbour}, {64, neighbour[:17]}, {1, neighbour}, {3, neighbour[:17]}, {64, nil}, {len(ids), neighbour}}[:steps] {
		if s.chunk > len(ids) {
			continue
		}
		for i, row := range run(s.chunk, s.beside) {
			if !slices.Equal(row, whole[i]) {
				t.Fatalf("%s, %v cache: token %d differs in chunks of %d beside %d tokens", b.Name(), limits.Cache, i, s.chunk, len(s.beside))
			}
		}
	}
}
