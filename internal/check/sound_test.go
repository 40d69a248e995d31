package check_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/check"
	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/longtest"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// A shy backend does not pass all values to Observe, like kernels that fuse operations.
type shy struct {
	plan.Backend
	shows func(n *plan.Node) bool
}

func (s *shy) Compile(ctx context.Context, p *plan.Program, l plan.Limits, loaded plan.Loaded) (plan.Executable, error) {
	exe, err := s.Backend.Compile(ctx, p, l, loaded)
	e := &shyExecutable{Executable: exe, shown: map[plan.Value]bool{}}
	for i := range p.Nodes {
		e.shown[p.Nodes[i].Out] = s.shows(&p.Nodes[i])
	}
	return e, err
}

type shyExecutable struct {
	plan.Executable
	shown map[plan.Value]bool
}

func (e *shyExecutable) Submit(b *plan.Batch) (plan.Step, error) {
	some := *b
	if b.Observe != nil {
		some.Observe = func(v plan.Value, x []float32) {
			if e.shown[v] {
				b.Observe(v, x)
			}
		}
	}
	return e.Executable.Submit(&some)
}

// joined reports whether a GPU's fused kernels may not write n's value.
func joined(n *plan.Node) bool {
	switch n.Op {
	case plan.RMSNorm, plan.Rope, plan.Pick, plan.Map:
		return false
	}
	return true
}

// drifts holds the largest drift by operation and format.
type drifts map[string]float64

func (d drifts) seen(nodes []*plan.Node, drift float64) {
	n := nodes[len(nodes)-1]
	name := n.Op.String()
	if ws := n.Matrices(); len(ws) > 0 {
		name += " " + ws[len(ws)-1].DType.String()
	}
	if len(nodes) > 1 {
		name += " and before"
	}
	d[name] = max(d[name], drift)
}

func (d drifts) String() string {
	var lines []string
	for name, drift := range d {
		lines = append(lines, fmt.Sprintf("%-40s %.3f", name, drift))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// feed runs two sequences: a prompt, then single tokens.
func feed(t *testing.T, b plan.Backend, p *plan.Program, base plan.Limits, vocab int) error {
	t.Helper()
	return feedPrompts(t, b, p, base, vocab, 20)
}

// feedPrompts is feed with a first prompt of that many tokens.
func feedPrompts(t *testing.T, b plan.Backend, p *plan.Program, base plan.Limits, vocab, tokens int) error {
	t.Helper()
	room := max(100, 2*tokens+11)
	r, err := plantest.NewRunner(b, p, plantest.LimitsFor(p, room, 2, room, 16, base))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Exe.Close() }()
	rng := rand.New(rand.NewPCG(7, 7))
	var seqs []*plantest.Seq
	for i := range 2 {
		s := r.Add(nil, tokens+11*i)
		for range s.Chunk + 6 - i {
			s.IDs = append(s.IDs, int32(rng.IntN(vocab)))
		}
		seqs = append(seqs, s)
	}
	for more := true; more && err == nil; {
		more, err = r.Step()
		for _, s := range seqs {
			s.Chunk = 1
		}
	}
	return err
}

// The same holds for recurrent layers, whose errors pass from chunk to chunk.
func TestSoundChunks(t *testing.T) {
	found := drifts{}
	for _, p := range []*plan.Program{plantest.DeltaModel(t, nil), plantest.StatesModel(t, nil)} {
		for _, cache := range []tensor.DType{tensor.F32, tensor.F16} {
			for _, shows := range []func(*plan.Node) bool{func(*plan.Node) bool { return true }, joined} {
				for _, prompt := range []int{20, 61} {
					o := options(1000)
					o.Seen = found.seen
					if err := feedPrompts(t, check.Wrap(&shy{cpu.New(2), shows}, o), p, plan.Limits{Cache: cache}, 97, prompt); err != nil {
						t.Errorf("%v cache: %v", cache, err)
					}
				}
			}
		}
	}
	for _, op := range []string{"delta", "scan", "statespace"} {
		if most := found[op]; most > 0.05 || most == 0 {
			t.Errorf("%s: the largest drift is %.3g of the bound, want less than a twentieth", op, most)
		}
	}
}

// A device that computes in float32, in any order and with any format, never has an error.
func TestSound(t *testing.T) {
	found := drifts{}
	for name, model := range map[string]func(*testing.T, func(*tensor.Tensor)) *plan.Program{"dense": plantest.Model, "experts": plantest.MoEModel, "forms": plantest.FormsModel, "sparse": plantest.SparseModel, "compressed": plantest.CompressedModel} {
		p := model(t, nil)
		shown := []func(*plan.Node) bool{func(*plan.Node) bool { return true }, joined, func(n *plan.Node) bool { return n.Op == plan.Add }}
		for i, cache := range plantest.Caches {
			for j, activations := range []tensor.DType{tensor.F32, cpu.Rounds} {
				at := (i + j) % len(shown)
				for _, shows := range longtest.Cases(shown, shown[at:at+1]) {
					o := options(1000)
					o.Seen = found.seen
					b := check.Wrap(&shy{cpu.New(2), shows}, o)
					if err := feed(t, b, p, plan.Limits{Cache: cache, Activations: activations}, 97); err != nil {
						t.Errorf("%s, %v cache, %v activations: %v", name, cache, activations, err)
					}
				}
			}
		}
	}
	for _, d := range plantest.Dtypes {
		p := formatProgram(t, d)
		for _, activations := range longtest.Cases([]tensor.DType{tensor.F32, cpu.Rounds}, []tensor.DType{cpu.Rounds}) {
			o := options(1000)
			o.Seen = found.seen
			if err := feed(t, check.Wrap(&shy{cpu.New(2), joined}, o), p, plan.Limits{Cache: tensor.F16, Activations: activations}, 50); err != nil {
				t.Errorf("%v, %v activations: %v", d, activations, err)
			}
		}
	}
	t.Logf("the largest drifts, as fractions of the bounds\n%v", found)
}

// formatProgram returns a layer of products in one format. In its rows some columns are a hundred
// times the others.
func formatProgram(t *testing.T, d tensor.DType) *plan.Program {
	t.Helper()
	rng := rand.New(rand.NewPCG(uint64(d), 3))
	norm := plantest.Weight(rng, "norm", tensor.F32, 1, 768)
	p, err := plan.Build(func(b *plan.Builder) {
		x := b.Embed(plantest.Weight(rng, "table", tensor.F32, 1, 50, 768))
		h := b.RMSNorm(x, outliers(norm), 1e-5)
		g := b.GLU(b.Linear(h, plantest.Weight(rng, "gate", d, 0.05, 512, 768), nil), b.Linear(h, plantest.Weight(rng, "up", d, 0.05, 512, 768), nil), plan.GLUAttr{Act: plan.SiLU})
		x = b.Add(x, b.Linear(g, plantest.Weight(rng, "down", d, 0.05, 768, 512), nil))
		h = b.Pick(x)
		b.Output(h, b.Linear(h, plantest.Weight(rng, "head", d, 0.05, 50, 768), nil))
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// outliers enlarges some elements of an F32 vector.
func outliers(w *tensor.Tensor) *tensor.Tensor {
	for i := 5; i < w.Elems(); i += 97 {
		bits := math.Float32bits(100)
		for k := range 4 {
			w.Data[4*i+k] = byte(bits >> (8 * k))
		}
	}
	return w
}
