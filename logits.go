package realizar

import (
	"context"
	"fmt"
	"slices"

	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
)

// Logits runs ids and calls yield with the logits after each of ids[from:], in ascending order of
// i. The logits at i, of shape [Model.Vocab], predict the token after ids[:i+1]. yield may keep
// them. Logits stops at yield's first error and returns it. It returns a [*ContextError] if ids are
// longer than the context, and an error that wraps [ErrUnsuited] if the model generates no text.
func (m *Model) Logits(ctx context.Context, ids []int32, from int, yield func(i int, logits []float32) error) error {
	if m.arch.Program.Whole {
		return m.unsuited("the logits of tokens")
	}
	if err := checkTokens("token", ids, m.Vocab()); err != nil {
		return err
	}
	if len(ids) > m.Context() {
		return fmt.Errorf("realizar: %w", &ContextError{Prompt: len(ids), Context: m.Context()})
	}
	if from < 0 || from > len(ids) {
		return fmt.Errorf("realizar: %w: logits from index %d of %d tokens; want 0 to %d", ErrRequest, from, len(ids), len(ids))
	}
	if from == len(ids) {
		return nil
	}
	r := &engine.Request{Prompt: ids, Outputs: make([]engine.Output, len(ids)-from)}
	for i := range r.Outputs {
		r.Outputs[i] = engine.Output{Token: int32(from + i), Want: plan.WantLogits}
	}
	var stopped error
	err := m.run(ctx, r, func(r *engine.Result) (bool, error) {
		stopped = yield(r.Index, slices.Clone(r.Logits))
		return true, stopped
	})
	if err != nil && stopped == nil {
		return wrap(err)
	}
	return err
}
