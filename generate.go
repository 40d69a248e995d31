package realizar

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/realizar/realizar/internal/budget"
	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
)

// Generate returns an iterator over the events of r's answers, which continue a text. The last
// event of each answer has a Finish. If the request fails, the iterator yields one error and ends,
// with answers possibly incomplete. The request starts with the loop; leaving the loop or
// cancelling ctx ends it.
//
// The error wraps [ErrRequest] if r is invalid, [ErrContext] if the prompt is too long, and
// [ErrUnsuited] if the model generates no text.
func (m *Model) Generate(ctx context.Context, r *Request) iter.Seq2[Event, error] {
	return m.events(ctx, &r.Generation, func(ctx context.Context) (Prompt, error) { return m.Prompt(ctx, r, m.Context()) })
}

// Chat returns an iterator over the events of r's answers, each of which is the next message of a
// conversation. Events and errors are as in [Model.Generate]; the error wraps [ErrNoTemplate] if
// the model has no chat template.
func (m *Model) Chat(ctx context.Context, r *ChatRequest) iter.Seq2[Event, error] {
	return m.events(ctx, &r.Generation, func(ctx context.Context) (Prompt, error) { return m.ChatPrompt(ctx, r, m.Context()) })
}

// events returns the events of one request with the prompt that prompt returns.
func (m *Model) events(ctx context.Context, g *Generation, prompt func(context.Context) (Prompt, error)) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		t := &task{model: m, settings: g, yield: yield}
		if err := t.run(ctx, prompt); err != nil && !errors.Is(err, errLeft) {
			yield(Event{}, err)
		}
	}
}

// errLeft reports that the caller left the loop.
var errLeft = errors.New("the caller left the loop")

// A task is one running request.
type task struct {
	model    *Model
	settings *Generation
	yield    func(Event, error) bool

	prompt  []int32
	turn    *conversation
	answers []answer
	asked   time.Time // when the request was passed to the engine
	prober  prober
	account *budget.Account
	left    error // returned to the engine to end the request: errLeft or an error of an answer

	scores   []TokenLogProb // of the prompt's tokens
	unscored int            // prompt tokens without a score
	held     []Event        // to send after the scores
}

func (t *task) run(ctx context.Context, prompt func(context.Context) (Prompt, error)) error {
	m, g := t.model, t.settings
	t.account = budget.Of(ctx)
	if m.arch.Program.Whole {
		return m.unsuited("text")
	}
	if err := g.validate(m.Vocab()); err != nil {
		return err
	}
	p, err := prompt(ctx)
	if err != nil {
		return err
	}
	t.prompt, t.turn = p.Tokens, p.turn
	if err := m.checkPrompt(t.prompt); err != nil {
		return err
	}
	if m.tok == nil && len(g.Stop) > 0 {
		return fmt.Errorf("realizar: stop strings: %w", m.tokErr)
	}
	t.answers = make([]answer, max(1, g.Choices))
	for i := range t.answers {
		t.answers[i].begin(t, i)
	}
	limit := m.Context() - len(t.prompt) + 1 // the last token is never an input
	if g.MaxTokens != nil {
		limit = min(limit, *g.MaxTokens)
	}
	constrain, err := m.constrain(g, &p, t.account)
	if err != nil {
		return err
	}
	r := t.request(limit)
	r.Constrain = constrain
	if r.Tokens > 0 || len(r.Outputs) > 0 {
		if err := t.work(ctx, r); err != nil {
			return err
		}
	}
	for i := range t.answers {
		if a := &t.answers[i]; !a.ended { // no token was to be sampled
			if err := a.end(); err != nil {
				return err
			}
		}
	}
	return nil
}

// request returns the engine's request for answers of up to limit tokens.
func (t *task) request(limit int) *engine.Request {
	g := t.settings
	r := &engine.Request{
		Prompt: t.prompt, Tokens: limit, MinTokens: g.MinTokens, Stop: t.model.stopTokens(g),
		Sampling: g.params(), Bias: g.bias(), Choices: len(t.answers), Priority: g.Priority, Salt: g.Salt, Trace: g.LayerTimes, Ends: len(g.Stop) > 0,
	}
	if limit == 0 {
		r.Choices = 1 // to score the prompt
	}
	if n := g.SpeculativeTokens; n != nil {
		if r.Drafts = *n; r.Drafts == 0 {
			r.Drafts = -1
		}
	}
	if g.LogProbs != nil {
		r.Want = plan.WantLogProbability
		if *g.LogProbs > 0 {
			r.Want = plan.WantLogits
		}
	}
	if g.PromptLogProbs != nil {
		t.unscored = len(t.prompt) - 1
		for i := range t.prompt[1:] {
			r.Outputs = append(r.Outputs, engine.Output{Token: int32(i), Want: plan.WantLogits})
		}
	}
	return r
}

// stopTokens returns the ids that end an answer, in ascending order.
func (m *Model) stopTokens(g *Generation) []int32 {
	ids := slices.Clone(g.StopTokens)
	if !g.IgnoreEnd {
		for id := range m.ends {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// work runs r: the prefill of the prompt and the decode of all answers.
func (t *task) work(ctx context.Context, r *engine.Request) error {
	t.asked = time.Now()
	err := t.model.run(ctx, r, func(r *engine.Result) (more bool, err error) {
		if r.Chosen {
			more, t.left = t.answers[r.Choice].take(r)
		} else {
			more, t.left = true, t.score(r)
		}
		return more, t.left
	})
	if err != nil && t.left == nil {
		return wrap(err)
	}
	return err
}

// run runs r on the engine. The engine's errors about mapped weights have only an address; run adds
// the place in the file.
func (m *Model) run(ctx context.Context, r *engine.Request, yield func(*engine.Result) (bool, error)) error {
	r.Client = budget.Of(ctx).Owner()
	_, err := m.engine.Run(ctx, r, yield)
	return m.files.Locate(err)
}

// wrap adds the package's name to err.
func wrap(err error) error { return fmt.Errorf("realizar: %w", err) }

// score computes the log-probability of the prompt token that follows r's token. After the last one
// it sends all scores, and then the events that were held for them.
func (t *task) score(r *engine.Result) error {
	score := t.prober.of(r.Logits, t.prompt[r.Index+1], *t.settings.PromptLogProbs)
	if err := t.account.Reserve(score.Bytes()); err != nil {
		return wrap(err)
	}
	t.scores = append(t.scores, score)
	if t.unscored--; t.unscored > 0 {
		return nil
	}
	for _, e := range append([]Event{{PromptLogProbs: t.scores}}, t.held...) {
		if err := t.send(e); err != nil {
			return err
		}
	}
	t.held = nil
	return nil
}

// send yields e, or holds it until the prompt's scores are sent. Only the first answer computes the
// scores, and other answers may begin before it.
func (t *task) send(e Event) error {
	if t.unscored > 0 {
		t.held = append(t.held, e)
		return nil
	}
	if !t.yield(e, nil) {
		return errLeft
	}
	return nil
}
