package main

import (
	"cmp"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/draft"
	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/tensor"
)

// writeFlags make an answer of a given text.
type writeFlags struct {
	Read  string `placeholder:"FILE" help:"With --write, the prompt is the text of FILE."`
	Write string `placeholder:"FILE" help:"Measure the decode of the text in FILE, as if the model had generated it, without and with speculative decoding (--speculative suffix)."`

	SpeculativeTokens int `default:"0" placeholder:"N" help:"With --write, tokens to propose in each step. Default: as many as pay off by measured times."`
}

// A dictation is a constraint that allows one answer, which is not forced: each token is sampled.
type dictation struct {
	answer []int32
	told   int
}

// Next implements [engine.Constraint].
func (d *dictation) Next(chosen []int32, _ bool, mask []uint32) (forced []int32, err error) {
	d.told += len(chosen)
	d.allow(d.told, mask)
	return nil, nil
}

// Ahead implements [engine.Foresight].
func (d *dictation) Ahead(draft []int32, _ bool, masks [][]uint32) (n int, err error) {
	for n < len(draft) && d.told+n < len(d.answer) && draft[n] == d.answer[d.told+n] {
		d.allow(d.told+n+1, masks[n])
		n++
	}
	return n, nil
}

// allow allows token number i of the answer.
func (d *dictation) allow(i int, mask []uint32) {
	id := d.answer[min(i, len(d.answer)-1)]
	mask[id/32] |= 1 << (id % 32)
}

// writing measures the writing of a text, without proposals and with them.
func (b *benchmark) writing() (err error) {
	m, err := openLockstep(b.Model, b.app.kernels, b.options())
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, m.close()) }()
	prompt, answer, err := b.texts()
	if err != nil {
		return err
	}
	var recent draft.Recent
	for _, test := range []struct {
		name   string
		drafts engine.Drafts
	}{
		{"off", engine.Drafts{}},
		{"suffix", engine.Drafts{
			New:    func(r *engine.Request) engine.Proposer { return recent.New(r.Salt, len(r.Prompt)) },
			Tokens: b.SpeculativeTokens, Always: b.SpeculativeTokens > 0,
		}},
	} {
		if err := b.rewrite(m, test.name, test.drafts, prompt, answer); err != nil {
			return err
		}
		debug.FreeOSMemory() // for the next engine
	}
	return nil
}

// rewrite measures the writing of answer with one kind of proposals.
func (b *benchmark) rewrite(m *lockstepModel, name string, drafts engine.Drafts, prompt, answer []int32) (err error) {
	p := m.memory
	p.Program, p.Made = m.model.Program, m.model.Spec.Context
	p.Options.Context, p.Options.Parallel, p.Options.Drafts = len(prompt)+len(answer), 1, drafts
	p.Options.Cache, p.Options.Activations = m.cache(), m.activations()
	if need := p.Options.Context; p.Made > 0 && need > p.Made {
		return usagef("--read and --write have %d tokens together; the model supports %d", need, p.Made)
	}
	c, err := p.Config()
	if err != nil {
		return err
	}
	e, err := engine.New(b.app.ctx, p.Program, p.Backend, c, func(*tensor.Tensor, bool) {})
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, e.Close()) }()
	var rates, first []float64
	var before engine.Metrics
	for i := range b.Runs + 1 {
		before = e.Metrics()
		// Each run has its own salt, so that none finds pages or answers of another.
		r := &engine.Request{
			Prompt: prompt, Tokens: len(answer), Salt: fmt.Sprint(i),
			Constrain: func(int) engine.Constraint { return &dictation{answer: answer} },
		}
		begun, n := time.Now(), 0
		var began time.Time
		_, err := e.Run(b.app.ctx, r, func(got *engine.Result) (bool, error) {
			if n++; n == 1 {
				began = time.Now()
			}
			return true, nil
		})
		if err != nil {
			return err
		}
		if i > 0 {
			rates = append(rates, float64(n-1)/time.Since(began).Seconds())
			first = append(first, began.Sub(begun).Seconds()*1000)
		}
	}
	t := b.measurement(fmt.Sprintf("write%d %s", len(answer), name), m.device.Name(), m.device.Description(), rates, first)
	t.Depth = len(prompt)
	after := e.Metrics()
	proposed, accepted := int64(after.DraftedTokens-before.DraftedTokens), int64(after.AcceptedTokens-before.AcceptedTokens)
	t.Proposed, t.Accepted = &proposed, &accepted
	b.results = append(b.results, t)
	return nil
}

// texts returns the tokens of the prompt and of the answer.
func (b *benchmark) texts() (prompt, answer []int32, err error) {
	tok, err := realizar.OpenTokenizerWith(b.Model, b.PreTokenizer)
	if err != nil {
		return nil, nil, err
	}
	before, err := os.ReadFile(b.Read)
	if err != nil {
		return nil, nil, err
	}
	after, err := os.ReadFile(b.Write)
	if err != nil {
		return nil, nil, err
	}
	prompt, answer = tok.Encode(string(before), true), tok.Encode(string(after), false)
	if len(prompt) == 0 || len(answer) < 2 {
		return nil, nil, usagef("--read has %d tokens and --write %d; want at least 1 and 2", len(prompt), len(answer))
	}
	return prompt, answer, nil
}
