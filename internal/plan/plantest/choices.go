package plantest

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/sample"
	"github.com/realizar/realizar/tensor"
)

// A chooser runs a program that has only logits to sample from.
type chooser struct {
	vocab   int
	program *plan.Program
	exe     plan.Executable
	masks   map[int32][]uint32 // masks set so far
	next    int32              // draw sets mask next+1
}

const chooserRows = 8

func newChooser(t *testing.T, b plan.Backend, vocab int) *chooser {
	t.Helper()
	const hidden = 64
	rng := newRand(uint64(vocab))
	c := &chooser{vocab: vocab, masks: map[int32][]uint32{}}
	c.program = build(t, func(b *plan.Builder) {
		h := b.Pick(b.RMSNorm(b.Embed(Weight(rng, "embed", tensor.F32, 1, vocab, hidden)), vector(rng, "norm", 1, 0.1, hidden), 1e-5))
		b.Output(h, b.Linear(h, Weight(rng, "head", tensor.F16, 0.6, vocab, hidden), nil))
	})
	var err error
	c.exe, err = b.Compile(context.Background(), c.program, LimitsFor(c.program, chooserRows, chooserRows, 16, 16, plan.Limits{Cache: tensor.F32}), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.exe.Close() })
	return c
}

// batch returns a batch with one token for each of len(tokens) sequences, all at one position, and
// a row for each.
func (c *chooser) batch(tokens []int32, position int) *plan.Batch {
	b := &plan.Batch{Tokens: tokens, Start: []int32{0}, Tables: make([]plan.PageTable, len(c.program.Groups))}
	for i := range tokens {
		b.Positions = append(b.Positions, int32(position))
		b.Start = append(b.Start, int32(i+1))
		b.Lengths = append(b.Lengths, int32(position+1))
		b.Rows = append(b.Rows, plan.Row{Token: int32(i), Want: plan.WantLogits})
	}
	return b
}

func (c *chooser) submit(t *testing.T, b *plan.Batch) plan.Step {
	t.Helper()
	s, err := c.exe.Submit(b)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func wait(t *testing.T, s plan.Step) *plan.Result {
	t.Helper()
	res, err := s.Wait(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// draw makes row a random row from which a token can be sampled. Its mask differs from those of the
// two steps before.
func (c *chooser) draw(t *testing.T, rng *rand.Rand, row *plan.Row) {
	t.Helper()
	pick := func(v ...float32) float32 { return v[rng.IntN(len(v))] }
	maybe := func(v float32) float32 { return v * float32(rng.IntN(2)) }
	row.Want = plan.WantToken | plan.Want(rng.IntN(2))*plan.WantLogits | plan.Want(rng.IntN(2))*plan.WantLogProbability
	row.Sampling = sample.Params{
		Repetition: maybe(pick(1, 1.2, 0.7, 3)), Frequency: maybe(pick(0.5, -0.2, 2)), Presence: maybe(pick(0.7, -1)),
		Temperature: pick(0, 0.5, 1, 1, 2, 6), TopK: rng.IntN(2) * (1 + rng.IntN(200)),
		Typical: maybe(pick(0.2, 0.6, 0.95)), TopP: maybe(pick(0.3, 0.8, 0.99)), MinP: maybe(pick(0.02, 0.3)),
		Seed: rng.Uint64(), Choice: rng.Uint32(),
	}
	if rng.IntN(4) == 0 {
		row.Sampling.Repetition, row.Sampling.Frequency, row.Sampling.Presence, row.Sampling.Typical = 0, 0, 0, 0
	}
	keep := rng.IntN(c.vocab) // never forbidden
	if rng.IntN(3) == 0 {
		mask := maskOf(c.vocab, int32(keep))
		for i := range mask {
			mask[i] |= rng.Uint32()
		}
		row.Mask = c.next + 1
		c.next = row.Mask % (2 * chooserRows)
		c.set(t, row.Mask, mask)
	}
	density := []int{0, 0, 1, 3, 20, 500}[rng.IntN(6)]
	for i := 0; density > 0 && i < c.vocab; i += 1 + rng.IntN(2*density-1) {
		a := sample.Adjustment{Token: int32(i), Prompt: rng.IntN(2) == 0, Count: int32(rng.IntN(3))}
		switch rng.IntN(8) {
		case 0:
			a.Bias = float32(math.Inf(-1))
		case 1, 2:
			a.Bias = float32(rng.NormFloat64() * 4)
		case 3:
			a.Bias = pick(math.MaxFloat32, -math.MaxFloat32, 100, -100)
		}
		if i == keep {
			a.Bias = 0
		}
		row.Adjustments = append(row.Adjustments, a)
	}
}

// A device chooses what the sampler does for all parameters, given the logits that the model
// computes without them; also if the previous token comes from a step that has not been waited for.
func choices(t *testing.T, b plan.Backend) {
	for _, size := range []struct{ vocab, steps int }{{7, 10}, {1000, 40}, {5003, 20}, {151_936, 4}} {
		c := newChooser(t, b, size.vocab)
		rng := newRand(31)
		for n := range size.steps {
			rows := 1 + rng.IntN(chooserRows)
			first, second := c.batch(ids(rng, rows, c.vocab), n), c.batch(make([]int32, rows), n+1)
			for i := range rows {
				if n%4 > 0 { // sometimes rows want only tokens
					c.draw(t, rng, &first.Rows[i])
					c.draw(t, rng, &second.Rows[i])
				} else {
					first.Rows[i].Want |= plan.WantToken
				}
				// Rows change places; some tokens are given as ids.
				if second.Tokens[i] = int32(rng.IntN(c.vocab)); rng.IntN(4) > 0 {
					second.From = append(second.From, int32((i+1)%rows))
				} else {
					second.From = append(second.From, -1)
				}
			}
			steps := []plan.Step{c.submit(t, first), c.submit(t, second)}
			res := wait(t, steps[0])
			last := make([]int32, rows)
			for i := range last {
				last[i] = -1
			}
			c.check(t, first, res, last)
			for i, row := range second.From {
				if row >= 0 {
					last[i] = res.Tokens[row]
				}
			}
			c.check(t, second, wait(t, steps[1]), last)
			for _, s := range steps {
				s.Release()
			}
		}
	}
}

// check compares a step's results with the sampler's, from the logits of a step that samples
// nothing. last are the tokens that came from the previous step, or -1.
func (c *chooser) check(t *testing.T, b *plan.Batch, res *plan.Result, last []int32) {
	t.Helper()
	tokens := append([]int32(nil), b.Tokens...)
	for i, id := range last {
		if id >= 0 {
			tokens[i] = id
		}
	}
	step := c.submit(t, c.batch(tokens, int(b.Positions[0])))
	defer step.Release()
	plain := wait(t, step)
	var s sample.Sampler
	for i := range b.Rows {
		row, logits := &b.Rows[i], plain.Logits[i]
		if row.Want&plan.WantLogits != 0 {
			same(t, "logits of a row that also wants a token", res.Logits[i:i+1], plain.Logits[i:i+1])
		}
		if res.Err != nil && res.Err[i] != nil {
			t.Errorf("row %d, %+v: %v", i, row.Sampling, res.Err[i])
			continue
		}
		if row.Want&plan.WantToken == 0 {
			continue
		}
		want, err := s.Token(logits, &row.Sampling, c.masks[row.Mask], row.Adjustments, last[i], int(b.Positions[i])+1)
		if err != nil {
			t.Fatal(err)
		}
		if res.Tokens[i] != want {
			t.Errorf("row %d of a vocabulary of %d, %+v, %d adjustments, masked %v, after %d: token %d, the sampler chooses %d",
				i, c.vocab, row.Sampling, len(row.Adjustments), row.Mask != 0, last[i], res.Tokens[i], want)
			continue
		}
		log := 0.0
		if row.Want&plan.WantLogProbability != 0 {
			log = sample.LogProbability(logits, want)
		}
		if got := float64(res.LogProbabilities[i]); !(math.Abs(got-log) <= 1e-5*max(1, -log)) {
			t.Errorf("row %d: token %d has the log-probability %v, want %v", i, want, got, log)
		}
	}
}

// If masks and biases allow no token, only that sequence fails.
func noChoice(t *testing.T, b plan.Backend) {
	c := newChooser(t, b, 1000)
	all := make([]sample.Adjustment, c.vocab)
	for i := range all {
		all[i] = sample.Adjustment{Token: int32(i), Bias: float32(math.Inf(-1))}
	}
	c.set(t, 1, maskOf(c.vocab))
	c.set(t, 2, maskOf(c.vocab, 69))
	batch := c.batch(ids(newRand(33), 6, c.vocab), 0)
	for i := range batch.Rows {
		batch.Rows[i].Want |= plan.WantToken
	}
	batch.Rows[0].Mask = 1
	batch.Rows[2].Adjustments = all
	batch.Rows[3].Adjustments, batch.Rows[3].Mask = all[60:70], 2
	batch.Rows[4].Adjustments, batch.Rows[4].Mask, batch.Rows[4].Sampling.Temperature = all[70:], 2, 1
	for range 2 {
		step := c.submit(t, batch)
		res := wait(t, step)
		for i := range batch.Rows {
			var err error
			if res.Err != nil {
				err = res.Err[i]
			}
			if fails := i == 0 || i == 2 || i == 3; fails != errors.Is(err, sample.ErrEmptyMask) || !fails && err != nil {
				t.Errorf("row %d: %v", i, err)
			}
		}
		if res.Tokens[4] != 69 || res.Tokens[0] != -1 {
			t.Errorf("tokens %v", res.Tokens)
		}
		step.Release()
	}
}
