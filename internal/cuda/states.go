package cuda

import (
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/plan"
)

// slotArgs is where kernels find a state per sequence. Slot i, [Size] float32, is at base +
// i*apart; that of sequence q is slots[2*q] before the step, -1 for zeros, and slots[2*q+1]
// after it. The two differ, so a kernel may write one while it reads the other.
type slotArgs struct {
	base  driver.DevicePtr
	apart int64
	slots driver.DevicePtr // [S][2] int32
}

func (c *compiler) slots(state int) slotArgs {
	k := &c.pools[state]
	return slotArgs{base: k.base, apart: int64(k.apart), slots: c.step.pages[k.state.Group]}
}

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
