package cuda

import (
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/plan"
)

// applyStates does the step's operations on pages. The stream copies from and to the
// host's memory in its own time: what is saved is there when the step is done.
func (s *step) applyStates() error {
	e := s.e
	for i := range s.batch.States {
		op := &s.batch.States[i]
		host := op.Host // what is left of it: the states of a group follow each other
		for _, k := range e.pools {
			if k.state.Group != op.Group {
				continue
			}
			page := k.base + driver.DevicePtr(int(op.Page)*k.apart)
			var err error
			switch op.Kind {
			case plan.SavePage:
				err = e.stream.CopyToHost(host[:k.bytes], page)
				host = host[k.bytes:]
			case plan.RestorePage:
				err = e.stream.CopyToDevice(page, host[:k.bytes])
				host = host[k.bytes:]
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
