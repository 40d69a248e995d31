package cuda

import "github.com/realizar/realizar/internal/cuda/driver"

// openExperts makes the images of experts, which loading fills.
func (e *executable) openExperts() error {
	c := e.weights.Experts
	if c == nil {
		return nil
	}
	defer e.b.Main.Doing(e.b.Main.Doing("making room for experts in the host's memory"))
	for i := range c.Mixtures {
		m := &c.Mixtures[i]
		b, err := e.b.Main.AllocHost(m.Images())
		if err != nil {
			return err
		}
		e.expertImages = append(e.expertImages, b)
	}
	return e.setTables(true)
}

// setTables says which experts are in the places of their mixtures: those that loading
// leaves there, or none.
func (e *executable) setTables(loaded bool) error {
	for i := range e.weights.Experts.Mixtures {
		m, n := &e.weights.Experts.Mixtures[i], 0
		if loaded {
			n = m.Kept
		}
		if err := e.b.Main.CopyToDevice(e.weightsAt+driver.DevicePtr(m.Tables), m.Table(n)); err != nil {
			return err
		}
	}
	return nil
}

// mend makes good what a step left that ended among its launches: experts may be said
// to have places to which nobody has fetched them.
func (e *executable) mend() error {
	if !e.torn || e.weights.Experts == nil {
		return nil
	}
	defer e.b.Main.Doing(e.b.Main.Doing("emptying the cache of experts"))
	if err := e.stream.Synchronize(); err != nil {
		return err
	}
	if err := e.setTables(false); err != nil {
		return err
	}
	e.torn = false
	return nil
}

// reachExperts is where kernels find the images.
func (e *executable) reachExperts() (all []driver.DevicePtr) {
	for _, b := range e.expertImages {
		all = append(all, e.b.Main.Reach(b))
	}
	return all
}

// An expertUse says how a cache of experts served.
type expertUse struct {
	Chosen  int64 // experts that steps chose, each once for all of a step's tokens
	Fetched int64 // of them, those that were not on the device
	Bytes   int64 // of those
}

// expertUse is that of all steps that are done.
func (e *executable) expertUse() expertUse {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.used
}
