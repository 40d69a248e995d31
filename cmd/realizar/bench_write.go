package main

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/internal/draft"
	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/sample"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// writeFlags make an answer of a given text.
type writeFlags struct {
	Read  string `placeholder:"FILE" help:"With --write, the prompt is the text of FILE."`
	Write string `placeholder:"FILE" help:"Measure the decode of the text in FILE, as if the model had generated it, without and with speculative decoding (--speculative suffix)."`

	Speculative []string `placeholder:"HEAD" help:"With --write, measure the proposals of heads, too: mtp, eagle or eagle=FOLDER."`

	Right []float64 `placeholder:"P" help:"With --write, measure proposals of which each token is right with probability P, too: 0 for the cost of proposals that are always wrong."`

	SpeculativeTokens int `default:"0" placeholder:"N" help:"With --write, tokens to propose in each step. Default: as many as pay off by measured times."`
}

// validWrite returns an error for values that do not go together.
func (c *benchCommand) validWrite() error {
	switch {
	case (c.Read == "") != (c.Write == ""):
		return errors.New("--read and --write need each other: the text of a prompt and that of its answer")
	case c.Write != "" && (c.Prompt != nil || c.Tokens != nil || c.Depth != nil):
		return errors.New("--write: the files set the lengths of prompt and answer; remove -p, -n and -d")
	case c.Write == "" && len(c.Right) > 0:
		return errors.New("--right has an effect only with --write, which says what is right")
	case c.Write == "" && len(c.Speculative) > 0:
		return errors.New("--speculative has an effect only with --write: the other tests decode random tokens one by one")
	case c.Write == "" && c.SpeculativeTokens != 0:
		return errors.New("--speculative-tokens has an effect only with --write: the other tests decode random tokens one by one")
	}
	for _, p := range c.Right {
		if !(p >= 0 && p <= 1) {
			return fmt.Errorf("--right %v: want a probability, 0 to 1", p)
		}
	}
	for _, s := range c.Speculative {
		if kind, _, ok := (&speculativeFlags{Speculative: s}).speculative(); !ok || kind != realizar.SpeculativeMTP && kind != realizar.SpeculativeEAGLE {
			return wrongFlag("speculative", s, "mtp, eagle or eagle=FOLDER; off and suffix are measured in any case")
		}
	}
	return checkSpeculative(c.SpeculativeTokens)
}

// A prophet proposes the tokens of an answer that it knows. Each is right with some probability.
type prophet struct {
	answer []int32
	prompt int
	right  float64
	vocab  int32
	rng    *rand.Rand
	draft  []int32
}

// Propose implements [engine.Proposer].
func (p *prophet) Propose(tokens []int32, n int) (draft []int32, evidence int) {
	at := len(tokens) - p.prompt
	p.draft = append(p.draft[:0], p.answer[min(at, len(p.answer)):min(at+n, len(p.answer))]...)
	for i := range p.draft {
		if p.rng.Float64() >= p.right {
			p.draft[i] = (p.draft[i] + 1) % p.vocab
		}
	}
	return p.draft, 0
}

// End implements [engine.Proposer].
func (p *prophet) End([]int32) {}

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

// A writeTest is the writing of a text with one kind of proposals.
type writeTest struct {
	name   string
	model  *arch.Model
	drafts engine.Drafts
}

// heads returns the tests of --speculative. The files of heads are open until closeAll is called.
func (b *benchmark) heads(f *modelfile.File) (all []writeTest, closeAll func() error, err error) {
	var files []*modelfile.File
	closeAll = func() error {
		var errs []error
		for _, f := range files {
			errs = append(errs, f.Close())
		}
		return errors.Join(errs...)
	}
	for _, s := range b.Speculative {
		t := writeTest{name: s, drafts: engine.Drafts{Head: true}}
		kind, name, _ := (&speculativeFlags{Speculative: s}).speculative()
		if kind == realizar.SpeculativeMTP {
			t.model, err = arch.BuildPredicting(f)
		} else {
			o := realizar.Options{Draft: name}
			var own *modelfile.File
			if err = b.app.findDraft(&o); err == nil {
				t.model, own, err = arch.OpenEagle(f, o.Draft)
			}
			if err == nil {
				files = append(files, own)
			}
		}
		if err != nil {
			return nil, nil, errors.Join(err, closeAll())
		}
		all = append(all, t)
	}
	return all, closeAll, nil
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
	all := []writeTest{{"off", m.model, engine.Drafts{}}, {"suffix", m.model, engine.Drafts{New: func(r *engine.Request, _ int) engine.Proposer { return recent.New(r.Salt, len(r.Prompt)) }}}}
	heads, closeHeads, err := b.heads(m.file)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, closeHeads()) }()
	all = append(all, heads...)
	for _, p := range b.Right {
		all = append(all, writeTest{fmt.Sprint("right ", p), m.model, engine.Drafts{New: func(*engine.Request, int) engine.Proposer {
			return &prophet{answer: answer, prompt: len(prompt), right: p, vocab: int32(m.model.Spec.Vocab), rng: rand.New(rand.NewPCG(1, 1))}
		}}})
	}
	if len(b.Batch) == 0 {
		b.Batch = []int{1}
	}
	for _, seqs := range b.Batch {
		for _, test := range all {
			if test.drafts.New != nil || test.drafts.Head {
				test.drafts.Tokens, test.drafts.Always = b.SpeculativeTokens, b.SpeculativeTokens > 0
			}
			if err := b.rewrite(m, seqs, &test, prompt, answer); err != nil {
				return err
			}
			debug.FreeOSMemory() // for the next engine
		}
	}
	return nil
}

// rewrite measures the writing of so many answers at a time with one kind of proposals.
func (b *benchmark) rewrite(m *lockstepModel, seqs int, of *writeTest, prompt, answer []int32) (err error) {
	p := m.memory
	p.Program, p.Made = of.model.Program, of.model.Spec.Context
	p.Options.Context, p.Options.Parallel, p.Options.Drafts = len(prompt)+len(answer), seqs, of.drafts
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
		rate, times, err := b.writeAll(e, seqs, fmt.Sprint(i), prompt, answer)
		if err != nil {
			return err
		}
		if i > 0 {
			rates, first = append(rates, rate), append(first, times...)
		}
	}
	test := fmt.Sprintf("write%d", len(answer))
	if seqs > 1 {
		test += fmt.Sprintf(" x%d", seqs)
	}
	t := b.measurement(test+" "+of.name, m.device.Name(), m.device.Description(), rates, first)
	t.Batch, t.Depth = seqs, len(prompt)
	after := e.Metrics()
	proposed, accepted := int64(after.DraftedTokens-before.DraftedTokens), int64(after.AcceptedTokens-before.AcceptedTokens)
	t.Proposed, t.Accepted = &proposed, &accepted
	b.results = append(b.results, t)
	return nil
}

// writeAll writes so many answers at a time and returns the tokens per second of all together, from
// the last first token on, and the milliseconds to the first token of each. Runs of different salts
// find no pages or answers of each other.
func (b *benchmark) writeAll(e *engine.Engine, seqs int, salt string, prompt, answer []int32) (rate float64, first []float64, err error) {
	begun := time.Now()
	var mu sync.Mutex
	var began time.Time // of the last first token
	early, late := 0, 0 // tokens up to then, and all
	group, ctx := errgroup.WithContext(b.app.ctx)
	for i := range seqs {
		r := &engine.Request{
			Prompt: prompt, Tokens: len(answer), Salt: salt, Sampling: sample.Params{Seed: uint64(i)},
			Constrain: func(int) engine.Constraint { return &dictation{answer: answer} },
		}
		n := 0
		group.Go(func() error {
			_, err := e.Run(ctx, r, func(*engine.Result) (bool, error) {
				mu.Lock()
				defer mu.Unlock()
				n, late = n+1, late+1
				if n == 1 {
					began, early = time.Now(), late
					first = append(first, began.Sub(begun).Seconds()*1000)
				}
				return true, nil
			})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return 0, nil, err
	}
	return float64(late-early) / time.Since(began).Seconds(), first, nil
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
