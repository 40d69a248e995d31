package arch

import (
	"cmp"
	"fmt"

	"github.com/realizar/realizar/tensor"
)

// A layout converts a checkpoint's tensor to the layout that formulas use. It moves nothing before
// a backend reads rows.
type layout func(s *Spec, t *tensor.Tensor) (*tensor.Tensor, error)

// transposed converts weights that are stored as [in, out]. Biases stay as they are.
func transposed(_ *Spec, t *tensor.Tensor) (*tensor.Tensor, error) {
	if len(t.Shape) != 2 {
		return t, nil
	}
	if t.DType.BlockLen() != 1 || t.Source != nil {
		return nil, fmt.Errorf("%w: %s is stored transposed, which is supported for unquantized numbers, not for %v", ErrTensor, t.Name, t.DType)
	}
	rows, cols := t.Shape[1], t.Shape[0]
	return &tensor.Tensor{Name: t.Name, DType: t.DType, Shape: []int{rows, cols}, Source: &strided{of: t, byRow: 1, byCol: rows, cols: cols}}, nil
}

// squeezed removes the middle dimension of a depthwise convolution, [d, 1, taps].
func squeezed(_ *Spec, t *tensor.Tensor) (*tensor.Tensor, error) {
	if len(t.Shape) == 1 {
		return t, nil // its bias
	}
	if len(t.Shape) != 3 || t.Shape[1] != 1 {
		return nil, fmt.Errorf("%w: %s has shape %v, want [channels 1 taps]", ErrTensor, t.Name, t.Shape)
	}
	flat := *t
	flat.Shape = []int{t.Shape[0], t.Shape[2]}
	return &flat, nil
}

// asVector converts a vector that is stored as a matrix of one row.
func asVector(_ *Spec, t *tensor.Tensor) (*tensor.Tensor, error) { return flat(t), nil }

// grouped converts a fused weight or bias of queries, keys and values that is stored by key/value
// head: the query heads that share it, the key head, the value head. The result has all queries,
// then all keys, then all values.
func grouped(s *Spec, t *tensor.Tensor) (*tensor.Tensor, error) {
	if rows := (s.Heads + 2*s.KVHeads) * s.HeadDim; len(t.Shape) == 0 || len(t.Shape) > 2 || t.Shape[0] != rows {
		return nil, fmt.Errorf("%w: %s has shape %v, want %d rows by the configuration", ErrTensor, t.Name, t.Shape, rows)
	}
	shared := s.Heads / s.KVHeads
	blocks := make([]int, 0, s.KVHeads*(shared+2))
	for i := range s.Heads {
		blocks = append(blocks, i/shared*(shared+2)+i%shared)
	}
	for part := range 2 {
		for g := range s.KVHeads {
			blocks = append(blocks, g*(shared+2)+shared+part)
		}
	}
	return reordered(t, blocks, s.HeadDim)
}

// sharded converts a fused weight of queries, keys and values that is stored as shards for as many
// devices as the model has key/value heads, where layers may have a multiple of them: the queries, the
// keys and the values of the first shard, those of the second. The result is like that of [grouped].
func sharded(s *Spec, t *tensor.Tensor) (*tensor.Tensor, error) {
	shards, value := s.KVHeads, cmp.Or(s.ValueDim, s.HeadDim)
	queries := s.Heads / shards * s.HeadDim
	rows := 0
	if len(t.Shape) == 2 {
		rows = t.Shape[0] / shards
	}
	heads := (rows - queries) / (s.HeadDim + value) // for keys and values
	if heads < 1 || t.Shape[0] != shards*(queries+heads*(s.HeadDim+value)) {
		return nil, fmt.Errorf("%w: %s has shape %v, want %d shards of %d rows for queries and %d for each key/value head", ErrTensor, t.Name, t.Shape, shards, queries, s.HeadDim+value)
	}
	size := s.HeadDim // and then what divides it and value
	for rest := value; rest > 0; {
		size, rest = rest, size%rest
	}
	var blocks []int
	from := 0
	for _, part := range []int{queries, heads * s.HeadDim, heads * value} {
		for shard := range shards {
			for at := 0; at < part; at += size {
				blocks = append(blocks, (shard*rows+from+at)/size)
			}
		}
		from += part
	}
	return reordered(t, blocks, size)
}

// reordered returns a matrix or a vector with its blocks of size rows, or elements, in that order.
func reordered(t *tensor.Tensor, blocks []int, size int) (*tensor.Tensor, error) {
	if len(t.Shape) == 2 {
		return &tensor.Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape, Source: moved{t, blocks, size}}, nil
	}
	if t.DType.BlockLen() != 1 || t.Source != nil {
		return nil, fmt.Errorf("%w: %s is %v, want unquantized numbers", ErrTensor, t.Name, t.DType)
	}
	v := &tensor.Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape, Data: make([]byte, 0, len(t.Data))}
	bytes := size * t.DType.BlockBytes()
	for _, b := range blocks {
		v.Data = append(v.Data, t.Data[b*bytes:][:bytes]...)
	}
	return v, nil
}

// moved is a source of the rows of a matrix in another order: block i of size rows is block
// blocks[i] of the matrix.
type moved struct {
	of     *tensor.Tensor
	blocks []int
	size   int
}

// Parts implements [tensor.Source].
func (m moved) Parts() []*tensor.Tensor { return []*tensor.Tensor{m.of} }

// ReadRows implements [tensor.Source]. It reads the part of each block between lo and hi.
func (m moved) ReadRows(dst []byte, lo, hi int) error {
	rest, bytes := dst, m.of.RowBytes()
	for lo < hi {
		n := min(hi-lo, m.size-lo%m.size)
		from := m.blocks[lo/m.size]*m.size + lo%m.size
		if err := m.of.ReadRows(rest[:n*bytes], from, from+n); err != nil {
			return err
		}
		rest, lo = rest[n*bytes:], lo+n
	}
	return finite(m.of, dst)
}

// finite checks rows made from t. The error says where in t the first number is that is not finite.
// Rows of a source are not checked again.
func finite(t *tensor.Tensor, rows []byte) error {
	if t.Source != nil {
		return nil
	}
	err := tensor.CheckFinite(t.DType, rows)
	if err == nil {
		return nil
	}
	if first := tensor.CheckFinite(t.DType, t.Data); first != nil {
		return first
	}
	return err
}
