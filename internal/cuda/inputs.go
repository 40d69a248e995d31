package cuda

import (
	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/lower"
)

// fillInputs writes the inputs of the step's tokens to pinned memory, in the layout of the device.
func (s *step) fillInputs() error {
	e, b, tokens := s.e, s.Batch, len(s.Batch.Tokens)
	if len(e.inputs) == 0 || b.Head {
		return nil
	}
	if err := s.grow(&s.given, e.inputRow*lower.Power(tokens)); err != nil {
		return err
	}
	for i := range e.inputs {
		c := &e.inputs[i]
		to := device.Words[float32](s.given[c.Before*tokens:][:c.Row*tokens])
		for t, width := 0, c.Row/4; t < tokens; t++ {
			row := to[t*width:][:width]
			clear(row[copy(row, b.Input[t][c.Attr.First:][:c.Attr.Columns]):])
		}
	}
	return nil
}

// copyInputs queues the copies of the step's inputs to the device.
func (s *step) copyInputs(all []lower.InputCopy) error {
	tokens := len(s.Batch.Tokens)
	if s.Batch.Head {
		return nil
	}
	for i := range all {
		c := &all[i]
		if err := s.e.stream.CopyToDevice(c.To.F32, s.given[c.Before*tokens:][:c.Row*tokens]); err != nil {
			return err
		}
	}
	return nil
}
