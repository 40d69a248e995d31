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

// A RankRequest asks for scores of documents for a query.
type RankRequest struct {
	Query     string
	Documents []string
	// Priority and Salt are as in [Generation].
	Priority int
	Salt     string
}

// A Rank is the result for one document.
type Rank struct {
	// Scores are the scores of the labels, of shape [Model.Labels]. If the model has one label,
	// the score says how well the document answers the query. It is computed as by the
	// CrossEncoder of sentence-transformers: the sigmoid of the logit, or the logit itself if
	// config.json says so. If the model has several labels, the scores are the logits.
	Scores []float32
	// Logits are the outputs of the model's head, of shape [Model.Labels].
	Logits []float32
	// Tokens is the number of tokens of the query and the document, including special tokens.
	Tokens int
}

// Rank scores r's documents with r's query and returns the results in the order of the documents.
// If a document fails, Rank returns its error and no results. The error is a [*ContextError] if the
// query and a document together are longer than the context, and wraps [ErrUnsuited] if the model
// has no classification head.
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
			e.Types = nil // the model has no token types
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

// checkPair returns an error if a query with a document cannot be run.
func (m *Model) checkPair(e *engine.Request) error {
	if err := checkTokens("token", e.Prompt, m.Vocab()); err != nil {
		return err
	}
	if err := m.checkPrompt(e.Prompt); err != nil {
		return err
	}
	if n := int32(m.arch.Program.Axes[0]); e.Types != nil && slices.Max(e.Types) >= n {
		return fmt.Errorf("realizar: %w: the tokenizer uses token type %d, but the model has %d types", ErrConfig, slices.Max(e.Types), n)
	}
	return nil
}

// scores returns the scores for logits.
func (m *Model) scores(logits []float32) []float32 {
	scores := slices.Clone(logits)
	if m.sigmoid {
		for i, v := range scores {
			scores[i] = float32(1 / (1 + math.Exp(-float64(v))))
		}
	}
	return scores
}
