package modeltest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// Eagle writes an EAGLE-3 head for the model that the same options make, in the layout of model hubs,
// and returns its path. Its keys, queries and values are the last token's embedding, and its rows of
// the output are the model's, so it is often right for a model with [LastToken]. It cannot predict a
// quarter of the tokens.
func Eagle(tb testing.TB, options ...Option) string {
	tb.Helper()
	s := newShape(options)
	s.dtype = tensor.F32
	random := rand.New(rand.NewPCG(s.seed, 1))
	var all []*tensor.Tensor
	// add adds a matrix with small values and a large one on the diagonal.
	add := func(name string, rows, cols int, diagonal float32) {
		m := matrix{hub: name, rows: rows, cols: cols, values: make([]float32, max(1, rows)*cols)}
		for i := range m.values {
			m.values[i] = float32(0.02 * random.NormFloat64())
			if rows == 0 || i/cols == i%cols {
				m.values[i] += diagonal
			}
		}
		all = append(all, s.store(tb, name, &m))
	}
	const layer = "midlayer."
	add("fc.weight", s.hidden, 3*s.hidden, 0)
	for _, name := range []string{"input_layernorm", "hidden_norm", "post_attention_layernorm"} {
		add(layer+name+".weight", 0, s.hidden, 1)
	}
	add(layer+"self_attn.q_proj.weight", s.hidden, 2*s.hidden, 2)
	add(layer+"self_attn.k_proj.weight", s.hidden, 2*s.hidden, 2)
	add(layer+"self_attn.v_proj.weight", s.hidden, 2*s.hidden, 1)
	add(layer+"self_attn.o_proj.weight", s.hidden, s.hidden, 1)
	add(layer+"mlp.gate_proj.weight", s.ffn, s.hidden, 0)
	add(layer+"mlp.up_proj.weight", s.ffn, s.hidden, 0)
	add(layer+"mlp.down_proj.weight", s.hidden, s.ffn, 0)
	add("norm.weight", 0, s.hidden, 1)
	head := matrix{hub: "lm_head.weight", cols: s.hidden}
	d2t := &tensor.Tensor{Name: "d2t", DType: tensor.I64}
	for _, m := range s.matrices() {
		if m.hub != head.hub {
			continue
		}
		for id := range m.rows {
			if id%4 != 3 {
				d2t.Data = binary.LittleEndian.AppendUint64(d2t.Data, uint64(id-head.rows))
				head.values = append(head.values, m.values[id*m.cols:(id+1)*m.cols]...)
				head.rows++
			}
		}
	}
	d2t.Shape = []int{head.rows}
	var file bytes.Buffer
	if err := modelfile.WriteSafetensors(&file, append(all, s.store(tb, head.hub, &head), d2t)); err != nil {
		tb.Fatal(err)
	}
	config, err := json.Marshal(map[string]any{
		"architectures": []string{"LlamaForCausalLMEagle3"}, "num_hidden_layers": 1, "hidden_size": s.hidden, "intermediate_size": s.ffn,
		"num_attention_heads": s.heads, "num_key_value_heads": s.heads, "max_position_embeddings": s.context, "rms_norm_eps": 1e-5,
		"head_dim": s.hidden / s.heads, "rope_theta": 10000, "target_hidden_size": s.hidden, "hidden_act": "silu", "vocab_size": len(s.vocabulary), "draft_vocab_size": head.rows,
		"eagle_config": map[string]any{"eagle_aux_hidden_state_layer_ids": []int{-1, 0, 1}, "use_aux_hidden_state": true},
	})
	if err != nil {
		tb.Fatal(err)
	}
	dir := tb.TempDir()
	write(tb, filepath.Join(dir, "model.safetensors"), file.Bytes())
	write(tb, filepath.Join(dir, "config.json"), config)
	return dir
}
