package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/cpu"
)

// benchCommand is `realizar bench`.
type benchCommand struct {
	Model  string `arg:"" help:"A GGUF file, a safetensors file, or a folder with one."`
	Prompt *int   `short:"p" placeholder:"N" help:"Tokens of the prompt whose reading is measured; 0 leaves that out. Default: 512, or as many as the context holds."`
	Tokens *int   `short:"n" placeholder:"N" help:"Tokens whose choosing is measured; 0 leaves that out. Default: 128, or as many as the context holds."`
	Runs   int    `short:"r" default:"3" placeholder:"N" help:"Runs of each test, after one that does not count."`
	JSON   bool   `name:"json" help:"Write one JSON object per line and test."`

	modelFlags
}

// Help is shown below the command's line.
func (*benchCommand) Help() string {
	return `pp512 is the reading of a prompt of 512 tokens, tg128 the choosing of 128 tokens one after the other, both in
tokens a second: median, least and most of the runs. The tokens are random, by a fixed seed. In a context too
small for these lengths the tests are shorter and named so, pp256 for one; a length asked for must fit.

Choosing a token reads all weights once, so memory sets its limit. share of limit is the part of the machine's
read bandwidth, measured in the same run by the fastest loop that the machine has, which the weights and the
cache read a second amount to.

With --json the members are test, tok_s (median), min, max, share_of_limit (0 to 1, null for prompts), device,
batch (sequences at one time), model, threads, ttft_ms (to the first token), rss_bytes and peak_rss_bytes (null
where the system does not say), bandwidth_bytes_s and token_bytes.

Examples:

    realizar bench model.gguf
    realizar bench model.gguf -p 0 -n 256 -r 5 --threads 8 --json`
}

// Validate is called by the parser.
func (c *benchCommand) Validate() error {
	switch {
	case c.Prompt != nil && *c.Prompt < 0:
		return fmt.Errorf("-p %d: want 0 or more", *c.Prompt)
	case c.Tokens != nil && *c.Tokens < 0:
		return fmt.Errorf("-n %d: want 0 or more", *c.Tokens)
	case c.Prompt != nil && *c.Prompt == 0 && c.Tokens != nil && *c.Tokens == 0:
		return fmt.Errorf("-p 0 and -n 0 leave nothing to measure")
	case c.Runs < 1:
		return fmt.Errorf("-r %d: want 1 or more", c.Runs)
	}
	return c.modelFlags.Validate()
}

// A measurement is one test's result, as --json writes it.
type measurement struct {
	Test         string   `json:"test"`
	Rate         float64  `json:"tok_s"`
	Min          float64  `json:"min"`
	Max          float64  `json:"max"`
	ShareOfLimit *float64 `json:"share_of_limit"`
	Device       string   `json:"device"`
	Batch        int      `json:"batch"`
	Model        string   `json:"model"`
	Threads      int      `json:"threads"`
	FirstToken   float64  `json:"ttft_ms"`
	RSS          *int64   `json:"rss_bytes"`
	PeakRSS      *int64   `json:"peak_rss_bytes"`
	Bandwidth    *float64 `json:"bandwidth_bytes_s"`
	TokenBytes   *int64   `json:"token_bytes"`
}

// bandwidthBuffer is larger than the caches of almost any machine.
const bandwidthBuffer = 512 << 20

// Run measures.
func (c *benchCommand) Run(a *app) error {
	d, err := realizar.Describe(c.Model)
	if err != nil {
		return err
	}
	// What does not fit the context asked for need not wait for the model.
	if most := d.Dimensions.Context; most > 0 && c.Context <= most {
		if _, err := c.lengths(cmp.Or(c.Context, most), d); err != nil {
			return err
		}
	}
	m, err := a.open(c.Model, &c.modelFlags)
	if err != nil {
		return err
	}
	defer func() { _ = m.Close() }()
	n, err := c.lengths(m.Context(), d) // memory may have made it smaller
	if err != nil {
		return err
	}
	if c.Prompt == nil && n.prompt < defaultPrompt {
		a.notef("measuring pp%d in place of pp%d: the context is %d", n.prompt, defaultPrompt, m.Context())
	}
	switch {
	case c.Tokens == nil && n.answer == 0:
		a.notef("leaving tg%d out: the context is %d", defaultAnswer, m.Context())
	case c.Tokens == nil && n.answer < defaultAnswer:
		a.notef("measuring tg%d in place of tg%d: the context is %d", n.answer, defaultAnswer, m.Context())
	}
	var all []*measurement
	if n.prompt > 0 {
		t, err := c.prefill(a, m, n.prompt)
		if err != nil {
			return err
		}
		all = append(all, t)
	}
	if n.answer > 0 {
		t, err := c.decode(a, m, d, n.answer)
		if err != nil {
			return err
		}
		all = append(all, t)
	}
	return c.write(a, all)
}

// The lengths of the two tests where the flags do not say.
const (
	defaultPrompt = 512
	defaultAnswer = 128
)

// testLengths are the tokens of the two tests; a test of 0 is left out.
type testLengths struct{ prompt, answer int }

// lengths are what the flags say, and where they do not, what fits into context.
func (c *benchCommand) lengths(context int, d *realizar.Description) (testLengths, error) {
	var n testLengths
	for _, test := range []struct {
		flag           string
		given, to      *int
		usual, besides int
	}{
		{"-p", c.Prompt, &n.prompt, defaultPrompt, 0},
		// A prompt of one token comes first; the last token chosen takes no place.
		{"-n", c.Tokens, &n.answer, defaultAnswer, 1},
	} {
		most := context - test.besides
		if test.given == nil {
			*test.to = min(test.usual, most)
			continue
		}
		if *test.given > most {
			need := uint64(*test.given) + uint64(test.besides) // the flag may be as large as an int is
			way := fmt.Sprintf("lower it to %d at most", most)
			if need <= uint64(d.Dimensions.Context) && c.affordable(int(need), d) {
				way += fmt.Sprintf(", or raise --context to %d", need)
			}
			return n, usagef("%s %d needs a context of %d tokens, but it is %d; %s", test.flag, *test.given, need, context, way)
		}
		*test.to = *test.given
	}
	if n.prompt == 0 && n.answer == 0 {
		return n, usagef("-p 0 leaves nothing to measure: choosing takes a context of 2 tokens, but it is %d", context)
	}
	return n, nil
}

// affordable reports whether the model can be opened with a context.
func (c *benchCommand) affordable(context int, d *realizar.Description) bool {
	o := c.options()
	o.Context = context
	need, err := d.Memory(o)
	return err == nil && (need.Free == 0 || need.Total-need.Weights <= need.Free)
}

func (c *benchCommand) measurement(m *realizar.Model, test string, rates, first []float64) *measurement {
	slices.Sort(rates)
	slices.Sort(first)
	t := &measurement{
		Test: test, Rate: median(rates), Min: rates[0], Max: rates[len(rates)-1],
		Device: m.Device(), Batch: 1, Model: c.Model, FirstToken: median(first),
		Threads: cpu.Threads(c.Threads),
	}
	t.RSS, t.PeakRSS = residentMemory()
	return t
}

// median is that of sorted values.
func median(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

func (c *benchCommand) prefill(a *app, m *realizar.Model, n int) (*measurement, error) {
	prompt := randomTokens(n, m.Vocab())
	rates, first, err := c.repeat(a, m, prompt, 1, func(f *realizar.Finish) float64 {
		return float64(n) / f.Timings.Prefill.Seconds()
	})
	if err != nil {
		return nil, err
	}
	return c.measurement(m, fmt.Sprintf("pp%d", n), rates, first), nil
}

func (c *benchCommand) decode(a *app, m *realizar.Model, d *realizar.Description, n int) (*measurement, error) {
	rates, first, err := c.repeat(a, m, randomTokens(1, m.Vocab()), n+1, func(f *realizar.Finish) float64 {
		return float64(n) / f.Timings.Decode.Seconds()
	})
	if err != nil {
		return nil, err
	}
	t := c.measurement(m, fmt.Sprintf("tg%d", n), rates, first)
	// From the second token on the sequence holds 1, 2, ... tokens before it.
	bytes := d.TokenBytes((n+1)/2, c.options().Activations)
	size := int64(bandwidthBuffer)
	if free := cpu.New(c.Threads).Memory().Free; free > 0 {
		size = min(size, free/4)
	}
	bandwidth := cpu.ReadBandwidth(c.Threads, size)
	debug.FreeOSMemory()
	share := t.Rate * float64(bytes) / bandwidth
	t.ShareOfLimit, t.Bandwidth, t.TokenBytes = &share, &bandwidth, &bytes
	return t, nil
}

// repeat answers prompt with n tokens, once to warm up and then c.Runs times,
// and returns the rates and the milliseconds to the first token.
func (c *benchCommand) repeat(a *app, m *realizar.Model, prompt []int32, n int, rate func(*realizar.Finish) float64) (rates, first []float64, err error) {
	for i := range c.Runs + 1 {
		request := &realizar.Request{PromptTokens: prompt, Generation: realizar.Generation{MaxTokens: &n, IgnoreEnd: true}}
		for e, err := range m.Generate(a.ctx, request) {
			if err != nil {
				return nil, nil, err
			}
			if f := e.Finish; f != nil && i > 0 {
				rates = append(rates, rate(f))
				first = append(first, milliseconds(f.Timings.Queue+f.Timings.Prefill))
			}
		}
	}
	return rates, first, nil
}

// randomTokens are the same for every run.
func randomTokens(n, vocab int) []int32 {
	random := rand.New(rand.NewPCG(1, 2))
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = random.Int32N(int32(vocab))
	}
	return ids
}

func (c *benchCommand) write(a *app, all []*measurement) error {
	if c.JSON {
		out := json.NewEncoder(a.out)
		out.SetEscapeHTML(false)
		for _, t := range all {
			if err := out.Encode(t); err != nil {
				return err
			}
		}
		return nil
	}
	t := newTable()
	t.row("test", "tok/s", "min", "max", "first token", "share of limit")
	for _, r := range all {
		share := "-"
		if r.ShareOfLimit != nil {
			share = fmt.Sprintf("%.1f%%", 100**r.ShareOfLimit)
		}
		t.row(r.Test, fmt.Sprintf("%.2f", r.Rate), fmt.Sprintf("%.2f", r.Min), fmt.Sprintf("%.2f", r.Max),
			(time.Duration(r.FirstToken * float64(time.Millisecond))).Round(10*time.Microsecond).String(), share)
	}
	text := t.text(1, 2, 3, 4, 5)
	last := all[len(all)-1]
	text += fmt.Sprintf("\ndevice: %s, threads: %d, runs: %d", last.Device, last.Threads, c.Runs)
	if last.Bandwidth != nil {
		text += fmt.Sprintf(", reads %.1f GB/s, a token reads %s", *last.Bandwidth/1e9, byteText(*last.TokenBytes))
	}
	if last.RSS != nil {
		text += fmt.Sprintf(", resident memory %s, at most %s", byteText(*last.RSS), byteText(*last.PeakRSS))
	}
	_, err := io.WriteString(a.out, text+"\n")
	return err
}
