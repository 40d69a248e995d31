package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/eval"
)

// evalCommand is `realizar eval`.
type evalCommand struct {
	Model   string `arg:"" help:"${model}"`
	Text    string `required:"" placeholder:"FILE" common:"" help:"The text to predict; - is standard input."`
	Stride  int    `default:"0" placeholder:"N" common:"" help:"Tokens from the start of one window to the start of the next. Default: half a window."`
	Against string `placeholder:"MODEL" common:"" help:"A reference model with the same tokenizer; measure the divergence from its predictions."`
	JSON    bool   `name:"json" common:"" help:"Write one JSON object."`

	modelFlags
}

// Help is shown below the command's line.
func (*evalCommand) Help() string {
	return `The text is one list of tokens, as from realizar tokenize --special: special tokens in it match. It
is cut into windows of the length of the context (--context, or that of the model), each --stride
tokens after the one before. A window scores the tokens that no earlier window contains, so in every
window but the first each scored token has at least the rest of a window before it. A shorter stride
gives tokens more context, and takes longer.

perplexity is the exponential of the mean negative log-likelihood of the tokens, with its standard
error; the first token has no context and does not count. Perplexities of models with different
tokenizers cannot be compared; bits per byte, the same sum over the bytes of the text, can.

--against runs a second model over the same windows, such as the one that this model was quantized
from. divergence is the Kullback-Leibler divergence, the sum of p ln(p/q) over all tokens, where p are
the probabilities of the other model: 0 if both predict the same. same choice is how often both have
the same likeliest token.

Examples:

    realizar eval model-q4_k_m.gguf --text wiki.test.raw
    realizar eval model-q4_k_m.gguf --text wiki.test.raw --against model-f16.gguf
    realizar eval model.gguf --text notes.txt --context 2048 --stride 256 --json

With --json the members are model, text, bytes, tokens (of the text), scored, window, stride, nats
(the mean), perplexity, perplexity_error, bits_per_byte, seconds and, with --against, against: model,
perplexity, perplexity_error, bits_per_byte, divergence_mean, divergence_median, divergence_99 (the
99th percentile), divergence_max and same_choice (0 to 1). Infinite and undefined values are null.`
}

// Validate implements the parser's interface.
func (c *evalCommand) Validate() error {
	if c.Stride < 0 {
		return fmt.Errorf("--stride=%d: want 1 or more, or 0 for half a window", c.Stride)
	}
	return c.modelFlags.Validate()
}

// Run evaluates the model.
func (c *evalCommand) Run(a *app) error {
	text, err := a.read(c.Text)
	if err != nil {
		return fmt.Errorf("--text: %w", err)
	}
	e := &evaluation{ctx: a.ctx, text: string(text)}
	defer e.close()
	if err := e.add(a, c.Model, &c.modelFlags); err != nil {
		return err
	}
	if c.Against != "" {
		if err := e.add(a, c.Against, &c.modelFlags); err != nil {
			return err
		}
	}
	if err := e.cut(c.Context, c.Stride); err != nil {
		return err
	}
	if err := e.run(); err != nil {
		return err
	}
	return e.result(c).write(a, c.JSON)
}

// An evaluation is a text and the models that predict it: the one to evaluate, and possibly one to
// compare it with.
type evaluation struct {
	ctx    context.Context
	text   string
	models []*evaluated
	ids    []int32
	window int // tokens
	stride int

	divergence eval.Divergence
	took       time.Duration
}

// An evaluated is a model of an evaluation.
type evaluated struct {
	path  string
	model *realizar.Model
	score eval.Score
}

func (e *evaluation) add(a *app, path string, f *modelFlags) error {
	m, err := a.open(path, f)
	if err != nil {
		return err
	}
	e.models = append(e.models, &evaluated{path: path, model: m})
	tok, err := m.Tokenizer()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	ids := tok.Encode(e.text, true)
	if len(e.models) == 1 {
		e.ids = ids
	}
	first := e.models[0]
	switch {
	case m.Vocab() != first.model.Vocab():
		return fmt.Errorf("%s has %d tokens and %s has %d: their predictions cannot be compared", first.path, first.model.Vocab(), path, m.Vocab())
	case !slices.Equal(ids, e.ids):
		return fmt.Errorf("%s and %s make different tokens of the text: their predictions cannot be compared", first.path, path)
	case len(ids) < 2:
		return fmt.Errorf("--text: %d token for %s, and the first one has no context; want a longer text", len(ids), path)
	}
	return nil
}

func (e *evaluation) close() {
	for _, m := range e.models {
		_ = m.model.Close()
	}
}

// cut divides the text into windows.
func (e *evaluation) cut(context, stride int) error {
	e.window = e.models[0].model.Context()
	for _, m := range e.models {
		e.window = min(e.window, m.model.Context())
	}
	if e.window < 2 {
		return fmt.Errorf("--context=%d: a window needs 2 tokens or more", context)
	}
	if e.stride = stride; stride == 0 {
		e.stride = e.window / 2
	}
	if e.stride >= e.window {
		return fmt.Errorf("--stride=%d: want less than the window's %d tokens, so that each token has one before it", stride, e.window)
	}
	return nil
}

// run evaluates all windows.
func (e *evaluation) run() error {
	begun := time.Now()
	for w := range eval.Windows(len(e.ids), e.window, e.stride) {
		if err := e.read(w); err != nil {
			return fmt.Errorf("tokens %d to %d: %w", w.Begin, w.End, err)
		}
	}
	e.took = time.Since(begun)
	return nil
}

// A place is a model's prediction of one token.
type place struct {
	at     int // index of the token in the window
	logits []float32
}

// read scores a window's tokens. Two models run at the same time, so that the logits of only one
// place are kept.
func (e *evaluation) read(w eval.Window) error {
	ids := e.ids[w.Begin:w.End]
	// The logits from the token before the first scored one to the last but one.
	from := w.From - w.Begin - 1
	score := func(m *evaluated, p place) { m.score.Add(p.logits, ids[p.at+1]) }
	model := e.models[0]
	if len(e.models) == 1 {
		return model.model.Logits(e.ctx, ids[:len(ids)-1], from, func(i int, logits []float32) error {
			score(model, place{i, logits})
			return nil
		})
	}
	reference := e.models[1]
	places := make(chan place)
	readers, ctx := errgroup.WithContext(e.ctx)
	readers.Go(func() error {
		return reference.model.Logits(ctx, ids[:len(ids)-1], from, func(i int, logits []float32) error {
			select {
			case places <- place{i, logits}:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
	readers.Go(func() error {
		return model.model.Logits(ctx, ids[:len(ids)-1], from, func(i int, logits []float32) error {
			select {
			case other := <-places:
				score(model, place{i, logits})
				score(reference, other)
				return e.divergence.Add(other.logits, logits)
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
	return readers.Wait()
}
