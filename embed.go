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
	// Pooling says what becomes of a text's hidden states.
	Pooling Pooling
	// KeepLength leaves the vectors as long as they are, in place of the unit length.
	KeepLength bool
	// Priority and Salt are as in [Generation].
	Priority int
	Salt     string
}

// An EmbedInput is a text, or ids.
type EmbedInput struct {
	// Text is plain text, to which the tokenizer adds what it adds to every text.
	Text string
	// Tokens are ids as they are, instead of Text.
	Tokens []int32
}

// An Embedding is the vector of one input.
type Embedding struct {
	Vector []float32
	Tokens int // of the input
}

// Embed is the embeddings of r's inputs, in their order: what the model's head would
// read, pooled and brought to unit length. An input longer than the context is a
// [*ContextError]; where one fails, all do.
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
	// A vector is summed in float64 before it is one of float32.
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

// together does n things, as many at one time as the model does. Where one fails, all
// do.
func (m *Model) together(ctx context.Context, n int, one func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(m.parallel)
	for i := range n {
		group.Go(func() error { return one(ctx, i) })
	}
	return group.Wait()
}

// ofInput says which input an error is of.
func ofInput(err error, i, n int) error {
	if n == 1 || err == nil {
		return err
	}
	return fmt.Errorf("%w (input %d of %d)", err, i+1, n)
}

// inputTokens are the ids of an input that can be run.
func (m *Model) inputTokens(ctx context.Context, in *EmbedInput) ([]int32, error) {
	p, err := m.Prompt(ctx, &Request{Prompt: in.Text, PromptTokens: in.Tokens}, m.Context())
	if err != nil {
		return nil, err
	}
	return p.Tokens, m.checkPrompt(p.Tokens)
}

// embed is the vector of ids.
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

// scaled is the mean of n vectors with these sums, of unit length where that is
// wanted and there is a length.
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
