package cuda

import (
	"errors"
	"fmt"
	"math"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/sample"
)

// fillRow writes what the sampling of row i of a batch is told.
func (e *executable) fillRow(s *step, b *plan.Batch, i int) {
	row := &b.Rows[i]
	p := &row.Sampling
	r := rowParams{
		temperature: p.Temperature, topP: p.TopP, minP: p.MinP, topK: int32(min(p.TopK, math.MaxInt32)), seed: p.Seed, choice: p.Choice,
		position: uint64(b.Positions[row.Token]) + 1, want: uint32(row.Want), mask: row.Mask - 1,
		typical: p.Typical, repetition: p.Repetition, frequency: p.Frequency, presence: p.Presence,
	}
	e.fillAdjustments(s, b, i, &r)
	words[rowParams](s.in[e.room.params-e.room.counts:])[i] = r
}

// rowError is what a row's status means.
func rowError(status int32) error {
	switch status {
	case 0:
		return nil
	case rowNotFinite:
		return plan.ErrNotFinite
	case rowEmptyMask:
		return fmt.Errorf("cuda: no token is allowed: %w: a mask needs at least one bit set", sample.ErrEmptyMask)
	case rowNoLogit:
		return fmt.Errorf("cuda: the logits of all allowed tokens are -Inf: %w: at least one must be larger", sample.ErrNotFinite)
	}
	return errors.New("cuda: internal error: a row has no status")
}
