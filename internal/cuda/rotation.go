package cuda

import (
	"errors"

	"github.com/realizar/realizar/internal/cuda/driver"
)

// A rotation brings the layers that stream to their slots, in steps and between them. The
// image of a layer comes on a stream of its own when the last launch of the slot's layer
// before is done; so while a layer is at work, the one after it arrives, and the first
// ones of a step arrive while the step before ends.
//
// It is used on the main thread, in the order in which the executable's stream is given
// launches.
type rotation struct {
	plan   *weightPlan
	base   driver.DevicePtr
	copies *driver.Stream
	host   [][]byte // by image: pinned memory with what it has on the device; nil where it is staged
	slots  []slot
	stager *stager // nil where nothing is staged
}

// A slot is a place for one image at a time.
type slot struct {
	image   int           // that it has or that is on its way, or noImage
	done    *driver.Event // the last launch that read it
	arrived *driver.Event // the image
	asked   bool          // the stager was asked for it, and its answer is not read yet
	answer  chan error    // of the stager: all copies of the image are under way
}

// noImage is in a slot that has none.
const noImage = -1

// newRotation makes what the images of w, of which there are some, come with; base is where the weights lie. It is
// called on the main thread, and what it returns with an error is released too.
func newRotation(g *gpu, w *weightPlan, base driver.DevicePtr) (r *rotation, err error) {
	r = &rotation{plan: w, base: base, host: make([][]byte, len(w.images)), slots: make([]slot, w.slots)}
	c := g.main
	defer c.Doing(c.Doing("making room for layers that stream"))
	if r.copies, err = c.NewStream(); err != nil {
		return r, err
	}
	for i := range r.slots {
		k := &r.slots[i]
		k.image, k.answer = noImage, make(chan error, 1)
		if k.done, err = c.NewEvent(); err != nil {
			return r, err
		}
		if k.arrived, err = c.NewEvent(); err != nil {
			return r, err
		}
	}
	for i := range w.images {
		if !w.images[i].pinned {
			continue
		}
		if r.host[i], err = c.AllocHost(w.images[i].bytes); err != nil {
			return r, err
		}
	}
	if len(w.staged()) > 0 {
		r.stager, err = newStager(g, w, base, r.slots)
	}
	return r, err
}

// keep takes an image over to the host's memory while its slot has it.
func (r *rotation) keep(c *driver.Context, image int) error {
	return c.CopyToHost(r.host[image], r.at(image))
}

// at is where an image comes to.
func (r *rotation) at(image int) driver.DevicePtr {
	return r.base + driver.DevicePtr(r.plan.slot(image))
}

// begin asks for the images that the first step begins with.
func (r *rotation) begin() error {
	for i := range r.slots {
		if err := r.fetch(i); err != nil {
			return err
		}
	}
	return nil
}

// await lets the stream wait for an image.
func (r *rotation) await(s *driver.Stream, image int) error {
	k := &r.slots[image%len(r.slots)]
	if k.image != image { // a step before did not come to its end
		if err := r.synchronize(); err != nil {
			return err
		}
		if err := k.done.Record(s); err != nil {
			return err
		}
		if err := r.fetch(image); err != nil {
			return err
		}
	}
	if err := k.settle(); err != nil {
		return err
	}
	return s.Wait(k.arrived)
}

// leave says that the launches that the stream was given are the last ones to read an
// image, and asks for the next one that has its slot, of this step or the one after it.
func (r *rotation) leave(s *driver.Stream, image int) error {
	if err := r.slots[image%len(r.slots)].done.Record(s); err != nil {
		return err
	}
	next := image + len(r.slots)
	if next >= len(r.host) {
		next = image % len(r.slots)
	}
	return r.fetch(next)
}

// fetch asks for an image.
func (r *rotation) fetch(image int) error {
	k := &r.slots[image%len(r.slots)]
	if k.image == image {
		return nil
	}
	_ = k.settle() // nobody wants what is on its way
	k.image = noImage
	if r.host[image] == nil {
		r.stager.images <- image
		k.image, k.asked = image, true
		return nil
	}
	if err := r.copies.Wait(k.done); err != nil {
		return err
	}
	if err := r.copies.CopyToDevice(r.at(image), r.host[image]); err != nil {
		return err
	}
	if err := k.arrived.Record(r.copies); err != nil {
		return err
	}
	k.image = image
	return nil
}

// settle waits for the stager's answer, where there is one to come. After an error the
// slot has no image.
func (k *slot) settle() error {
	if !k.asked {
		return nil
	}
	k.asked = false
	err := <-k.answer
	if err != nil {
		k.image = noImage
	}
	return err
}

// synchronize waits for all copies under way, whichever slots they are for.
func (r *rotation) synchronize() error {
	if r.stager == nil {
		return r.copies.Synchronize()
	}
	for i := range r.slots {
		_ = r.slots[i].settle() // who wants the image asks for it again
	}
	return errors.Join(r.copies.Synchronize(), r.stager.synchronize())
}

// staging reports whether steps read weights.
func (r *rotation) staging() bool { return r != nil && r.stager != nil }

// release gives back all that the rotation has, on the thread of c.
func (r *rotation) release(c *driver.Context) error {
	if r == nil {
		return nil
	}
	var all []error
	if r.stager != nil {
		all = append(all, r.stager.close())
	}
	if r.copies != nil {
		all = append(all, r.copies.Synchronize(), r.copies.Destroy())
	}
	for _, k := range r.slots {
		all = append(all, destroyEvent(k.done), destroyEvent(k.arrived))
	}
	for _, b := range r.host {
		all = append(all, freeHost(c, b))
	}
	return errors.Join(all...)
}
