package weights

import (
	"errors"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
)

// A Rotation brings the layers that stream to their slots, in steps and between them. The
// image of a layer comes on a stream of its own when the last launch of the slot's layer
// before is done; so while a layer is at work, the one after it arrives, and the first
// ones of a step arrive while the step before ends.
//
// It is used on the main thread, in the order in which the executable's stream is given
// launches.
type Rotation struct {
	plan   *Plan
	base   driver.DevicePtr
	Copies *driver.Stream
	Host   [][]byte // by image: pinned memory with what it has on the device; nil where it is staged
	Slots  []slot
	stager *stager // nil where nothing is staged
}

// A slot is a place for one image at a time.
type slot struct {
	image   int           // that it has or that is on its way, or noImage
	Done    *driver.Event // the last launch that read it
	Arrived *driver.Event // the image
	asked   bool          // the stager was asked for it, and its answer is not read yet
	answer  chan error    // of the stager: all copies of the image are under way
}

// NoImage is in a slot that has none.
const NoImage = -1

// NewRotation makes what the images of w, of which there are some, come with; base is where the weights lie. It is
// called on the main thread, and what it returns with an error is released too.
func NewRotation(g *device.GPU, w *Plan, base driver.DevicePtr) (r *Rotation, err error) {
	r = &Rotation{plan: w, base: base, Host: make([][]byte, len(w.Images)), Slots: make([]slot, w.Slots)}
	c := g.Main
	defer c.Doing(c.Doing("making room for layers that stream"))
	if r.Copies, err = c.NewStream(); err != nil {
		return r, err
	}
	for i := range r.Slots {
		k := &r.Slots[i]
		k.image, k.answer = NoImage, make(chan error, 1)
		if k.Done, err = c.NewEvent(); err != nil {
			return r, err
		}
		if k.Arrived, err = c.NewEvent(); err != nil {
			return r, err
		}
	}
	for i := range w.Images {
		if !w.Images[i].Pinned {
			continue
		}
		if r.Host[i], err = c.AllocHost(w.Images[i].Bytes); err != nil {
			return r, err
		}
	}
	if len(w.Staged()) > 0 {
		r.stager, err = newStager(g, w, base, r.Slots)
	}
	return r, err
}

// Keep takes an image over to the host's memory while its slot has it.
func (r *Rotation) Keep(c *driver.Context, image int) error {
	return c.CopyToHost(r.Host[image], r.At(image))
}

// At is where an image comes to.
func (r *Rotation) At(image int) driver.DevicePtr {
	return r.base + driver.DevicePtr(r.plan.Slot(image))
}

// Begin asks for the images that the first step begins with.
func (r *Rotation) Begin() error {
	for i := range r.Slots {
		if err := r.fetch(i); err != nil {
			return err
		}
	}
	return nil
}

// Await lets the stream wait for an image.
func (r *Rotation) Await(s *driver.Stream, image int) error {
	k := &r.Slots[image%len(r.Slots)]
	if k.image != image { // a step before did not come to its end
		if err := r.Synchronize(); err != nil {
			return err
		}
		if err := k.Done.Record(s); err != nil {
			return err
		}
		if err := r.fetch(image); err != nil {
			return err
		}
	}
	if err := k.settle(); err != nil {
		return err
	}
	return s.Wait(k.Arrived)
}

// Leave says that the launches that the stream was given are the last ones to read an
// image, and asks for the next one that has its slot, of this step or the one after it.
func (r *Rotation) Leave(s *driver.Stream, image int) error {
	if err := r.Slots[image%len(r.Slots)].Done.Record(s); err != nil {
		return err
	}
	next := image + len(r.Slots)
	if next >= len(r.Host) {
		next = image % len(r.Slots)
	}
	return r.fetch(next)
}

// fetch asks for an image.
func (r *Rotation) fetch(image int) error {
	k := &r.Slots[image%len(r.Slots)]
	if k.image == image {
		return nil
	}
	_ = k.settle() // nobody wants what is on its way
	k.image = NoImage
	if r.Host[image] == nil {
		r.stager.images <- image
		k.image, k.asked = image, true
		return nil
	}
	if err := r.Copies.Wait(k.Done); err != nil {
		return err
	}
	if err := r.Copies.CopyToDevice(r.At(image), r.Host[image]); err != nil {
		return err
	}
	if err := k.Arrived.Record(r.Copies); err != nil {
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
		k.image = NoImage
	}
	return err
}

// Synchronize waits for all copies under way, whichever slots they are for.
func (r *Rotation) Synchronize() error {
	if r.stager == nil {
		return r.Copies.Synchronize()
	}
	for i := range r.Slots {
		_ = r.Slots[i].settle() // who wants the image asks for it again
	}
	return errors.Join(r.Copies.Synchronize(), r.stager.synchronize())
}

// Staging reports whether steps read weights.
func (r *Rotation) Staging() bool { return r != nil && r.stager != nil }

// Release gives back all that the rotation has, on the thread of c.
func (r *Rotation) Release(c *driver.Context) error {
	if r == nil {
		return nil
	}
	var all []error
	if r.stager != nil {
		all = append(all, r.stager.close())
	}
	if r.Copies != nil {
		all = append(all, r.Copies.Synchronize(), r.Copies.Destroy())
	}
	for _, k := range r.Slots {
		all = append(all, device.DestroyEvent(k.Done), device.DestroyEvent(k.Arrived))
	}
	for _, b := range r.Host {
		all = append(all, device.FreeHost(c, b))
	}
	return errors.Join(all...)
}
