package cpu

import (
	"math"

	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// conv convolves the tokens of a sequence, each column by itself.
type conv struct{ ordinary }

// rowBefore returns c's input at position t of the step, for a sequence that begins at first: a row
// of the step, or of the state in, [past, d].
func (conv) rowBefore(e *executable, n *plan.Node, in []float32, t, first, past int) []float32 {
	if t >= first {
		return e.row(n.In[0], t)
	}
	d := int(e.p.Shapes[n.Out][1])
	return in[(t-first+past)*d:][:d]
}

// keep writes the state of row r's sequence, if r is its last row in the step.
func (c conv) keep(e *executable, n *plan.Node, r int) {
	s, past := e.seq[r], n.Weight.Cols()-1
	if r+1 != int(e.batch.Start[s+1]) {
		return
	}
	in, out := e.slots(n.State, s)
	d := len(out) / past
	for i := range past {
		copy(out[i*d:][:d], c.rowBefore(e, n, in, r-past+1+i, int(e.batch.Start[s]), past))
	}
}

func (c conv) kernels(e *executable, s *fuse.Stage) ([]kernel, error) {
	n := s.Node()
	w, bias, err := weightAndBias(n)
	if err != nil {
		return nil, err
	}
	d, width := n.Weight.Rows(), n.Weight.Cols()
	taps := make([][]float32, width) // [width][d]
	for i := range taps {
		taps[i] = make([]float32, d)
		for col := range d {
			taps[i][col] = w[col*width+i]
		}
	}
	return e.rows(n, 4, func(r int) {
		y, seq := e.row(n.Out, r), e.seq[r]
		if clear(y); bias != nil {
			copy(y, bias)
		}
		in, _ := e.slots(n.State, seq)
		for i, tap := range taps {
			x := c.rowBefore(e, n, in, r-width+1+i, int(e.batch.Start[seq]), width-1)
			e.tier.vector.center(y, x, tap, y, 0, 1) // y + x*tap
		}
		c.keep(e, n, r)
		e.wrote(n.Out, r, 0, d)
	}), nil
}

func (c conv) reference(e *executable, n *plan.Node) ([]kernel, error) {
	w, bias, err := weightAndBias(n)
	if err != nil {
		return nil, err
	}
	width := n.Weight.Cols()
	return []kernel{one(func() {
		for r := range e.size(n.Out) {
			in, _ := e.slots(n.State, e.seq[r])
			y := e.row(n.Out, r)
			for col := range y {
				var sum float64
				if bias != nil {
					sum = float64(bias[col])
				}
				for i, tap := range w[col*width:][:width] {
					sum += float64(tap) * float64(c.rowBefore(e, n, in, r-width+1+i, int(e.batch.Start[e.seq[r]]), width-1)[col])
				}
				y[col] = float32(sum)
			}
			c.keep(e, n, r)
			e.wrote(n.Out, r, 0, len(y))
		}
	})}, nil
}

// bound allows one rounding for each of the few products of a sum, plus the bounds of the step's
// own rows. The state's rows are exact: they are equal in both runs.
func (c conv) bound(e *executable, n *plan.Node) (func(r int), error) {
	w, bias, err := weightAndBias(n)
	if err != nil {
		return nil, err
	}
	width := n.Weight.Cols()
	return func(r int) {
		in, _ := e.slots(n.State, e.seq[r])
		first, to := int(e.batch.Start[e.seq[r]]), e.bound(n.Out, r)
		for col := range to {
			size, off := 0.0, 0.0
			if bias != nil {
				size = math.Abs(float64(bias[col]))
			}
			for i, tap := range w[col*width:][:width] {
				t := r - width + 1 + i
				size += math.Abs(float64(tap) * float64(c.rowBefore(e, n, in, t, first, width-1)[col]))
				if t >= first {
					off += math.Abs(float64(tap)) * at(e.bound(n.In[0], t), col)
				}
			}
			to[col] = float32(roundings*size + off)
		}
	}, nil
}

func (conv) moved(e *executable, n *plan.Node) int {
	return 2 * 4 * e.batch.Seqs() * e.p.States[n.State].Size
}
