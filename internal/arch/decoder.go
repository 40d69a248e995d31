package arch

import (
	"fmt"
	"math"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// decoder is the frame that all decoders share: embed, layers, norm, head. A
// file without a head uses the embedding's table for it.
func decoder(b *plan.Builder, s *Spec, block func(*plan.Builder, *Spec, layer, plan.Value) plan.Value, w *weights) {
	top := layer{w, plan.NoLayer}
	x := b.Embed(top.weight("token_embd"))
	if b.Cols(x) != s.Hidden {
		b.Fail(fmt.Errorf("%w: the embedding is %d wide, the configuration says %d", ErrTensor, b.Cols(x), s.Hidden))
	}
	for i := range s.Layers {
		b.Layer(i)
		x = block(b, s, layer{w, i}, x)
	}
	b.Layer(plan.NoLayer)
	head := "output"
	if !top.has(head) {
		head = "token_embd"
	}
	x = norm(b, s, top, b.Pick(x), "output_norm", s.Hidden)
	b.Output(x, linear(b, top, x, head, top.weight("token_embd").Shape[0], without))
}

// prenorm is the layer that most decoders are: normalise, attend, add;
// normalise, feed forward, add.
func prenorm(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	x = b.Add(x, attention(b, s, w, norm(b, s, w, x, "attn_norm", s.Hidden)))
	return b.Add(x, swiglu(b, s, w, norm(b, s, w, x, "ffn_norm", s.Hidden)))
}

func attention(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	q, k, v := qkv(b, s, w, x)
	if s.QKNorm {
		q, k = norm(b, s, w, q, "attn_q_norm", s.HeadDim), norm(b, s, w, k, "attn_k_norm", s.HeadDim)
	}
	window := s.Windows[w.index]
	state := b.State(plan.State{
		Name: fmt.Sprintf("kv.%d", w.index), Kind: plan.PagedKV,
		KVHeads: s.KVHeads, HeadDim: s.HeadDim, Window: window,
	})
	a := plan.AttentionAttr{
		Heads: s.Heads, KVHeads: s.KVHeads, HeadDim: s.HeadDim, Window: window,
		Scale: 1 / math.Sqrt(float64(s.HeadDim)),
	}
	y := b.Attention(b.Rope(q, s.Rope), b.Rope(k, s.Rope), v, state, a)
	return linear(b, w, y, "attn_output", s.Hidden, s.OutBias)
}

// qkv is queries, keys and values, from one weight each or from one for all.
func qkv(b *plan.Builder, s *Spec, w layer, x plan.Value) (q, k, v plan.Value) {
	qRows, kvRows := s.Heads*s.HeadDim, s.KVHeads*s.HeadDim
	if !w.has("attn_qkv") {
		return linear(b, w, x, "attn_q", qRows, s.QKVBias), linear(b, w, x, "attn_k", kvRows, s.QKVBias), linear(b, w, x, "attn_v", kvRows, s.QKVBias)
	}
	parts := split(b, w, x, "attn_qkv", s.QKVBias, qRows, kvRows, kvRows)
	return parts[0], parts[1], parts[2]
}

// swiglu is the feed-forward layer of Shazeer (2020) with SiLU. Gate and up may
// be one weight, gate first: ffn_gate_up, or an ffn_up of double width.
func swiglu(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	var gate, up plan.Value
	switch {
	case w.has("ffn_gate"):
		gate, up = linear(b, w, x, "ffn_gate", s.FFN, s.MLPBias), linear(b, w, x, "ffn_up", s.FFN, s.MLPBias)
	case w.has("ffn_gate_up"):
		parts := split(b, w, x, "ffn_gate_up", s.MLPBias, s.FFN, s.FFN)
		gate, up = parts[0], parts[1]
	default:
		parts := split(b, w, x, "ffn_up", s.MLPBias, s.FFN, s.FFN)
		gate, up = parts[0], parts[1]
	}
	return linear(b, w, b.GLU(gate, up, plan.SiLU), "ffn_down", s.Hidden, s.MLPBias)
}

// norm is an RMSNorm over groups of size, which its weight must have.
func norm(b *plan.Builder, s *Spec, w layer, x plan.Value, short string, size int) plan.Value {
	weight := w.weight(short)
	if len(weight.Shape) != 1 || weight.Shape[0] != size {
		b.Fail(fmt.Errorf("%w: %s has shape %v, want [%d]", ErrTensor, weight.Name, weight.Shape, size))
	}
	return b.RMSNorm(x, weight, s.Eps)
}

// linear is a projection to rows values with the bias that the file has.
func linear(b *plan.Builder, w layer, x plan.Value, short string, rows int, biased bias) plan.Value {
	weight := w.weight(short)
	if len(weight.Shape) != 2 || weight.Shape[0] != rows {
		b.Fail(fmt.Errorf("%w: %s has shape %v, want %d rows by the configuration", ErrTensor, weight.Name, weight.Shape, rows))
	}
	return b.Linear(x, weight, w.bias(short, biased))
}

// split is the projections that lie one after the other in the rows of a
// weight.
func split(b *plan.Builder, w layer, x plan.Value, short string, biased bias, rows ...int) []plan.Value {
	weight, bias := w.weight(short), w.bias(short, biased)
	total := 0
	for _, n := range rows {
		total += n
	}
	if len(weight.Shape) != 2 || weight.Shape[0] != total {
		b.Fail(fmt.Errorf("%w: %s has shape %v, want %d rows for parts of %v", ErrTensor, weight.Name, weight.Shape, total, rows))
	}
	if bias != nil && (len(bias.Shape) != 1 || bias.Shape[0] != total || bias.DType.Quantized() || bias.Source != nil) {
		b.Fail(fmt.Errorf("%w: %s is %v of shape %v, want plain numbers of shape [%d]", ErrTensor, bias.Name, bias.DType, bias.Shape, total))
	}
	var parts []plan.Value
	at := 0
	for _, n := range rows {
		part := weight.RowSlice(at, at+n)
		part.Name = fmt.Sprintf("%s[%d:%d]", weight.Name, at, at+n)
		var partBias *tensor.Tensor
		if bias != nil {
			partBias = vectorSlice(bias, at, at+n)
		}
		parts = append(parts, b.Linear(x, part, partBias))
		at += n
	}
	return parts
}

// vectorSlice is a view of elements lo to hi of a vector of plain numbers.
func vectorSlice(t *tensor.Tensor, lo, hi int) *tensor.Tensor {
	size := t.DType.BlockBytes()
	return &tensor.Tensor{Name: fmt.Sprintf("%s[%d:%d]", t.Name, lo, hi), DType: t.DType, Shape: []int{hi - lo}, Data: t.Data[lo*size : hi*size]}
}
