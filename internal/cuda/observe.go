package cuda

import (
	"slices"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/lower"
)

// observe passes the values that a stage has written to the batch's observer, if it has one and l
// is the stage's last launch. It waits for the stream, on the backend's main thread. The output of
// a norm that is fused into the products is not stored anywhere.
func (s *step) observe(l *lower.Launch) error {
	if s.Batch.Observe == nil || !l.Last {
		return nil
	}
	e, c := s.e, s.e.b.Main
	defer c.Doing(c.Doing("observing a step"))
	for _, v := range l.Stage.IO().Out {
		dim := e.p.Shapes[v][0]
		rows := s.Batch.Size(dim)
		if rows == 0 || e.layout.Normed[v] != nil && s.sh.Size(dim) == 1 {
			continue
		}
		if err := e.stream.Synchronize(); err != nil {
			return err
		}
		f := e.layout.Forms(e.scratchAt, v)
		cols, stride := int(f.Cols), int(f.Stride)
		elems := (rows-1)*stride + cols
		e.seen = slices.Grow(e.seen[:0], 4*elems)[:4*elems]
		if err := c.CopyToHost(e.seen, f.F32); err != nil {
			return err
		}
		x := device.Words[float32](e.seen)
		for r := range rows {
			copy(x[r*cols:][:cols], x[r*stride:])
		}
		s.Batch.Observe(v, x[:rows*cols:rows*cols])
	}
	return nil
}
