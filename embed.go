package realizar

import (
	"context"
	"fmt"
	"math"

	"golang.org/x/sync/errgroup"

	"github.com/realizar/realizar/internal/budget"
	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
)

// An EmbedRequest asks for the embeddings of texts.
type EmbedRequest struct {
	Inputs []EmbedInput
	// Pooling says how the hidden states of an input become one vector.
	Pooling Pooling
	// KeepLength leaves the vectors as they are. If false, they are scaled to unit length.
	KeepLength bool
	// Priority and Salt are as in [Generation].
	Priority int
	Salt     string
}

// An EmbedInput is a text or a list of token ids.
type EmbedInput struct {
	// Text is plain text. The tokenizer adds its usual tokens; special tokens do not match.
	Text string
	// Tokens, if not nil, are token ids instead of Text.
	Tokens []int32
}

// An Embedding is the embedding of one input.
type Embedding struct {
	Vector []float32 // [Model.EmbeddingLength]
	Tokens int       // number of tokens of the input
}

// Embed returns the embeddings of r's inputs, in order. An embedding is computed from the hidden
// states that the model's head would read: they are pooled and scaled to unit length. If an input
// fails, Embed returns its error and no embeddings. The error is a [*ContextError] if an input is
// longer than the context, and wraps [ErrUnsuited] if the model is made for ranking.
func (m *Model) Embed(ctx context.Context, r *EmbedRequest) ([]Embedding, error) {
	pooling := r.Pooling
	switch {
	case m.Labels() > 0:
		return nil, m.unsuited("an embedding")
	case pooling == PoolingAuto && m.poolingErr != nil:
		return nil, wrap(m.poolingErr)
	case pooling == PoolingAuto:
		pooling = m.pooling
	case pooling > PoolingMax:
		return nil, fmt.Errorf("realizar: %w: %v", ErrRequest, pooling)
	}
	prompts := make([][]int32, len(r.Inputs))
	for i := range r.Inputs {
		var err error
		if prompts[i], err = m.inputTokens(ctx, &r.Inputs[i]); err != nil {
			return nil, ofInput(err, i, len(prompts))
		}
	}
	// A vector takes 4 bytes for each element, and 8 for its sum in float64.
	if err := budget.Of(ctx).Reserve(int64(len(prompts)) * int64(m.EmbeddingLength()) * (4 + 8)); err != nil {
		return nil, err
	}
	all := make([]Embedding, len(prompts))
	err := m.together(ctx, len(prompts), func(ctx context.Context, i int) error {
		vector, err := m.embed(ctx, r, prompts[i], pooling)
		all[i] = Embedding{Vector: vector, Tokens: len(prompts[i])}
		return ofInput(err, i, len(prompts))
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// together calls one for each i below n, up to m.parallel at a time. It returns the first error and
// cancels the other calls' contexts.
func (m *Model) together(ctx context.Context, n int, one func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(m.parallel)
	for i := range n {
		group.Go(func() error { return one(ctx, i) })
	}
	return group.Wait()
}

// ofInput adds to err the number of the input if there are several.
func ofInput(err error, i, n int) error {
	if n == 1 || err == nil {
		return err
	}
	return fmt.Errorf("%w (input %d of %d)", err, i+1, n)
}

// inputTokens returns the token ids of an input.
func (m *Model) inputTokens(ctx context.Context, in *EmbedInput) ([]int32, error) {
	p, err := m.Prompt(ctx, &Request{Prompt: in.Text, PromptTokens: in.Tokens}, m.Context())
	if err != nil {
		return nil, err
	}
	return p.Tokens, m.checkPrompt(p.Tokens)
}

// embed returns the embedding of ids.
func (m *Model) embed(ctx context.Context, r *EmbedRequest, ids []int32, pooling Pooling) ([]float32, error) {
	e := &engine.Request{Prompt: ids, Priority: r.Priority, Salt: r.Salt}
	want := func(token int) {
		e.Outputs = append(e.Outputs, engine.Output{Token: int32(token), Want: plan.WantHidden})
	}
	switch pooling {
	case PoolingMean, PoolingMax:
		for i := range ids {
			want(i)
		}
	case PoolingCLS:
		want(0)
	default:
		want(len(ids) - 1)
	}
	var sums []float64
	n := len(e.Outputs)
	err := m.run(ctx, e, func(r *engine.Result) (bool, error) {
		first := sums == nil
		if first {
			sums = make([]float64, len(r.Hidden))
		}
		for i, v := range r.Hidden {
			switch {
			case pooling != PoolingMax:
				sums[i] += float64(v)
			case first || float64(v) > sums[i]:
				sums[i] = float64(v)
			}
		}
		return true, nil
	})
	if err != nil {
		return nil, wrap(err)
	}
	if pooling == PoolingMax {
		n = 1
	}
	return scaled(sums, n, !r.KeepLength), nil
}

// scaled returns sums/n, or sums scaled to unit length if unit is set and sums are not all 0.
func scaled(sums []float64, n int, unit bool) []float32 {
	by := float64(n)
	if unit {
		var squares float64
		for _, v := range sums {
			squares += v * v
		}
		if squares > 0 {
			by = math.Sqrt(squares)
		}
	}
	vector := make([]float32, len(sums))
	for i, v := range sums {
		vector[i] = float32(v / by)
	}
	return vector
}
