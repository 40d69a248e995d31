package arch_test

import (
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

func buildFile(t *testing.T, path string) (*arch.Model, error) {
	t.Helper()
	f, err := modelfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return arch.Build(f)
}

func powers(base float64, dims int) []float64 {
	var f []float64
	for i := range dims / 2 {
		f = append(f, math.Pow(base, -2*float64(i)/float64(dims)))
	}
	return f
}

// check compares the file that s describes with the plain model.
func check(t *testing.T, s shape, freqs []float64, scale float64) {
	t.Helper()
	toy := newToy(s)
	m, err := buildFile(t, toy.write(t))
	if err != nil {
		t.Fatal(err)
	}
	r, err := plantest.NewRunner(cpu.New(2), m.Program, plantest.LimitsFor(m.Program, 8, 1, 64, 4, plan.Limits{Cache: tensor.F32}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Exe.Close() }()
	ids := []int32{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4}
	seq := r.Add(ids, 8)
	if err := r.Run(); err != nil {
		t.Fatal(err)
	}
	want := toy.logits(ids, freqs, scale)
	var diff, size float64
	for i := range want {
		for j, w := range want[i] {
			d := float64(seq.Logits[i][j]) - w
			diff, size = diff+d*d, size+w*w
		}
	}
	if rel := math.Sqrt(diff / size); !(rel < 1e-5) {
		t.Errorf("relative error %.3g", rel)
	}
}

// Some engine has computed another model without an error for each of these.
func TestPitfalls(t *testing.T) {
	plain := func(s shape) []float64 { return powers(1000, s.headDim) }
	for name, change := range map[string]func(s *shape){
		"NORM and NEOX rope by architecture at positions above 0": func(*shape) {},
		"q/k norm before rope":                   func(s *shape) { s.qkNorm = s.arch == "qwen3" },
		"head_dim unlike hidden/heads":           func(s *shape) { s.headDim = 12 },
		"head_dim not given":                     func(s *shape) { s.hideHeadDim, s.headDim, s.hidden = true, 128, 512 },
		"q width unlike hidden in the output":    func(s *shape) { s.heads, s.kvHeads = 6, 3 },
		"one key/value head":                     func(s *shape) { s.kvHeads = 1 },
		"as many key/value heads as query heads": func(s *shape) { s.kvHeads = 4 },
		"QKV bias with GQA":                      func(s *shape) { s.qkvBias = true },
		"every bias":                             func(s *shape) { s.qkvBias, s.outBias, s.mlpBias = true, true, true },
		"fused QKV with GQA":                     func(s *shape) { s.fusedQKV = true },
		"fused QKV with bias":                    func(s *shape) { s.fusedQKV, s.qkvBias = true, true },
		"fused gate and up":                      func(s *shape) { s.fusedFFN = true },
		"fused gate and up with bias":            func(s *shape) { s.fusedFFN, s.mlpBias = true, true },
		"head absent":                            func(s *shape) { s.tied = true },
		"head present beside a tie flag":         func(s *shape) { s.tied, s.headBesideTie = true, true },
		"feed-forward narrower than hidden":      func(s *shape) { s.ffn = 16 },
		"layers of mixed float formats":          func(s *shape) { s.dtypes = []tensor.DType{tensor.F32, tensor.BF16, tensor.F16} },
	} {
		for _, a := range []string{"llama", "mistral", "qwen2", "qwen3"} {
			for _, hub := range []bool{false, true} {
				if a == "mistral" && !hub {
					continue // GGUF calls it llama
				}
				t.Run(name+"/"+a+map[bool]string{true: " safetensors", false: " GGUF"}[hub], func(t *testing.T) {
					s := small(a)
					s.hub = hub
					change(&s)
					if s.hub && s.qkvBias && a != "qwen2" {
						s.outBias = true // config.json has one flag for both
					}
					if s.hub && !biasesExist(&s) {
						if _, err := buildFile(t, newToy(s).write(t)); !errors.Is(err, arch.ErrTensor) {
							t.Errorf("biases that the configuration does not know: %v", err)
						}
						return
					}
					check(t, s, plain(s), 1)
				})
			}
		}
	}
}

// biasesExist reports whether transformers supports the model.
func biasesExist(s *shape) bool {
	switch s.arch {
	case "llama":
		return true
	case "qwen2":
		return !s.outBias && !s.mlpBias
	case "qwen3":
		return !s.mlpBias
	}
	return !s.qkvBias && !s.outBias && !s.mlpBias
}

// Quantized files mix dtypes between layers and within them.
func TestMixedQuantisation(t *testing.T) {
	for _, a := range []string{"llama", "qwen2", "qwen3"} {
		s := small(a)
		s.hidden, s.headDim, s.ffn = 256, 64, 512
		s.dtypes = plantest.Dtypes
		s.layers = 3
		t.Run(a, func(t *testing.T) { check(t, s, powers(1000, 64), 1) })
	}
}

// A row that is not a whole number of blocks cannot be read. llama.cpp stores such tensors in a
// fallback type; other files are refused.
func TestRowsThatAreNoMultipleOfTheBlock(t *testing.T) {
	s := small("llama")
	s.hidden, s.headDim, s.ffn = 32, 8, 64
	s.dtypes = []tensor.DType{tensor.Q8_0, tensor.Q4_0} // a multiple of the block of 32 elements
	t.Run("fallback type", func(t *testing.T) { check(t, s, powers(1000, 8), 1) })
	path := newToy(s).write(t)
	if _, err := buildFile(t, path); err != nil {
		t.Fatal(err)
	}
	w := &tensor.Tensor{Name: "w", DType: tensor.Q8_0, Shape: []int{2, 48}, Data: make([]byte, 3*34)}
	table := plantest.Weight(rand.New(rand.NewPCG(1, 1)), "table", tensor.F32, 1, 2, 48)
	_, err := plan.Build(func(b *plan.Builder) {
		x := b.Pick(b.Linear(b.Embed(table), w, nil))
		b.Output(x, x)
	})
	if err == nil || !strings.Contains(err.Error(), "a row of 48 elements is not a multiple of the 32 in a block of Q8_0") {
		t.Errorf("rows of 48 elements in blocks of 32: %v", err)
	}
}

func TestWindows(t *testing.T) {
	for _, window := range []int{1, 3, 7, 100} {
		s := small("mistral")
		s.hub, s.window = true, window
		check(t, s, powers(1000, s.headDim), 1)
		s = small("llama")
		s.window = window
		check(t, s, powers(1000, s.headDim), 1)
	}
	for _, c := range []struct {
		name   string
		config map[string]any
		drop   []string
		window int
		every  bool
	}{
		{name: "not used", config: map[string]any{"use_sliding_window": false, "sliding_window": 5, "max_window_layers": 0}},
		{name: "null", config: map[string]any{"use_sliding_window": true, "sliding_window": nil}},
		{name: "not given, so 4096", config: map[string]any{"use_sliding_window": true, "max_window_layers": 0}, window: 4096},
		{name: "all layers", config: map[string]any{"use_sliding_window": true, "sliding_window": 5, "max_window_layers": 0}, window: 5},
		{name: "by layer", config: map[string]any{"use_sliding_window": true, "sliding_window": 5, "layer_types": []string{"sliding_attention", "sliding_attention"}}, window: 5},
		{name: "none by layer", config: map[string]any{"use_sliding_window": true, "sliding_window": 5, "layer_types": []string{"full_attention", "full_attention"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := small("qwen2")
			s.hub, s.config, s.window = true, c.config, c.window
			check(t, s, powers(1000, s.headDim), 1)
		})
	}
}

// The kinds of rotary positions agree with their formulas, in both styles of config.json.
func TestRope(t *testing.T) {
	const base, dim = 1000.0, 16
	plain := powers(base, dim)
	each := func(f func(i int, v float64) float64) []float64 {
		out := make([]float64, len(plain))
		for i, v := range plain {
			out[i] = f(i, v)
		}
		return out
	}
	yarnRamp := func(i int) float64 {
		bound := func(rotations float64) float64 {
			return dim * math.Log(32/(rotations*2*math.Pi)) / (2 * math.Log(base))
		}
		low, high := max(0, math.Floor(bound(32))), min(dim-1, math.Ceil(bound(1)))
		return min(1, max(0, (float64(i)-low)/(high-low)))
	}
	for _, c := range []struct {
		name  string
		rope  map[string]any
		freqs []float64
		scale float64
	}{
		{"default", map[string]any{"rope_type": "default"}, plain, 1},
		{"linear", map[string]any{"rope_type": "linear", "factor": 4.0}, each(func(_ int, v float64) float64 { return v / 4 }), 1},
		{"dynamic, short", map[string]any{"rope_type": "dynamic", "factor": 4.0}, plain, 1},
		{"dynamic, long", map[string]any{"rope_type": "dynamic", "factor": 4.0, "max": 12}, // for 20 tokens
			powers(base*math.Pow(4*20.0/12-3, float64(dim)/(dim-2)), dim), 1},
		{"llama3", map[string]any{"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32},
			each(func(_ int, v float64) float64 {
				wave := 2 * math.Pi / v
				if wave < 32.0/4 {
					return v
				}
				if wave > 32 {
					return v / 8
				}
				smooth := (32/wave - 1) / 3
				return (1-smooth)*v/8 + smooth*v
			}), 1},
		{"yarn", map[string]any{"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32},
			each(func(i int, v float64) float64 { return v*(1-yarnRamp(i)) + v/4*yarnRamp(i) }), 0.1*math.Log(4) + 1},
		{"yarn, attention factor", map[string]any{"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32, "attention_factor": 1.5},
			each(func(i int, v float64) float64 { return v*(1-yarnRamp(i)) + v/4*yarnRamp(i) }), 1.5},
		{"yarn, nothing where there are zeros", map[string]any{"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32,
			"mscale": 1.0, "mscale_all_dim": 0, "attention_factor": nil, "beta_fast": 0},
			each(func(i int, v float64) float64 { return v*(1-yarnRamp(i)) + v/4*yarnRamp(i) }), 0.1*math.Log(4) + 1},
		{"default, beside a factor", map[string]any{"rope_type": "default", "factor": 0}, plain, 1},
		{"linear, shrunk", map[string]any{"rope_type": "linear", "factor": 0.5}, each(func(_ int, v float64) float64 { return v * 2 }), 1},
		{"yarn, two magnitudes", map[string]any{"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32, "mscale": 2.0, "mscale_all_dim": 0.5},
			each(func(i int, v float64) float64 { return v*(1-yarnRamp(i)) + v/4*yarnRamp(i) }), (0.2*math.Log(4) + 1) / (0.05*math.Log(4) + 1)},
		{"longrope, short", map[string]any{"rope_type": "longrope", "original_max_position_embeddings": 64, "factor": 2.0,
			"short_factor": []float64{1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5}, "long_factor": []float64{9, 9, 9, 9, 9, 9, 9, 9}},
			each(func(i int, v float64) float64 { return v / (1 + float64(i)/2) }), math.Sqrt(1 + math.Log(2)/math.Log(64))},
		{"longrope, long", map[string]any{"rope_type": "su", "original_max_position_embeddings": 16,
			"short_factor": []float64{9, 9, 9, 9, 9, 9, 9, 9}, "long_factor": []float64{1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5}},
			each(func(i int, v float64) float64 { return v / (1 + float64(i)/2) }), math.Sqrt(1 + math.Log(8)/math.Log(16))},
	} {
		for _, style := range []string{"rope_parameters", "rope_scaling", "both", "old names"} {
			t.Run(c.name+"/"+style, func(t *testing.T) {
				s := small("llama")
				s.hub, s.headDim = true, dim
				rope := maps.Clone(c.rope)
				delete(rope, "max")
				s.config = map[string]any{style: rope}
				if context, ok := c.rope["max"]; ok {
					s.config["max_position_embeddings"] = context
				}
				switch style {
				case "rope_scaling":
					s.config["rope_theta"], s.drop = base, []string{"rope_parameters"}
				case "rope_parameters":
					rope["rope_theta"] = base
				case "both": // rope_scaling wins
					s.config = map[string]any{"rope_scaling": rope, "rope_parameters": map[string]any{"rope_type": "linear", "factor": 7.0, "rope_theta": 7.0},
						"rope_theta": base, "max_position_embeddings": s.config["max_position_embeddings"]}
					if s.config["max_position_embeddings"] == nil {
						delete(s.config, "max_position_embeddings")
					}
				case "old names": // type instead of rope_type, and original context and base outside of rope_scaling
					rope["type"] = rope["rope_type"]
					delete(rope, "rope_type")
					if original, ok := rope["original_max_position_embeddings"]; ok {
						s.config["original_max_position_embeddings"], rope["original_max_position_embeddings"] = original, 100
					}
					s.config["rope_parameters"], s.config["rope_theta"] = rope, base
					delete(s.config, style)
				}
				check(t, s, c.freqs, c.scale)
			})
		}
	}
}

// The context is the extended one.
func TestStretchedContext(t *testing.T) {
	for _, c := range []struct {
		rope map[string]any
		want int
	}{
		{map[string]any{"rope_type": "default"}, 128},
		{map[string]any{"rope_type": "linear", "factor": 4.0}, 128},
		{map[string]any{"rope_type": "dynamic", "factor": 4.0}, 512},
		{map[string]any{"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}, 128},
		{map[string]any{"rope_type": "yarn", "factor": 4.0}, 512},
	} {
		s := small("llama")
		s.hub, s.config = true, map[string]any{"rope_parameters": c.rope}
		m, err := buildFile(t, newToy(s).write(t))
		if err != nil {
			t.Fatal(err)
		}
		if m.Spec.Context != c.want {
			t.Errorf("%v: a context of %d, want %d", c.rope, m.Spec.Context, c.want)
		}
	}
}

// The same with the keys and tensors of GGUF.
func TestRopeGGUF(t *testing.T) {
	const dim = 16
	plain := powers(1000, dim)
	factors := func(name string, f func(i int) float64) func(map[string]*tensor.Tensor) {
		return func(tensors map[string]*tensor.Tensor) {
			w := plantest.Weight(nil, name, tensor.F32, 0, 0)
			w.Shape = []int{dim / 2}
			for i := range dim / 2 {
				bits := math.Float32bits(float32(f(i)))
				w.Data = append(w.Data, byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24))
			}
			tensors[name] = w
		}
	}
	divided := make([]float64, len(plain))
	for i, v := range plain {
		divided[i] = v / (1 + float64(i)/2)
	}
	halves := func(i int) float64 { return 1 + float64(i)/2 }
	quarter := make([]float64, len(plain))
	for i, v := range plain {
		quarter[i] = v / 4
	}
	for _, c := range []struct {
		name   string
		config map[string]any
		spoil  func(map[string]*tensor.Tensor)
		freqs  []float64
		scale  float64
	}{
		{"linear", map[string]any{"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": float32(4)}, nil, quarter, 1},
		{"linear, old key", map[string]any{"llama.rope.scale_linear": float32(4)}, nil, quarter, 1},
		{"none", map[string]any{"llama.rope.scaling.type": "none", "llama.rope.scaling.factor": float32(4)}, nil, plain, 1},
		{"factors", nil, factors("rope_freqs.weight", halves), divided, 1},
		{"long factors", map[string]any{"llama.rope.scaling.original_context_length": uint32(16), "llama.rope.scaling.attn_factor": float32(1.25)},
			func(w map[string]*tensor.Tensor) {
				factors("rope_factors_short.weight", func(int) float64 { return 7 })(w)
				factors("rope_factors_long.weight", halves)(w)
			}, divided, 1.25},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := small("llama")
			s.headDim, s.config, s.spoil = dim, c.config, c.spoil
			check(t, s, c.freqs, c.scale)
		})
	}
}

// If config.json names no class, model_type counts.
func TestModelType(t *testing.T) {
	for _, a := range []string{"llama", "mistral", "qwen2", "qwen3"} {
		s := small(a)
		s.hub, s.config, s.drop = true, map[string]any{"model_type": a}, []string{"architectures"}
		check(t, s, powers(1000, s.headDim), 1)
	}
}

// An invalid file is refused with an error that names the fault.
func TestErrors(t *testing.T) {
	del := func(name string) func(map[string]*tensor.Tensor) {
		return func(w map[string]*tensor.Tensor) { delete(w, name) }
	}
	for _, c := range []struct {
		name   string
		change func(s *shape)
		is     error
		says   string
	}{
		{"unknown architecture", func(s *shape) { s.config = map[string]any{"general.architecture": "wolpertinger"} }, arch.ErrUnknown, `"wolpertinger"; the nearest known are`},
		{"no architecture", func(s *shape) { s.drop = []string{"general.architecture"} }, arch.ErrConfig, "general.architecture"},
		{"missing key", func(s *shape) { s.drop = []string{"llama.block_count"} }, arch.ErrConfig, "llama.block_count is missing"},
		{"key of another type", func(s *shape) { s.config = map[string]any{"llama.block_count": "two"} }, arch.ErrConfig, "llama.block_count is of type string"},
		{"absurd layers", func(s *shape) { s.config = map[string]any{"llama.block_count": uint32(math.MaxUint32)} }, arch.ErrConfig, "llama.block_count is 4294967295"},
		{"many layers", func(s *shape) { s.config = map[string]any{"llama.block_count": uint32(1 << 29)} }, arch.ErrConfig, "layers"},
		{"absurd heads", func(s *shape) { s.config = map[string]any{"llama.attention.head_count": uint32(0)} }, arch.ErrConfig, "llama.attention.head_count is 0"},
		{"heads that cannot be shared", func(s *shape) { s.config = map[string]any{"llama.attention.head_count_kv": uint32(3)} }, arch.ErrConfig, "4 query heads cannot share 3"},
		{"epsilon", func(s *shape) {
			s.config = map[string]any{"llama.attention.layer_norm_rms_epsilon": float32(math.NaN())}
		}, arch.ErrConfig, "epsilon is NaN"},
		{"experts", func(s *shape) { s.config = map[string]any{"llama.expert_count": uint32(8)} }, arch.ErrConfig, "experts"},
		{"rope kind", func(s *shape) { s.config = map[string]any{"llama.rope.scaling.type": "moebius"} }, arch.ErrConfig, `"moebius"`},
		{"rope size", func(s *shape) { s.config = map[string]any{"llama.rope.dimension_count": uint32(10)} }, arch.ErrConfig, "10 of the 8"},
		{"rope factor", func(s *shape) { s.config = map[string]any{"llama.rope.scaling.type": "linear"} }, arch.ErrConfig, "factor"},
		{"missing tensor", func(s *shape) { s.spoil = del("blk.1.ffn_up.weight") }, arch.ErrTensor, "blk.1.ffn_up.weight"},
		{"missing norm", func(s *shape) { s.spoil = del("output_norm.weight") }, arch.ErrTensor, "output_norm.weight is missing"},
		{"tensor without use", func(s *shape) {
			s.spoil = func(w map[string]*tensor.Tensor) { w["blk.0.attn_sinks.weight"] = w["blk.0.attn_norm.weight"] }
		}, arch.ErrTensor, "does not use blk.0.attn_sinks.weight"},
		{"misshapen tensor", func(s *shape) {
			s.spoil = func(w map[string]*tensor.Tensor) { w["blk.1.attn_q.weight"] = w["blk.1.attn_k.weight"] }
		}, arch.ErrTensor, "blk.1.attn_q.weight has shape [16 32], want 32 rows"},
		{"misshapen norm", func(s *shape) {
			s.spoil = func(w map[string]*tensor.Tensor) { w["blk.1.attn_norm.weight"] = w["blk.1.attn_k.weight"] }
		}, nil, "blk.1.attn_norm.weight"},
		{"head of other rows", func(s *shape) {
			s.spoil = func(w map[string]*tensor.Tensor) { w["output.weight"] = w["token_embd.weight"].RowSlice(0, 39) }
		}, arch.ErrTensor, "output.weight has shape [39 32], want 40 rows"},
		{"narrow norm", func(s *shape) {
			s.spoil = func(w map[string]*tensor.Tensor) {
				w["blk.0.attn_norm.weight"] = plantest.Weight(rand.New(rand.NewPCG(1, 1)), "w", tensor.F32, 1, 16)
			}
		}, arch.ErrTensor, "blk.0.attn_norm.weight has shape [16], want [32]"},
		{"narrow last norm", func(s *shape) {
			s.spoil = func(w map[string]*tensor.Tensor) {
				w["output_norm.weight"] = plantest.Weight(rand.New(rand.NewPCG(1, 1)), "w", tensor.F32, 1, 8)
			}
		}, arch.ErrTensor, "output_norm.weight has shape [8], want [32]"},
		{"narrow q norm", func(s *shape) {
			s.arch, s.qkNorm = "qwen3", true
			s.spoil = func(w map[string]*tensor.Tensor) {
				w["blk.0.attn_q_norm.weight"] = plantest.Weight(rand.New(rand.NewPCG(1, 1)), "w", tensor.F32, 1, 4)
			}
		}, arch.ErrTensor, "blk.0.attn_q_norm.weight has shape [4], want [8]"},
		{"fused bias of blocks", func(s *shape) {
			s.fusedQKV, s.qkvBias = true, true
			s.spoil = func(w map[string]*tensor.Tensor) {
				w["blk.0.attn_qkv.bias"] = plantest.Weight(rand.New(rand.NewPCG(1, 1)), "w", tensor.Q8_0, 1, 64)
			}
		}, arch.ErrTensor, "blk.0.attn_qkv.bias is Q8_0"},
		{"bias that is switched off", func(s *shape) {
			s.hub, s.qkvBias, s.config = true, true, map[string]any{"attention_bias": false}
		}, arch.ErrTensor, "does not use model.layers.0.self_attn.k_proj.bias"},
		{"no architectures and another model_type", func(s *shape) {
			s.hub, s.config, s.drop = true, map[string]any{"model_type": "owl"}, []string{"architectures"}
		}, arch.ErrUnknown, `"owl"; the nearest known are`},
		{"neither architectures nor model_type", func(s *shape) { s.hub, s.drop = true, []string{"architectures"} }, arch.ErrConfig, "neither architectures nor a model_type"},
		{"missing bias", func(s *shape) { s.arch, s.qkvBias = "qwen2", false }, arch.ErrTensor, "blk.0.attn_q.bias"},
		{"missing q norm", func(s *shape) { s.arch, s.qkNorm = "qwen3", false }, arch.ErrTensor, "blk.0.attn_q_norm.weight"},
		{"activation", func(s *shape) { s.hub, s.config = true, map[string]any{"hidden_act": "tanh"} }, arch.ErrConfig, `hidden_act is "tanh"`},
		{"layer kinds", func(s *shape) {
			s.arch, s.hub, s.qkvBias = "qwen2", true, true
			s.config = map[string]any{"use_sliding_window": true, "sliding_window": 4, "layer_types": []string{"full_attention", "linear_attention"}}
		}, arch.ErrConfig, `layer_types[1] is "linear_attention"`},
		{"unknown hub architecture", func(s *shape) { s.hub, s.config = true, map[string]any{"architectures": []string{"XForCausalLM"}} }, arch.ErrUnknown, "XForCausalLM"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := small("llama")
			c.change(&s)
			refused(t, newToy(s).write(t), c.is, c.says)
		})
	}
}

// refused fails unless the file is refused with an error of kind is that contains says.
func refused(t *testing.T, path string, is error, says string) {
	t.Helper()
	_, err := buildFile(t, path)
	if err == nil {
		t.Fatal("it builds")
	}
	if is != nil && !errors.Is(err, is) {
		t.Errorf("error %v is not %v", err, is)
	}
	if !strings.Contains(err.Error(), says) {
		t.Errorf("error %q does not say %q", err, says)
	}
}
