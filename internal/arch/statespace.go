package arch

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// A StateSpace holds the numbers of a model's state-space layers, those of Mamba (Gu and Dao,
// "Mamba: Linear-Time Sequence Modeling with Selective State Spaces", 2023) and of Mamba-2 (Dao and
// Gu, "Transformers are SSMs", 2024).
type StateSpace struct {
	Inner    int // columns of the values that the states summarize
	States   int // state values for each of them
	StepRank int // Mamba: columns that the steps are projected from

	StateAct   plan.Activation // activation of the convolved values, and of Mamba's gate
	SSMBias    bias            // bias of the projection into the layer
	SSMOutBias bias            // bias of the projection out of the layer
	StepNorm   stepNorm        // norm of what steps, inputs and outputs of the states are made from
	StepEps    float64         // added to its mean of squares

	// For Mamba-2.
	StateHeads  int // heads; 0: the layers are Mamba's
	StateGroups int // groups of heads that share inputs and outputs
	StepMin     float64
	StepMax     float64 // 0: no limit
	GateNorm    gateNorm
	NormGroups  int     // parts of a row that are normalized by themselves
	GateEps     float64 // added to the norm's mean of squares

	Kinds       string             // of Nemotron-H's layers, a letter each
	LatentFFN   int                // columns that its experts work in; 0: all
	Multipliers *falconMultipliers // of Falcon-H1, or nil

	// Of Zamba2.
	Shared       []int // layers that a block of attention precedes
	SharedBlocks int   // number of these blocks, which take turns
	Adapted      bool  // each use of a block has adapters of queries, keys and values
}

// A gateNorm says how the result of the states is gated and normalized.
type gateNorm uint8

const (
	gateThenNorm gateNorm = iota
	normThenGate
	gateAlone
	asFoundNorm // gateThenNorm where there is a norm's weight, else gateAlone
)

// A stepNorm says how Mamba's steps, inputs and outputs are normalized before they are used.
type stepNorm uint8

const (
	stepPlain stepNorm = iota // not at all
	stepEven                  // without a weight
	stepFound                 // each with a weight
)

// stateNames are the names in checkpoints of Mamba's layers; prefix is the layer's.
func stateNames(prefix string, more names) names {
	all := names{
		"ssm_in":     prefix + "in_proj",
		"ssm_conv1d": prefix + "conv1d",
		"ssm_x":      prefix + "x_proj",
		"ssm_dt":     prefix + "dt_proj",
		"ssm_a":      prefix + "A_log.",
		"ssm_d":      prefix + "D.",
		"ssm_out":    prefix + "out_proj",
	}
	for short, name := range more {
		all[short] = name
	}
	return all
}

// dualNames are the names in checkpoints of Mamba-2's layers.
func dualNames(prefix string, more names) names {
	all := stateNames(prefix, more)
	all["ssm_dt.bias"], all["ssm_norm"] = prefix+"dt_bias.", prefix+"norm"
	return all
}

// stateGGUF are the names in GGUF files that end without .weight.
var stateGGUF = names{"ssm_a": "blk.#.ssm_a.", "ssm_d": "blk.#.ssm_d."}

// stateLayouts convert checkpoints' tensors of states to the layout that GGUF has.
var stateLayouts = map[string]layout{"ssm_a": decays, "ssm_conv1d": squeezed}

// decays converts logarithms of decays to the decays, -exp(x).
func decays(_ *Spec, t *tensor.Tensor) (*tensor.Tensor, error) {
	if t.DType.BlockLen() != 1 || t.Source != nil {
		return nil, fmt.Errorf("%w: %s is %v, want unquantized numbers", ErrTensor, t.Name, t.DType)
	}
	return &tensor.Tensor{Name: t.Name, DType: tensor.F32, Shape: t.Shape, Source: mapped{t, func(_ int, x float32) float32 {
		return float32(-math.Exp(float64(x)))
	}}}, nil
}

// mapped is a source of the rows of f(row, x) of unquantized numbers x, in F32.
type mapped struct {
	of *tensor.Tensor
	f  func(row int, x float32) float32
}

// Parts implements [tensor.Source].
func (m mapped) Parts() []*tensor.Tensor { return []*tensor.Tensor{m.of} }

// ReadRows implements [tensor.Source].
func (m mapped) ReadRows(dst []byte, lo, hi int) error {
	to := dst
	for r := lo; r < hi; r++ {
		row := m.of.RowSlice(r, r+1)
		values, err := row.Float32s()
		if err == nil {
			err = finite(m.of, row.Data)
		}
		if err != nil {
			return err
		}
		for _, v := range values {
			binary.LittleEndian.PutUint32(to, math.Float32bits(m.f(r, v)))
			to = to[4:]
		}
	}
	return tensor.CheckFinite(tensor.F32, dst)
}

// auto returns the integer under key, or def if there is none or the value is "auto".
func (c *config) auto(key string, def int) int {
	if text, ok := c.m.String(c.key(key)); ok && text == "auto" {
		return def
	}
	return c.integer(key, def)
}

// projected sets the biases of the projections of states by config.json's flag.
func (s *Spec) projected(c *config, key string, def bool) {
	s.SSMBias = c.biasIf(key, def)
	s.SSMOutBias = s.SSMBias
}

// biasIf returns whether a projection has a bias by config.json's flag, or as the file has it in
// GGUF.
func (c *config) biasIf(key string, def bool) bias {
	switch {
	case c.gguf:
		return asFound
	case c.flag(key, def):
		return required
	}
	return without
}

// stateLayers sets the layers that have states, or a convolution, in place of attention.
func (s *Spec) stateLayers(has func(layer int) bool) {
	s.Recurrent = make([]bool, min(max(s.Layers, 0), maxLayers))
	for i := range s.Recurrent {
		s.Recurrent[i] = has(i)
	}
}

// positionless removes the rotation from all layers.
func (s *Spec) positionless() {
	s.Unturned = make([]bool, len(s.Windows))
	for i := range s.Unturned {
		s.Unturned[i] = true
	}
}

// headless sets the layers without key/value heads in GGUF to have states.
func (s *Spec) headless() {
	s.stateLayers(func(i int) bool { return s.at(i).KVHeads == 0 })
}

// mixer returns what a layer makes of tokens together: states or attention.
func mixer(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	if s.Recurrent != nil && !s.Recurrent[w.index] {
		return attention(b, s, w, x)
	}
	if s.StateHeads > 0 {
		return dual(b, s, w, x)
	}
	return selective(b, s, w, x)
}

// selective is Mamba's layer: a gate, and a scan of convolved values whose steps, inputs and
// outputs are made from these values.
func selective(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	halves := split(b, w, x, "ssm_in", s.SSMBias, s.Inner, s.Inner)
	u := convolved(b, s, w, halves[0])
	parts := split(b, w, u, "ssm_x", without, s.StepRank, s.States, s.States)
	for i, short := range []string{"ssm_dt_norm", "ssm_b_norm", "ssm_c_norm"} {
		switch s.StepNorm {
		case stepFound:
			parts[i] = norm(b, s, w, parts[i], short, b.Cols(parts[i]))
		case stepEven:
			parts[i] = b.RMSNorm(parts[i], ones(b.Cols(parts[i])), s.StepEps)
		}
	}
	state := b.State(plan.State{Name: fmt.Sprintf("ssm.%d", w.index), Kind: plan.PerSequence, Size: s.States * s.Inner})
	y := b.Scan(u, linear(b, w, parts[0], "ssm_dt", s.Inner, required), parts[1], parts[2], w.weight("ssm_a"), w.weight("ssm_d"), state)
	return linear(b, w, b.GLU(halves[1], y, plan.GLUAttr{Act: s.StateAct}), "ssm_out", s.Hidden, s.SSMOutBias)
}

// dual is Mamba-2's layer: a gate, and states of convolved values, inputs and outputs.
func dual(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	if s.Inner%s.StateHeads != 0 || s.Inner%s.NormGroups != 0 {
		b.Fail(fmt.Errorf("%w: %d columns of states for %d heads and %d groups", ErrConfig, s.Inner, s.StateHeads, s.NormGroups))
	}
	parts := split(b, w, x, "ssm_in", s.SSMBias, s.Inner, s.Inner+2*s.StateGroups*s.States, s.StateHeads)
	gate, steps := parts[0], parts[2]
	if m := s.Multipliers; m != nil {
		gate, steps = b.Scale(gate, m.states[0]), b.Scale(steps, m.states[4])
	}
	y := b.StateSpace(convolved(b, s, w, parts[1]), steps, fmt.Sprintf("ssm.%d", w.index), plan.StateSpaceAttr{
		Heads: s.StateHeads, HeadDim: s.Inner / s.StateHeads, Groups: s.StateGroups, States: s.States,
		StepMin: s.StepMin, StepMax: s.StepMax,
		A: w.column("ssm_a"), Skip: w.column("ssm_d"), StepBias: w.bias("ssm_dt", required),
	})
	normed := func(x plan.Value) plan.Value {
		return b.RMSNormHeads(x, w.column("ssm_norm"), s.Inner/s.NormGroups, s.GateEps)
	}
	if s.GateNorm == normThenGate {
		y = normed(y)
	}
	y = b.GLU(gate, y, plan.GLUAttr{Act: plan.SiLU})
	if s.GateNorm == gateThenNorm || s.GateNorm == asFoundNorm && w.has("ssm_norm") {
		y = normed(y)
	}
	return linear(b, w, y, "ssm_out", s.Hidden, s.SSMOutBias)
}

// column returns a tensor as a vector: GGUF has some as columns, or by group.
func (l layer) column(short string) *tensor.Tensor {
	t := l.weight(short)
	if len(t.Shape) == 1 {
		return t
	}
	return flat(t)
}

// stepLimits reads config.json's limits of steps. transformers 5 writes an infinite number as an
// object that names it.
func (s *Spec) stepLimits(c *config) {
	const key = "time_step_limit"
	if !c.has(key) {
		return
	}
	limits, ok := c.m.Floats(key)
	if mixed, _ := c.m.Value(key); !ok {
		list, _ := mixed.([]any)
		for _, element := range list {
			switch v := element.(type) {
			case float64:
				limits = append(limits, v)
			case int64:
				limits = append(limits, float64(v))
			case *modelfile.Meta:
				if name, _ := v.String("__float__"); name == "Infinity" {
					limits = append(limits, math.Inf(1))
				}
			}
		}
	}
	if len(limits) != 2 || !(limits[0] >= 0 && limits[0] < 1e30 && limits[1] >= limits[0] && limits[1] > 0) {
		c.failf("%s is %v; want two numbers in ascending order, of which the second may be Infinity", key, limits)
		return
	}
	if s.StepMin = limits[0]; limits[1] < 1e30 {
		s.StepMax = limits[1]
	}
}

// dualGGUF reads GGUF's keys of Mamba-2's states.
func (s *Spec) dualGGUF(c *config) {
	s.ggufStates(c)
	s.StateHeads, s.StateGroups = s.StepRank, c.integer("ssm.group_count", -1)
	s.NormGroups, s.GateEps = s.StateGroups, s.Eps
}

// convolved returns the activations of the convolution of x over tokens.
func convolved(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	return b.Activate(convolution(b, s, w, x, "ssm_conv1d"), s.StateAct)
}
