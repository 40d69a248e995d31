package synth

import (
	"context"
	"io"
	"sync"

	"github.com/realizar/realizar/internal/random"
)

const (
	chunkBytes = 256 << 10 // about; a chunk is whole blocks
	maxWorkers = 16        // make more than any disk takes
)

// A chunk is a part of one tensor's data, made by some worker.
type chunk struct {
	filler *random.Filler
	first  int // block of the tensor
	data   []byte
	made   chan struct{} // closed when the data is there
}

// chunks are the parts of all random tensors in the order of the file, as many at a
// time as there are buffers.
type chunks struct {
	ctx     context.Context
	order   chan *chunk
	buffers chan []byte // those that nobody uses
}

// fill lets workers make the data of all random tensors, until all is there or stop
// is called, which waits for them.
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

// assign cuts a tensor into chunks for workers, and reports whether to go on. A
// chunk has its buffer before the next one: were it the workers who took them, later
// chunks could hold all while the first waits.
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
		c.order <- j // there is room for as many as there are buffers
		select {
		case jobs <- j:
		case <-c.ctx.Done():
			return false
		}
	}
	return true
}

// tensorData is the data of the next tensor of the file, in so many bytes.
type tensorData struct {
	*chunks
	bytes int
}

// WriteTo writes the tensor's chunks as they are made.
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
