package cuda

import (
	"unsafe"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/sample"
)

// adjustmentBytes are those of one adjustment, which lies on the device as in Go.
const adjustmentBytes = int(unsafe.Sizeof(sample.Adjustment{}))

// leastAdjustments is for how many of them there is room once there are any.
const leastAdjustments = 4096

// adjustmentsOf is how many adjustments the sampling of row i is given. Where takesLast,
// the last of them is for the row's own token, which the step before chose: nobody has
// read yet which one it is.
func adjustmentsOf(b *plan.Batch, i int) (n int, takesLast bool) {
	row := &b.Rows[i]
	if row.Want&plan.WantToken == 0 {
		return 0, false
	}
	p := &row.Sampling
	penalties := p.Repetition != 0 && p.Repetition != 1 || p.Frequency != 0 || p.Presence != 0
	n, takesLast = len(row.Adjustments), penalties && b.From != nil && b.From[row.Token] >= 0
	if takesLast {
		n++
	}
	return n, takesLast
}

// samplingOf is the shape of a step's sampling.
func samplingOf(b *plan.Batch) samplingShape {
	s := samplingShape{rows: power(len(b.Rows))}
	for i := range b.Rows {
		n, _ := adjustmentsOf(b, i)
		p := &b.Rows[i].Sampling
		s.adjusted = s.adjusted || n > 0 || p.Temperature > 0 && p.Typical > 0 && p.Typical < 1
	}
	return s
}

// growAdjustments makes room for the step's adjustments. Where the device's must grow,
// the graphs that name it are captured again.
func (s *step) growAdjustments() error {
	e, n := s.e, 0
	for i := range s.batch.Rows {
		of, _ := adjustmentsOf(s.batch, i)
		n += of
	}
	if n == 0 {
		return nil
	}
	if n > e.adjustmentRoom {
		if err := e.stream.Synchronize(); err != nil {
			return err
		}
		if err := e.b.main.Free(e.adjustments); err != nil {
			return err
		}
		e.adjustments, e.adjustmentRoom, e.stale = 0, 0, true
		room := power(max(n, leastAdjustments))
		var err error
		if e.adjustments, err = e.alloc(adjustmentBytes*room, "adjustments of logits"); err != nil {
			return err
		}
		e.adjustmentRoom = room
	}
	return s.grow(&s.lists, adjustmentBytes*e.adjustmentRoom)
}

// fillAdjustments writes the adjustments of row i of a batch, and where they are to r.
func (e *executable) fillAdjustments(s *step, b *plan.Batch, i int, r *rowParams) {
	if r.repetition == 0 {
		r.repetition = 1
	}
	r.adjustments, r.last = -1, -1
	n, takesLast := adjustmentsOf(b, i)
	if n == 0 {
		return
	}
	row := &b.Rows[i]
	list := words[sample.Adjustment](s.lists)[s.adjusted:][:n]
	copy(list, row.Adjustments)
	r.adjustments, r.adjusted = int32(s.adjusted), int32(len(row.Adjustments))
	if takesLast {
		list[n-1], r.last = sample.Adjustment{Token: -1}, row.Token
	}
	s.adjusted += n
}

// copyAdjustments gives the stream the adjustments that fillAdjustments wrote.
func (s *step) copyAdjustments() error {
	return s.e.stream.CopyToDevice(s.e.adjustments, s.lists[:adjustmentBytes*s.adjusted])
}
