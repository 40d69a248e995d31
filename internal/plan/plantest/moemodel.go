package plantest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/random"
	"github.com/realizar/realizar/tensor"
)

// moePositions is the number of rows in [MoEModel]'s table of positions.
const moePositions = 320

// MoEModel returns a small decoder of 97 tokens with what [Model] lacks: a table of positions,
// layer norms, maps, and mixtures of experts. One mixture has biases, one has groups and a shared
// expert behind a gate of one column, one has unquantized weights. The last layer has neither a
// gate nor experts. change is as for Model.
func MoEModel(t *testing.T, change func(*tensor.Tensor)) *plan.Program {
	rng := newRand(12)
	changed := applying(change)
	weight := func(name string, d tensor.DType, rows, cols int) *tensor.Tensor {
		return changed(Weight(rng, name, d, 0.06, rows, cols))
	}
	const heads, kvHeads, headDim, ffn = 4, 2, 32, 256
	return build(t, func(b *plan.Builder) {
		norm := func(x plan.Value, name string) plan.Value {
			return b.LayerNorm(x, changed(vector(rng, name, 1, 0.1, modelHidden)), vector(rng, name+".bias", 0, 0.1, modelHidden), 1e-5)
		}
		list := func(name string, n int, d tensor.DType, rows, cols int) (all []*tensor.Tensor) {
			for e := range n {
				all = append(all, weight(fmt.Sprintf("%s.%d", name, e), d, rows, cols))
			}
			return all
		}
		biases := func(name string, n, size int) (all []*tensor.Tensor) {
			for e := range n {
				all = append(all, vector(rng, fmt.Sprintf("%s.%d", name, e), 0, 0.1, size))
			}
			return all
		}
		experts := func(x plan.Value, name string, n int, d, back tensor.DType, bias *tensor.Tensor, a plan.ExpertsAttr) plan.Value {
			a.Gate, a.Up = list(name+".gate", n, d, ffn, modelHidden), list(name+".up", n, d, ffn, modelHidden)
			a.Down = list(name+".down", n, back, modelHidden, ffn)
			if a.GLU.Limit > 0 {
				a.GateBias, a.UpBias, a.DownBias = biases(name+".gate.bias", n, ffn), biases(name+".up.bias", n, ffn), biases(name+".down.bias", n, modelHidden)
			}
			return b.Experts(x, b.Linear(x, weight(name+".router", tensor.F32, n, modelHidden), nil), bias, a)
		}
		x := b.Embed(Weight(rng, "embed", tensor.F16, 1, modelVocab, modelHidden))
		x = b.Add(x, b.Position(Weight(rng, "positions", tensor.Q8_0, 0.5, moePositions, modelHidden), 0))
		for i := range 4 {
			b.Layer(i)
			name := func(s string) string { return fmt.Sprintf("%d.%s", i, s) }
			a := plan.AttentionAttr{Heads: heads, KVHeads: kvHeads, HeadDim: headDim, Scale: 0.17}
			if i == 1 {
				a.Window = 50
			}
			h := norm(x, name("norm"))
			q := b.Linear(h, weight(name("q"), tensor.Q8_0, heads*headDim, modelHidden), nil)
			q = b.LayerNormHeads(q, vector(rng, name("qn"), 1, 0.1, heads*headDim), nil, headDim, 1e-5)
			k, v := b.Linear(h, weight(name("k"), tensor.Q8_0, kvHeads*headDim, modelHidden), nil), b.Linear(h, weight(name("v"), tensor.Q6_K, kvHeads*headDim, modelHidden), nil)
			st := b.State(plan.State{Name: name("kv"), Kind: plan.PerToken, KVHeads: kvHeads, HeadDim: headDim, ValueDim: headDim, Window: a.Window})
			y := b.Linear(b.Attention(q, k, v, nil, st, a), weight(name("o"), tensor.Q5_0, modelHidden, heads*headDim), nil)
			x = b.Add(x, b.Scale(y, 0.7))
			h = norm(x, name("norm2"))
			switch i {
			case 0:
				y = experts(h, name("experts"), 8, tensor.MXFP4, tensor.MXFP4, nil, plan.ExpertsAttr{
					Route: plan.RouteAttr{Used: 2, Score: plan.SoftmaxChosen, Scale: 1}, GLU: plan.GLUAttr{Act: plan.QuickGELU, Limit: 2, Shift: 1},
				})
			case 1:
				y = experts(h, name("experts"), 8, tensor.Q4_K, tensor.Q6_K, vector(rng, name("choice"), 0, 0.1, 8), plan.ExpertsAttr{
					Route: plan.RouteAttr{Used: 3, Score: plan.SigmoidEach, Normalize: true, Scale: 1.5, Groups: 4, GroupsUsed: 2, GroupTop: 2},
				})
				shared := b.GLU(b.Linear(h, weight(name("gate"), tensor.Q4_K, ffn, modelHidden), nil), b.Linear(h, weight(name("up"), tensor.Q4_K, ffn, modelHidden), nil), plan.GLUAttr{Act: plan.SiLU})
				shared = b.Linear(shared, weight(name("down"), tensor.Q4_K, modelHidden, ffn), nil)
				y = b.Add(y, b.GLU(b.Linear(h, weight(name("column"), tensor.F32, 1, modelHidden), nil), shared, plan.GLUAttr{Act: plan.Sigmoid}))
			case 2:
				y = experts(h, name("experts"), 4, tensor.BF16, tensor.BF16, nil, plan.ExpertsAttr{Route: plan.RouteAttr{Used: 1, Scale: 1}, GLU: plan.GLUAttr{Act: plan.GELU}})
			default:
				y = b.Activate(b.Linear(h, weight(name("up"), tensor.Q4_0, 2*ffn, modelHidden), vector(rng, name("up.bias"), 0, 0.1, 2*ffn)), plan.GELUTanh)
				y = b.Scale(b.Linear(y, weight(name("down"), tensor.Q4_0, modelHidden, 2*ffn), nil), 0.5)
			}
			x = b.Add(x, y)
		}
		b.Layer(plan.NoLayer)
		h := norm(b.Pick(x), "last")
		b.Output(h, b.Softcap(b.Linear(h, weight("head", tensor.Q8_0, modelVocab, modelHidden), nil), 30))
	})
}

// Models are the whole programs whose bits must not depend on how they are run.
var Models = map[string]func(*testing.T, func(*tensor.Tensor)) *plan.Program{
	"dense": Model, "experts": MoEModel, "recurrent": RecurrentModel, "delta": DeltaModel, "states": StatesModel, "forms": FormsModel, "latent": LatentModel,
	"sparse": SparseModel, "compressed": CompressedModel, "sums": SumsModel,
}

// notFiniteExperts damages weights of experts so that results leave the range of float32.
func notFiniteExperts(t *testing.T, b plan.Backend) {
	for _, c := range []struct {
		weights string // of one expert
		layer   int
		norm    string
		by      float32
	}{{"1.experts.down.%d", 1, "1.norm2", 1e17}, {"2.experts.up.%d", 2, "2.norm2", 1e36}, {"3.down", 3, "3.norm2", 1e34}} {
		for _, activations := range []tensor.DType{tensor.F32, b.Rounds()} {
			p := MoEModel(t, func(w *tensor.Tensor) {
				expert := 0
				_, err := fmt.Sscanf(w.Name, c.weights, &expert)
				switch {
				case w.Name == c.norm:
					for i := range w.Elems() {
						binary.LittleEndian.PutUint32(w.Data[4*i:], math.Float32bits(c.by))
					}
				case w.DType == tensor.BF16 && err == nil && expert == 2:
					for at := 0; at < len(w.Data); at += 2 {
						binary.LittleEndian.PutUint16(w.Data[at:], 0x7f7f) // largest bfloat16
					}
				case w.Name == c.weights || err == nil && expert == 2:
					for at, scales := 0, random.Scales(w.DType); at < len(w.Data); at += w.DType.BlockBytes() {
						binary.LittleEndian.PutUint16(w.Data[at+scales[0]:], 0x7bff)
					}
				}
			})
			r := runner(t, b, p, 40, 2, 40, plan.Limits{Cache: tensor.F32, Activations: activations})
			r.Add(ids(newRand(27), 40, modelVocab), 40) // enough tokens that each expert is chosen
			var where *plan.NotFiniteError
			if err := r.Run(); !errors.As(err, &where) {
				t.Errorf("%s, %v activations: error %v", c.weights, activations, err)
			} else if n := nodeOf(p, c.weights); where.Layer != c.layer || where.Where != n.Where() {
				t.Errorf("%s, %v activations: said to begin in %s", c.weights, activations, where.Where)
			}
		}
	}
}

// nodeOf returns p's first node with a weight of that name, of an expert or not.
func nodeOf(p *plan.Program, name string) *plan.Node {
	i := slices.IndexFunc(p.Nodes, func(n plan.Node) bool {
		return slices.ContainsFunc(n.Tensors(), func(w *tensor.Tensor) bool { return w.Name == name || w.Name == fmt.Sprintf(name, 2) })
	})
	return &p.Nodes[i]
}

// applying returns a function that applies change, if it is not nil, to a weight and returns the
// weight.
func applying(change func(*tensor.Tensor)) func(*tensor.Tensor) *tensor.Tensor {
	return func(w *tensor.Tensor) *tensor.Tensor {
		if change != nil {
			change(w)
		}
		return w
	}
}
