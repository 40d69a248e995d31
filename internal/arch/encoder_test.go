package arch_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// An encodedText is a text of an encoder's expectation, with transformers' results.
type encodedText struct {
	ids, types []int32
	hidden     [][]float32
	logits     []float32 // nil if the model has no head
}

// checkedEncoders lists the cases of testdata/encoders/make.py by architecture.
var checkedEncoders = map[string][]string{
	"BertModel":                           {"encoders/bert", "encoders/bert-plain"},
	"BertForSequenceClassification":       {"encoders/bert-classes", "encoders/bert-rank"},
	"RobertaModel":                        {"encoders/roberta"},
	"RobertaForSequenceClassification":    {"encoders/roberta-classes"},
	"XLMRobertaForSequenceClassification": {"encoders/xlm-roberta-rank"},
	"ModernBertModel":                     {"encoders/modernbert"},
	"ModernBertForSequenceClassification": {"encoders/modernbert-classes", "encoders/modernbert-rank"},
}

// encoders returns the cases that testdata/encoders/make.py has written next to it: folders of
// models, each with both texts.
func encoders(t *testing.T) map[string][]encodedText {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "encoders", "*", "expected.safetensors"))
	if err != nil || len(paths) < 10 {
		t.Fatalf("%d cases (%v)", len(paths), err)
	}
	all := map[string][]encodedText{}
	for _, path := range paths {
		all[filepath.Dir(path)] = encodedTexts(t, path)
	}
	return all
}

func encodedTexts(t *testing.T, path string) []encodedText {
	t.Helper()
	f, err := modelfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	rows := func(name string) (rows [][]float32) {
		x, ok := f.Tensor(name)
		if !ok {
			return nil
		}
		values, err := x.Float32s()
		if err != nil {
			t.Fatal(err)
		}
		for row := range slices.Chunk(values, x.Cols()) {
			rows = append(rows, row)
		}
		return rows
	}
	row := func(name string) []float32 {
		if all := rows(name); all != nil {
			return slices.Concat(all...)
		}
		return nil
	}
	ints := func(name string) (ids []int32) {
		for _, v := range row(name) {
			ids = append(ids, int32(v))
		}
		return ids
	}
	return []encodedText{
		{ids: ints("input_ids"), hidden: rows("hidden"), logits: row("logits")},
		{ids: ints("pair_ids"), types: ints("pair_types"), hidden: rows("pair_hidden"), logits: row("pair_logits")},
	}
}

// encode runs texts in one step. It returns the states of all tokens and the logits of the first
// token of each text.
func encode(t *testing.T, b plan.Backend, p *plan.Program, activations tensor.DType, texts ...encodedText) (hidden, logits [][][]float32) {
	t.Helper()
	batch := &plan.Batch{Start: []int32{0}}
	for _, text := range texts {
		for i, id := range text.ids {
			batch.Rows = append(batch.Rows, plan.Row{Token: int32(len(batch.Tokens)), Want: plan.WantHidden | plan.WantLogits})
			batch.Tokens, batch.Positions = append(batch.Tokens, id), append(batch.Positions, int32(i))
			if p.Axes[0] > 0 {
				axis := int32(0)
				if text.types != nil {
					axis = text.types[i]
				}
				batch.Axes = append(batch.Axes, axis, 0)
			}
		}
		batch.Start, batch.Lengths = append(batch.Start, int32(len(batch.Tokens))), append(batch.Lengths, int32(len(text.ids)))
	}
	n := len(batch.Tokens)
	exe, err := b.Compile(t.Context(), p, plan.Limits{Tokens: n, Seqs: len(texts), Rows: n, PageTokens: 16, Cache: tensor.F32, Activations: activations}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = exe.Close() }()
	step, err := exe.Submit(batch)
	if err != nil {
		t.Fatal(err)
	}
	res, err := step.Wait(t.Context())
	if err != nil || res.Err != nil {
		t.Fatal(err, res)
	}
	for s := range texts {
		lo, hi := batch.Start[s], batch.Start[s+1]
		hidden, logits = append(hidden, res.Hidden[lo:hi]), append(logits, res.Logits[lo:hi])
	}
	return hidden, logits
}

// pooledByMean reports whether the head reads the mean of all states.
func pooledByMean(p *plan.Program) bool {
	return slices.ContainsFunc(p.Nodes, func(n plan.Node) bool {
		a, ok := n.Attr.(plan.PickAttr)
		return ok && a.Mean
	})
}

// agreeStates compares a text's states with the expected ones.
func agreeStates(t *testing.T, p *plan.Program, text *encodedText, hidden [][]float32, bound float64) {
	t.Helper()
	want := text.hidden
	if pooledByMean(p) {
		mean := make([]float32, len(want[0]))
		for _, row := range want {
			for i, v := range row {
				mean[i] += v / float32(len(want))
			}
		}
		want = slices.Repeat([][]float32{mean}, len(want))
	}
	if rel := relative(hidden, want); !(rel < bound) {
		t.Errorf("states of %d tokens: relative error %.3g, want below %g", len(want), rel, bound)
	} else {
		t.Logf("states of %d tokens: relative error %.3g", len(want), rel)
	}
}

// agreeEncoded compares states and logits.
func agreeEncoded(t *testing.T, p *plan.Program, text *encodedText, hidden, logits [][]float32, bound float64) {
	t.Helper()
	agreeStates(t, p, text, hidden, bound)
	switch {
	case text.logits == nil:
		if p.Logits != p.Hidden {
			t.Error("the program has a head that the file does not have")
		}
	case len(logits[0]) != len(text.logits):
		t.Errorf("%d labels, want %d", len(logits[0]), len(text.logits))
	default:
		if rel := relative(logits[:1], [][]float32{text.logits}); !(rel < bound) {
			t.Errorf("logits %v, want %v", logits[0], text.logits)
		}
	}
}

// States and logits agree with transformers', for single texts and for pairs. A text's bits do not
// depend on the other texts of the step.
func TestEncoders(t *testing.T) {
	for path, texts := range encoders(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			m, err := buildFile(t, path)
			if err != nil {
				t.Fatal(err)
			}
			if len(m.Program.States) > 0 || !m.Program.Whole || m.Spec.Labels != len(texts[0].logits) || m.Spec.Context != 64 {
				t.Errorf("%d states, whole: %v, %d labels, a context of %d", len(m.Program.States), m.Program.Whole, m.Spec.Labels, m.Spec.Context)
			}
			for name, b := range backends(t) {
				t.Run(name, func(t *testing.T) { encodes(t, b, m.Program, texts) })
			}
		})
	}
}

func encodes(t *testing.T, b plan.Backend, p *plan.Program, texts []encodedText) {
	t.Helper()
	other := encodedText{ids: []int32{9, 30, 7, 7, 50}}
	for i := range texts {
		text := &texts[i]
		hidden, logits := encode(t, b, p, tensor.F32, *text)
		agreeEncoded(t, p, text, hidden[0], logits[0], 1e-4)
		besides, besideLogits := encode(t, b, p, tensor.F32, other, texts[1-i], *text, other)
		for r := range text.ids {
			if !slices.Equal(besides[2][r], hidden[0][r]) || !slices.Equal(besideLogits[2][r], logits[0][r]) {
				t.Fatalf("token %d of %d has other bits among other texts", r, len(text.ids))
			}
		}
	}
}

// The list of checked cases agrees with testdata.
func TestCheckedEncoders(t *testing.T) {
	got := map[string][]string{}
	for path := range encoders(t) {
		m, err := buildFile(t, path)
		if err != nil {
			t.Fatal(err)
		}
		got[m.Architecture] = append(got[m.Architecture], "encoders/"+filepath.Base(path))
	}
	for class := range got {
		slices.Sort(got[class])
	}
	if d := cmp.Diff(got, checkedEncoders); d != "" {
		t.Errorf("cases (-) and list (+):\n%s", d)
	}
}

// ggufEncoder writes the weights of the model at path as a GGUF file with the names and keys of
// llama.cpp's converters. blocks, if it is a quantized format, is the format of the layers'
// matrices.
func ggufEncoder(t *testing.T, path string, blocks tensor.DType) string {
	t.Helper()
	f, err := modelfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	number := func(key string) int64 {
		n, _ := f.Meta().Int(key)
		return n
	}
	kind, _ := f.Meta().String("model_type")
	modern, skip := kind == "modernbert", 0
	if strings.Contains(kind, "roberta") {
		skip = int(number("pad_token_id")) + 1
	}
	name, eps := "bert", "layer_norm_eps"
	if modern {
		name, eps = "modern-bert", "norm_eps"
	}
	epsilon, _ := f.Meta().Float(eps)
	meta := []modelfile.KeyValue{{Key: "general.architecture", Value: name}}
	set := func(key string, value any) {
		meta = append(meta, modelfile.KeyValue{Key: name + "." + key, Value: value})
	}
	for key, of := range map[string]string{
		"block_count": "num_hidden_layers", "embedding_length": "hidden_size", "feed_forward_length": "intermediate_size", "attention.head_count": "num_attention_heads",
	} {
		set(key, uint32(number(of)))
	}
	set("context_length", uint32(number("max_position_embeddings")-int64(skip)))
	set("attention.layer_norm_epsilon", float32(epsilon))
	set("attention.causal", false)
	if modern {
		set("attention.sliding_window", uint32(number("local_attention")))
		set("attention.sliding_window_pattern", uint32(2))
		set("rope.freq_base", float32(160000))
		set("rope.freq_base_swa", float32(10000))
		set("rope.scaling.type", "none")
	}
	renamed := strings.NewReplacer(
		// The pooler of a model without a head is omitted.
		"embeddings.word_embeddings", "token_embd", "embeddings.token_type_embeddings", "token_types", "embeddings.position_embeddings", "position_embd",
		"embeddings.LayerNorm", "token_embd_norm", "encoder.layer.", "blk.", "attention.self.query", "attn_q", "attention.self.key", "attn_k",
		"attention.self.value", "attn_v", "attention.output.dense", "attn_output", "attention.output.LayerNorm", "attn_output_norm",
		"intermediate.dense", "ffn_up", ".output.dense", ".ffn_down", ".output.LayerNorm", ".layer_output_norm",
		"pooler.dense", "cls", "classifier.dense", "cls", "classifier.out_proj", "cls.output", "classifier.", "cls.output.",
		"embeddings.tok_embeddings", "token_embd", "embeddings.norm", "token_embd_norm", "final_norm", "output_norm", "head.dense", "cls", "head.norm", "cls.norm",
		"layers.", "blk.", "attn.Wqkv", "attn_qkv", "attn.Wo", "attn_output", "mlp_norm", "ffn_norm", "mlp.Wi", "ffn_up", "mlp.Wo", "ffn_down",
	)
	var tensors []*tensor.Tensor
	classifies := slices.ContainsFunc(f.Tensors(), func(x *tensor.Tensor) bool { return strings.HasPrefix(x.Name, "classifier.") })
	for _, x := range f.Tensors() {
		name := x.Name
		for _, prefix := range []string{"bert.", "roberta.", "model."} {
			name = strings.TrimPrefix(name, prefix)
		}
		if strings.HasPrefix(name, "pooler.") && !classifies {
			continue
		}
		y := *x
		if skip > 0 && strings.HasPrefix(name, "embeddings.position_embeddings") {
			y = *x.RowSlice(skip, x.Rows())
		}
		y.Name = renamed.Replace(name)
		if blocks.Quantized() && strings.HasPrefix(y.Name, "blk.") && len(y.Shape) == 2 {
			quantize(t, &y, blocks)
		}
		tensors = append(tensors, &y)
	}
	to := filepath.Join(t.TempDir(), filepath.Base(path)+".gguf")
	file, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if err := modelfile.WriteGGUF(file, meta, tensors); err != nil {
		t.Fatal(err)
	}
	return to
}

// quantize converts x to another format.
func quantize(t *testing.T, x *tensor.Tensor, d tensor.DType) {
	t.Helper()
	values, err := x.Float32s()
	if err != nil {
		t.Fatal(err)
	}
	size, err := d.Size(len(values))
	if err != nil {
		t.Fatal(err)
	}
	x.DType, x.Data = d, make([]byte, size)
	if err := tensor.Quantize(d, x.Data, values); err != nil {
		t.Fatal(err)
	}
}

// A GGUF file of the same weights computes the same, and nearly the same in 8 bits.
func TestEncodersOfGGUF(t *testing.T) {
	for path, texts := range encoders(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			want, err := buildFile(t, path)
			if err != nil {
				t.Fatal(err)
			}
			m, err := buildFile(t, ggufEncoder(t, path, tensor.F32))
			if err != nil {
				t.Fatal(err)
			}
			if m.Spec.Context != want.Spec.Context || !slices.Equal(m.Spec.Windows, want.Spec.Windows) || m.Spec.Labels != want.Spec.Labels {
				t.Errorf("context %d, windows %v, %d labels; want %d, %v, %d",
					m.Spec.Context, m.Spec.Windows, m.Spec.Labels, want.Spec.Context, want.Spec.Windows, want.Spec.Labels)
			}
			if m.Spec.Act != want.Spec.Act || pooledByMean(m.Program) != pooledByMean(want.Program) {
				t.Skip("GGUF has no key for the activation or the head's pooling")
			}
			for i := range texts {
				hidden, logits := encode(t, cpu.Reference(), m.Program, tensor.F32, texts[i])
				agreeEncoded(t, m.Program, &texts[i], hidden[0], logits[0], 1e-4)
			}
			quantized, err := buildFile(t, ggufEncoder(t, path, tensor.Q8_0))
			if err != nil {
				t.Fatal(err)
			}
			for i := range texts {
				want, _ := encode(t, cpu.Reference(), quantized.Program, cpu.Rounds, texts[i])
				agreeStates(t, quantized.Program, &texts[i], want[0], 0.1) // for rounded weights and activations
				for name, b := range backends(t) {
					hidden, _ := encode(t, b, quantized.Program, b.Rounds(), texts[i])
					if rel := relative(hidden[0], want[0]); !(rel < 1e-2) {
						t.Errorf("%s: states of %d tokens differ from the reference's by %.3g", name, len(want[0]), rel)
					} else {
						t.Logf("%s: states of %d tokens differ from the reference's by %.3g", name, len(want[0]), rel)
					}
				}
			}
		})
	}
}
