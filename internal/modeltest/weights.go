package modeltest

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/realizar/realizar/tensor"
)

// A matrix is a weight before it is stored: [rows, cols], or a vector if rows is 0.
type matrix struct {
	gguf, hub  string // names
	rows, cols int
	values     []float32
	heads      int // of queries or keys, whose rows GGUF keeps in another order; 0 otherwise
}

// matrices returns the model's weights, with rows in the order of a hub's file.
func (s *shape) matrices() []matrix {
	random := rand.New(rand.NewPCG(s.seed, 0))
	var all []matrix
	add := func(gguf, hub string, rows, cols, heads int, centre, spread float64) {
		m := matrix{gguf, hub, rows, cols, make([]float32, max(1, rows)*cols), heads}
		for i := range m.values {
			m.values[i] = float32(centre + spread*random.NormFloat64())
		}
		if gguf == s.overflowing {
			for i, v := range m.values {
				m.values[i] = float32(math.Copysign(math.MaxFloat32, float64(v)))
			}
		}
		if gguf == s.broken {
			for i := 0; i < len(m.values); i += cols {
				m.values[i] = float32(math.NaN())
			}
		}
		all = append(all, m)
	}
	q, kv, vocab := s.heads*s.head, s.kvHeads*s.head, len(s.vocabulary)
	linear := func(gguf, hub string, rows, cols, heads int) {
		spread := 1 / math.Sqrt(float64(cols))
		if s.lastToken && (strings.HasSuffix(gguf, "attn_output") || strings.HasSuffix(gguf, "ffn_down")) {
			spread *= 0.2
		}
		add(gguf+".weight", hub+".weight", rows, cols, heads, 0, spread)
	}
	projection := func(gguf, hub string, rows, cols, heads int) {
		linear(gguf, hub, rows, cols, heads)
		if s.biases {
			add(gguf+".bias", hub+".bias", 0, rows, heads, 0, 0.1)
		}
	}
	add("token_embd.weight", "model.embed_tokens.weight", vocab, s.hidden, 0, 0, 1)
	layers := s.layers
	if s.predicting {
		layers++
	}
	for i := range layers {
		g, h := fmt.Sprintf("blk.%d.", i), fmt.Sprintf("model.layers.%d.", i)
		if i == s.layers {
			add(g+"nextn.enorm.weight", h+"enorm.weight", 0, s.hidden, 0, 1, 0.1)
			add(g+"nextn.hnorm.weight", h+"hnorm.weight", 0, s.hidden, 0, 1, 0.1)
			add(g+"nextn.eh_proj.weight", h+"eh_proj.weight", s.hidden, 2*s.hidden, 0, 0, 0.03)
			for k, v := 0, all[len(all)-1].values; k < s.hidden; k++ {
				v[k*2*s.hidden+k]++
			}
			add(g+"nextn.shared_head_norm.weight", h+"shared_head.norm.weight", 0, s.hidden, 0, 1, 0.1)
		}
		add(g+"attn_norm.weight", h+"input_layernorm.weight", 0, s.hidden, 0, 1, 0.1)
		projection(g+"attn_q", h+"self_attn.q_proj", q, s.hidden, s.heads)
		if s.latent {
			linear(g+"attn_kv_a_mqa", h+"self_attn.kv_a_proj_with_mqa", latentRank+latentTurned, s.hidden, 0)
			add(g+"attn_kv_a_norm.weight", h+"self_attn.kv_a_layernorm.weight", 0, latentRank, 0, 1, 0.1)
			linear(g+"attn_kv_b", h+"self_attn.kv_b_proj", s.heads*(latentPlain+latentValue), latentRank, 0)
			linear(g+"attn_output", h+"self_attn.o_proj", s.hidden, s.heads*latentValue, 0)
		} else {
			projection(g+"attn_k", h+"self_attn.k_proj", kv, s.hidden, s.kvHeads)
			projection(g+"attn_v", h+"self_attn.v_proj", kv, s.hidden, 0)
			projection(g+"attn_output", h+"self_attn.o_proj", s.hidden, q, 0)
		}
		add(g+"ffn_norm.weight", h+"post_attention_layernorm.weight", 0, s.hidden, 0, 1, 0.1)
		linear(g+"ffn_gate", h+"mlp.gate_proj", s.ffn, s.hidden, 0)
		linear(g+"ffn_up", h+"mlp.up_proj", s.ffn, s.hidden, 0)
		linear(g+"ffn_down", h+"mlp.down_proj", s.hidden, s.ffn, 0)
	}
	add("output_norm.weight", "model.norm.weight", 0, s.hidden, 0, 1, 0.1)
	if !s.tied {
		linear("output", "lm_head", vocab, s.hidden, 0)
		if head := all[len(all)-1].values; s.silent != nil {
			for i := range vocab {
				if s.silent(i) {
					clear(head[i*s.hidden : (i+1)*s.hidden])
				}
			}
		}
	}
	return all
}

func (s *shape) ggufTensors(tb testing.TB) []*tensor.Tensor {
	tb.Helper()
	var all []*tensor.Tensor
	for _, m := range s.matrices() {
		if m.heads > 0 {
			m.values = interleave(&m)
		}
		all = append(all, s.store(tb, m.gguf, &m))
	}
	return all
}

func (s *shape) hubTensors(tb testing.TB) []*tensor.Tensor {
	tb.Helper()
	var all []*tensor.Tensor
	for _, m := range s.matrices() {
		if s.layout == nil || !strings.HasSuffix(m.hub, "_proj.weight") {
			all = append(all, s.store(tb, m.hub, &m))
			continue
		}
		parts, values := s.layout.Store(m.hub, m.rows, m.cols, m.values)
		if m.values = values; s.dequantised {
			parts = []*tensor.Tensor{s.store(tb, m.hub, &m)}
		}
		all = append(all, parts...)
	}
	return all
}

// interleave reorders the rows of every head for GGUF's llama: the two rows that rotate together,
// half a head apart in a hub's file, become neighbors.
func interleave(m *matrix) []float32 {
	rows, cols := m.rows, m.cols
	if rows == 0 {
		rows, cols = m.cols, 1
	}
	head := rows / m.heads
	out := make([]float32, 0, len(m.values))
	for h := 0; h < rows; h += head {
		for i := range head {
			from := h + i/2 + i%2*head/2
			out = append(out, m.values[from*cols:(from+1)*cols]...)
		}
	}
	return out
}

// store writes a matrix in the model's dtype, and a vector in float32.
func (s *shape) store(tb testing.TB, name string, m *matrix) *tensor.Tensor {
	tb.Helper()
	t := &tensor.Tensor{Name: name, DType: s.dtype, Shape: []int{m.rows, m.cols}}
	if m.rows == 0 {
		t.DType, t.Shape = tensor.F32, []int{m.cols}
	}
	le := binary.LittleEndian
	for i, v := range m.values {
		switch t.DType {
		case tensor.F32:
			t.Data = le.AppendUint32(t.Data, math.Float32bits(v))
		case tensor.F16:
			t.Data = le.AppendUint16(t.Data, tensor.F32ToF16(v))
		case tensor.BF16:
			t.Data = le.AppendUint16(t.Data, tensor.F32ToBF16(v))
		case tensor.Q8_0:
			if i%t.DType.BlockLen() == 0 {
				t.Data = appendQ8(t.Data, m.values[i:i+t.DType.BlockLen()])
			}
		default:
			tb.Fatalf("modeltest: weights cannot be stored in %v", s.dtype)
		}
	}
	if err := t.Validate(); err != nil {
		tb.Fatal(err)
	}
	return t
}

// appendQ8 appends a block of Q8_0: the scale in float16, then 32 bytes.
func appendQ8(b []byte, block []float32) []byte {
	var largest float32
	for _, v := range block {
		largest = max(largest, v, -v)
	}
	scale := largest / 127
	b = binary.LittleEndian.AppendUint16(b, tensor.F32ToF16(scale))
	for _, v := range block {
		q := 0.0
		if scale > 0 {
			q = math.RoundToEven(float64(v / scale))
		}
		b = append(b, byte(int8(q)))
	}
	return b
}
