package server

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/realizar/realizar"
)

// sampling is how answers are chosen where a request does not say: as the model's
// makers recommend, or by the model's own probabilities.
func (s *Server) sampling() realizar.Sampling {
	if d, ok := s.model.DefaultSampling(); ok {
		return d
	}
	return realizar.Sampling{Temperature: 1}
}

// randomSeed is one for a request that has none.
func randomSeed() uint64 { return rand.Uint64() }

// A job is a prompt to run, and how.
type job struct {
	tokens     []int32
	generation realizar.Generation
}

// answers runs jobs. each is called for every event with the number of its job, one
// call at a time; its error ends them all, as theirs do.
func (s *Server) answers(ctx context.Context, jobs []job, each func(job int, e *realizar.Event) error) error {
	if len(jobs) == 1 {
		return s.one(ctx, &jobs[0], func(e *realizar.Event) error { return each(0, e) })
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(s.config.Parallel)
	var mu sync.Mutex
	for i := range jobs {
		group.Go(func() (err error) {
			defer recoverTo(&err)
			return s.one(ctx, &jobs[i], func(e *realizar.Event) error {
				mu.Lock()
				defer mu.Unlock()
				return each(i, e)
			})
		})
	}
	return group.Wait()
}

func (s *Server) one(ctx context.Context, j *job, each func(*realizar.Event) error) error {
	for e, err := range s.model.Generate(ctx, &realizar.Request{PromptTokens: j.tokens, Generation: j.generation}) {
		if err != nil {
			return err
		}
		if err := each(&e); err != nil {
			return err
		}
	}
	return nil
}

// A usage counts the tokens of a request: those of its prompts once, however many
// answers share them.
type usage struct {
	prompt, cached, completion int
	timings                    realizar.Timings // of the answer that took longest
}

func (u *usage) add(choice int, f *realizar.Finish) {
	if choice == 0 {
		u.prompt += f.Usage.PromptTokens
		u.cached += f.Usage.CachedTokens
	}
	u.completion += f.Usage.CompletionTokens
	t := &u.timings
	t.Queue, t.Prefill, t.Decode = max(t.Queue, f.Timings.Queue), max(t.Prefill, f.Timings.Prefill), max(t.Decode, f.Timings.Decode)
}

// noteUsage has the request's line in the log say what it took.
func (x *exchange) noteUsage(u *usage) {
	x.note(slog.Int("prompt_tokens", u.prompt), slog.Int("cached_tokens", u.cached), slog.Int("completion_tokens", u.completion),
		slog.Duration("queue", u.timings.Queue), slog.Duration("prefill", u.timings.Prefill), slog.Duration("decode", u.timings.Decode))
}
