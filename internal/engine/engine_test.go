package engine_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/internal/sample"
	"github.com/realizar/realizar/tensor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// modelVocab is the vocabulary of [plantest.Model].
const modelVocab = 97

// tokens returns a prompt for that model.
func tokens(n, step int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32((i*step + step) % modelVocab)
	}
	return ids
}

// An answered holds the results of a request.
type answered struct {
	outputs [][]float32 // logits, in order
	tokens  [][]int32   // by answer
	logits  [][][]float32
	logs    [][]float32
	stopped []bool
	stats   engine.Stats
}

// ask runs r. If more is not nil, it reports whether the answer continues.
func ask(ctx context.Context, e *engine.Engine, r *engine.Request, more func(*engine.Result) bool) (*answered, error) {
	n := max(1, r.Choices)
	a := &answered{tokens: make([][]int32, n), logits: make([][][]float32, n), logs: make([][]float32, n), stopped: make([]bool, n)}
	var err error
	a.stats, err = e.Run(ctx, r, func(got *engine.Result) (bool, error) {
		c := got.Choice
		switch {
		case !got.Chosen:
			if len(a.outputs) == len(r.Outputs) || got.Index != int(r.Outputs[len(a.outputs)].Token) {
				return false, fmt.Errorf("output %d is of token %d", len(a.outputs), got.Index)
			}
			a.outputs = append(a.outputs, slices.Clone(got.Logits))
		case got.Index != len(a.tokens[c]):
			return false, fmt.Errorf("token %d of answer %d comes after %d", got.Index, c, len(a.tokens[c]))
		default:
			a.tokens[c] = append(a.tokens[c], got.Token)
			a.logits[c] = append(a.logits[c], slices.Clone(got.Logits))
			a.logs[c] = append(a.logs[c], got.LogProbability)
			a.stopped[c] = got.Stopped
		}
		return more == nil || more(got), nil
	})
	return a, err
}

// An oracle computes a program for one sequence, in steps of its own.
type oracle struct {
	runner *plantest.Runner
	mu     sync.Mutex
}

func newOracle(t *testing.T, b plan.Backend, p *plan.Program, context int, c engine.Config) *oracle {
	t.Helper()
	r, err := plantest.NewRunner(b, p, plantest.LimitsFor(p, 256, 1, context, 32, plan.Limits{Cache: c.Cache, Activations: c.Activations}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Exe.Close(); err != nil {
			t.Error(err)
		}
	})
	return &oracle{runner: r}
}

// logits returns the logits of every token of a sequence.
func (o *oracle) logits(ids []int32, prompt int) ([][]float32, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.runner.Add(ids, 256)
	defer o.runner.Drop(s)
	s.Prompt = prompt
	err := o.runner.Run()
	return s.Logits, err
}

// differs describes how a differs from the right answers to r, however r was cut, shared, moved and
// preempted.
func (o *oracle) differs(r *engine.Request, a *answered) error {
	for c, chosen := range a.tokens {
		if r.Tokens == 0 {
			chosen = nil
		} else if len(chosen) < r.Tokens && !a.stopped[c] {
			return fmt.Errorf("answer %d has %d tokens of %d", c, len(chosen), r.Tokens)
		}
		all := slices.Concat(r.Prompt, chosen)
		logits, err := o.logits(all[:len(r.Prompt)+max(0, len(chosen)-1)], len(r.Prompt))
		if err != nil {
			return err
		}
		for i, out := range r.Outputs {
			if len(a.outputs) <= i || !slices.Equal(a.outputs[i], logits[out.Token]) {
				return fmt.Errorf("the logits of token %d of the prompt differ", out.Token)
			}
		}
		for i, id := range chosen {
			at := len(r.Prompt) + i - 1
			want, err := choice(r, c, all[:at+1], logits[at])
			if err != nil {
				return err
			}
			if id != want {
				return fmt.Errorf("answer %d: token %d is %d, want %d", c, i, id, want)
			}
			if r.Want&plan.WantLogits != 0 && !slices.Equal(a.logits[c][i], logits[at]) {
				return fmt.Errorf("answer %d: the logits of token %d differ", c, i)
			}
			if log := sample.LogProbability(logits[at], id); r.Want&plan.WantLogProbability != 0 && math.Abs(float64(a.logs[c][i])-log) > 1e-5 {
				return fmt.Errorf("answer %d: the log-probability of token %d is %v, want %v", c, i, a.logs[c][i], log)
			}
			if stop := i >= r.MinTokens && slices.Contains(r.Stop, id); stop != (i+1 == len(chosen) && a.stopped[c]) {
				return fmt.Errorf("answer %d: token %d stops it: %v", c, i, !stop)
			}
		}
	}
	return nil
}

// choice returns the token that answer c to r has after all, given these logits.
func choice(r *engine.Request, c int, all []int32, logits []float32) (int32, error) {
	var adjust []sample.Adjustment
	chosen := all[len(r.Prompt):]
	for id := range int32(len(logits)) {
		a := sample.Adjustment{Token: id, Prompt: slices.Contains(r.Prompt, id)}
		for _, b := range r.Bias {
			if b.Token == id {
				a.Bias = b.Bias
			}
		}
		if len(chosen) < r.MinTokens && slices.Contains(r.Stop, id) {
			a.Bias = float32(math.Inf(-1))
		}
		for _, was := range chosen {
			if was == id {
				a.Count++
			}
		}
		adjust = append(adjust, a)
	}
	var mask []uint32
	if r.Constrain != nil {
		mask = make([]uint32, (len(logits)+31)/32)
		if _, err := r.Constrain(c).Next(chosen, false, mask); err != nil {
			return 0, err
		}
	}
	if r.Allowed != nil {
		if mask == nil {
			mask = slices.Clone(r.Allowed.Words)
		}
		for i := range mask {
			mask[i] &= r.Allowed.Words[i]
		}
	}
	p := r.Sampling
	p.Choice += uint32(c)
	var s sample.Sampler
	return s.Token(logits, &p, mask, adjust, -1, len(all))
}

// requests returns requests of all kinds, many of which share beginnings.
func requests(rng *rand.Rand, n, context int) []*engine.Request {
	system := tokens(150, 5)
	odd := &engine.Mask{Words: []uint32{0xaaaaaaaa, 0xaaaaaaaa, 0xaaaaaaaa, 1}}
	var all []*engine.Request
	for i := range n {
		r := &engine.Request{Tokens: 1 + rng.IntN(60), Sampling: sample.Params{Temperature: 2, Seed: uint64(i)}, Priority: rng.IntN(2)}
		switch i % 4 {
		case 0:
			r.Prompt = tokens(1+rng.IntN(400), 1+i)
		case 1:
			r.Prompt = slices.Concat(system, tokens(1+rng.IntN(40), 1+i))
			r.Choices = 1 + rng.IntN(3)
		case 2:
			r.Prompt = slices.Concat(system[:64+rng.IntN(80)], tokens(260, 11))
			r.Sampling.Repetition, r.Sampling.Frequency, r.Sampling.Presence = 1.3, 0.5, 0.25
		case 3:
			r.Prompt = slices.Concat(all[i-2].Prompt, tokens(7, i))
			r.Stop, r.MinTokens = []int32{3, 50, 51, 52, 53, 54}, rng.IntN(30)
			r.Bias = []sample.Adjustment{{Token: 2, Bias: 4}, {Token: 3, Bias: 1}, {Token: 7, Bias: float32(math.Inf(-1))}}
		}
		r.Tokens = min(r.Tokens, context-len(r.Prompt)+1)
		if rng.IntN(3) == 0 {
			r.Want = plan.WantLogits | plan.WantLogProbability
		}
		if rng.IntN(3) == 0 {
			for t := rng.IntN(len(r.Prompt)); t+1 < len(r.Prompt); t += 1 + rng.IntN(60) {
				r.Outputs = append(r.Outputs, engine.Output{Token: int32(t), Want: plan.WantLogits})
			}
		}
		if rng.IntN(4) == 0 {
			r.Constrain = masking(func(choice int, chosen []int32, mask []uint32) error {
				mask[0], mask[1], mask[2] = 0xffff0f0f<<(len(chosen)%3), uint32(choice)|0xf0f0, 1
				return nil
			}).by
		}
		if i%3 == 0 {
			r.Allowed = odd
		}
		all = append(all, r)
	}
	return all
}

// Requests run beside others share beginnings, lose pages, and move to host memory and back. Their
// answers equal, bit for bit, those of the model to each alone.
func TestAnswersAreTheModels(t *testing.T) {
	for _, c := range []engine.Config{
		{Cache: tensor.F32},
		{Cache: tensor.F16, Host: 64 << 20},
		{Cache: tensor.Q8_0, Host: 1 << 20},
		{Cache: tensor.F8_E4M3, Host: 1 << 20},
	} {
		c.Context, c.Parallel, c.States = 500, 6, 1
		t.Run(c.Cache.String(), func(t *testing.T) {
			onBackends(t, func(t *testing.T, b plan.Backend) {
				c := c
				if c.Cache == tensor.F16 {
					c.Activations = b.Rounds()
				}
				answersAreTheModels(t, b, plantest.Model(t, nil), c)
			})
		})
	}
}

// So do those of models whose states have a row of keys for several tokens, and whose attention is to
// chosen rows.
func TestAnswersOfSparseModels(t *testing.T) {
	for name, model := range map[string]func(*testing.T, func(*tensor.Tensor)) *plan.Program{"sparse": plantest.SparseModel, "compressed": plantest.CompressedModel} {
		t.Run(name, func(t *testing.T) {
			answersAreTheModels(t, cpu.New(2), model(t, nil), engine.Config{Cache: tensor.F16, Host: 64 << 20, Context: 500, Parallel: 6, States: 1})
		})
	}
}

func answersAreTheModels(t *testing.T, b plan.Backend, p *plan.Program, c engine.Config) {
	o := newOracle(t, b, p, c.Context+60, c)
	e := open(t, b, p, c)
	all := requests(rand.New(rand.NewPCG(5, 5)), 24, c.Context)
	var working sync.WaitGroup
	for i, r := range all {
		working.Go(func() {
			a, err := ask(t.Context(), e, r, nil)
			if err == nil {
				err = o.differs(r, a)
			}
			if err != nil {
				t.Errorf("request %d, of %d tokens after %d: %v", i, r.Tokens, len(r.Prompt), err)
			}
			if err := e.Check(); err != nil {
				t.Error(err)
			}
		})
	}
	working.Wait()
	m := e.Metrics()
	if m.CacheHits == 0 || m.Preemptions == 0 || m.Evictions == 0 || c.Host > 0 && (m.Saves == 0 || m.Restores == 0) {
		t.Errorf("nothing was shared, taken away or brought back: %+v", m)
	}
}

// The common part of a request's tokens is found in the cache, and changes no result.
func TestPrefixIsFound(t *testing.T) {
	onBackends(t, func(t *testing.T, b plan.Backend) {
		p := plantest.Model(t, nil)
		c := engine.Config{Context: 400, Parallel: 2, Cache: tensor.F16}
		o, e := newOracle(t, b, p, c.Context, c), open(t, b, p, c)
		prompt := tokens(200, 7)
		first := &engine.Request{Prompt: prompt, Tokens: 60, Sampling: sample.Params{Temperature: 2, Seed: 5}}
		a, err := ask(t.Context(), e, first, nil)
		if err != nil || a.stats.Cached != 0 {
			t.Fatalf("%v: %+v", err, a.stats)
		}
		whole := slices.Concat(prompt, a.tokens[0])
		other := slices.Clone(prompt)
		other[100] = (other[100] + 1) % modelVocab
		for what, test := range map[string]struct {
			r      engine.Request
			cached int
		}{
			"the same":               {engine.Request{Prompt: prompt}, 192},
			"of whole pages":         {engine.Request{Prompt: prompt[:128]}, 96},
			"and a token":            {engine.Request{Prompt: prompt[:129]}, 128},
			"with the answer":        {engine.Request{Prompt: slices.Concat(whole, tokens(3, 3))}, 256},
			"with another token":     {engine.Request{Prompt: other}, 96},
			"with an output":         {engine.Request{Prompt: prompt, Outputs: []engine.Output{{Token: 70, Want: plan.WantLogits}}}, 64},
			"with an early output":   {engine.Request{Prompt: prompt, Outputs: []engine.Output{{Token: 31, Want: plan.WantLogits}}}, 0},
			"of somebody else":       {engine.Request{Prompt: prompt, Salt: "another"}, 0},
			"for nothing but itself": {engine.Request{Prompt: prompt[:65]}, 64},
		} {
			r := test.r
			r.Tokens, r.Want, r.Sampling = 5, plan.WantLogits, first.Sampling
			if what == "for nothing but itself" {
				r.Tokens = 0
			}
			a, err := ask(t.Context(), e, &r, nil)
			if err == nil {
				err = o.differs(&r, a)
			}
			if err != nil || a.stats.Cached != test.cached {
				t.Errorf("a prompt %s: %d tokens are found, want %d; %v", what, a.stats.Cached, test.cached, err)
			}
		}
	})
}

// Sequences that begin alike decode side by side as each does alone, where a device reads what they
// have in common once for all of them.
func TestCommonPrefix(t *testing.T) {
	const width, prefix, answers = 64, 530, 12
	rng := rand.New(rand.NewPCG(3, 4))
	p, err := plan.Build(func(b *plan.Builder) {
		w := func(name string, scale float64, rows int) *tensor.Tensor {
			return plantest.Weight(rng, name, tensor.F16, scale, rows, width)
		}
		x := b.Embed(w("embed", 1, modelVocab))
		r := plan.RopeAttr{HeadDim: 64, Dims: 64, Scale: 1, Freqs: make([]float64, 32)}
		for i := range r.Freqs {
			r.Freqs[i] = 1 / float64(1+i*i)
		}
		for range 2 {
			s := b.State(plan.State{Name: "kv", Kind: plan.PerToken, KVHeads: 1, HeadDim: 64, ValueDim: 64})
			y := b.Attention(b.Rope(b.Linear(x, w("q", 0.1, 4*64), nil), r), b.Rope(b.Linear(x, w("k", 0.1, 64), nil), r), b.Linear(x, w("v", 0.1, 64), nil), nil, s,
				plan.AttentionAttr{Heads: 4, KVHeads: 1, HeadDim: 64, Scale: 0.125})
			x = b.Add(x, b.Linear(y, plantest.Weight(rng, "o", tensor.F16, 0.1, width, 4*64), nil))
		}
		h := b.Pick(x)
		b.Output(h, b.Linear(h, w("head", 0.3, modelVocab), nil))
	})
	if err != nil {
		t.Fatal(err)
	}
	onBackends(t, func(t *testing.T, b plan.Backend) {
		e := open(t, b, p, engine.Config{Context: 640, Parallel: 6, Cache: tensor.F16, Chunk: 256})
		requests := make([]*engine.Request, 6)
		for i := range requests {
			prompt := slices.Concat(tokens(prefix, 7), tokens(1+9*i, 5+i))
			requests[i] = &engine.Request{Prompt: prompt, Tokens: answers, Want: plan.WantLogits, Sampling: sample.Params{Temperature: 2, Seed: uint64(i)}}
		}
		together, failed := make([]*answered, len(requests)), make([]error, len(requests))
		var wait sync.WaitGroup
		for i, r := range requests {
			wait.Go(func() { together[i], failed[i] = ask(t.Context(), e, r, nil) })
		}
		wait.Wait()
		for i, r := range requests {
			alone := *r
			alone.Salt = fmt.Sprint(i)
			want, err := ask(t.Context(), e, &alone, nil)
			if err != nil || failed[i] != nil {
				t.Fatal(err, failed[i])
			}
			if !slices.EqualFunc(together[i].logits[0], want.logits[0], slices.Equal) {
				t.Errorf("request %d has other logits than alone; its tokens are %v and %v", i, together[i].tokens[0], want.tokens[0])
			}
		}
	})
}

// Several answers to one request equal the answers to several requests, and the prompt runs once.
func TestChoices(t *testing.T) {
	onBackends(t, func(t *testing.T, b plan.Backend) {
		e := open(t, b, plantest.Model(t, nil), engine.Config{Context: 400, Parallel: 3, Cache: tensor.F16})
		r := &engine.Request{Prompt: tokens(260, 7), Tokens: 30, Sampling: sample.Params{Temperature: 2, Seed: 5, Choice: 7}, Choices: 5}
		together, err := ask(t.Context(), e, r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if m := e.Metrics(); m.PromptTokens != 260+4*4 {
			t.Errorf("%d tokens of prompts were run, want 260 and, for each answer more, those after the last whole page", m.PromptTokens)
		}
		for i := range 5 {
			single := *r
			single.Choices, single.Sampling.Choice, single.Salt = 0, 7+uint32(i), fmt.Sprint(i)
			alone, err := ask(t.Context(), e, &single, nil)
			if err != nil || !slices.Equal(alone.tokens[0], together.tokens[i]) {
				t.Errorf("answer %d: %v, alone %v (%v)", i, together.tokens[i], alone.tokens[0], err)
			}
			if i > 0 && slices.Equal(together.tokens[i], together.tokens[0]) {
				t.Errorf("answer %d is the first once more", i)
			}
		}
		// One token of the third answer is enough, and that answer alone ends.
		some, err := ask(t.Context(), e, r, func(got *engine.Result) bool { return got.Choice != 2 || got.Index < 4 })
		if err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			want := together.tokens[i]
			if i == 2 {
				want = want[:5]
			}
			if !slices.Equal(some.tokens[i], want) {
				t.Errorf("answer %d, where the third was ended: %v, want %v", i, some.tokens[i], want)
			}
		}
	})
}

// A failed computation ends its own request only.
func TestNotFinite(t *testing.T) {
	const bad = 13
	onBackends(t, func(t *testing.T, b plan.Backend) {
		p := plantest.Model(t, nil)
		poison(t, p, bad)
		c := engine.Config{Context: 400, Parallel: 4, Cache: tensor.F16}
		o, e := newOracle(t, b, p, c.Context, c), open(t, b, p, c)
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				prompt := tokens(40+i, 2)
				for k := range prompt {
					if prompt[k] == bad {
						prompt[k]++
					}
				}
				r := &engine.Request{Prompt: prompt, Tokens: 40, Sampling: sample.Params{Temperature: 2, Seed: uint64(i)}, Choices: 2}
				r.Bias = []sample.Adjustment{{Token: bad, Bias: float32(math.Inf(-1))}}
				a, err := ask(t.Context(), e, r, nil)
				if err == nil {
					err = o.differs(r, a)
				}
				if err != nil {
					t.Errorf("beside what cannot be computed: %v", err)
				}
			})
			all.Go(func() {
				prompt := append(tokens(40+i, 2), bad)
				_, err := ask(t.Context(), e, &engine.Request{Prompt: prompt, Tokens: 5}, nil)
				if !errors.Is(err, plan.ErrNotFinite) {
					t.Errorf("error %v, want that of a value that is not finite", err)
				}
			})
			all.Go(func() {
				// It is the first sampled token.
				r := &engine.Request{Prompt: tokens(3, 3), Tokens: 5, Bias: []sample.Adjustment{{Token: bad, Bias: 1e30}}}
				if a, err := ask(t.Context(), e, r, nil); !errors.Is(err, plan.ErrNotFinite) || len(a.tokens[0]) > 1 {
					t.Errorf("error %v after %v, want that of a value that is not finite", err, a.tokens[0])
				}
			})
			all.Go(func() {
				r := &engine.Request{Prompt: tokens(3, 3), Tokens: 5, Constrain: masking(func(_ int, chosen []int32, mask []uint32) error {
					if len(chosen) < 2 {
						mask[0] = 4
					}
					return nil
				}).by}
				if a, err := ask(t.Context(), e, r, nil); !errors.Is(err, sample.ErrEmptyMask) || !slices.Equal(a.tokens[0], []int32{2, 2}) {
					t.Errorf("error %v after %v, want that of a mask that allows nothing", err, a.tokens[0])
				}
			})
		}
		all.Wait()
		if m := e.Metrics(); m.Ended[engine.EndedByError] == 0 || m.Running+m.Waiting > 0 {
			t.Errorf("%+v", m)
		}
	})
}

// poison makes the output of the first norm infinite for one token: a weight of the norm is the
// largest float32, and the other tokens have zeros in that column.
func poison(t *testing.T, p *plan.Program, id int) {
	t.Helper()
	const column = 5
	var table *tensor.Tensor
	for i := range p.Nodes {
		switch n := &p.Nodes[i]; n.Op {
		case plan.Embed:
			table = n.Weight
			for row := range n.Weight.Rows() {
				data := n.Weight.Row(row)[2*column:] // of float16
				data[0], data[1] = 0, 0
				if row == id {
					data[1] = 0x7b // 57344, beside which the others are nothing
				}
			}
		case plan.RMSNorm:
			if table == nil || table.DType != tensor.F16 || n.Weight.DType != tensor.F32 {
				t.Fatal("the program does not begin as it did")
			}
			binary.LittleEndian.PutUint32(n.Weight.Data[4*column:], math.Float32bits(math.MaxFloat32))
			return
		}
	}
	t.Fatal("the program has no norm")
}
