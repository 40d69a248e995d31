package arch

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// A Latent holds the numbers of latent attention (DeepSeek-AI, "DeepSeek-V2", 2024). A token's
// latent row c and its rotated row r are all that is kept of it. Head h has the key [K_h·c, r] and
// the value V_h·c. As q·(K_h·c) = (K_hᵀ·q)·c, queries are multiplied by K_hᵀ and attend to the
// latent rows themselves, which are also the values; the results are multiplied by V_h. Prefill and
// decode compute it in the same way, so they have the same bits.
type Latent struct {
	Rank      int // length of a latent row
	QueryRank int // length of the row that queries are computed from; 0: they are computed from the stream
	Plain     int // elements of a query or key that are not rotated
	Turned    int // elements that are rotated, after the others; keys of all heads share them
	Value     int // length of a head's value

	Eps   float64 // of the norms of rows
	Scale float64 // multiplies latent rows
	Bias  bias    // biases of the projections to rows

	Index *Indexer // chooses the positions that a token attends to; nil: it attends to all
}

// latentDefaults are transformers' values of missing keys.
var latentDefaults = map[string]int{"kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}

// latent reads the numbers of latent attention. queryRank is for a config.json without q_lora_rank;
// null means none.
func (s *Spec) latent(c *config, queryRank int) *Latent {
	l := &Latent{Eps: 1e-6, Scale: 1, Bias: s.OutBias}
	s.Latent = l
	if c.gguf {
		l.Rank = c.integer("attention.kv_lora_rank", -1)
		l.QueryRank = c.first("attention.q_lora_rank", 0)
		l.Turned = c.integer("rope.dimension_count", -1)
		// Older files have the lengths of a head's keys and values under the names of those that are
		// kept.
		l.Plain = c.integer("attention.key_length_mla", s.HeadDim) - l.Turned
		l.Value = c.integer("attention.value_length_mla", cmp.Or(s.ValueDim, s.HeadDim))
	} else {
		l.Rank = c.integer("kv_lora_rank", -1)
		if c.m.Type("q_lora_rank") != "null" {
			l.QueryRank = c.first("q_lora_rank", queryRank)
		}
		l.Turned, l.Plain = c.integer("qk_rope_head_dim", -1), c.integer("qk_nope_head_dim", -1)
		l.Value = c.integer("v_head_dim", s.Hidden/max(1, s.Heads))
		if c.flag("attention_bias", false) {
			l.Bias, s.OutBias = required, required
		}
	}
	if l.Plain < 1 {
		c.failf("%d of %d elements of a query are rotated; latent attention needs others", l.Turned, l.Plain+l.Turned)
	}
	s.HeadDim, s.ValueDim, s.KVHeads, s.EachKVHeads = l.Turned, 0, 1, nil
	s.AttentionScale = 1 / math.Sqrt(float64(l.Plain+l.Turned))
	return l
}

// yarnScores multiplies the scale of scores by the square of YaRN's magnitude (DeepSeek's
// mscale_all_dim).
func (s *Spec) yarnScores(c *config) {
	m := 1.0
	if c.gguf {
		if by := c.optional("rope.scaling.yarn_log_multiplier"); by > 0 && c.text("rope.scaling.type", "") == "yarn" {
			m = yarnMagnitude(c.optional("rope.scaling.factor"), 10*by)
		}
	} else {
		at := c.ropeKeys()
		if kind := c.text(at+"rope_type", c.text(at+"type", "default")); kind != "default" {
			m = yarnMagnitude(c.optional(at+"factor"), c.optional(at+"mscale_all_dim"))
		}
	}
	s.AttentionScale *= m * m
}

// latentAttention is a layer's latent attention. name is that of its state.
func latentAttention(b *plan.Builder, s *Spec, w layer, x plan.Value, name string) plan.Value {
	l, inner := s.Latent, *s
	inner.Eps = l.Eps
	dim, from, short := l.Plain+l.Turned, x, "attn_q"
	if l.QueryRank > 0 {
		from = norm(b, &inner, w, linear(b, w, x, "attn_q_a", l.QueryRank, l.Bias), "attn_q_a_norm", l.QueryRank)
		short = "attn_q_b"
	}
	q := linear(b, w, from, short, s.Heads*dim, without)
	rows := split(b, w, x, "attn_kv_a_mqa", l.Bias, l.Rank, l.Turned)
	c, r := b.Scale(norm(b, &inner, w, rows[0], "attn_kv_a_norm", l.Rank), l.Scale), rows[1]
	if rope := s.ropeOf(w.index); rope != nil {
		if rope.Dims != l.Turned {
			b.Fail(fmt.Errorf("%w: the rotary frequencies are for %d elements, latent attention rotates %d", ErrConfig, rope.Dims, l.Turned))
		}
		turn := *rope
		turn.HeadDim, turn.First = dim, l.Plain
		q = b.Rope(q, turn)
		turn.HeadDim, turn.First = l.Turned, 0
		r = b.Rope(r, turn)
	}
	q = tempered(b, s, w, q)
	keys, values := w.latentWeights(s)
	a := plan.AttentionAttr{
		Heads: s.Heads, KVHeads: 1, HeadDim: l.Rank + l.Turned, ValueDim: l.Rank, Window: s.Windows[w.index],
		Scale: s.AttentionScale, Softcap: s.AttentionCap, First: s.Unseen,
	}
	state := b.State(plan.State{Name: name, Kind: plan.PerToken, KVHeads: 1, HeadDim: a.HeadDim, Window: a.Window})
	q = b.HeadLinear(q, keys)
	var y plan.Value
	if l.Index != nil {
		a.Top = l.Index.Top
		y = b.SparseAttention(q, c, r, choice(b, s, w, x, from, "index"+strings.TrimPrefix(name, "kv")), w.sinks(s), state, a)
	} else {
		y = b.LatentAttention(q, c, r, w.sinks(s), state, a)
	}
	return linear(b, w, b.HeadLinear(y, values), "attn_output", s.Hidden, s.OutBias)
}

// latentWeights returns K_hᵀ [rank, plain] and V_h [value, rank] of all heads, from a tensor each,
// or from one with the rows of K_h and V_h by head.
func (l layer) latentWeights(s *Spec) (keys, values []*tensor.Tensor) {
	a := s.Latent
	if l.has("attn_k_b") {
		l.ignore("attn_kv_b")
		return l.byHead("attn_k_b", s.Heads, a.Rank, a.Plain), l.byHead("attn_v_b", s.Heads, a.Value, a.Rank)
	}
	for _, t := range l.byHead("attn_kv_b", s.Heads, a.Plain+a.Value, a.Rank) {
		keys, values = append(keys, l.turnedOver(t, a.Plain)), append(values, l.rows(t, a.Plain, a.Plain+a.Value))
	}
	return keys, values
}

// byHead returns the matrices [rows, cols] of all heads that a tensor holds one after the other.
func (l layer) byHead(short string, heads, rows, cols int) []*tensor.Tensor {
	t := l.weight(short)
	if len(t.Shape) < 2 || t.Cols() != cols || t.Rows() != heads*rows {
		l.b.Fail(fmt.Errorf("%w: %s has shape %v, want %d heads of [%d %d] by the configuration", ErrTensor, t.Name, t.Shape, heads, rows, cols))
	}
	var list []*tensor.Tensor
	for h := range heads {
		one := t.RowSlice(h*rows, (h+1)*rows)
		one.Name = fmt.Sprintf("%s[%d]", t.Name, h)
		list = append(list, one)
	}
	return list
}

// turnedOver returns the transpose of the first n rows of a matrix. Numbers in blocks become float32.
func (w *weights) turnedOver(t *tensor.Tensor, n int) *tensor.Tensor {
	name, shape := fmt.Sprintf("%s[:%d].T", t.Name, n), []int{t.Cols(), n}
	if t.DType.BlockLen() == 1 && t.Source == nil {
		return &tensor.Tensor{Name: name, DType: t.DType, Shape: shape, Source: &strided{of: t, byRow: 1, byCol: t.Cols(), cols: n}}
	}
	return &tensor.Tensor{Name: name, DType: tensor.F32, Shape: shape, Source: decodedColumns{w.rows(t, 0, n)}}
}

// A decodedColumns is a source of the columns of a matrix, as rows of float32.
type decodedColumns struct{ of *tensor.Tensor }

// Parts implements [tensor.Source].
func (d decodedColumns) Parts() []*tensor.Tensor { return []*tensor.Tensor{d.of} }

// ReadRows implements [tensor.Source].
func (d decodedColumns) ReadRows(dst []byte, lo, hi int) error {
	rows, cols := d.of.Rows(), d.of.Cols()
	return d.of.EachRows(func(first int, data []byte) error {
		if err := finite(d.of, data); err != nil {
			return err
		}
		values := make([]float32, len(data)/d.of.RowBytes()*cols)
		if err := tensor.Dequantize(d.of.DType, values, data); err != nil {
			return fmt.Errorf("%s: %w", d.of.Name, err)
		}
		for r := range len(values) / cols {
			for c, v := range values[r*cols:][lo:hi] {
				binary.LittleEndian.PutUint32(dst[4*(c*rows+first+r):], math.Float32bits(v))
			}
		}
		return nil
	})
}
