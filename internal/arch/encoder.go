package arch

import (
	"fmt"
	"math"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// An encoding holds the numbers that only encoders have: models in which each token attends to the
// whole text, and which generate none.
type encoding struct {
	firstPosition int // row of the position table for the first token

	// The head that classifies texts.
	classifies bool            // there must be one
	mean       bool            // it reads the mean of all tokens instead of the first
	act        plan.Activation // after the head's first product
	bias       bias            // of the first product
}

// classifying returns adapt for the model class with a classification head.
func classifying(adapt func(*config, *Spec)) func(*config, *Spec) {
	return func(c *config, s *Spec) {
		adapt(c, s)
		s.Encoder.classifies = true
	}
}

// encoderLayers applies block for all layers.
func encoderLayers(b *plan.Builder, s *Spec, w *weights, block block, x plan.Value) plan.Value {
	for i := range s.Layers {
		b.Layer(i)
		x = block(b, s.at(i), layer{w, i}, x)
	}
	b.Layer(plan.NoLayer)
	return x
}

// bidirectional attends to the whole text, or in layers with a window to the tokens within it on
// either side.
func bidirectional(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	q, k, v := qkv(b, s, w, x)
	a := plan.AttentionAttr{
		Heads: s.Heads, KVHeads: s.KVHeads, HeadDim: s.HeadDim, Window: s.Windows[w.index],
		Scale: 1 / math.Sqrt(float64(s.HeadDim)),
	}
	y := b.Bidirectional(heads(b, s, w, q, ""), heads(b, s, w, k, ""), v, a)
	return linear(b, w, y, "attn_output", s.Hidden, s.OutBias)
}

// embedded returns the tokens' embeddings.
func embedded(b *plan.Builder, s *Spec, top layer) plan.Value {
	x := b.Embed(top.weight("token_embd"))
	if b.Cols(x) != s.Hidden {
		b.Fail(fmt.Errorf("%w: the embedding is %d wide, the configuration says %d", ErrTensor, b.Cols(x), s.Hidden))
	}
	return x
}

// encoded ends the program with the states x of all tokens and, if there is one, the classification
// head.
func encoded(b *plan.Builder, s *Spec, top layer, x plan.Value) {
	e := &s.Encoder
	if !e.classifies && (top.hub || !top.has("cls.output")) {
		x = b.Pick(x)
		b.Output(x, x)
		return
	}
	if e.mean {
		x = b.PickMean(x)
	} else {
		x = b.Pick(x)
	}
	y := x
	if top.hub || top.has("cls") { // llama.cpp omits the first product for BERT
		y = b.Activate(linear(b, top, y, "cls", s.Hidden, e.bias), e.act)
	}
	if top.has("cls.norm") {
		y = norm(b, s, top, y, "cls.norm", s.Hidden)
	}
	s.Labels = top.weight("cls.output").Rows()
	b.Output(x, linear(b, top, y, "cls.output", s.Labels, asFound))
}

// rowsFrom returns a view of a table without its first rows.
func rowsFrom(b *plan.Builder, t *tensor.Tensor, first int) *tensor.Tensor {
	if first == 0 {
		return t
	}
	if len(t.Shape) != 2 || t.Rows() <= first {
		b.Fail(fmt.Errorf("%w: %s has shape %v, want more than %d rows", ErrTensor, t.Name, t.Shape, first))
	}
	part := t.RowSlice(first, t.Rows())
	part.Name = fmt.Sprintf("%s[%d:%d]", t.Name, first, t.Rows())
	return part
}
