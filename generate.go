package realizar

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tokenizer"
)

// Generate continues a text. The events end with one that has Finish, or with
// an error. Leaving the loop stops the work.
func (m *Model) Generate(ctx context.Context, r *Request) iter.Seq2[Event, error] {
	return m.answer(ctx, &r.Generation, func(context.Context) ([]int32, error) { return m.promptTokens(r) })
}

// Chat answers a conversation. The events are those of [Model.Generate].
func (m *Model) Chat(ctx context.Context, r *ChatRequest) iter.Seq2[Event, error] {
	return m.answer(ctx, &r.Generation, func(ctx context.Context) ([]int32, error) { return m.chatTokens(ctx, r) })
}

// answer yields the events of one request.
func (m *Model) answer(ctx context.Context, g *Generation, prompt func(context.Context) ([]int32, error)) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		a := &answer{model: m, settings: g, yield: yield}
		if err := a.run(ctx, prompt); err != nil && !errors.Is(err, errLeft) {
			yield(Event{}, err)
		}
	}
}

// errLeft says that the caller left the loop.
var errLeft = errors.New("the caller left the loop")

// promptTokens are the ids of a request's prompt.
func (m *Model) promptTokens(r *Request) ([]int32, error) {
	if r.PromptTokens != nil {
		if r.Prompt != "" {
			return nil, fmt.Errorf("realizar: %w: both a prompt and prompt tokens", ErrRequest)
		}
		return r.PromptTokens, checkTokens("prompt token", r.PromptTokens, m.Vocab())
	}
	tok, err := m.Tokenizer()
	if err != nil {
		return nil, fmt.Errorf("realizar: %w", err)
	}
	ids := tok.EncodeSpans([]tokenizer.Span{{Text: r.Prompt, Special: r.Special}}, true)
	if bos, ok := tok.BOS(); ok && tok.AddsBOS() && len(ids) > 1 && ids[0] == bos && ids[1] == bos {
		ids = ids[1:] // the prompt has one already
	}
	return ids, checkTokens("prompt token", ids, m.Vocab())
}

// An answer is one request at work.
type answer struct {
	model    *Model
	settings *Generation
	yield    func(Event, error) bool

	text   *tokenizer.Stream // nil without a tokenizer
	stops  stopMatcher
	begun  time.Time
	first  time.Time // when the first token was there
	finish Finish
	unsent []int32
}

func (a *answer) run(ctx context.Context, prompt func(context.Context) ([]int32, error)) error {
	m, g := a.model, a.settings
	if err := g.validate(m.Vocab()); err != nil {
		return err
	}
	ids, err := prompt(ctx)
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		return fmt.Errorf("realizar: %w: the prompt is empty and the tokenizer adds nothing to it", ErrRequest)
	}
	if len(ids) > m.Context() {
		return fmt.Errorf("realizar: %w", &ContextError{Prompt: len(ids), Context: m.Context()})
	}
	a.stops.stops = slices.Clone(g.Stop)
	if m.tok != nil {
		a.text = m.tok.NewStream(true)
	} else if len(g.Stop) > 0 {
		return fmt.Errorf("realizar: stop strings: %w", m.tokErr)
	}
	a.finish = Finish{Reason: FinishLength, Usage: Usage{PromptTokens: len(ids)}}

	limit := m.Context() - len(ids) + 1 // the last token takes no place
	if g.MaxTokens != nil {
		limit = min(limit, *g.MaxTokens)
	}
	if limit > 0 {
		if err := a.generate(ctx, ids, limit); err != nil {
			return err
		}
	}
	return a.end()
}

// generate runs the prompt and chooses up to limit tokens.
func (a *answer) generate(ctx context.Context, ids []int32, limit int) error {
	asked := time.Now()
	seq, err := a.model.engine.NewSequence(ctx, len(ids))
	if err != nil {
		return wrap(err)
	}
	defer seq.Close()
	a.begun = time.Now()
	a.finish.Timings.Queue = a.begun.Sub(asked)
	var left error // the loop
	err = seq.Decode(ctx, ids, limit, engine.Output{Want: plan.WantToken, Sampling: a.settings.params()}, func(r engine.Result) (bool, error) {
		a.count()
		var stopped bool
		stopped, left = a.take(r.Token)
		return !stopped, left
	})
	if err != nil && left == nil {
		return wrap(err)
	}
	return err
}

// wrap names the package.
func wrap(err error) error { return fmt.Errorf("realizar: %w", err) }

// count notes that a token is there.
func (a *answer) count() {
	now := time.Now()
	a.finish.Usage.CompletionTokens++
	if a.first.IsZero() {
		a.first = now
		a.finish.Timings.Prefill = now.Sub(a.begun)
	}
	a.finish.Timings.Decode = now.Sub(a.first)
}

// take passes a token on and reports whether it ends the answer.
func (a *answer) take(id int32) (stopped bool, err error) {
	a.unsent = append(a.unsent, id)
	if a.model.ends[id] && !a.settings.IgnoreEnd || slices.Contains(a.settings.StopTokens, id) {
		a.finish.Reason = FinishStop
		return true, nil
	}
	var text string
	if a.text != nil {
		text, stopped = a.pass(a.text.Push(id))
	}
	if stopped && text == "" {
		return true, nil // end sends what is left
	}
	return stopped, a.send(Event{Text: text})
}

// pass is the part of text before a stop string and not held back for one.
func (a *answer) pass(text string) (out string, stopped bool) {
	out, stop := a.stops.push(text)
	if stop != "" {
		a.finish.Reason, a.finish.StopString = FinishStop, stop
	}
	return out, stop != ""
}

// end sends the last event, with the text that was held back.
func (a *answer) end() error {
	var text string
	if a.text != nil && a.finish.StopString == "" {
		var stopped bool
		if text, stopped = a.pass(a.text.Flush()); !stopped {
			text += a.stops.flush()
		}
	}
	return a.send(Event{Text: text, Finish: &a.finish})
}

func (a *answer) send(e Event) error {
	e.Tokens, a.unsent = a.unsent, nil
	if !a.yield(e, nil) {
		return errLeft
	}
	return nil
}
