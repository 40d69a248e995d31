package check_test

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/check"
	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/longtest"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/internal/sample"
	"github.com/realizar/realizar/tensor"
)

// A broken device is correct except that spoil changes the rows [rows][columns] of a node, which
// later operations read, and that choose changes sampled tokens.
type broken struct {
	plan.Backend
	spoil  func(n *plan.Node, rows [][]float32)
	choose func(row int, token int32) int32
}

func (b *broken) Compile(_ context.Context, p *plan.Program, l plan.Limits, _ plan.Loaded) (plan.Executable, error) {
	r, err := cpu.NewReplay(p, l, 2)
	return &brokenExecutable{device: b, p: p, replay: r, masks: map[int32][]uint32{}}, err
}

type brokenExecutable struct {
	plan.Executable
	device *broken
	p      *plan.Program
	replay *cpu.Replay
	last   []int32
	masks  map[int32][]uint32
}

func (e *brokenExecutable) Close() error { return e.replay.Close() }

func (e *brokenExecutable) SetMask(id int32, words []uint32) error {
	e.masks[id] = slices.Clone(words)
	return nil
}

// finished is a step that is already done.
type finished struct{ plan.Result }

func (f *finished) Wait(context.Context) (*plan.Result, error) { return &f.Result, nil }
func (f *finished) Release()                                   {}

func (e *brokenExecutable) Submit(b *plan.Batch) (plan.Step, error) {
	tokens := slices.Clone(b.Tokens)
	for t, row := range b.From {
		if row >= 0 {
			tokens[t] = e.last[row]
		}
	}
	if err := e.replay.Begin(b, tokens); err != nil {
		return nil, err
	}
	var logits [][]float32
	for i := range e.p.Nodes {
		n := &e.p.Nodes[i]
		if err := e.replay.Run(n); err != nil {
			return nil, err
		}
		var rows [][]float32
		for r := range e.replay.Rows(n.Out) {
			x, _ := e.replay.Row(n.Out, r)
			rows = append(rows, slices.Clone(x))
		}
		if e.device.spoil != nil {
			e.device.spoil(n, rows)
		}
		e.replay.Set(n.Out, slices.Concat(rows...))
		if b.Observe != nil && len(rows) > 0 {
			b.Observe(n.Out, slices.Concat(rows...))
		}
		if n.Out == e.p.Logits {
			logits = rows
		}
	}
	res := &finished{plan.Result{Tokens: make([]int32, len(b.Rows)), Logits: make([][]float32, len(b.Rows)), LogProbabilities: make([]float32, len(b.Rows))}}
	var s sample.Sampler
	for i := range b.Rows {
		row := &b.Rows[i]
		if res.Tokens[i] = -1; row.Want&plan.WantLogits != 0 {
			res.Logits[i] = logits[i]
		}
		if row.Want&plan.WantToken == 0 {
			continue
		}
		last := int32(-1)
		if b.From != nil && b.From[row.Token] >= 0 {
			last = tokens[row.Token]
		}
		id, err := s.Token(logits[i], &row.Sampling, e.masks[row.Mask], row.Adjustments, last, int(b.Positions[row.Token])+1)
		if err != nil { // a token is sampled even if logits are not finite
			id = 0
		}
		if res.Tokens[i] = id; e.device.choose != nil {
			res.Tokens[i] = e.device.choose(i, id)
		}
	}
	e.last = res.Tokens
	return res, nil
}

// damages are faults of a kernel: x are rows, the last of which is damaged.
var damages = map[string]func(x [][]float32){
	"another row": func(x [][]float32) { copy(x[len(x)-1], x[len(x)-2]) },
	"a scale": func(x [][]float32) {
		for i := range x[len(x)-1] {
			x[len(x)-1][i] *= 1.25
		}
	},
	"an element": func(x [][]float32) {
		row, size := x[len(x)-1], 0.0
		for _, v := range row {
			size += float64(v) * float64(v)
		}
		row[len(row)/2] += float32(math.Sqrt(size/float64(len(row)))) / 4
	},
	"not a number": func(x [][]float32) { x[len(x)-1][0] = float32(math.NaN()) },
}

// step returns a batch of two sequences of 5 and 7 tokens, with rows for the last three tokens of
// each.
func step(p *plan.Program) *plan.Batch {
	b := &plan.Batch{Start: []int32{0, 5, 12}, Lengths: []int32{5, 7}}
	for i := range 12 {
		b.Tokens = append(b.Tokens, int32(11+7*i))
		b.Positions = append(b.Positions, int32((i)%5))
	}
	copy(b.Positions[5:], []int32{0, 1, 2, 3, 4, 5, 6})
	for _, t := range []int32{2, 3, 4, 9, 10, 11} {
		b.Rows = append(b.Rows, plan.Row{Token: t, Want: plan.WantToken})
	}
	for _, g := range p.Groups {
		t := plan.PageTable{Pages: []int32{3, 1}, Start: []int32{0, 1, 2}, First: []int32{0, 0}}
		if g.Kind == plan.PerSequence {
			t = plan.PageTable{Pages: []int32{-1, 3, -1, 1}, Start: []int32{0, 2, 4}, First: []int32{0, 0}}
			if g.Every > 0 {
				t.Pages = []int32{-1, -1, -1, -1}
			}
		}
		b.Tables = append(b.Tables, t)
	}
	return b
}

func compile(t *testing.T, b plan.Backend, p *plan.Program, base plan.Limits) plan.Executable {
	t.Helper()
	exe, err := b.Compile(t.Context(), p, plantest.LimitsFor(p, 16, 2, 32, 16, base), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := exe.Close(); err != nil {
			t.Error(err)
		}
	})
	return exe
}

func submit(t *testing.T, exe plan.Executable, b *plan.Batch) *plan.Result {
	t.Helper()
	s, err := exe.Submit(b)
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// The error names the damaged operation and its token, and the other sequence continues.
func TestBrokenOperations(t *testing.T) {
	for name, model := range map[string]func(*testing.T, func(*tensor.Tensor)) *plan.Program{"dense": plantest.Model, "experts": plantest.MoEModel, "delta": plantest.DeltaModel, "states": plantest.StatesModel, "forms": plantest.FormsModel, "sparse": plantest.SparseModel, "compressed": plantest.CompressedModel} {
		p := model(t, nil)
		bases := []plan.Limits{{Cache: tensor.F32}, {Cache: tensor.Q8_0, Activations: cpu.Rounds}, {Cache: tensor.F16, Activations: tensor.F16}, {Cache: tensor.F8_E4M3}}
		for at, base := range bases {
			var target *plan.Node
			damage, kinds := "", slices.Sorted(maps.Keys(damages))
			device := &broken{spoil: func(n *plan.Node, rows [][]float32) {
				if n == target {
					damages[damage](rows)
				}
			}}
			exe := compile(t, check.Wrap(device, options(1_000_000)), p, base)
			for i := range p.Nodes {
				if i%len(bases) != at {
					continue
				}
				target, damage = &p.Nodes[i], kinds[(i+at)%len(kinds)]
				res := submit(t, exe, step(p))
				var drift *check.DriftError
				switch {
				case res.Err == nil || res.Err[0] != nil || !errors.As(res.Err[1], &drift) || !errors.Is(res.Err[1], check.ErrDiffers):
					t.Errorf("%s, %v cache: %s of %s gives the errors %v", name, base.Cache, damage, target.Where(), res.Err)
				case len(drift.Nodes) != 1 || drift.Nodes[0] != target || drift.Position != 6:
					t.Errorf("%s, %v cache: %s of %s is said to be %v", name, base.Cache, damage, target.Where(), drift)
				case !strings.Contains(drift.Error(), target.Where()):
					t.Errorf("the error does not name %s: %v", target.Where(), drift)
				}
			}
			target = nil
			if res := submit(t, exe, step(p)); res.Err != nil {
				t.Errorf("%s: with nothing broken the errors are %v", name, res.Err)
			}
		}
	}
}

// If the values of a damaged operation are not observed, the error names it among the fused
// operations.
func TestBrokenBetween(t *testing.T) {
	p := plantest.Model(t, nil)
	var target *plan.Node
	device := &broken{spoil: func(n *plan.Node, rows [][]float32) {
		if n == target {
			damages["another row"](rows)
		}
	}}
	for at, activations := range []tensor.DType{cpu.Rounds, tensor.F16} {
		exe := compile(t, check.Wrap(&shy{device, joined}, options(1_000_000)), p, plan.Limits{Cache: tensor.F16, Activations: activations})
		for i := range p.Nodes {
			if !longtest.Wanted() && i%2 != at {
				continue
			}
			target = &p.Nodes[i]
			res := submit(t, exe, step(p))
			var drift *check.DriftError
			if res.Err == nil || !errors.As(res.Err[1], &drift) || !slices.Contains(drift.Nodes, target) {
				t.Errorf("%v activations: %s gives the errors %v", activations, target.Where(), res.Err)
			} else if n := len(drift.Nodes); !joined(target) && n < 2 || n > 5 {
				t.Errorf("%v activations: %s is one of %d: %v", activations, target.Where(), n, drift)
			}
		}
	}
}

// Steps after the first ones are not compared and cost nothing.
func TestFirstSteps(t *testing.T) {
	p := plantest.Model(t, nil)
	device := &broken{}
	exe := compile(t, check.Wrap(device, options(2)), p, plan.Limits{Cache: tensor.F16})
	for i := range 4 {
		device.spoil = func(_ *plan.Node, rows [][]float32) { damages["a scale"](rows) }
		if i == 0 {
			device.spoil = nil
		}
		if res := submit(t, exe, step(p)); (res.Err != nil) != (i == 1) {
			t.Errorf("step %d: errors %v", i+1, res.Err)
		}
	}
}

// A token that does not follow from its logits is an error of its sequence. The error names both
// tokens. The caller gets only the logits that it asked for.
func TestBrokenTokens(t *testing.T) {
	p := plantest.Model(t, nil)
	wrong := -1
	device := &broken{choose: func(row int, token int32) int32 {
		if row == wrong {
			return (token + 1) % 97
		}
		return token
	}}
	exe := compile(t, check.Wrap(device, check.Options{Argmax: true}), p, plan.Limits{Cache: tensor.F16})
	mask := []uint32{0, 1 << 9, 1 << 3, 0}
	if err := exe.SetMask(3, mask); err != nil {
		t.Fatal(err)
	}
	kinds := func(b *plan.Batch) {
		b.Rows[0].Want |= plan.WantLogits
		b.Rows[1].Sampling = sample.Params{Temperature: 2, TopP: 0.9, Seed: 4}
		b.Rows[2].Mask = 3
		b.Rows[3].Adjustments = []sample.Adjustment{{Token: 3, Bias: 50}, {Token: 5, Count: 1}}
		b.Rows[4].Want = plan.WantLogits
	}
	for wrong = -1; wrong < 6; wrong++ {
		b := step(p)
		kinds(b)
		res := submit(t, exe, b)
		for i, x := range res.Logits {
			if (x != nil) != (b.Rows[i].Want&plan.WantLogits != 0) {
				t.Errorf("row %d, wanted for %b, has %d logits", i, b.Rows[i].Want, len(x))
			}
		}
		if wrong < 0 || wrong == 4 { // this row wants no token
			if res.Err != nil {
				t.Errorf("with nothing broken the errors are %v", res.Err)
			}
			continue
		}
		seq, position := wrong/3, int(b.Positions[b.Rows[wrong].Token])
		var e *check.TokenError
		switch {
		case res.Err == nil || res.Err[1-seq] != nil || !errors.As(res.Err[seq], &e) || !errors.Is(res.Err[seq], check.ErrDiffers):
			t.Errorf("row %d: errors %v", wrong, res.Err)
		case e.Position != position || e.Device != (e.Host+1)%97 || e.Greedy != (wrong != 1) || e.Device != res.Tokens[wrong] || e.DeviceLogit == e.HostLogit:
			t.Errorf("row %d: %+v", wrong, *e)
		case !strings.Contains(e.Error(), "kernel that samples tokens"):
			t.Error(e)
		}
	}
}

// Penalties count a token that the previous step has sampled and the host has not yet read.
func TestTokensByReference(t *testing.T) {
	p := plantest.Model(t, nil)
	device := &broken{}
	exe := compile(t, check.Wrap(device, options(10)), p, plan.Limits{Cache: tensor.F32})
	first := submit(t, exe, step(p))
	next := &plan.Batch{
		Tokens: []int32{0, 0}, From: []int32{2, 5}, Positions: []int32{5, 7}, Start: []int32{0, 1, 2}, Lengths: []int32{5, 7}, Tables: step(p).Tables,
		Rows: []plan.Row{{Token: 0, Want: plan.WantToken, Sampling: sample.Params{Presence: 100}}, {Token: 1, Want: plan.WantToken, Sampling: sample.Params{Presence: -100}}},
	}
	last := slices.Clone(first.Tokens)
	res := submit(t, exe, next)
	if res.Err != nil || res.Tokens[0] == last[2] || res.Tokens[1] != last[5] {
		t.Errorf("tokens %v after %v, errors %v", res.Tokens, last, res.Err)
	}
}
