package cuda

import (
	"errors"
	"fmt"
	"math"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/lower"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/sample"
)

// fillRow writes the sampling parameters of row i of a batch.
func (e *executable) fillRow(s *step, b *plan.Batch, i int) {
	row := &b.Rows[i]
	p := &row.Sampling
	r := lower.RowParams{
		Temperature: p.Temperature, TopP: p.TopP, MinP: p.MinP, TopK: int32(min(p.TopK, math.MaxInt32)), Seed: p.Seed, Choice: p.Choice,
		Position: uint64(b.Positions[row.Token]) + 1, Want: uint32(row.Want), Mask: row.Mask - 1,
		Typical: p.Typical, Repetition: p.Repetition, Frequency: p.Frequency, Presence: p.Presence,
	}
	e.fillAdjustments(s, b, i, &r)
	device.Words[lower.RowParams](s.in[e.room.Params-e.room.Counts:])[i] = r
}

// rowError converts a row's status to an error.
func rowError(status int32) error {
	switch status {
	case 0:
		return nil
	case lower.RowNotFinite:
		return plan.ErrNotFinite
	case lower.RowEmptyMask:
		return fmt.Errorf("cuda: no token is allowed: %w: a mask needs at least one bit set", sample.ErrEmptyMask)
	case lower.RowNoLogit:
		return fmt.Errorf("cuda: the logits of all allowed tokens are -Inf: %w: at least one must be larger", sample.ErrNotFinite)
	}
	return errors.New("cuda: internal error: a row has no status")
}
