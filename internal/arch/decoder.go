package arch

import (
	"cmp"
	"fmt"
	"math"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// A block is the formula of a layer: it returns the residual stream after the layer.
type block func(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value

// decoder builds the part that all decoders share: embedding, layers, norm, head. If the file has
// no head, the embedding's table is used.
func decoder(b *plan.Builder, s *Spec, block block, w *weights) {
	top := layer{w, noLayer}
	x := b.Scale(b.Embed(top.weight("token_embd")), s.EmbeddingScale)
	if b.Cols(x) != s.Hidden {
		b.Fail(fmt.Errorf("%w: the embedding is %d wide, the configuration says %d", ErrTensor, b.Cols(x), s.Hidden))
	}
	if s.Learned { // Gehring et al., "Convolutional Sequence to Sequence Learning", 2017
		table := top.weight("position_embd")
		if len(table.Shape) != 2 || table.Shape[0] < s.Context {
			b.Fail(fmt.Errorf("%w: %s has shape %v, want rows for the %d positions of the configuration", ErrTensor, table.Name, table.Shape, s.Context))
		}
		x = b.Add(x, b.Position(table, 0))
	}
	w.embedded = x
	w.residuals = append(w.residuals, x)
	for i := range s.Layers {
		b.Layer(i)
		x = block(b, s.at(i), layer{w, i}, x)
		w.residuals = append(w.residuals, x)
	}
	b.Layer(plan.NoLayer)
	picked := norm(b, s, top, b.Pick(x), "output_norm", s.Hidden)
	b.Output(picked, outputLogits(b, s, top, picked))
	if w.predictor != nil {
		predict(b, s, w, w.predictor, x)
	}
}

// outputLogits returns the logits of the model's head for x.
func outputLogits(b *plan.Builder, s *Spec, top layer, x plan.Value) plan.Value {
	head := "output"
	if !top.has(head) {
		head = "token_embd"
	}
	weight := top.matrix(head, top.weight("token_embd").Shape[0])
	if s.NormHead {
		x = b.MulBy(x, normedColumns(weight))
	}
	return scaled(b, s, b.Linear(x, weight, top.bias("output", s.HeadBias)))
}

// scaled multiplies and caps logits.
func scaled(b *plan.Builder, s *Spec, logits plan.Value) plan.Value {
	return b.Softcap(b.Scale(logits, s.LogitScale), s.LogitCap)
}

// prenorm is the layer of most decoders: normalize, attend, add; normalize, feed forward, add.
func prenorm(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	x = b.Add(x, b.Scale(attention(b, s, w, norm(b, s, w, x, "attn_norm", s.Hidden)), s.ResidualScale))
	return b.Add(x, b.Scale(feedForward(b, s, w, norm(b, s, w, x, "ffn_norm", s.Hidden)), s.ResidualScale))
}

// postnorm normalizes the outputs of attention and the feed-forward layer instead of their inputs.
func postnorm(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	x = b.Add(x, norm(b, s, w, attention(b, s, w, x), "post_attention_norm", s.Hidden))
	return b.Add(x, norm(b, s, w, feedForward(b, s, w, x), "post_ffw_norm", s.Hidden))
}

// sandwich normalizes inputs and outputs.
func sandwich(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	y := attention(b, s, w, norm(b, s, w, x, "attn_norm", s.Hidden))
	x = b.Add(x, norm(b, s, w, y, "post_attention_norm", s.Hidden))
	y = feedForward(b, s, w, norm(b, s, w, x, "ffn_norm", s.Hidden))
	return b.Add(x, norm(b, s, w, y, "post_ffw_norm", s.Hidden))
}

// parallel applies attention and the feed-forward layer to the same normalized stream (Wang and
// Komatsuzaki, "GPT-J-6B", 2021).
func parallel(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	h := norm(b, s, w, x, "attn_norm", s.Hidden)
	return b.Add(b.Add(x, attention(b, s, w, h)), feedForward(b, s, w, h))
}

// parallelNorms is parallel with one norm for attention and another for the feed-forward layer, by
// their names.
func parallelNorms(b *plan.Builder, s *Spec, w layer, x plan.Value, attn, ffn string) plan.Value {
	y := attention(b, s, w, norm(b, s, w, x, attn, s.Hidden))
	return b.Add(b.Add(x, y), feedForward(b, s, w, norm(b, s, w, x, ffn, s.Hidden)))
}

// attention is a layer's attention: latent, to the keys and values of an earlier layer, or to those
// of its own.
func attention(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	if s.Latent != nil {
		return latentAttention(b, s, w, x, fmt.Sprintf("kv.%d", w.index))
	}
	var y plan.Value
	if from := s.kvLayer(w.index); from != w.index {
		q := heads(b, s, w, queries(b, s, w, x), "attn_q_norm")
		y = attendedTo(b, s, w, tempered(b, s, w, q), from)
	} else {
		q, k, v := qkv(b, s, w, x)
		q, k, v = heads(b, s, w, q, "attn_q_norm"), heads(b, s, w, k, "attn_k_norm"), b.Clamp(v, s.QKVBound)
		y = attended(b, s, w, tempered(b, s, w, q), k, v)
	}
	return output(b, s, w, gatedOut(b, s, w, x, y))
}

// output projects the result of attention.
func output(b *plan.Builder, s *Spec, w layer, y plan.Value) plan.Value {
	return linear(b, w, y, "attn_output", s.Hidden, s.OutBias)
}

// attended stores keys and values in a state of the layer and attends to it.
func attended(b *plan.Builder, s *Spec, w layer, q, k, v plan.Value) plan.Value {
	a := s.attention(w.index)
	w.states[w.index] = b.State(plan.State{
		Name: fmt.Sprintf("kv.%d", w.index), Kind: plan.PerToken,
		KVHeads: a.KVHeads, HeadDim: a.HeadDim, ValueDim: a.Values(), Window: a.Window, Chunk: a.Chunk,
	})
	return b.Attention(q, k, v, w.sinks(s), w.states[w.index], a)
}

// attendedTo attends to the keys and values of an earlier layer.
func attendedTo(b *plan.Builder, s *Spec, w layer, q plan.Value, from int) plan.Value {
	return b.AttentionTo(q, w.sinks(s), w.states[from], s.attention(w.index))
}

// attention returns the parameters of layer i's attention.
func (s *Spec) attention(i int) plan.AttentionAttr {
	a := plan.AttentionAttr{
		Heads: s.Heads, KVHeads: s.KVHeads, HeadDim: s.HeadDim, Window: s.Windows[i],
		Scale: s.AttentionScale, Softcap: s.AttentionCap, First: s.Unseen,
	}
	if s.ValueDim != s.HeadDim {
		a.ValueDim = s.ValueDim
	}
	if s.Chunks != nil {
		a.Chunk = s.Chunks[i]
	}
	if a.Scale == 0 {
		a.Scale = 1 / math.Sqrt(float64(s.HeadDim))
	}
	return a
}

// kvLayer returns the layer whose keys and values layer i attends to: i, unless layers share them.
func (s *Spec) kvLayer(i int) int {
	if s.KVFrom == nil {
		return i
	}
	return s.KVFrom[i]
}

// sinks returns the layer's sinks, or nil.
func (l layer) sinks(s *Spec) *tensor.Tensor {
	if s.Sinks || s.SinksFound && l.has("attn_sinks") {
		return l.weight("attn_sinks")
	}
	return nil
}

// gatedOut multiplies y, the result of attention for x, with its gate.
func gatedOut(b *plan.Builder, s *Spec, w layer, x, y plan.Value) plan.Value {
	const short = "attn_gate"
	switch s.OutGate {
	case queryGate:
		weight, bias := w.partOfHeads("attn_q", s.QKVBias, 1, s.Heads, s.HeadDim, s.HeadDim)
		return b.GLU(b.Linear(x, weight, bias), y, plan.GLUAttr{Act: plan.Sigmoid})
	case sigmoidGate, softplusGate:
		rows := b.Cols(y)
		if g := w.weight(short); g.Rows() == s.Heads {
			rows = s.Heads
		}
		gate := linear(b, w, x, short, rows, without)
		if s.OutGate == sigmoidGate {
			return b.GLU(gate, y, plan.GLUAttr{Act: plan.Sigmoid})
		}
		// A softplus is positive, so ReLU leaves it as it is.
		return b.GLU(b.Softplus(gate), y, plan.GLUAttr{Act: plan.ReLU})
	}
	return y
}

// heads normalizes and rotates queries or keys.
func heads(b *plan.Builder, s *Spec, w layer, x plan.Value, short string) plan.Value {
	turn := func(x plan.Value) plan.Value {
		x = b.Clamp(x, s.QKVBound)
		if r := s.ropeOf(w.index); r != nil {
			return b.Rope(x, *r)
		}
		return x
	}
	switch s.QKNorm {
	case qkFound:
		if !w.has(short) {
			return turn(x)
		}
		fallthrough
	case qkHeads:
		return turn(norm(b, s, w, x, short, s.HeadDim))
	case qkWidth:
		return turn(norm(b, s, w, x, short, b.Cols(x)))
	case qkTurned:
		return norm(b, s, w, turn(x), short, s.HeadDim)
	case qkEach:
		return turn(b.LayerNormHeads(x, w.eachHead(short, b.Cols(x)/s.HeadDim, s.HeadDim), nil, s.HeadDim, s.Eps))
	case qkEachTurned:
		return b.LayerNormHeads(turn(x), w.eachHead(short, b.Cols(x)/s.HeadDim, s.HeadDim), nil, s.HeadDim, s.Eps)
	}
	return turn(x)
}

// qkv returns queries, keys and values, from one weight each or from a fused weight.
func qkv(b *plan.Builder, s *Spec, w layer, x plan.Value) (q, k, v plan.Value) {
	qRows, kRows, vRows := s.Heads*s.HeadDim, s.KVHeads*s.HeadDim, s.KVHeads*cmp.Or(s.ValueDim, s.HeadDim)
	if !w.has("attn_qkv") {
		return queries(b, s, w, x), linear(b, w, x, "attn_k", kRows, s.QKVBias), linear(b, w, x, "attn_v", vRows, s.QKVBias)
	}
	parts := split(b, w, x, "attn_qkv", s.QKVBias, qRows, kRows, vRows)
	return parts[0], parts[1], parts[2]
}

// queries returns the queries of a weight of their own.
func queries(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	if s.OutGate != queryGate {
		return linear(b, w, x, "attn_q", s.Heads*s.HeadDim, s.QKVBias)
	}
	weight, bias := w.partOfHeads("attn_q", s.QKVBias, 0, s.Heads, s.HeadDim, s.HeadDim)
	return b.Linear(x, weight, bias)
}

// feedForward returns a layer's mixture of experts, if it has one, or its feed-forward layer.
func feedForward(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	switch {
	case s.Experts > 0:
		return experts(b, s, w, x)
	case s.Ungated:
		return ungated(b, s, w, x)
	}
	return glu(b, s, w, x, "", s.FFN)
}

// glu is the gated feed-forward layer of Shazeer (2020). Gate and up may be fused in one weight,
// gate first: ffn_gate_up, or an ffn_up of double width.
func glu(b *plan.Builder, s *Spec, w layer, x plan.Value, suffix string, width int) plan.Value {
	var gate, up plan.Value
	switch {
	case w.has("ffn_gate" + suffix):
		gate, up = linear(b, w, x, "ffn_gate"+suffix, width, s.MLPBias), linear(b, w, x, "ffn_up"+suffix, width, s.MLPBias)
	case w.has("ffn_gate_up" + suffix):
		parts := split(b, w, x, "ffn_gate_up"+suffix, s.MLPBias, width, width)
		gate, up = parts[0], parts[1]
	default:
		parts := split(b, w, x, "ffn_up"+suffix, s.MLPBias, width, width)
		gate, up = parts[0], parts[1]
	}
	return linear(b, w, b.GLU(gate, up, plan.GLUAttr{Act: s.Act, Limit: s.Limit, Late: s.Limit > 0}), "ffn_down"+suffix, s.Hidden, s.MLPBias)
}

// ungated is the feed-forward layer without a gate.
func ungated(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	h := linear(b, w, x, "ffn_up", s.FFN, s.MLPBias)
	if s.XIELU {
		h = b.XIELU(h, w.curve(s))
	} else {
		h = b.Activate(h, s.Act)
	}
	return linear(b, w, h, "ffn_down", s.Hidden, s.MLPBias)
}

// norm applies the model's kind of norm to groups of size columns. The weight must have that
// length.
func norm(b *plan.Builder, s *Spec, w layer, x plan.Value, short string, size int) plan.Value {
	weight := w.weight(short)
	if len(weight.Shape) != 1 || weight.Shape[0] != size {
		b.Fail(fmt.Errorf("%w: %s has shape %v, want [%d]", ErrTensor, weight.Name, weight.Shape, size))
	}
	weight = w.plus(weight, s.NormPlus)
	if s.Norm == plan.LayerNorm {
		return b.LayerNorm(x, weight, w.bias(short, s.NormBias), s.Eps)
	}
	return b.RMSNorm(x, weight, s.Eps)
}

// linear is a projection to rows columns, with a bias if the file has one.
func linear(b *plan.Builder, w layer, x plan.Value, short string, rows int, biased bias) plan.Value {
	return b.Linear(x, w.matrix(short, rows), w.bias(short, biased))
}

// matrix returns a weight, which must have that number of rows.
func (l layer) matrix(short string, rows int) *tensor.Tensor {
	weight := l.weight(short)
	if len(weight.Shape) != 2 || weight.Shape[0] != rows {
		l.b.Fail(fmt.Errorf("%w: %s has shape %v, want %d rows by the configuration", ErrTensor, weight.Name, weight.Shape, rows))
	}
	return weight
}

// split returns the projections by consecutive rows of a fused weight.
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
		b.Fail(fmt.Errorf("%w: %s is %v of shape %v, want unquantized numbers of shape [%d]", ErrTensor, bias.Name, bias.DType, bias.Shape, total))
	}
	var parts []plan.Value
	at := 0
	for _, n := range rows {
		var partBias *tensor.Tensor
		if bias != nil {
			partBias = vectorSlice(bias, at, at+n)
		}
		parts = append(parts, b.Linear(x, w.rows(weight, at, at+n), partBias))
		at += n
	}
	return parts
}

// vectorSlice returns a view of elements lo to hi of a vector of unquantized numbers.
func vectorSlice(t *tensor.Tensor, lo, hi int) *tensor.Tensor {
	size := t.DType.BlockBytes()
	return &tensor.Tensor{Name: fmt.Sprintf("%s[%d:%d]", t.Name, lo, hi), DType: t.DType, Shape: []int{hi - lo}, Data: t.Data[lo*size : hi*size]}
}
