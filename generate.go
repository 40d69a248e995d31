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

// Generate continues a text. The events of each answer end with one that has
// Finish, or those of all with an error. Leaving the loop stops the work.
func (m *Model) Generate(ctx context.Context, r *Request) iter.Seq2[Event, error] {
	return m.events(ctx, &r.Generation, func(ctx context.Context) (Prompt, error) { return m.Prompt(ctx, r, m.Context()) })
}

// Chat answers a conversation. The events are those of [Model.Generate].
func (m *Model) Chat(ctx context.Context, r *ChatRequest) iter.Seq2[Event, error] {
	return m.events(ctx, &r.Generation, func(ctx context.Context) (Prompt, error) { return m.ChatPrompt(ctx, r, m.Context()) })
}

// events yields those of one request.
func (m *Model) events(ctx context.Context, g *Generation, prompt func(context.Context) (Prompt, error)) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		t := &task{model: m, settings: g, yield: yield}
		if err := t.run(ctx, prompt); err != nil && !errors.Is(err, errLeft) {
			yield(Event{}, err)
		}
	}
}

// errLeft says that the caller left the loop.
var errLeft = errors.New("the caller left the loop")

// A task is one request at work.
type task struct {
	model    *Model
	settings *Generation
	yield    func(Event, error) bool

	prompt  []int32
	turn    *conversation
	answers []answer
	asked   time.Time // the engine
	prober  prober
	account *budget.Account
	left    error // the loop, or what else the engine was told to end with

	scores   []TokenLogProb // of the prompt
	unscored int            // tokens of it that have none yet
	held     []Event        // that come after the scores
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
	limit := m.Context() - len(t.prompt) + 1 // the last token takes no place
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
		if a := &t.answers[i]; !a.ended { // as nothing was to be chosen
			if err := a.end(); err != nil {
				return err
			}
		}
	}
	return nil
}

// request is what the engine is asked for: answers of up to limit tokens.
func (t *task) request(limit int) *engine.Request {
	g := t.settings
	r := &engine.Request{
		Prompt: t.prompt, Tokens: limit, MinTokens: g.MinTokens, Stop: t.model.stopTokens(g),
		Sampling: g.params(), Bias: g.bias(), Choices: len(t.answers), Priority: g.Priority, Salt: g.Salt, Trace: g.LayerTimes, Ends: len(g.Stop) > 0,
	}
	if limit == 0 {
		r.Choices = 1 // to score the prompt
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

// stopTokens are the ids that end an answer.
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

// work runs the prompt and chooses the answers' tokens.
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

// run has the engine run r. Errors about the weights' memory, of which the engine
// knows no more than an address, name the place in the file.
func (m *Model) run(ctx context.Context, r *engine.Request, yield func(*engine.Result) (bool, error)) error {
	r.Client = budget.Of(ctx).Owner()
	_, err := m.engine.Run(ctx, r, yield)
	return m.file.Locate(err)
}

// wrap names the package.
func wrap(err error) error { return fmt.Errorf("realizar: %w", err) }

// score notes how likely the token of the prompt is that follows r's. When all are
// there it sends them, and what has been held back for them.
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

// send yields e, once the prompt's scores are sent: the other answers may have
// begun before the first one, of which these are.
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
