package server

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/realizar/realizar"
)

// A Request is a dialect's request to the model: for answers to a conversation, or to several
// prompts with the same number of choices.
type Request struct {
	Chat    *realizar.ChatRequest // if nil, Prompts are used
	Prompts []realizar.Request
	Seeded  bool       // the request has a seed; if not, each prompt has a random one
	Param   string     // the field of the prompts
	Fields  ChatFields // the fields of the conversation
	// Grammar, if not nil, constrains the answers. Chat and Prompts must not have a grammar then.
	Grammar *Grammar
	// Transfer, if not nil, is of the KV cache of the only prompt.
	Transfer *KVTransfer
}

// param returns the field that an error of running r is about.
func (r *Request) param(err error) string {
	switch {
	case errors.Is(err, realizar.ErrGrammar) && r.Grammar != nil:
		return r.Grammar.Param
	case r.Chat == nil:
		return r.Param
	case errors.Is(err, realizar.ErrGrammar):
		return r.Fields.Tools
	case len(r.Chat.Tools) > 0 && r.Fields.Tools != "" && isWish(err):
		return r.Fields.Tools // the tools' calls cannot be constrained to their schemas
	}
	return r.Fields.Messages
}

// A Writer writes the answers to a request in the form of its dialect. Its methods are not called
// concurrently. An error that one returns ends the request.
type Writer interface {
	// Begin is called before the model runs, with the token IDs of each prompt.
	Begin(prompts [][]int32) error
	// Delta is called for each event if the answer is a [Stream].
	Delta(d *Delta) error
	// End is called when all answers have ended. It ends the stream, or writes the whole answer.
	End(r *Result) error
}

// Defaults returns the settings of a request that sets none: the sampling that the model's makers
// recommend, or temperature 1.
func (x *Exchange) Defaults() realizar.Generation {
	if d, ok := x.Model().DefaultSampling(); ok {
		return realizar.Generation{Sampling: d, Choices: 1}
	}
	return realizar.Generation{Sampling: realizar.Sampling{Temperature: 1}, Choices: 1}
}

// Answer runs r and passes the answers to w. The request's header may ask for timings.
func (x *Exchange) Answer(r *Request, w Writer) error {
	prompts := max(1, len(r.Prompts))
	var choices int
	if r.Chat != nil {
		choices = max(1, r.Chat.Choices)
	} else {
		choices = max(1, r.Prompts[0].Choices)
	}
	if err := x.watchFor(prompts * choices); err != nil {
		return err
	}
	ctx, done, err := x.Begin(prompts * choices)
	if err != nil {
		return err
	}
	defer done()
	jobs, err := x.jobs(ctx, r)
	if err != nil {
		return err
	}
	tokens := make([][]int32, len(jobs))
	for i := range jobs {
		tokens[i] = jobs[i].Prepared.Tokens
	}
	if err := w.Begin(tokens); err != nil {
		return err
	}
	c := newCollector(x, w, prompts, choices)
	started := x.phase(x.settings.deadlines.FirstToken, errFirst)
	defer started()
	defer x.stream.keepAlive(x.settings.streamKeepAlive, x.end)()
	x.fetch(ctx, r.Transfer, &jobs[0])
	if err := x.run(ctx, jobs, func(job int, e *realizar.Event) error {
		started()
		x.Server.admission.speed.tokens.Add(1)
		return c.take(job, e)
	}); err != nil {
		return OfField(r.param(err), err)
	}
	x.noteUsage(c)
	x.asked = c.result.Usage.CompletionTokens > 0 // otherwise the model need not have run
	c.result.Offer = x.offer(ctx, r.Transfer, &jobs[0])
	return w.End(&c.result)
}

// jobs returns the prompts of r with their settings, ready to run.
func (x *Exchange) jobs(ctx context.Context, r *Request) ([]realizar.Request, error) {
	done, err := x.preparing()
	if err != nil {
		return nil, err
	}
	defer done()
	g, err := x.grammar(ctx, r.Grammar)
	if err != nil {
		return nil, err
	}
	jobs := make([]realizar.Request, max(1, len(r.Prompts)))
	for i := range jobs {
		var p realizar.Prompt
		if r.Chat != nil {
			if err := x.checkTools(ctx, r.Chat, &r.Fields); err != nil {
				return nil, err
			}
			jobs[i].Generation = r.Chat.Generation
			p, err = x.chatPrompt(ctx, r.Chat, &r.Fields, x.Model().Context())
		} else {
			jobs[i].Generation = r.Prompts[i].Generation
			p, err = x.Model().Prompt(ctx, &r.Prompts[i], x.Model().Context())
			err = OfField(r.Param, err)
		}
		if err != nil {
			return nil, err
		}
		x.watch.prepared(&p)
		jobs[i].Prepared, jobs[i].Grammar = &p, g
		jobs[i].LayerTimes = x.watch.layered()
		if !r.Seeded {
			jobs[i].Seed = rand.Uint64()
		}
	}
	return jobs, nil
}

// Prompt returns the prompt of a text in the field param. The prompt may be longer than the
// context.
func (x *Exchange) Prompt(r *realizar.Request, param string) (realizar.Prompt, error) {
	done, err := x.preparing()
	if err != nil {
		return realizar.Prompt{}, err
	}
	defer done()
	p, err := x.Model().Prompt(x.work, r, 0)
	return p, OfField(param, err)
}

// preparing waits for the request's turn and begins the phase in which prompts are made. done ends
// it.
func (x *Exchange) preparing() (done func(), err error) {
	ended, err := x.turn()
	if err != nil {
		return nil, err
	}
	phase := x.phase(x.settings.deadlines.Prepare, errPrepare)
	return func() {
		phase()
		ended()
	}, nil
}

// run runs the jobs. It calls each for every event with the index of the job, one call at a time.
// An error of each or of a job ends all jobs.
func (x *Exchange) run(ctx context.Context, jobs []realizar.Request, each func(job int, e *realizar.Event) error) error {
	if len(jobs) == 1 {
		return x.one(ctx, &jobs[0], func(e *realizar.Event) error { return each(0, e) })
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(x.Server.config.Parallel)
	var mu sync.Mutex
	for i := range jobs {
		group.Go(func() (err error) {
			defer recoverTo(&err)
			return x.one(ctx, &jobs[i], func(e *realizar.Event) error {
				mu.Lock()
				defer mu.Unlock()
				return each(i, e)
			})
		})
	}
	return group.Wait()
}

func (x *Exchange) one(ctx context.Context, r *realizar.Request, each func(*realizar.Event) error) error {
	for e, err := range x.Model().Generate(ctx, r) {
		if err != nil {
			return err
		}
		if err := each(&e); err != nil {
			return err
		}
	}
	return nil
}

// noteUsage adds token counts and times to the request's log line.
func (x *Exchange) noteUsage(c *collector) {
	u, t := &c.result.Usage, &c.longest
	x.Note(slog.Int("prompt_tokens", u.PromptTokens), slog.Int("cached_tokens", u.CachedTokens), slog.Int("completion_tokens", u.CompletionTokens),
		slog.Duration("queue", t.Queue), slog.Duration("prefill", t.Prefill), slog.Duration("decode", t.Decode))
}
