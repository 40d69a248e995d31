package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/backends"
)

// benchCommand is `realizar bench MODEL`.
type benchCommand struct {
	Model  string `arg:"" help:"${model}"`
	Prompt *int   `short:"p" placeholder:"N" common:"" help:"Prompt tokens of the prefill test; 0 skips it. Default: 512, or as many as the context holds."`
	Tokens *int   `short:"n" placeholder:"N" common:"" help:"Tokens of the decode test; 0 skips it. Default: 128, or as many as the context holds."`
	Depth  *int   `short:"d" placeholder:"N" common:"" help:"Tokens in the context before the decode test. Default: 128, or as many as the context holds beside -n."`
	Batch  []int  `placeholder:"B" common:"" help:"Batch sizes of the decode test: B sequences decode together in each step. Default: 1."`
	Runs   int    `short:"r" default:"3" placeholder:"N" common:"" help:"Measured runs of each test, after one warm-up run. Default: ${default}."`
	JSON   bool   `name:"json" common:"" help:"Write one JSON object for each test, one per line."`

	writeFlags
	modelFlags
}

// Help is shown below the command's line.
func (*benchCommand) Help() string {
	return `pp512 is the prefill of a prompt of 512 tokens, tg128 the decode of 128 tokens, both in tokens per
second: the median, the minimum and the maximum of the runs. depth is the number of tokens in the
context before the test. The tokens are random, from a fixed seed. In a context too small for the
default lengths the tests are shorter and have other names, such as pp256; a length given by a flag
must fit. first token is the time to the first token, the median of the runs, and longest the
maximum.

With --batch, tg128 x8 is the decode of 128 tokens by each of 8 sequences in one batch, and its rate
that of all 8 together. first token and longest come from a run of their own, after a warm-up run, in
which 8 requests arrive at the same time, as at a server with the same flags: the prefill of one
shares steps with the prefill and the decode of others. first token is the median of the 8 requests,
longest the maximum.

share of limit compares the rate with the limit of the machine, which the same run measures with the
fastest loops that the program has. The limit of decode is memory bandwidth: a step reads all weights
once, whatever the batch, and the keys and values of each sequence. If layers stream to a GPU and
this takes longer, the limit is the bandwidth of the link; if experts stream on demand, it is
unknown. The limit of prefill is arithmetic: the time that the products with weights take in
registers, in 8 bits or in float32 as they are computed, without attention. - means that there is no
such loop for the CPU, or that the test is prefill on a GPU. More than 100% means that CPU caches
hold a part of what a step reads.

With --write, write412 off is the decode of the 412 tokens of that text after the prompt of --read,
and write412 suffix the same with speculative decoding (--speculative suffix) of
--speculative-tokens, or as many as pay off. The text decides each token, so the weights have no
influence, and the time is that of a real answer. With --speculative it is also measured with the
proposals of heads, write412 mtp or eagle; they predict what the model itself would write, so the
text of --write should be its own answer to that of --read. With --batch 1,64 it is measured for one
answer and for 64 at the same time. write412 right 0.7 has proposals of --right 0.7: each proposed
token is right with that probability.

With --json the members are test, tok_s (median), min, max, share_of_limit (0 to 1, or null), device,
device_name (of a GPU, or null), batch (sequences in a step), depth, model, threads (0 on a GPU),
ttft_ms (median time to the first token), ttft_max_ms (its maximum), rss_bytes and peak_rss_bytes
(null if the system does not report them). share_of_limit comes from members that are null where they
do not apply: for decode bandwidth_bytes_s and step_bytes (read by a step), with streamed layers also
link_bytes_s and copied_bytes (by a step); for prefill peak_products_s and peak_floats_s
(multiply-adds per second in 8 bits and in float32), token_products and token_floats (of one token).
proposed and accepted are the tokens that --write proposed in its last run, and those of them that
were right, or null.

Examples:

    realizar bench model.gguf
    realizar bench model.gguf --batch 1,4,16
    realizar bench model.gguf -p 0 -n 256 -r 5 --threads 8 --json
    realizar bench model.gguf -p 0 -n 32 -d 8192
    realizar bench model.gguf --device cuda
    realizar bench model.gguf --read before.txt --write after.txt

bench is short for bench model. realizar bench serve measures a server: see realizar bench serve
--help.`
}

// maxBatch is more sequences than a step gains from.
const maxBatch = 4096

// Validate implements the parser's interface.
func (c *benchCommand) Validate() error {
	switch {
	case c.Prompt != nil && *c.Prompt < 0:
		return fmt.Errorf("-p %d: want 0 or more", *c.Prompt)
	case c.Tokens != nil && *c.Tokens < 0:
		return fmt.Errorf("-n %d: want 0 or more", *c.Tokens)
	case c.Depth != nil && *c.Depth < 1:
		return fmt.Errorf("-d %d: want 1 or more", *c.Depth)
	case c.Runs < 1:
		return fmt.Errorf("-r %d: want 1 or more", c.Runs)
	case c.checks():
		return errors.New("--check-argmax and --check-reference: checks slow every step, so the rates would mean nothing; use run or eval")
	}
	for _, n := range c.Batch {
		if n < 1 || n > maxBatch {
			return fmt.Errorf("--batch %d: want 1 to %d", n, maxBatch)
		}
	}
	if c.Tokens != nil && *c.Tokens == 0 {
		switch {
		case c.Prompt != nil && *c.Prompt == 0:
			return errors.New("-p 0 and -n 0 leave nothing to measure")
		case c.Depth != nil:
			return fmt.Errorf("-n 0 leaves nothing to measure after -d %d", *c.Depth)
		case len(c.Batch) > 0:
			return errors.New("-n 0 leaves nothing to measure with --batch")
		}
	}
	if err := c.validWrite(); err != nil {
		return err
	}
	return c.modelFlags.Validate()
}

// Run runs the benchmark.
func (c *benchCommand) Run(a *app) error {
	path, err := a.modelPath(c.Model, false)
	if err != nil {
		return err
	}
	c.Model = path
	d, err := realizar.Describe(c.Model)
	if err != nil {
		return err
	}
	// Check first what fits: an error need not wait for the model and the earlier tests.
	most := d.Dimensions.Context
	var n testLengths
	if most > 0 && c.Context <= most {
		if n, err = c.lengths(cmp.Or(c.Context, most), d); err != nil {
			return err
		}
	}
	b := &benchmark{benchCommand: c, app: a, description: d}
	switch {
	case c.Write != "":
		err = b.writing()
	case len(c.Batch) == 0:
		err = b.answers()
	default:
		err = b.lockstep(n)
	}
	if err != nil {
		return err
	}
	for _, share := range b.shares {
		if err := share(); err != nil {
			return err
		}
	}
	return b.write(a.out, terminalWidth(a.stdout))
}

// lockstep measures prompts one at a time, then requests that arrive together, and then batches of
// sequences.
func (b *benchmark) lockstep(n testLengths) error {
	m, err := openLockstep(b.Model, b.app.kernels, b.options())
	if err != nil {
		return err
	}
	defer func() { _ = m.close() }()
	most := m.model.Spec.Context
	if b.Context > most {
		return usagef("--context %d: the model supports %d tokens", b.Context, most)
	}
	if n.answer == 0 {
		return usagef("--batch needs a context of 2 tokens, but it is %d", cmp.Or(b.Context, most))
	}
	var shapes []batchShape
	for _, seqs := range b.Batch {
		s := batchShape{seqs: seqs, depth: n.depth, answer: n.answer}
		if err := m.check(s); err != nil {
			return err
		}
		shapes = append(shapes, s)
	}
	b.noteLengths(n, cmp.Or(b.Context, most))
	first, err := b.requests(n, shapes, m.device)
	if err != nil {
		return err
	}
	return b.batches(m, shapes, first)
}

// requests measures the model as a server runs it, on the device of the batches: a prompt, and for
// each shape the first tokens of requests that arrive together.
func (b *benchmark) requests(n testLengths, shapes []batchShape, device *backends.Device) (first [][]float64, err error) {
	o := b.options()
	o.Context, o.Parallel = max(n.prompt, n.depth+n.answer), cmp.Or(b.Parallel, slices.Max(b.Batch))
	if !device.Kind.Host {
		o.Device = device.Selector()
	}
	m, err := b.app.openWith(b.app.ctx, b.Model, o)
	if err != nil {
		return nil, err
	}
	defer func() {
		_ = m.Close()
		debug.FreeOSMemory() // for the batches
	}()
	if n.prompt > 0 {
		if err := b.prefill(m, n.prompt); err != nil {
			return nil, err
		}
	}
	for _, s := range shapes {
		times, err := b.firstTokens(m, s)
		if err != nil {
			return nil, err
		}
		first = append(first, times)
	}
	return first, nil
}

// firstTokens runs s's sequences as requests that arrive together, once to warm up and then once
// more, and returns the milliseconds to the first token of each.
func (b *benchmark) firstTokens(m *realizar.Model, s batchShape) (first []float64, err error) {
	for range 2 {
		b.asked++
		first = make([]float64, s.seqs)
		group, ctx := errgroup.WithContext(b.app.ctx)
		for i := range s.seqs {
			request := b.request(randomTokens(i, s.depth, m.Vocab()), s.answer+1)
			group.Go(func() error {
				f, err := finish(ctx, m, request)
				if err == nil {
					first[i] = firstToken(f)
				}
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return nil, err
		}
	}
	return first, nil
}

// answers measures single requests, one at a time.
func (b *benchmark) answers() error {
	m, err := b.app.open(b.Model, &b.modelFlags)
	if err != nil {
		return err
	}
	defer func() { _ = m.Close() }()
	// The context may be smaller than when the lengths were found, because of memory.
	n, err := b.lengths(m.Context(), b.description)
	if err != nil {
		return err
	}
	b.noteLengths(n, m.Context())
	if n.prompt > 0 {
		if err := b.prefill(m, n.prompt); err != nil {
			return err
		}
	}
	if n.answer > 0 {
		return b.decode(m, n)
	}
	return nil
}

// noteLengths reports tests whose usual lengths were reduced.
func (b *benchmark) noteLengths(n testLengths, context int) {
	if b.Prompt == nil && n.prompt < defaultPrompt {
		b.app.notef("measuring pp%d instead of pp%d: the context is %d", n.prompt, defaultPrompt, context)
	}
	switch {
	case b.Tokens == nil && n.answer == 0:
		b.app.notef("skipping tg%d: the context is %d", defaultAnswer, context)
	case b.Tokens == nil && n.answer < defaultAnswer:
		b.app.notef("measuring tg%d instead of tg%d: the context is %d", n.answer, defaultAnswer, context)
	}
}

func (b *benchmark) prefill(m *realizar.Model, n int) error {
	rates, first, err := b.repeat(m, randomTokens(0, n, m.Vocab()), 1, func(f *realizar.Finish) float64 {
		return float64(n) / f.Timings.Prefill.Seconds()
	})
	if err != nil {
		return err
	}
	t := b.measurement(fmt.Sprintf("pp%d", n), m.Device(), m.DeviceName(), rates, first)
	b.productShare(t)
	b.results = append(b.results, t)
	return nil
}

func (b *benchmark) decode(m *realizar.Model, n testLengths) error {
	rates, first, err := b.repeat(m, randomTokens(0, n.depth, m.Vocab()), n.answer+1, func(f *realizar.Finish) float64 {
		return float64(n.answer) / f.Timings.Decode.Seconds()
	})
	if err != nil {
		return err
	}
	t := b.measurement(fmt.Sprintf("tg%d", n.answer), m.Device(), m.DeviceName(), rates, first)
	var copied copies
	if streaming := m.Streaming(); streaming != nil {
		copied = copies{streaming.Streamed, streaming.Experts != nil}
	}
	b.shares = append(b.shares, func() error {
		return b.readShare(t, batchShape{seqs: 1, depth: n.depth, answer: n.answer}, copied)
	})
	b.results = append(b.results, t)
	return nil
}

// repeat answers prompt with n tokens, once to warm up and then b.Runs times, and returns the rates
// and the milliseconds to the first token.
func (b *benchmark) repeat(m *realizar.Model, prompt []int32, n int, rate func(*realizar.Finish) float64) (rates, first []float64, err error) {
	for i := range b.Runs + 1 {
		b.asked++
		f, err := finish(b.app.ctx, m, b.request(prompt, n))
		if err != nil {
			return nil, nil, err
		}
		if i > 0 {
			rates = append(rates, rate(f))
			first = append(first, firstToken(f))
		}
	}
	return rates, first, nil
}

// request returns a request for n tokens after a prompt. Each has its own salt, so that none finds
// cached pages of another.
func (b *benchmark) request(prompt []int32, n int) *realizar.Request {
	return &realizar.Request{PromptTokens: prompt, Generation: realizar.Generation{MaxTokens: &n, IgnoreEnd: true, Salt: strconv.Itoa(b.asked)}}
}

// finish runs a request on m and returns how it ended.
func finish(ctx context.Context, m *realizar.Model, r *realizar.Request) (f *realizar.Finish, err error) {
	for e, err := range m.Generate(ctx, r) {
		if err != nil {
			return nil, err
		}
		f = e.Finish
	}
	return f, nil
}

// firstToken returns the time to an answer's first token, in milliseconds.
func firstToken(f *realizar.Finish) float64 {
	return milliseconds(f.Timings.Queue + f.Timings.Prefill)
}

// randomTokens returns tokens that are the same in every run and different for every sequence.
func randomTokens(sequence, n, vocab int) []int32 {
	random := rand.New(rand.NewPCG(1, 2+uint64(sequence)))
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = random.Int32N(int32(vocab))
	}
	return ids
}
