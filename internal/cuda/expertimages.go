package cuda

import "github.com/realizar/realizar/internal/cuda/driver"

// openExperts allocates the images of experts, which loading fills.
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

// setTables writes which experts are in the places of their mixtures: those that loading leaves
// there, or none.
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

// mend repairs the expert tables after a step that failed between its launches: they may list
// experts that were never fetched.
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

// reachExperts returns the device addresses of the images.
func (e *executable) reachExperts() (all []driver.DevicePtr) {
	for _, b := range e.expertImages {
		all = append(all, e.b.Main.Reach(b))
	}
	return all
}

// An expertUse counts the use of an expert cache.
type expertUse struct {
	Chosen  int64 // experts that steps chose, counted once per step
	Fetched int64 // of these, experts that were not on the device
	Bytes   int64 // bytes fetched
}

// expertUse returns the use by all completed steps.
func (e *executable) expertUse() expertUse {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.used
}
