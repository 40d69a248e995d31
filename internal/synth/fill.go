package synth

import (
	"context"
	"io"
	"sync"

	"github.com/realizar/realizar/internal/random"
)

const (
	chunkBytes = 256 << 10 // at most; a chunk has whole blocks
	maxWorkers = 16        // faster than any disk
)

// A chunk is a part of one tensor's data, which a worker computes.
type chunk struct {
	filler *random.Filler
	first  int // block of the tensor
	data   []byte
	made   chan struct{} // closed when data is complete
}

// chunks are the chunks of all random tensors in the order of the file, as many at a time as there
// are buffers.
type chunks struct {
	ctx     context.Context
	order   chan *chunk
	buffers chan []byte // free buffers
}

// fill starts workers that compute the data of all random tensors. stop ends the workers and waits
// for them.
func (f *File) fill(ctx context.Context, workers int) (c *chunks, stop func()) {
	workers = min(max(workers, 1), maxWorkers)
	ctx, cancel := context.WithCancel(ctx)
	n := 2*workers + 2
	c = &chunks{ctx, make(chan *chunk, n), make(chan []byte, n)}
	for range n {
		c.buffers <- make([]byte, chunkBytes)
	}
	jobs := make(chan *chunk)
	var done sync.WaitGroup
	done.Go(func() {
		defer close(jobs)
		for i := range f.tensors {
			if !c.assign(&f.tensors[i], jobs) {
				return
			}
		}
	})
	for range workers {
		done.Go(func() {
			for j := range jobs {
				j.filler.Fill(j.data, j.first)
				close(j.made)
			}
		})
	}
	return c, func() { cancel(); done.Wait() }
}

// assign cuts a tensor into chunks for the workers and reports whether to continue. It gives chunks
// their buffers in order. If workers took the buffers, later chunks could hold all of them while
// the first chunk waits.
func (c *chunks) assign(t *plannedTensor, jobs chan<- *chunk) bool {
	if t.filler == nil {
		return true
	}
	size := t.dtype.BlockBytes()
	most := chunkBytes / size / random.Step * random.Step
	blocks := t.bytes() / size
	for first := 0; first < blocks; first += most {
		j := &chunk{filler: t.filler, first: first, made: make(chan struct{})}
		select {
		case b := <-c.buffers:
			j.data = b[:min(most, blocks-first)*size]
		case <-c.ctx.Done():
			return false
		}
		c.order <- j // never blocks: its capacity is the number of buffers
		select {
		case jobs <- j:
		case <-c.ctx.Done():
			return false
		}
	}
	return true
}

// A tensorData writes the data of the next tensor of the file, of the given number of bytes.
type tensorData struct {
	*chunks
	bytes int
}

// WriteTo writes the tensor's chunks in order, as workers complete them.
func (d *tensorData) WriteTo(w io.Writer) (int64, error) {
	var written int64
	for written < int64(d.bytes) {
		var j *chunk
		select {
		case j = <-d.order:
		case <-d.ctx.Done():
			return written, context.Cause(d.ctx)
		}
		select {
		case <-j.made:
		case <-d.ctx.Done():
			return written, context.Cause(d.ctx)
		}
		n, err := w.Write(j.data)
		written += int64(n)
		if err != nil {
			return written, err
		}
		d.buffers <- j.data[:cap(j.data)]
	}
	return written, nil
}
