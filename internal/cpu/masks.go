package cpu

import "errors"

// SetMask implements [plan.Executable]. No running step reads the mask, so it is copied at once.
func (e *executable) SetMask(id int32, words []uint32) error {
	if e.closed {
		return errors.New("cpu: the executable is closed")
	}
	if err := e.lim.ValidateMask(e.p, id, words); err != nil {
		return err
	}
	copy(e.mask(id), words)
	return nil
}

// mask returns a row's mask, or nil.
func (e *executable) mask(id int32) []uint32 {
	if id == 0 {
		return nil
	}
	n := e.p.MaskWords()
	return e.masks[n*int(id-1):][:n]
}
