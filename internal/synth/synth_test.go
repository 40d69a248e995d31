package synth_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/longtest"
	"github.com/realizar/realizar/internal/synth"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
	"github.com/realizar/realizar/tokenizer"
)

// tiny are small shapes with all features of the published ones: rows that are whole blocks of
// every format and rows that are not, key heads shared by four query heads and by fewer, both kinds
// of head, and experts.
var tiny = []synth.Shape{
	{
		Name: "tiny-llama", Architecture: "llama",
		Layers: 16, Hidden: 256, FFN: 512, Heads: 8, KVHeads: 2, HeadDim: 32, Vocab: 700, Context: 512,
		RopeBase: 5e5, RopeLong: synth.RopeLong{Factor: 8, Low: 1, High: 4, Original: 64}, Eps: 1e-5,
	},
	{
		Name: "tiny-qwen2", Architecture: "qwen2",
		Layers: 8, Hidden: 160, FFN: 512, Heads: 6, KVHeads: 3, HeadDim: 32, Vocab: 600, Context: 512,
		RopeBase: 1e6, Eps: 1e-6, Tied: true, QKVBias: true,
	},
	{
		Name: "tiny-qwen3", Architecture: "qwen3",
		Layers: 8, Hidden: 256, FFN: 768, Heads: 4, KVHeads: 1, HeadDim: 128, Vocab: 600, Context: 512,
		RopeBase: 1e6, Eps: 1e-6, Tied: true, QKNorm: true,
	},
	{
		Name: "tiny-moe", Architecture: "qwen3moe",
		Layers: 8, Hidden: 256, FFN: 256, Heads: 4, KVHeads: 2, HeadDim: 64, Vocab: 600, Context: 512,
		Experts: 8, Used: 3, ExpertFFN: 96,
		RopeBase: 1e6, Eps: 1e-6, QKNorm: true,
	},
}

func plan(t testing.TB, s *synth.Shape, m *synth.Mix, seed uint64) *synth.File {
	t.Helper()
	f, err := synth.New(s, m, seed)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func mix(t testing.TB, name string) *synth.Mix {
	t.Helper()
	m, ok := synth.FindMix(name)
	if !ok {
		t.Fatalf("no mix %s", name)
	}
	return m
}

func shape(t testing.TB, name string) *synth.Shape {
	t.Helper()
	s, ok := synth.FindShape(name)
	if !ok {
		t.Fatalf("no shape %s", name)
	}
	return s
}

// write writes a file and returns its path and content.
func write(t testing.TB, s *synth.Shape, m *synth.Mix, seed uint64, workers int) (string, []byte) {
	t.Helper()
	f := plan(t, s, m, seed)
	var b bytes.Buffer
	if err := f.Write(t.Context(), &b, workers); err != nil {
		t.Fatal(err)
	}
	if int64(b.Len()) != f.Size() {
		t.Errorf("%s as %s: %d bytes were written, %d planned", s.Name, m.Name, b.Len(), f.Size())
	}
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, b.Bytes()
}

// The shapes have as many weights as their publishers count.
func TestParams(t *testing.T) {
	for name, want := range map[string]int64{
		"llama-3.2-1b": 1_235_814_400,
		"llama-3.1-8b": 8_030_261_248,
		"qwen2.5-0.5b": 494_032_768,
		"qwen2.5-1.5b": 1_543_714_304,
		"qwen3-0.6b":   596_049_920,
		"qwen3-8b":     8_190_735_360,

		"llama-3.1-70b": 70_553_706_496,
		"qwen3-30b-a3b": 30_532_122_624,

		"moe-8of64":  2_547_568_128,
		"dense-2.5b": 2_545_995_264,

		"moe-20b":   20_505_011_712,
		"dense-20b": 20_501_865_984,

		"lfm2-1.2b":        1_170_340_608,
		"qwen3.5-4b":       4_205_751_296,
		"qwen3.5-35b-a3b":  34_660_610_688,
		"deepseek-v2-lite": 15_706_484_224,
	} {
		if got := shape(t, name).Params(); got != want {
			t.Errorf("%s has %d weights, want %d", name, got, want)
		}
	}
	if len(synth.Shapes) != 16 {
		t.Errorf("%d shapes, 16 are tested", len(synth.Shapes))
	}
}

// The bits per weight of Llama 3.1 8B are those that llama.cpp publishes
// (tools/quantize/README.md). For Q3_K_M, which the table lacks, and for the plain formats they
// follow from the sizes of published files.
func TestBitsPerWeight(t *testing.T) {
	llama := shape(t, "llama-3.1-8b")
	for name, want := range map[string]float64{
		"Q2_K": 3.1593, "Q3_K_S": 3.6429, "Q3_K_M": 3.9960, "Q3_K_L": 4.2979, "IQ4_XS": 4.4597, "IQ4_NL": 4.6818,
		"Q4_K_S": 4.6672, "Q4_K_M": 4.8944, "Q5_K_S": 5.5704, "Q5_K_M": 5.7036, "Q6_K": 6.5633, "Q8_0": 8.5008,
		"F16": 16.0005, "BF16": 16.0005, "F32": 32,
	} {
		if got := mix(t, name).BitsPerWeight(llama); math.Abs(got-want) > 0.0002 {
			t.Errorf("%s takes %.4f bits a weight, want %.4f", name, got, want)
		}
	}
}

// Files have the sizes of real models' files, up to the size of the vocabulary's texts.
func TestSize(t *testing.T) {
	for _, test := range []struct {
		shape, mix string
		want       float64 // GB
	}{
		{"llama-3.1-8b", "Q4_K_M", 4.920}, {"llama-3.1-8b", "Q8_0", 8.541}, {"llama-3.1-8b", "Q6_K", 6.596},
		{"llama-3.1-8b", "Q5_K_M", 5.733}, {"llama-3.1-8b", "Q2_K", 3.179}, {"llama-3.2-1b", "Q4_K_M", 0.8077},
		{"llama-3.2-1b", "Q8_0", 1.3213}, {"qwen3-8b", "Q4_K_M", 5.028}, {"qwen2.5-1.5b", "Q4_K_M", 0.986},
		{"lfm2-1.2b", "Q4_K_M", 0.7309}, {"lfm2-1.2b", "Q8_0", 1.246},
	} {
		got := float64(plan(t, shape(t, test.shape), mix(t, test.mix), 1).Size()) / 1e9
		if math.Abs(got/test.want-1) > 0.005 {
			t.Errorf("%s as %s takes %.4f GB, want %.4f", test.shape, test.mix, got, test.want)
		}
	}
	for i := range synth.Shapes {
		for j := range synth.Mixes {
			if !longtest.Wanted() && (i+j)%3 != 0 {
				continue
			}
			s, m := &synth.Shapes[i], &synth.Mixes[j]
			got, data := plan(t, s, m, 1).Size(), int64(m.BitsPerWeight(s)*float64(s.Params())/8)
			if got < data || got > data+20<<20 {
				t.Errorf("%s as %s takes %d bytes, of which weights are %d", s.Name, m.Name, got, data)
			}
		}
	}
}

// dtypes returns the formats of a file's tensors that are not float32.
func dtypes(t *testing.T, path string) map[string]tensor.DType {
	t.Helper()
	f, err := modelfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	all := map[string]tensor.DType{}
	for _, x := range f.Tensors() {
		if x.DType != tensor.F32 {
			all[x.Name] = x.DType
		}
	}
	return all
}

// The format of each tensor, for rows that are whole blocks and rows that are not.
func TestMixes(t *testing.T) {
	for _, test := range []struct {
		shape int
		mix   string
		want  map[string]tensor.DType // for some tensors
		rest  tensor.DType
	}{
		{0, "Q4_K_M", map[string]tensor.DType{
			"output.weight":        tensor.Q6_K,
			"blk.0.attn_v.weight":  tensor.Q6_K,
			"blk.1.attn_v.weight":  tensor.Q6_K,
			"blk.2.attn_v.weight":  tensor.Q4_K,
			"blk.4.attn_v.weight":  tensor.Q6_K,
			"blk.13.attn_v.weight": tensor.Q6_K, "blk.13.ffn_down.weight": tensor.Q6_K,
			"blk.12.attn_v.weight": tensor.Q4_K, "blk.12.ffn_down.weight": tensor.Q4_K,
			"blk.7.ffn_down.weight": tensor.Q6_K, "blk.15.ffn_up.weight": tensor.Q4_K,
			"token_embd.weight": tensor.Q4_K, "blk.0.attn_output.weight": tensor.Q4_K,
		}, 0},
		{0, "Q3_K_M", map[string]tensor.DType{
			"blk.0.attn_v.weight": tensor.Q5_K, "blk.1.attn_v.weight": tensor.Q5_K, "blk.2.attn_v.weight": tensor.Q4_K,
			"blk.0.ffn_down.weight": tensor.Q5_K, "blk.1.ffn_down.weight": tensor.Q4_K,
			"blk.3.attn_output.weight": tensor.Q4_K, "blk.3.attn_q.weight": tensor.Q3_K,
		}, 0},
		{0, "Q2_K", map[string]tensor.DType{"blk.5.attn_v.weight": tensor.Q4_K, "blk.5.ffn_down.weight": tensor.Q3_K, "blk.5.ffn_up.weight": tensor.Q2_K}, 0},
		{0, "IQ4_XS", map[string]tensor.DType{"blk.9.attn_v.weight": tensor.Q5_K, "blk.1.ffn_down.weight": tensor.Q5_K, "blk.2.ffn_down.weight": tensor.IQ4_XS}, 0},
		{0, "Q4_K_S", map[string]tensor.DType{"blk.3.attn_v.weight": tensor.Q5_K, "blk.4.attn_v.weight": tensor.Q4_K, "blk.1.ffn_down.weight": tensor.Q5_K, "blk.2.ffn_down.weight": tensor.Q4_K}, 0},
		{0, "MXFP4", map[string]tensor.DType{"output.weight": tensor.Q8_0, "token_embd.weight": tensor.Q8_0, "blk.0.ffn_up.weight": tensor.MXFP4}, 0},
		{0, "TQ2_0", map[string]tensor.DType{"output.weight": tensor.Q6_K, "token_embd.weight": tensor.Q4_K, "blk.0.ffn_down.weight": tensor.TQ2_0}, 0},
		{0, "BF16", nil, tensor.BF16},
		// Rows of 160 and 192 are whole blocks of 32 only. Three heads cannot be shared by four.
		{1, "Q4_K_M", map[string]tensor.DType{
			"token_embd.weight":   tensor.Q8_0,
			"blk.0.attn_v.weight": tensor.Q8_0, "blk.1.attn_v.weight": tensor.Q5_0,
			"blk.0.ffn_down.weight": tensor.Q6_K, "blk.1.ffn_down.weight": tensor.Q4_K, "blk.1.attn_output.weight": tensor.Q5_0,
		}, 0},
		{1, "Q2_K", map[string]tensor.DType{"blk.0.attn_v.weight": tensor.Q4_0, "blk.0.ffn_down.weight": tensor.Q3_K, "blk.0.ffn_up.weight": tensor.Q4_0}, 0},
		{1, "IQ4_XS", map[string]tensor.DType{"blk.0.attn_v.weight": tensor.IQ4_NL, "blk.0.ffn_down.weight": tensor.Q5_K, "blk.1.ffn_down.weight": tensor.IQ4_XS}, 0},
		{1, "Q5_K_M", map[string]tensor.DType{"blk.1.attn_q.weight": tensor.Q5_1, "token_embd.weight": tensor.Q8_0}, 0},
		{1, "Q4_0", map[string]tensor.DType{"blk.1.attn_q.weight": tensor.Q4_0, "token_embd.weight": tensor.Q8_0}, 0},
		{1, "Q8_0", nil, tensor.Q8_0},
		// The embedding is also the head.
		{2, "Q4_0", map[string]tensor.DType{"token_embd.weight": tensor.Q6_K, "blk.0.attn_v.weight": tensor.Q4_0}, 0},
		// Rows of 96 are not whole blocks of 256, and routers are float32.
		{3, "Q4_K_M", map[string]tensor.DType{
			"blk.0.ffn_gate_inp.weight": 0, "blk.1.ffn_gate_exps.weight": tensor.Q4_K, "blk.1.ffn_down_exps.weight": tensor.Q5_0,
			"blk.0.ffn_down_exps.weight": tensor.Q8_0,
		}, 0},
		{2, "Q5_1", map[string]tensor.DType{"token_embd.weight": tensor.Q6_K, "blk.0.attn_v.weight": tensor.Q5_1}, 0},
	} {
		path, _ := write(t, &tiny[test.shape], mix(t, test.mix), 1, 2)
		got := dtypes(t, path)
		for name, want := range test.want {
			if got[name] != want {
				t.Errorf("%s as %s: %s is %v, want %v", tiny[test.shape].Name, test.mix, name, got[name], want)
			}
		}
		for name, d := range got {
			if test.want == nil && d != test.rest {
				t.Errorf("%s as %s: %s is %v, want %v", tiny[test.shape].Name, test.mix, name, d, test.rest)
			}
		}
	}
}

// Every format that products read directly is the most common format of some mix.
func TestFormats(t *testing.T) {
	most := map[tensor.DType]bool{}
	for j := range synth.Mixes {
		path, _ := write(t, &tiny[0], &synth.Mixes[j], 1, 2)
		count, of := map[tensor.DType]int{}, tensor.F32
		for _, d := range dtypes(t, path) {
			if count[d]++; count[d] > count[of] {
				of = d
			}
		}
		most[of] = true
	}
	for _, f := range tensor.Formats() {
		if f.InBytes && !most[f.DType] {
			t.Errorf("no mix is of %v", f.Name)
		}
	}
}

// Every shape opens in every mix and computes what its weights define, for a single token, whose
// attention is its own value. The test computes the same independently. The residual stream and the
// logits keep a reasonable magnitude through all layers.
func TestActivations(t *testing.T) {
	for i := range tiny {
		for j := range synth.Mixes {
			if !longtest.Wanted() && (i+j)%len(tiny) != 0 {
				continue
			}
			s, m := &tiny[i], &synth.Mixes[j]
			t.Run(s.Name+" "+m.Name, func(t *testing.T) {
				path, _ := write(t, s, m, 1, 2)
				ids := []int32{5, 300, 300, 41, 599, 0}
				got := logits(t, path, ids)
				f, err := modelfile.Open(path)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = f.Close() }()
				w := weights{t, f}
				want, stream := w.forward(s, int(ids[0]))
				for layer, size := range stream {
					if size < 0.1 || size > 3 {
						t.Errorf("after layer %d the residual stream has the size %.3f", layer, size)
					}
				}
				for k, v := range want {
					if math.Abs(float64(got[0][k])-v) > 1e-3 {
						t.Fatalf("logit %d is %v, want %v", k, got[0][k], v)
					}
				}
				for k, row := range got {
					if d := size(row); d < 1 || d > 5 {
						t.Errorf("token %d: logits of the size %v, want 1 to 5", k, d)
					}
				}
			})
		}
	}
}

// others are small shapes of architectures whose layers are not LLaMA's.
var others = []synth.Shape{
	{
		Name: "tiny-lfm2", Architecture: "lfm2",
		Layers: 6, Hidden: 256, FFN: 512, Heads: 8, KVHeads: 2, HeadDim: 32, Vocab: 600, Context: 512,
		Attending: []int{2, 4}, Taps: 3, RopeBase: 1e6, Eps: 1e-5, Tied: true, QKNorm: true,
	},
	{
		Name: "tiny-qwen35", Architecture: "qwen35",
		Layers: 8, Hidden: 256, FFN: 512, Heads: 4, KVHeads: 1, HeadDim: 64, Vocab: 600, Context: 512,
		Attending: []int{3, 7}, Taps: 4, Delta: synth.DeltaShape{Keys: 2, Values: 4, KeyDim: 32, ValueDim: 64}, OutGate: true,
		RopeBase: 1e7, RopeDims: 16, Eps: 1e-6, QKNorm: true,
	},
	{
		Name: "tiny-qwen35moe", Architecture: "qwen35moe",
		Layers: 4, Hidden: 256, FFN: 512, Heads: 4, KVHeads: 1, HeadDim: 64, Vocab: 600, Context: 512,
		Experts: 8, Used: 3, ExpertFFN: 96, SharedFFN: 64,
		Attending: []int{3}, Taps: 4, Delta: synth.DeltaShape{Keys: 2, Values: 4, KeyDim: 32, ValueDim: 64}, OutGate: true,
		RopeBase: 1e7, RopeDims: 16, Eps: 1e-6, QKNorm: true,
	},
	{
		Name: "tiny-deepseek2", Architecture: "deepseek2",
		Layers: 4, Hidden: 256, FFN: 512, Heads: 4, KVHeads: 1, HeadDim: 160, Vocab: 600, Context: 512,
		Experts: 8, Used: 3, ExpertFFN: 96, SharedFFN: 64, Dense: 1,
		Latent: synth.LatentShape{Rank: 128, Plain: 64, Turned: 32, Value: 64}, RopeBase: 1e4, RopeDims: 32, Eps: 1e-6,
	},
}

// Models of other layers than LLaMA's open, and their logits have a reasonable magnitude for every
// token.
func TestOthers(t *testing.T) {
	for i := range others {
		for j := range synth.Mixes {
			s, m := &others[i], &synth.Mixes[j]
			if !longtest.Wanted() && m.Name != "Q4_K_M" && m.Name != "Q8_0" {
				continue
			}
			t.Run(s.Name+" "+m.Name, func(t *testing.T) {
				path, _ := write(t, s, m, 1, 2)
				for k, row := range logits(t, path, []int32{5, 300, 300, 41, 599, 0}) {
					if d := size(row); !(d > 1 && d < 5) {
						t.Errorf("token %d: logits of the size %v, want 1 to 5", k, d)
					}
				}
			})
		}
	}
}

// Formats are those that llama.cpp gives to the tensors of such layers: it counts projections to
// values, of which a fused weight is one, and not layers.
func TestMixesOfOthers(t *testing.T) {
	for i, want := range []map[string]tensor.DType{
		{
			"blk.2.attn_v.weight": tensor.Q4_K, "blk.4.attn_v.weight": tensor.Q6_K, "blk.0.shortconv.in_proj.weight": tensor.Q4_K,
			"blk.0.shortconv.conv.weight": tensor.F32, "blk.5.ffn_down.weight": tensor.Q6_K,
		},
		{
			"blk.0.attn_qkv.weight": tensor.Q6_K, "blk.1.attn_qkv.weight": tensor.Q4_K, "blk.3.attn_v.weight": tensor.Q6_K, "blk.1.attn_gate.weight": tensor.Q4_K,
			"blk.0.ssm_alpha.weight": tensor.Q4_K, "blk.0.ssm_conv1d.weight": tensor.F32, "blk.0.ssm_out.weight": tensor.Q4_K,
		},
		{"blk.3.ffn_down_shexp.weight": tensor.Q8_0, "blk.0.ffn_gate_inp_shexp.weight": tensor.F32},
		{"blk.0.attn_k_b.weight": tensor.Q5_0, "blk.0.attn_v_b.weight": tensor.Q5_0, "blk.0.ffn_down.weight": tensor.Q4_K, "blk.1.attn_kv_a_mqa.weight": tensor.Q4_K},
	} {
		path, _ := write(t, &others[i], mix(t, "Q4_K_M"), 1, 2)
		got := dtypes(t, path)
		for name, d := range want {
			if got[name] != d {
				t.Errorf("%s: %s is %v, want %v", others[i].Name, name, got[name], d)
			}
		}
	}
}

func logits(t *testing.T, path string, ids []int32) [][]float32 {
	t.Helper()
	m, err := realizar.Open(t.Context(), path, realizar.Options{Activations: realizar.ActivationsF32})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	var rows [][]float32
	if err := m.Logits(t.Context(), ids, 0, func(_ int, row []float32) error {
		rows = append(rows, append([]float32(nil), row...))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return rows
}

// size returns the root mean square.
func size[T float32 | float64](v []T) float64 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return math.Sqrt(sum / float64(len(v)))
}

type weights struct {
	t *testing.T
	f *modelfile.File
}

func (w weights) values(name string) ([]float32, int) {
	x, ok := w.f.Tensor(name)
	if !ok {
		w.t.Fatalf("no tensor %s", name)
	}
	v, err := x.Float32s()
	if err != nil {
		w.t.Fatal(err)
	}
	return v, x.Cols()
}

func (w weights) linear(name string, x []float64) []float64 { return w.part(name, 0, 1, x) }

// part is linear with matrix which of several that are stored one after the other.
func (w weights) part(name string, which, of int, x []float64) []float64 {
	m, cols := w.values(name + ".weight")
	m = m[which*len(m)/of:][:len(m)/of]
	y := make([]float64, len(m)/cols)
	for i := range y {
		for k, v := range m[i*cols : (i+1)*cols] {
			y[i] += float64(v) * x[k]
		}
	}
	if _, ok := w.f.Tensor(name + ".bias"); ok {
		b, _ := w.values(name + ".bias")
		for i := range y {
			y[i] += float64(b[i])
		}
	}
	return y
}

func (w weights) norm(name string, x []float64, eps float64) []float64 {
	g, _ := w.values(name + ".weight")
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = v / math.Sqrt(size(x)*size(x)+eps) * float64(g[i])
	}
	return y
}

// feedForward computes the gated layer number which of the several that each weight stores one
// after the other.
func (w weights) feedForward(block, suffix string, which, of int, x []float64) []float64 {
	gate, up := w.part(block+"ffn_gate"+suffix, which, of, x), w.part(block+"ffn_up"+suffix, which, of, x)
	for i, g := range gate {
		gate[i] = g / (1 + math.Exp(-g)) * up[i]
	}
	return w.part(block+"ffn_down"+suffix, which, of, gate)
}

// route returns the weights of the experts chosen for x, by expert.
func (w weights) route(s *synth.Shape, block string, x []float64) map[int]float64 {
	scores := w.linear(block+"ffn_gate_inp", x)
	shares, sum := map[int]float64{}, 0.0
	for range s.Used {
		best := -1
		for e, score := range scores {
			if _, taken := shares[e]; !taken && (best < 0 || score > scores[best]) {
				best = e
			}
		}
		shares[best] = math.Exp(scores[best])
		sum += shares[best]
	}
	for e := range shares {
		shares[e] /= sum
	}
	return shares
}

// forward returns the logits after one token, and the root mean square of the residual stream after
// each layer.
func (w weights) forward(s *synth.Shape, id int) (logits, stream []float64) {
	x := make([]float64, s.Hidden)
	table, cols := w.values("token_embd.weight")
	for i, v := range table[id*cols : (id+1)*cols] {
		x[i] = float64(v)
	}
	for l := range s.Layers {
		b := fmt.Sprintf("blk.%d.", l)
		v := w.linear(b+"attn_v", w.norm(b+"attn_norm", x, s.Eps))
		heads := make([]float64, s.Heads*s.HeadDim)
		for h := range s.Heads {
			copy(heads[h*s.HeadDim:], v[h*s.KVHeads/s.Heads*s.HeadDim:][:s.HeadDim])
		}
		for i, d := range w.linear(b+"attn_output", heads) {
			x[i] += d
		}
		n := w.norm(b+"ffn_norm", x, s.Eps)
		if s.Experts > 0 {
			for e, share := range w.route(s, b, n) {
				for i, d := range w.feedForward(b, "_exps", e, s.Experts, n) {
					x[i] += share * d
				}
			}
		} else {
			for i, d := range w.feedForward(b, "", 0, 1, n) {
				x[i] += d
			}
		}
		stream = append(stream, size(x))
	}
	top := "output"
	if s.Tied {
		top = "token_embd"
	}
	return w.linear(top, w.norm("output_norm", x, s.Eps)), stream
}

// The rope factors of Llama 3.1, as in its own file, to five digits.
func TestRopeFactors(t *testing.T) {
	s := tiny[0]
	s.HeadDim, s.Heads, s.KVHeads, s.RopeLong = 128, 2, 1, shape(t, "llama-3.1-8b").RopeLong
	path, _ := write(t, &s, mix(t, "F16"), 1, 1)
	f, err := modelfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	got, _ := weights{t, f}.values("rope_freqs.weight")
	if len(got) != 64 {
		t.Fatalf("%d factors, want one for each of 64 pairs", len(got))
	}
	// Wavelengths are 2π·500000^(i/64): pair 28 rotates 4.19 times in 8192 positions, pair 29 3.41
	// times, and pair 35 0.996 times.
	for i, v := range got {
		want := 8.0
		if i <= 28 {
			want = 1
		} else if i < 35 {
			turns := 8192 / (2 * math.Pi * math.Pow(500000, float64(i)/64))
			want = 24 / (3*1 + 7*(turns-1)) // 1/((1-k)/8+k) with k = (turns-1)/3
		}
		if math.Abs(float64(v)-want) > 1e-5 {
			t.Errorf("factor %d is %v, want %v", i, v, want)
		}
	}
}

// The bytes depend on the shape, the mix and the seed, and on nothing else.
func TestSameBytes(t *testing.T) {
	for _, name := range []string{"Q4_K_M", "IQ4_XS", "F16", "MXFP4"} {
		_, one := write(t, &tiny[0], mix(t, name), 1, 1)
		for _, workers := range []int{2, 4, 100} {
			if _, many := write(t, &tiny[0], mix(t, name), 1, workers); !bytes.Equal(one, many) {
				t.Errorf("%s: %d workers make another file than one", name, workers)
			}
		}
		if _, other := write(t, &tiny[0], mix(t, name), 2, 1); bytes.Equal(one[len(one)/2:], other[len(other)/2:]) {
			t.Errorf("%s: seeds 1 and 2 make the same weights", name)
		}
	}
}

// The bytes are the same on every machine and in every version, so that published figures refer to
// equal files. Mixes added later have checksums of their own.
func TestChecksum(t *testing.T) {
	wants := map[string]string{
		"":      "3499153c7032439332bfc243cbb35a0c4be765eb35ab52c601e108eb322da83a",
		"TQ2_0": "e27f17ff226ae146febda44cd10dd954dc0d4f146a4deed0a45e3ecbbdd01221",
	}
	sums := map[string]hash.Hash{}
	for name := range wants {
		sums[name] = sha256.New()
	}
	for i := range tiny {
		for j := range synth.Mixes {
			m := &synth.Mixes[j]
			sum := sums[m.Name]
			if sum == nil {
				sum = sums[""]
			}
			if err := plan(t, &tiny[i], m, 1).Write(t.Context(), sum, 2); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, want := range wants {
		if got := fmt.Sprintf("%x", sums[name].Sum(nil)); got != want {
			t.Errorf("the files of %q have changed: checksum %s, want %s", name, got, want)
		}
	}
}

// Words encode to the tokens they were made from, and special tokens exist.
func TestVocabulary(t *testing.T) {
	path, _ := write(t, &tiny[0], mix(t, "Q4_0"), 1, 1)
	f, err := modelfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	tok, err := tokenizer.FromGGUF(f.Meta())
	if err != nil {
		t.Fatal(err)
	}
	if tok.VocabSize() != tiny[0].Vocab {
		t.Errorf("%d tokens, want %d", tok.VocabSize(), tiny[0].Vocab)
	}
	texts, _ := f.Meta().Strings("tokenizer.ggml.tokens")
	seen := map[string]bool{}
	for id, text := range texts {
		if seen[text] {
			t.Errorf("token %d, %q, stands twice", id, text)
		}
		seen[text] = true
		if word, ok := strings.CutPrefix(text, "Ġ"); ok && word != "" {
			if got := tok.Encode(" "+word, false); !cmp.Equal(got, []int32{int32(id)}) {
				t.Errorf("%q becomes %v, want %d", word, got, id)
			}
		}
	}
	if got := tok.Encode("\x00 é\xff~", false); len(got) != 6 {
		t.Errorf("six bytes become %v", got)
	}
}

// A writer's error or the end of the context ends the writing.
func TestWriteEnds(t *testing.T) {
	f := plan(t, shape(t, "qwen2.5-0.5b"), mix(t, "F32"), 1)
	full := errors.New("full")
	for _, room := range []int{0, 1000, 20 << 20, 100 << 20} {
		if err := f.Write(t.Context(), &limitedWriter{room, func() error { return full }}, 4); !errors.Is(err, full) {
			t.Errorf("room for %d bytes: error %v, want the writer's", room, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	stop := func() error { cancel(); return nil }
	if err := f.Write(ctx, &limitedWriter{20 << 20, stop}, 4); !errors.Is(err, context.Canceled) {
		t.Errorf("after the context's end: error %v", err)
	}
}

// A limitedWriter calls full for every write once it has received left bytes.
type limitedWriter struct {
	left int
	full func() error
}

func (w *limitedWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		if err := w.full(); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

func TestRefusesShapes(t *testing.T) {
	for name, change := range map[string]func(*synth.Shape){
		"no layers":               func(s *synth.Shape) { s.Layers = 0 },
		"no key/value heads":      func(s *synth.Shape) { s.KVHeads = 0 },
		"heads that do not share": func(s *synth.Shape) { s.KVHeads = 3 },
		"odd heads":               func(s *synth.Shape) { s.HeadDim = 33 },
		"more experts for a token than there are": func(s *synth.Shape) { s.Experts, s.Used, s.ExpertFFN = 4, 5, 32 },
		"experts without a width":                 func(s *synth.Shape) { s.Experts, s.Used = 4, 2 },
		"latent attention in LLaMA":               func(s *synth.Shape) { s.Latent.Rank = 32 },
		"convolutions in LLaMA":                   func(s *synth.Shape) { s.Attending = []int{1} },
		"LFM2 with attention everywhere":          func(s *synth.Shape) { s.Architecture, s.Taps = "lfm2", 3 },
		"few tokens":                              func(s *synth.Shape) { s.Vocab = 300 },
	} {
		s := tiny[0]
		change(&s)
		if _, err := synth.New(&s, mix(t, "Q4_0"), 1); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestFind(t *testing.T) {
	if s, ok := synth.FindShape("LLAMA-3.2-1B"); !ok || s.Name != "llama-3.2-1b" {
		t.Error("the case of a shape's name counts")
	}
	if m, ok := synth.FindMix("q4_k_m"); !ok || m.Name != "Q4_K_M" {
		t.Error("the case of a mix's name counts")
	}
	_, shape := synth.FindShape("gpt-9")
	_, mix := synth.FindMix("")
	if shape || mix {
		t.Error("something was found that is not there")
	}
}

func BenchmarkWrite(b *testing.B) {
	f := plan(b, shape(b, "qwen2.5-0.5b"), mix(b, "Q4_K_M"), 1)
	b.SetBytes(f.Size())
	for b.Loop() {
		if err := f.Write(b.Context(), io.Discard, 2); err != nil {
			b.Fatal(err)
		}
	}
}
