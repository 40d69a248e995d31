package weights

import (
	"errors"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
)

// A Rotation moves streamed layers to their slots, during steps and between them. The image of a
// layer is copied on a separate stream once the last launch that reads the slot's previous layer is
// done. So while a layer computes, the next one arrives, and the first ones of a step arrive while
// the previous step ends.
//
// It must be used on the main thread, in the order of launches on the executable's stream.
type Rotation struct {
	plan   *Plan
	base   driver.DevicePtr
	Copies *driver.Stream
	Host   [][]byte // by image: a copy in pinned memory; nil if the image is staged
	Slots  []slot
	stager *stager // nil if nothing is staged
}

// A slot holds one image at a time.
type slot struct {
	image   int           // the image present or in flight, or NoImage
	Done    *driver.Event // recorded after the last launch that read the slot
	Arrived *driver.Event // recorded after the image's copy
	asked   bool          // a request to the stager has not been answered
	answer  chan error    // from the stager: all copies of the image are queued
}

// NoImage marks an empty slot.
const NoImage = -1

// NewRotation allocates the slots' events, streams and host memory for the images of w, of which
// there must be some. base is the address of the weights. It must be called on the main thread. The
// caller must release the result even if there is an error.
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

// Keep copies an image from its slot to host memory.
func (r *Rotation) Keep(c *driver.Context, image int) error {
	return c.CopyToHost(r.Host[image], r.At(image))
}

// At returns the address of an image's slot.
func (r *Rotation) At(image int) driver.DevicePtr {
	return r.base + driver.DevicePtr(r.plan.Slot(image))
}

// Begin requests the images at the start of the first step.
func (r *Rotation) Begin() error {
	for i := range r.Slots {
		if err := r.fetch(i); err != nil {
			return err
		}
	}
	return nil
}

// Await makes the stream wait for an image.
func (r *Rotation) Await(s *driver.Stream, image int) error {
	k := &r.Slots[image%len(r.Slots)]
	if k.image != image { // a previous step did not finish
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

// Leave records that no later launch on the stream reads an image, and requests the next image of
// its slot, for this step or the next one.
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

// fetch requests an image.
func (r *Rotation) fetch(image int) error {
	k := &r.Slots[image%len(r.Slots)]
	if k.image == image {
		return nil
	}
	_ = k.settle() // the image in flight is not needed
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

// settle waits for the stager's answer, if one is due. After an error the slot is empty.
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

// Synchronize waits for all copies in flight.
func (r *Rotation) Synchronize() error {
	if r.stager == nil {
		return r.Copies.Synchronize()
	}
	for i := range r.Slots {
		_ = r.Slots[i].settle() // the image is requested again if it is needed
	}
	return errors.Join(r.Copies.Synchronize(), r.stager.synchronize())
}

// Staging reports whether steps read weights.
func (r *Rotation) Staging() bool { return r != nil && r.stager != nil }

// Release frees the rotation's resources, on the thread of c.
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
