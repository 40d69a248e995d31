package plan

import (
	"fmt"

	"github.com/realizar/realizar/tensor"
)

// RMSNorm computes x / sqrt(mean(x²) + eps) * w over groups of the last dimension (Zhang and
// Sennrich, "Root Mean Square Layer Normalization", 2019).
var RMSNorm = &Op{Name: "rmsnorm"}

// LayerNorm computes (x - mean(x)) / sqrt(var(x) + eps) * w + b over groups of the last dimension.
// b is optional, and the variance divides by the group's length (Ba, Kiros and Hinton, "Layer
// Normalization", 2016). w and b have the length of a group, or of the row if each group has its
// own weights.
var LayerNorm = &Op{Name: "layernorm"}

// NormAttr holds the parameters of [RMSNorm] and [LayerNorm].
type NormAttr struct {
	Group int     // elements normalized together; it divides the weight's length
	Eps   float64 // added to the mean of squares, or to the variance
}

func (a NormAttr) String() string { return fmt.Sprintf("{group %d, eps %.6g}", a.Group, a.Eps) }

// RMSNorm adds the normalization of groups of len(w) columns of x.
func (b *Builder) RMSNorm(x Value, w *tensor.Tensor, eps float64) Value {
	return b.norm(RMSNorm, x, w, nil, w.Elems(), eps)
}

// LayerNorm adds the normalization of groups of len(w) columns of x. bias is [len(w)] or nil.
func (b *Builder) LayerNorm(x Value, w, bias *tensor.Tensor, eps float64) Value {
	return b.norm(LayerNorm, x, w, bias, w.Elems(), eps)
}

// LayerNormHeads adds the normalization of heads of headDim columns of x. Each head has its own
// weights: w has the length of a row, bias too unless it is nil.
func (b *Builder) LayerNormHeads(x Value, w, bias *tensor.Tensor, headDim int, eps float64) Value {
	if w.Elems() != b.Cols(x) {
		b.Failf("%s: want %d elements, one for each column, has %d", w.Name, b.Cols(x), w.Elems())
	}
	return b.norm(LayerNorm, x, w, bias, headDim, eps)
}

func (b *Builder) norm(op *Op, x Value, w, bias *tensor.Tensor, g int, eps float64) Value {
	b.vector(w, w.Elems())
	if g <= 0 || b.Cols(x)%g != 0 {
		b.Failf("%s: normalizes groups of %d, which do not divide %d", w.Name, g, b.Cols(x))
	}
	if bias != nil {
		b.vector(bias, w.Elems())
	}
	return b.add(Node{Op: op, In: []Value{x}, Weight: w, Bias: bias, State: NoState, Attr: NormAttr{g, eps}}, b.Rows(x), Dim(b.Cols(x)))
}
