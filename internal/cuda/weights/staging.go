package weights

import (
	"context"
	"errors"
	"fmt"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/tensor"
)

// Staged images are copied in pieces of about stagedBytes bytes, through StagedBerths berths.
const (
	stagedBytes  = 4 << 20
	StagedBerths = 8
)

// StagingBytes returns the device memory that staging takes, in bytes.
func StagingBytes(w *Plan) int {
	_, n := StagedChunks(w)
	return n * StagedBerths
}

// StagedChunks returns the pieces of each staged image, and the size of a berth in bytes.
func StagedChunks(w *Plan) (chunks [][]Chunk, berth int) {
	staged := map[int][]int{} // by image: indexes into Order
	of := map[*tensor.Tensor]int{}
	for i := range w.Images {
		if w.Images[i].Pinned {
			continue
		}
		for _, t := range w.Images[i].Weights {
			of[t] = i
		}
	}
	for i, t := range w.Order {
		if image, ok := of[t]; ok {
			staged[image] = append(staged[image], i)
		}
	}
	chunks = make([][]Chunk, len(w.Images))
	for i, weights := range staged {
		var largest int
		chunks[i], largest = w.Chunks(weights, stagedBytes)
		berth = max(berth, Align(largest))
	}
	return chunks, berth
}

// A stager copies images from the program's weights if the host has no pinned memory for them. It
// works in contexts of its own, while the main thread continues or waits for it.
type stager struct {
	Loader
	slots  []slot // the rotation's; the stager uses their events
	chunks [][]Chunk
	images chan int
	stop   context.CancelFunc
	ended  chan struct{}
}

// newStager must be called on the main thread. If it fails, it frees everything.
func newStager(g *device.GPU, w *Plan, base driver.DevicePtr, slots []slot) (_ *stager, err error) {
	s := &stager{Loader: Loader{Plan: w, base: base}, slots: slots, images: make(chan int, len(slots))}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.release())
		}
	}()
	if s.c, err = g.Driver.NewContext(g.Info); err != nil {
		return nil, err
	}
	if s.waiter, err = g.Driver.NewContext(g.Info); err != nil {
		return nil, err
	}
	if s.pack, err = w.packers(g, s.c); err != nil {
		return nil, err
	}
	chunks, berth := StagedChunks(w)
	s.chunks = chunks
	err = s.c.Do(func() (err error) {
		if s.stream, err = s.c.NewStream(); err != nil {
			return err
		}
		s.berths, err = newBerths(s.c, StagedBerths, berth)
		return err
	})
	if err != nil {
		return nil, err
	}
	for i := range s.berths {
		s.berths[i].trusted = true
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop, s.ended = stop, make(chan struct{})
	go func() {
		defer close(s.ended)
		for image := range s.images {
			s.slots[image%len(s.slots)].answer <- s.stage(ctx, image)
		}
	}()
	return s, nil
}

// stage copies an image to its slot.
func (s *stager) stage(ctx context.Context, image int) error {
	k := &s.slots[image%len(s.slots)]
	if err := s.c.Do(func() error { return s.stream.Wait(k.Done) }); err != nil {
		return err
	}
	if err := s.bring(ctx, s.chunks[image]); err != nil {
		return fmt.Errorf("reading layer %d for a step: %w", s.Plan.Images[image].Layer, err)
	}
	return s.c.Do(func() error { return k.Arrived.In(s.c).Record(s.stream) })
}

// synchronize waits for the stager's stream.
func (s *stager) synchronize() error { return s.c.Do(s.stream.Synchronize) }

// close cancels the copies in progress and frees the stager's resources.
func (s *stager) close() error {
	s.stop()
	close(s.images)
	<-s.ended
	return s.release()
}

func (s *stager) release() error {
	var all []error
	if s.c != nil && s.waiter != nil {
		all = append(all, s.settle(), s.c.Do(func() error {
			var all []error
			if s.stream != nil {
				all = append(all, s.stream.Synchronize())
			}
			all = append(all, leaveBerths(s.c, s.berths))
			if s.stream != nil {
				all = append(all, s.stream.Destroy())
			}
			return errors.Join(all...)
		}))
	}
	for _, c := range []*driver.Context{s.waiter, s.c} {
		if c != nil {
			all = append(all, c.Close())
		}
	}
	return errors.Join(all...)
}
