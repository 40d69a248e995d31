package arch_test

import (
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// An eagleReference computes an EAGLE-3 head in float64, from the formulas of its paper.
type eagleReference struct {
	target, head          headReference
	embedding, output     headReference // that have them
	taps                  [3]int
	normed                bool    // the residual is the normalized hidden state
	ids                   []int32 // of the target, by draft id; nil: the same
	hidden, norm, outNorm string
	table, lmHead         string

	streams [][]float64 // of the target's tokens
}

// features returns fc of the target's streams, which it computes once.
func (e *eagleReference) features(tokens []int32, _ [][]float64) [][]float64 {
	if e.streams != nil {
		return slices.Clone(e.streams)
	}
	h, table := e.target, e.target.tensor("model.embed_tokens.weight")
	var x [][]float64
	for _, id := range tokens {
		x = append(x, table[int(id)*32:][:32])
	}
	all := make([][]float64, len(tokens))
	tap := func(layers int) {
		for i := range all {
			if slices.Contains(e.taps[:], layers) {
				all[i] = append(all[i], x[i]...)
			}
		}
	}
	tap(0)
	for n, prefix := range []string{"model.layers.0.", "model.layers.1."} {
		h.prefix = prefix
		var rows, after [][]float64
		for i := range x {
			rows = append(rows, h.norm("input_layernorm", x[i]))
			y := plusBias(slices.Clone(x[i]), h.attend(rows))
			after = append(after, plusBias(y, h.feedForwardDense(h.norm("post_attention_layernorm", y))))
		}
		x = after
		tap(n + 1)
	}
	for i := range all {
		e.streams = append(e.streams, e.head.times("fc", all[i]))
	}
	return slices.Clone(e.streams)
}

// feedForwardDense is a feed-forward layer without experts.
func (h *headReference) feedForwardDense(x []float64) []float64 { return h.unit("mlp.", x) }

func (e *eagleReference) run(tokens []int32, hidden [][]float64) (out, logits []float64) {
	h := &e.head
	var rows [][]float64
	var x []float64
	for i, id := range tokens {
		embedded := h.norm(e.norm, e.embedding.tensor(e.table)[int(id)*32:][:32])
		normed := h.norm(e.hidden, hidden[i])
		if x = slices.Clone(hidden[i]); e.normed {
			x = slices.Clone(normed)
		}
		rows = append(rows, slices.Concat(embedded, normed))
	}
	x = plusBias(x, h.attend(rows))
	x = plusBias(x, h.feedForwardDense(h.norm("post_attention_layernorm", x)))
	own := timesMatrix(e.output.tensor(e.lmHead), h.norm(e.outNorm, x))
	if e.ids == nil {
		return x, own
	}
	logits = slices.Repeat([]float64{plan.Absent}, 40)
	for i, id := range e.ids {
		logits[id] = own[i]
	}
	return x, logits
}

// A tinyEagle is an EAGLE-3 head for the target of the plan llama-hub.
type tinyEagle struct {
	tiny
	ids []int32 // of the target's tokens, by draft id; nil: no d2t
}

// eagleConfig and eagleTensors are those of a head as EAGLE's authors write it.
var (
	eagleConfig = map[string]any{
		"architectures": []any{"LlamaForCausalLMEagle3"}, "num_hidden_layers": 1, "hidden_size": 32, "intermediate_size": 48,
		"max_position_embeddings": 128, "num_attention_heads": 4, "num_key_value_heads": 2, "rms_norm_eps": 1e-5, "hidden_act": "silu",
		"rope_theta": 500.0, "vocab_size": 40, "draft_vocab_size": 5, "torch_dtype": "float32", "bias": false,
		"eagle_config": map[string]any{"eagle_aux_hidden_state_layer_ids": []any{-1, 0, 1}, "use_aux_hidden_state": true, "use_input_layernorm_in_first_layer": true},
	}
	eagleTensors = map[string][]int{
		"fc.weight": {32, 96}, "midlayer.hidden_norm.weight": {32}, "midlayer.input_layernorm.weight": {32}, "midlayer.post_attention_layernorm.weight": {32},
		"midlayer.self_attn.q_proj.weight": {32, 64}, "midlayer.self_attn.k_proj.weight": {16, 64}, "midlayer.self_attn.v_proj.weight": {16, 64},
		"midlayer.self_attn.o_proj.weight": {32, 32}, "midlayer.mlp.gate_proj.weight": {48, 32}, "midlayer.mlp.up_proj.weight": {48, 32},
		"midlayer.mlp.down_proj.weight": {32, 48}, "norm.weight": {32}, "lm_head.weight": {5, 32},
	}
	eagleIDs = []int32{0, 3, 4, 17, 39}
)

// eagleNames are GGUF's names of a head's tensors, by those of EAGLE's authors.
var eagleNames = map[string]string{
	"midlayer.hidden_norm": "blk.0.attn_norm_2", "midlayer.input_layernorm": "blk.0.attn_norm", "midlayer.post_attention_layernorm": "blk.0.ffn_norm",
	"midlayer.self_attn.q_proj": "blk.0.attn_q", "midlayer.self_attn.k_proj": "blk.0.attn_k", "midlayer.self_attn.v_proj": "blk.0.attn_v",
	"midlayer.self_attn.o_proj": "blk.0.attn_output", "midlayer.mlp.gate_proj": "blk.0.ffn_gate", "midlayer.mlp.up_proj": "blk.0.ffn_up",
	"midlayer.mlp.down_proj": "blk.0.ffn_down", "norm": "output_norm", "lm_head": "output", "embed_tokens": "token_embd", "fc": "fc",
}

// write writes the head, whose d2t has differences in safetensors and tokens in GGUF. Files of
// safetensors have a t2d, which nobody reads.
func (m tinyEagle) write(t *testing.T) string {
	t.Helper()
	rng := rand.New(rand.NewPCG(7, 8))
	var list []*tensor.Tensor
	for _, name := range slices.Sorted(maps.Keys(m.tensors)) {
		if m.tensors[name] != nil {
			list = append(list, plantest.Weight(rng, name, m.dtypes[name], 0.3, m.tensors[name]...))
		}
	}
	if m.ids != nil {
		d2t := &tensor.Tensor{Name: "d2t", DType: tensor.I64, Shape: []int{len(m.ids)}}
		for i, id := range m.ids {
			if !m.gguf {
				id -= int32(i)
			}
			d2t.Data = binary.LittleEndian.AppendUint64(d2t.Data, uint64(int64(id)))
		}
		list = append(list, d2t)
		if !m.gguf {
			list = append(list, &tensor.Tensor{Name: "t2d", DType: tensor.BOOL, Shape: []int{40}, Data: make([]byte, 40)})
		}
	}
	return writeModel(t, m.config, list, m.gguf)
}

func openFile(t *testing.T, path string) *modelfile.File {
	t.Helper()
	f, err := modelfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// What EAGLE-3 heads predict, for a chain of three, agrees with the reference.
func TestEagle(t *testing.T) {
	renamed := func(tensors map[string][]int, rename func(string) string) map[string][]int {
		all := map[string][]int{}
		for name, shape := range tensors {
			all[rename(name)] = shape
		}
		return all
	}
	speculators := func(name string) string { return strings.Replace(name, "midlayer.", "layers.0.", 1) }
	gguf := func(name string) string {
		short, suffix, _ := strings.Cut(name, ".weight")
		return eagleNames[short] + ".weight" + suffix
	}
	inner := maps.Clone(eagleConfig)
	for _, key := range []string{"architectures", "draft_vocab_size", "eagle_config"} {
		delete(inner, key)
	}
	for _, c := range []struct {
		name   string
		config map[string]any
		more   map[string][]int
		rename func(string) string
		ids    []int32
		taps   [3]int
		normed bool
	}{
		{"EAGLE", nil, nil, nil, eagleIDs, [3]int{0, 1, 2}, false},
		{"without d2t", map[string]any{"draft_vocab_size": 40}, map[string][]int{"lm_head.weight": {40, 32}}, nil, nil, [3]int{0, 1, 2}, false},
		{"the target's head", map[string]any{"draft_vocab_size": 40}, map[string][]int{"lm_head.weight": nil}, nil, nil, [3]int{0, 1, 2}, false},
		{"norm_before_residual", map[string]any{"norm_before_residual": true}, nil, nil, eagleIDs, [3]int{0, 1, 2}, true},
		{"an embedding of its own", nil, map[string][]int{"embed_tokens.weight": {40, 32}}, nil, eagleIDs, [3]int{0, 1, 2}, false},
		{"vLLM's key", map[string]any{"eagle_config": nil, "eagle_aux_hidden_state_layer_ids": []any{0, 1, 2}}, nil, nil, eagleIDs, [3]int{0, 1, 2}, false},
		{"speculators", map[string]any{
			"architectures": []any{"Eagle3Speculator"}, "eagle_config": nil, "eagle_aux_hidden_state_layer_ids": []any{0, 1, 2},
			"norm_before_residual": true, "target_hidden_size": nil, "transformer_layer_config": inner,
		}, map[string][]int{"embed_tokens.weight": {40, 32}}, speculators, eagleIDs, [3]int{0, 1, 2}, true},
		{"GGUF", map[string]any{
			"general.architecture": "eagle3", "block_count": 1, "embedding_length": 32, "feed_forward_length": 48, "context_length": 128,
			"attention.head_count": 4, "attention.head_count_kv": 2, "attention.layer_norm_rms_epsilon": 1e-5, "rope.freq_base": 500.0,
			"rope.dimension_count": 8, "extract_layers": []int32{0, 1, 2}, "target_hidden_size": 32, "norm_before_residual": true,
		}, nil, gguf, eagleIDs, [3]int{0, 1, 2}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := tinyEagle{tiny{config: eagleConfig, tensors: eagleTensors}.with(c.config, c.more), c.ids}
			attention := headReference{heads: 4, kv: 2, dim: 8, value: 8, turned: 8, base: 1000, eps: 1e-5}
			reference := eagleReference{target: attention, head: attention, taps: c.taps, normed: c.normed, ids: c.ids,
				hidden: "hidden_norm", norm: "input_layernorm", outNorm: "norm", table: "model.embed_tokens.weight", lmHead: "lm_head.weight"}
			h := &reference.head
			h.base, h.prefix = 500, "midlayer."
			if c.rename != nil {
				m.tensors = renamed(m.tensors, c.rename)
				h.prefix = "layers.0."
			}
			if m.gguf = strings.HasPrefix(c.name, "GGUF"); m.gguf {
				maps.DeleteFunc(m.config, func(key string, _ any) bool { _, is := c.config[key]; return !is })
				h.interleaved, h.prefix, h.names = true, "", map[string]string{}
				for name := range eagleTensors {
					h.names[strings.TrimPrefix(name, "midlayer.")] = gguf(name)
				}
			}
			reference.target.f = openFile(t, goldenModel(t, "llama-hub").write(t))
			h.f = openFile(t, m.write(t))
			if reference.embedding, reference.output = reference.target, *h; m.tensors["embed_tokens.weight"] != nil {
				reference.embedding, reference.table = *h, "embed_tokens.weight"
			}
			if !m.gguf && m.tensors["lm_head.weight"] == nil {
				reference.output = reference.target
			}
			for _, b := range headBackends(t) {
				for _, chunk := range []int{1, 4, 40} {
					comparePredictions(t, b, func() (*arch.Model, error) { return arch.BuildEagle(reference.target.f, h.f) }, &reference, chunk)
				}
			}
		})
	}
}
