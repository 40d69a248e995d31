package realizar

import (
	"context"
	"fmt"
	"slices"

	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
)

// Logits calls yield with the logits, [Vocab], that follow each of ids, in
// order: those at index i are of the token after ids[:i+1]. It stops at yield's
// first error and returns it.
func (m *Model) Logits(ctx context.Context, ids []int32, yield func(i int, logits []float32) error) error {
	if err := checkTokens("token", ids, m.Vocab()); err != nil {
		return err
	}
	if len(ids) > m.Context() {
		return fmt.Errorf("realizar: %w", &ContextError{Prompt: len(ids), Context: m.Context()})
	}
	seq, err := m.engine.NewSequence(ctx, len(ids))
	if err != nil {
		return wrap(err)
	}
	defer seq.Close()
	outputs := make([]engine.Output, len(ids))
	for i := range outputs {
		outputs[i] = engine.Output{Token: int32(i), Want: plan.WantLogits}
	}
	var stopped error
	err = seq.Append(ctx, ids, outputs, func(r engine.Result) error {
		stopped = yield(r.Index, slices.Clone(r.Logits))
		return stopped
	})
	if err != nil && stopped == nil {
		return wrap(err)
	}
	return err
}
