package cuda

import (
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/plan"
)

// applyStates performs the step's operations on pages. The stream copies from and to host memory
// asynchronously: saved pages are complete when the step is done.
func (s *step) applyStates() error {
	e := s.e
	for i := range s.Batch.States {
		op := &s.Batch.States[i]
		host := op.Host // the rest of it: the states of a group are contiguous
		for _, k := range e.pools {
			if k.State.Group != op.Group {
				continue
			}
			page := k.Base + driver.DevicePtr(int(op.Page)*k.Apart)
			var err error
			switch op.Kind {
			case plan.SavePage:
				err = e.stream.CopyToHost(host[:k.Bytes], page)
				host = host[k.Bytes:]
			case plan.RestorePage:
				err = e.stream.CopyToDevice(page, host[:k.Bytes])
				host = host[k.Bytes:]
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
