package cuda

import (
	"errors"
	"fmt"
	"slices"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
)

// A maskTable is the host side of the table of masks in device memory.
type maskTable struct {
	host  []byte // pinned, with the table's layout; nil before the first mask
	stale []bool // by mask: the device does not have the current one
}

// SetMask implements [plan.Executable]. The first step with the mask copies it. Steps in flight do
// not use it, so neither its memory nor its flag is in use.
func (e *executable) SetMask(id int32, mask []uint32) error {
	if e.closed {
		return errors.New("cuda: the executable is closed")
	}
	if err := e.lim.ValidateMask(e.p, id, mask); err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	if e.masks.host == nil {
		c := e.b.Main
		err := c.Do(func() (err error) {
			defer c.Doing(c.Doing("making room for masks in the host's memory"))
			e.masks.host, err = c.AllocHost(e.lim.MaskBytes(e.p))
			return err
		})
		if err != nil {
			return fmt.Errorf("cuda: %w", err)
		}
	}
	copy(device.Words[uint32](e.masks.host)[int(id-1)*len(mask):], mask)
	e.masks.stale[id-1] = true
	return nil
}

// copyMasks queues the copies of the step's masks that the device lacks. Adjacent masks are one
// copy.
func (s *step) copyMasks() error {
	e := s.e
	s.masks = s.masks[:0]
	for i := range s.Batch.Rows {
		if id := s.Batch.Rows[i].Mask; id > 0 && e.masks.stale[id-1] {
			s.masks = append(s.masks, id-1)
		}
	}
	slices.Sort(s.masks)
	s.masks = slices.Compact(s.masks)
	bytes := 4 * e.room.MaskWords
	for first := 0; first < len(s.masks); {
		end := first + 1
		for end < len(s.masks) && s.masks[end] == s.masks[end-1]+1 {
			end++
		}
		lo, hi := int(s.masks[first])*bytes, (int(s.masks[end-1])+1)*bytes
		if err := e.stream.CopyToDevice(e.scratchAt+driver.DevicePtr(e.room.Masks+lo), e.masks.host[lo:hi]); err != nil {
			return err
		}
		for _, i := range s.masks[first:end] {
			e.masks.stale[i] = false
		}
		first = end
	}
	return nil
}
