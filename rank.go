package realizar

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/realizar/realizar/internal/budget"
	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tokenizer"
)

// A RankRequest asks how well documents answer a query.
type RankRequest struct {
	Query     string
	Documents []string
	// Priority and Salt are as in [Generation].
	Priority int
	Salt     string
}

// A Rank is what a model says of the query and one document together.
type Rank struct {
	// Scores [Model.Labels] are those of the labels. Of a model with one label the
	// score says how well the document answers the query, as the CrossEncoder of
	// sentence-transformers computes it: the sigmoid of the logit, or the logit itself
	// where config.json says so. Of a model with several labels they are the logits.
	Scores []float32
	// Logits [Model.Labels] are what the model's head gives.
	Logits []float32
	Tokens int // of the query and the document, with those around them
}

// Rank scores r's documents, in their order. A query and a document that are longer
// together than the context are a [*ContextError]; where one fails, all do. A model
// without a head for it is an error that wraps [ErrUnsuited].
func (m *Model) Rank(ctx context.Context, r *RankRequest) ([]Rank, error) {
	switch {
	case m.Labels() == 0:
		return nil, m.unsuited("a score of pairs of texts")
	case m.rankErr != nil:
		return nil, wrap(m.rankErr)
	}
	tok, err := m.Tokenizer()
	if err != nil {
		return nil, wrap(err)
	}
	n := len(r.Documents)
	requests := make([]*engine.Request, n)
	for i, document := range r.Documents {
		e := &engine.Request{Priority: r.Priority, Salt: r.Salt, Outputs: []engine.Output{{Want: plan.WantLogits}}}
		e.Prompt, e.Types, err = tok.EncodePairWithin(ctx, limitsOf(ctx, m.Context()), []tokenizer.Span{{Text: r.Query}}, []tokenizer.Span{{Text: document}})
		if err == nil {
			err = budget.Of(ctx).Reserve(4 * int64(cap(e.Types)))
		}
		if err != nil {
			return nil, ofInput(tooLong(err, m.Context()), i, n)
		}
		if m.untyped || m.arch.Program.Axes[0] <= 1 {
			e.Types = nil // the model does not know them
		}
		if err := m.checkPair(e); err != nil {
			return nil, ofInput(err, i, n)
		}
		requests[i] = e
	}
	all := make([]Rank, n)
	err = m.together(ctx, n, func(ctx context.Context, i int) error {
		err := m.run(ctx, requests[i], func(got *engine.Result) (bool, error) {
			logits := slices.Clone(got.Logits)
			all[i] = Rank{Scores: m.scores(logits), Logits: logits, Tokens: len(requests[i].Prompt)}
			return true, nil
		})
		if err != nil {
			return ofInput(wrap(err), i, n)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// checkPair refuses a pair that cannot be run.
func (m *Model) checkPair(e *engine.Request) error {
	if err := checkTokens("token", e.Prompt, m.Vocab()); err != nil {
		return err
	}
	if err := m.checkPrompt(e.Prompt); err != nil {
		return err
	}
	if n := int32(m.arch.Program.Axes[0]); e.Types != nil && slices.Max(e.Types) >= n {
		return fmt.Errorf("realizar: %w: the tokenizer gives tokens the type %d, and the model knows %d", ErrConfig, slices.Max(e.Types), n)
	}
	return nil
}

// scores are those of the labels with these logits.
func (m *Model) scores(logits []float32) []float32 {
	scores := slices.Clone(logits)
	if m.sigmoid {
		for i, v := range scores {
			scores[i] = float32(1 / (1 + math.Exp(-float64(v))))
		}
	}
	return scores
}
