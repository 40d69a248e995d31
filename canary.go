package realizar

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// A canary detects writes to a mapped file from which a running model reads weights. It keeps
// checksums of evenly spaced parts of the weights and verifies them one after another.
type canary struct {
	files   weightFiles
	damaged func(error)
	seed    maphash.Seed
	parts   []canaryPart

	mu     sync.Mutex
	found  map[int]error // by part that has changed
	ending chan struct{}
	ended  sync.WaitGroup
}

// A canaryPart is a part of a tensor's bytes.
type canaryPart struct {
	tensor *tensor.Tensor
	at, to int
	sum    uint64
}

// A canary verifies canaryLooks parts after each canaryPause, so a round takes less than a minute.
// Most of the cost is in waking up, so it verifies several parts at a time.
const (
	canaryParts = 1024    // at most
	canaryBytes = 4 << 10 // of a part
	canaryLooks = 20
	canaryPause = time.Second
)

// newCanary computes the checksums of weights, which are views of files. The canary calls damaged
// with an error when a part has changed, and with nil when all parts are restored. damaged may be
// nil.
func newCanary(files weightFiles, weights []*tensor.Tensor, damaged func(error)) (*canary, error) {
	c := &canary{files: files, damaged: damaged, seed: maphash.MakeSeed(), found: map[int]error{}, ending: make(chan struct{})}
	total := 0
	for _, w := range weights {
		total += len(w.Data)
	}
	each := max(canaryBytes, total/canaryParts)
	next := 0 // bytes until the next part begins
	for _, w := range weights {
		for ; next < len(w.Data); next += each {
			c.parts = append(c.parts, canaryPart{tensor: w, at: next, to: min(next+canaryBytes, len(w.Data))})
		}
		next -= len(w.Data)
	}
	for i := range c.parts {
		var err error
		if c.parts[i].sum, err = c.sum(i); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// sum returns the current checksum of a part.
func (c *canary) sum(part int) (sum uint64, err error) {
	p := &c.parts[part]
	err = c.files.Guard(func() error {
		sum = maphash.Bytes(c.seed, p.tensor.Data[p.at:p.to])
		return nil
	})
	return sum, err
}

// look verifies the checksum of a part.
func (c *canary) look(part int) {
	p := &c.parts[part]
	sum, err := c.sum(part)
	if err == nil && sum != p.sum {
		err = &modelfile.FormatError{File: c.files.Of(p.tensor).Path(), Tensor: p.tensor.Name, Offset: -1, Err: modelfile.ErrFormat, Problem: "it has changed since the model was loaded: another program writes to the file; replace model files by renaming, and open the model again"}
	}
	c.mu.Lock()
	before := len(c.found)
	if delete(c.found, part); err != nil {
		c.found[part] = err
	}
	now := len(c.found)
	c.mu.Unlock()
	switch {
	case c.damaged == nil:
	case before == 0 && now > 0:
		c.damaged(err)
	case before > 0 && now == 0:
		c.damaged(nil)
	}
}

// damage returns the error of a part that has changed, or nil.
func (c *canary) damage() error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, err := range c.found {
		return err
	}
	return nil
}

// start verifies one part after another until stop is called.
func (c *canary) start() {
	if len(c.parts) == 0 {
		return
	}
	c.ended.Go(func() {
		tick := time.NewTicker(canaryPause)
		defer tick.Stop()
		for part := 0; ; {
			select {
			case <-c.ending:
				return
			case <-tick.C:
			}
			for range min(canaryLooks, len(c.parts)) {
				c.look(part)
				part = (part + 1) % len(c.parts)
			}
		}
	})
}

func (c *canary) stop() {
	close(c.ending)
	c.ended.Wait()
}
