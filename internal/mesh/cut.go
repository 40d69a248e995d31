package mesh

import (
	"fmt"
	"slices"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// even divides n columns into parts that are multiples of unit, except the last, and as equal as
// they can be. It returns nil if a part would be empty.
func even(n, unit, parts int) plan.Cut {
	units, c := (n+unit-1)/unit, plan.Cut{}
	if units < parts {
		return nil
	}
	for i := range parts {
		c = append(c, plan.Range{Lo: units * i / parts * unit, Hi: min(n, units*(i+1)/parts*unit)})
	}
	return c
}

// entire returns the cut that gives all of n columns to every part.
func entire(n, parts int) plan.Cut {
	c := make(plan.Cut, parts)
	for i := range c {
		c[i].Hi = n
	}
	return c
}

// scaled returns c with all numbers multiplied by the fraction by/of. ok is false if one of the
// results is no whole number.
func scaled(c plan.Cut, by, of int) (to plan.Cut, ok bool) {
	for _, r := range c {
		if r.Lo*by%of != 0 || r.Hi*by%of != 0 {
			return nil, false
		}
		to = append(to, plan.Range{Lo: r.Lo * by / of, Hi: r.Hi * by / of})
	}
	return to, true
}

// aligned reports whether c cuts at multiples of unit alone.
func aligned(c plan.Cut, unit int) bool {
	for _, r := range c {
		if r.Lo%unit != 0 || r.Hi%unit != 0 {
			return false
		}
	}
	return true
}

// attentionHeads divides query heads and the key/value heads that they read: whole groups of query
// heads if there are enough key/value heads, otherwise some query heads of one key/value head, which
// several parts then have. It returns nil if a part would have no heads.
func attentionHeads(heads, kv, parts int) (q, k plan.Cut) {
	group := heads / kv
	if kv >= parts {
		k = even(kv, 1, parts)
		q, _ = scaled(k, group, 1)
		return q, k
	}
	for i := range parts {
		h := i * kv / parts // the parts from first to end share this head
		first, end := (h*parts+kv-1)/kv, ((h+1)*parts+kv-1)/kv
		r := plan.Range{Lo: h*group + group*(i-first)/(end-first), Hi: h*group + group*(i-first+1)/(end-first)}
		if r.Len() == 0 {
			return nil, nil
		}
		q, k = append(q, r), append(k, plan.Range{Lo: h, Hi: h + 1})
	}
	return q, k
}

// A piece names a part of a weight.
type piece struct {
	of *tensor.Tensor
	plan.Range
}

// A columns is a source of some columns of a tensor, in whole blocks.
type columns struct{ piece }

// Parts implements [tensor.Source].
func (c columns) Parts() []*tensor.Tensor { return []*tensor.Tensor{c.of} }

// ReadRows implements [tensor.Source].
func (c columns) ReadRows(dst []byte, lo, hi int) error {
	row := make([]byte, c.of.RowBytes())
	block, size := c.of.DType.BlockLen(), c.of.DType.BlockBytes()
	from, n := c.Lo/block*size, c.Len()/block*size
	for r := lo; r < hi; r++ {
		if err := c.of.ReadRows(row, r, r+1); err != nil {
			return err
		}
		copy(dst[(r-lo)*n:(r-lo+1)*n], row[from:])
	}
	return nil
}

// take returns the rows of a matrix, or the elements of a vector, that p names. A weight of a program
// that is only described has no data, and then neither has the result.
func (p piece) take() *tensor.Tensor {
	part := &tensor.Tensor{Name: p.of.Name, DType: p.of.DType, Shape: slices.Clone(p.of.Shape)}
	part.Shape[0] = p.Len()
	if p.of.Source == nil && p.of.Data == nil {
		return part
	}
	if len(p.of.Shape) > 1 {
		return p.of.RowSlice(p.Lo, p.Hi)
	}
	if size := p.of.DType.BlockBytes(); p.of.Source == nil && p.of.DType.BlockLen() == 1 {
		part.Data = p.of.Data[p.Lo*size : p.Hi*size : p.Hi*size]
	} else {
		part.Source = columns{p}
	}
	return part
}

// divisible reports an error if the elements of a vector cannot be cut by c.
func divisible(w *tensor.Tensor, c plan.Cut) error {
	if w != nil && len(w.Shape) == 1 && !aligned(c, w.DType.BlockLen()) {
		return fmt.Errorf("mesh: %s: %v cannot be cut at %v: its format has blocks of %d", w.Name, w.DType, c, w.DType.BlockLen())
	}
	return nil
}
