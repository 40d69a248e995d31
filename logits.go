package realizar

import (
	"context"
	"fmt"
	"slices"

	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
)

// Logits calls yield with the logits, [Vocab], that follow each of ids[from:], in
// order: those at index i are of the token after ids[:i+1]. It stops at yield's
// first error and returns it.
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
		return fmt.Errorf("realizar: %w: the logits from token %d on, of %d tokens", ErrRequest, from, len(ids))
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
