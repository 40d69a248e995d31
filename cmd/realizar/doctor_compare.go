package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/random"
	"github.com/realizar/realizar/internal/synth"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// The most that results may differ from the reference's, relative to the length of their vector.
// Rounding activations to 8 bits makes a difference of about a hundredth, and to 16 bits one of
// about a thousandth; a wrong computation makes one of the order of 1.
const (
	bytesBound  = 0.05
	halvesBound = 5e-3
	floatBound  = 1e-3
)

// A compared is an arithmetic that a check compares: with activations of the device, or with those
// of the reference.
type compared struct {
	config    engine.Config
	reference tensor.DType
	bound     float64
	name      string
}

// onReference returns the configuration of the reference.
func (c *compared) onReference() engine.Config {
	r := c.config
	r.Activations = c.reference
	return r
}

// comparisons returns the two ways in which models run on b. The reference rounds as b does if it
// can, or else not at all.
func comparisons(b plan.Backend) []compared {
	const context = 256
	rounds, reference, bound := b.Rounds(), tensor.F32, halvesBound
	if rounds == cpu.Rounds {
		reference, bound = rounds, bytesBound
	}
	return []compared{
		{engine.Config{Context: context, Parallel: 1, Cache: tensor.F16, Activations: rounds}, reference, bound, fmt.Sprintf("%v activations", rounds)},
		{engine.Config{Context: context, Parallel: 1, Cache: tensor.F32, Activations: tensor.F32}, tensor.F32, floatBound, "float32"},
	}
}

// withEngine calls do with an engine of p on b.
func withEngine(ctx context.Context, p *plan.Program, b plan.Backend, c engine.Config, do func(*engine.Engine) error) error {
	e, err := engine.New(ctx, p, b, c, nil)
	if err != nil {
		return err
	}
	return errors.Join(do(e), e.Close())
}

// The sizes of the compared products, and the tokens of their steps: kernels for few tokens and for
// many differ.
const (
	productRows  = 160
	productWidth = 1024
)

var productSteps = []int{1, 5, 130}

// compareProducts compares products with weights of several formats.
func compareProducts(ctx context.Context, b plan.Backend) (string, error) {
	var names []string
	for _, d := range []tensor.DType{tensor.Q4_0, tensor.Q4_K, tensor.Q6_K, tensor.Q8_0, tensor.F16, tensor.BF16} {
		p, err := productProgram(d)
		if err != nil {
			return "", err
		}
		for _, c := range comparisons(b) {
			want, err := productLogits(ctx, p, cpu.Reference(), c.onReference())
			if err != nil {
				return "", err
			}
			got, err := productLogits(ctx, p, b, c.config)
			if err != nil {
				return "", fmt.Errorf("weights of %v, %s: %w", d, c.name, err)
			}
			for i := range want {
				if off := distance(got[i], want[i]); !(off <= c.bound) {
					return "", fmt.Errorf("weights of %v, %s: the relative error is %.2g, the limit %.2g; %s", d, c.name, off, c.bound, mistrust)
				}
			}
		}
		names = append(names, d.String())
	}
	return strings.Join(names, ", ") + " as " + cpu.Reference().Name(), nil
}

// mistrust is the advice if a device computes wrongly.
const mistrust = "do not trust what it computes: use another device, and report this with what realizar version --verbose says"

// productProgram returns a program that multiplies normalized rows of a table, which activations
// are rounded from, with a weight of a format, and the result with a head, which gives logits.
func productProgram(d tensor.DType) (*plan.Program, error) {
	table, err := randomWeight("table", tensor.F32, 1, 97, productWidth)
	if err != nil {
		return nil, err
	}
	w, err := randomWeight("w", d, 0.03, productRows, productWidth)
	if err != nil {
		return nil, err
	}
	head, err := randomWeight("head", tensor.F32, 0.05, 97, productRows)
	if err != nil {
		return nil, err
	}
	norm, err := randomWeight("norm", tensor.F32, 1, productWidth)
	if err != nil {
		return nil, err
	}
	return plan.Build(func(b *plan.Builder) {
		h := b.Pick(b.Linear(b.RMSNorm(b.Embed(table), norm, 1e-5), w, nil))
		b.Output(h, b.Linear(h, head, nil))
	})
}

func randomWeight(name string, d tensor.DType, std float64, shape ...int) (*tensor.Tensor, error) {
	f, err := random.NewFiller(random.Seed(1, name), d, 0, std)
	if err != nil {
		return nil, err
	}
	w := &tensor.Tensor{Name: name, DType: d, Shape: shape}
	size, err := d.Size(w.Elems())
	if err != nil {
		return nil, err
	}
	w.Data = make([]byte, size)
	f.Fill(w.Data, 0)
	return w, nil
}

// productLogits returns the logits of the first and the last tokens of every step.
func productLogits(ctx context.Context, p *plan.Program, b plan.Backend, c engine.Config) (all [][]float32, err error) {
	err = withEngine(ctx, p, b, c, func(e *engine.Engine) error {
		for _, n := range productSteps {
			r := &engine.Request{Prompt: randomTokens(n, n, p.Vocab), Outputs: []engine.Output{{Token: int32(n - 1), Want: plan.WantLogits}}}
			if n > 1 {
				r.Outputs = slices.Insert(r.Outputs, 0, engine.Output{Want: plan.WantLogits})
			}
			_, err := e.Run(ctx, r, func(r *engine.Result) (bool, error) {
				all = append(all, slices.Clone(r.Logits))
				return true, nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return all, err
}

// distance returns |got-want| / |want|, NaN if a value is not finite.
func distance(got, want []float32) float64 {
	var off, length float64
	for i := range want {
		d := float64(got[i]) - float64(want[i])
		off += d * d
		length += float64(want[i]) * float64(want[i])
	}
	return math.Sqrt(off / length)
}

// smallShape is a model that the reference runs almost at once.
var smallShape = synth.Shape{
	Name: "small", Architecture: "llama",
	Layers: 2, Hidden: 256, FFN: 512, Heads: 4, KVHeads: 2, HeadDim: 64, Vocab: 1024, Context: 256,
	RopeBase: 1e4, Eps: 1e-5,
}

// The prompt and the length of the small model's answer.
const (
	smallPrompt = 40
	smallAnswer = 24
)

// compareTokens compares the greedy answers of a small model.
func compareTokens(ctx context.Context, b plan.Backend) (text string, err error) {
	err = withSmallModel(ctx, func(p *plan.Program) error {
		for _, c := range comparisons(b) {
			want, err := decodeGreedily(ctx, p, cpu.Reference(), c.onReference())
			if err != nil {
				return err
			}
			got, err := decodeGreedily(ctx, p, b, c.config)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			same, err := want.compare(got, c.bound)
			if err != nil {
				return fmt.Errorf("%s: %w; %s", c.name, err, mistrust)
			}
			if text != "" {
				text += ", "
			}
			text += fmt.Sprintf("%s: %s", c.name, same)
		}
		return nil
	})
	return text + ", as " + cpu.Reference().Name(), err
}

// withSmallModel calls use with the small model. It writes no file.
func withSmallModel(ctx context.Context, use func(*plan.Program) error) (err error) {
	mix, ok := synth.FindMix("Q4_K_M")
	if !ok {
		return errors.New("the mix Q4_K_M is missing")
	}
	planned, err := synth.New(&smallShape, mix, 1)
	if err != nil {
		return err
	}
	var data bytes.Buffer
	if err := planned.Write(ctx, &data, 1); err != nil {
		return err
	}
	f, err := modelfile.OpenBytes(smallShape.Name, data.Bytes())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	m, err := arch.Build(f)
	if err != nil {
		return err
	}
	return use(m.Program)
}

// A greedyAnswer holds tokens, each the likeliest, and the logits that they were sampled from.
type greedyAnswer struct {
	tokens []int32
	logits [][]float32
}

func decodeGreedily(ctx context.Context, p *plan.Program, b plan.Backend, c engine.Config) (a greedyAnswer, err error) {
	err = withEngine(ctx, p, b, c, func(e *engine.Engine) error {
		r := &engine.Request{Prompt: randomTokens(1, smallPrompt, p.Vocab), Tokens: smallAnswer, Want: plan.WantLogits}
		_, err := e.Run(ctx, r, func(r *engine.Result) (bool, error) {
			a.tokens, a.logits = append(a.tokens, r.Token), append(a.logits, slices.Clone(r.Logits))
			return true, nil
		})
		return err
	})
	return a, err
}

// compare says how many of b's tokens equal those of a, the reference's. At the first token that
// differs, it returns an error if the choice of b is less likely than the bound permits.
func (a *greedyAnswer) compare(b greedyAnswer, bound float64) (string, error) {
	for i, want := range a.tokens {
		if off := distance(b.logits[i], a.logits[i]); !(off <= bound) {
			return "", fmt.Errorf("the relative error of the logits of token %d is %.2g, the limit %.2g", i, off, bound)
		}
		got := b.tokens[i]
		if got == want {
			continue
		}
		if got < 0 || int(got) >= len(a.logits[i]) {
			return "", fmt.Errorf("token %d is %d, which does not exist", i, got)
		}
		// The bound allows each of the two logits to be off by that much.
		if gap := float64(a.logits[i][want] - a.logits[i][got]); gap > 2*bound*rms(a.logits[i]) {
			return "", fmt.Errorf("token %d is %d instead of %d, whose logit is larger by %.2g", i, got, want, gap)
		}
		return fmt.Sprintf("%d tokens of %d and then one as likely", i, len(a.tokens)), nil
	}
	return fmt.Sprintf("%d tokens of %d", len(a.tokens), len(a.tokens)), nil
}

func rms(x []float32) float64 {
	var sum float64
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return math.Sqrt(sum / float64(len(x)))
}
