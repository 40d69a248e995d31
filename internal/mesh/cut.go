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

// A piece names a part of a weight: rows of a matrix or elements of a vector, or if columns is set,
// columns of a matrix.
type piece struct {
	of *tensor.Tensor
	plan.Range
	columns bool
}

// take returns what p names. A weight of a program that is only described has no data, and then
// neither has the result.
func (p piece) take() *tensor.Tensor {
	t := p.of
	switch size := t.DType.BlockBytes(); {
	case t.Source == nil && t.Data == nil:
		part := &tensor.Tensor{Name: t.Name, DType: t.DType, Shape: slices.Clone(t.Shape)}
		if p.columns {
			part.Shape[1] = p.Len()
		} else {
			part.Shape[0] = p.Len()
		}
		return part
	case p.columns:
		return t.ColumnSlice(p.Lo, p.Hi)
	case len(t.Shape) > 1:
		return t.RowSlice(p.Lo, p.Hi)
	case t.Source == nil && t.DType.BlockLen() == 1:
		return &tensor.Tensor{Name: t.Name, DType: t.DType, Shape: []int{p.Len()}, Data: t.Data[p.Lo*size : p.Hi*size : p.Hi*size]}
	}
	return t.ColumnSlice(p.Lo, p.Hi)
}

// divisible reports an error if the elements of a vector cannot be cut by c.
func divisible(w *tensor.Tensor, c plan.Cut) error {
	if w != nil && len(w.Shape) == 1 && !aligned(c, w.DType.BlockLen()) {
		return fmt.Errorf("mesh: %s: %v cannot be cut at %v: its format has blocks of %d", w.Name, w.DType, c, w.DType.BlockLen())
	}
	return nil
}
