package cuda

import (
	"unsafe"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/lower"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/sample"
)

// leastAdjustments is the smallest room for adjustments in a step's host memory, unless there are
// none.
const leastAdjustments = 4096

// adjustmentsOf returns the number of adjustments for the sampling of row i. If takesLast is true,
// the last of them is for the row's own token, which the previous step sampled and the host does
// not know yet.
func adjustmentsOf(b *plan.Batch, i int) (n int, takesLast bool) {
	row := &b.Rows[i]
	if row.Want&plan.WantToken == 0 {
		return 0, false
	}
	n, takesLast = len(row.Adjustments), row.Sampling.Penalizes() && b.From != nil && b.From[row.Token] >= 0
	if takesLast {
		n++
	}
	return n, takesLast
}

// samplingOf returns the shape of a step's sampling.
func samplingOf(b *plan.Batch) lower.SamplingShape {
	s := lower.SamplingShape{Rows: lower.Power(len(b.Rows))}
	for i := range b.Rows {
		n, _ := adjustmentsOf(b, i)
		p := &b.Rows[i].Sampling
		s.Adjusted = s.Adjusted || n > 0 || p.Temperature > 0 && p.Typical > 0 && p.Typical < 1
	}
	return s
}

// growAdjustments allocates host memory for the step's adjustments.
func (s *step) growAdjustments() error {
	n := 0
	for i := range s.Batch.Rows {
		of, _ := adjustmentsOf(s.Batch, i)
		n += of
	}
	if n == 0 {
		return nil
	}
	return s.grow(&s.lists, lower.AdjustmentBytes*max(leastAdjustments, lower.Power(n)))
}

// fillAdjustments writes the adjustments of row i of a batch, and their address to r.
func (e *executable) fillAdjustments(s *step, b *plan.Batch, i int, r *lower.RowParams) {
	if r.Repetition == 0 {
		r.Repetition = 1
	}
	r.Last = -1
	n, takesLast := adjustmentsOf(b, i)
	if n == 0 {
		return
	}
	row := &b.Rows[i]
	list := device.Words[sample.Adjustment](s.lists)[s.adjusted:][:n]
	copy(list, row.Adjustments)
	r.Adjusted = int32(len(row.Adjustments))
	if takesLast {
		list[n-1], r.Last = sample.Adjustment{Token: -1}, row.Token
	}
	if s.adjusted += n; s.adjusted <= lower.RoomyAdjustments {
		r.Adjustments = e.scratchAt + driver.DevicePtr(e.room.Adjustments+lower.AdjustmentBytes*(s.adjusted-n))
		s.roomy = s.adjusted
	} else {
		r.Adjustments = driver.DevicePtr(uintptr(unsafe.Pointer(unsafe.SliceData(list))))
	}
}

// copyAdjustments queues the copy of the adjustments that fit in device memory.
func (s *step) copyAdjustments() error {
	return s.e.stream.CopyToDevice(s.e.scratchAt+driver.DevicePtr(s.e.room.Adjustments), s.lists[:lower.AdjustmentBytes*s.roomy])
}
