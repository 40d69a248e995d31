package cuda

import (
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/plan"
)

// applyStates does the step's operations on pages.
func (s *step) applyStates() error {
	e := s.e
	need := 0
	for i := range s.batch.States {
		need += len(s.batch.States[i].Host)
	}
	if need == 0 && len(s.batch.States) == 0 {
		return nil
	}
	if err := s.grow(&s.state, need); err != nil {
		return err
	}
	host := s.state
	for i := range s.batch.States {
		op := &s.batch.States[i]
		if op.Kind == plan.RestorePage {
			copy(host, op.Host)
		}
		for _, k := range e.pools {
			if k.state.Group != op.Group {
				continue
			}
			page := k.base + driver.DevicePtr(int(op.Page)*k.apart)
			var err error
			switch op.Kind {
			case plan.CopyPage:
				if op.From != op.Page {
					err = e.stream.CopyOnDevice(page, k.base+driver.DevicePtr(int(op.From)*k.apart), k.bytes)
				}
			case plan.ZeroPage:
				err = e.stream.Memset8(page, 0, k.bytes)
			case plan.SavePage:
				err = e.stream.CopyToHost(host[:k.bytes], page)
			case plan.RestorePage:
				err = e.stream.CopyToDevice(page, host[:k.bytes])
			}
			if err != nil {
				return err
			}
			if op.Host != nil {
				host = host[k.bytes:]
			}
		}
	}
	return nil
}

// saved hands over the pages that the step saved.
func (s *step) saved() {
	host := s.state
	for i := range s.batch.States {
		op := &s.batch.States[i]
		if op.Kind == plan.SavePage {
			copy(op.Host, host)
		}
		host = host[len(op.Host):]
	}
}
