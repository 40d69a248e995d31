package modeltest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// An EncoderShape holds the options of an encoder.
type EncoderShape struct {
	Labels int               // of the classification head; 0: no head
	Config map[string]any    // keys of config.json that replace the usual ones
	Files  map[string]string // additional files of the folder, such as 1_Pooling/config.json
}

// EncoderCLS and EncoderSEP are the tokens around texts.
const (
	EncoderCLS = "<|im_start|>"
	EncoderSEP = "<|im_end|>"
)

// Encoder writes the folder of a BERT of 2 layers, 4 heads of 16 and 64 positions, with
// the vocabulary of the other models, and returns its path.
func Encoder(tb testing.TB, e EncoderShape) string {
	tb.Helper()
	const layers, hidden, ffn, positions, types = 2, 64, 96, 64, 2
	s := newShape(nil)
	random := rand.New(rand.NewPCG(s.seed, 1))
	base := ""
	if e.Labels > 0 {
		base = "bert."
	}
	var tensors []*tensor.Tensor
	add := func(name string, centre, spread float64, shape ...int) {
		n := 1
		for _, d := range shape {
			n *= d
		}
		values := make([]float32, n)
		for i := range values {
			values[i] = float32(centre + spread*random.NormFloat64())
		}
		tensors = append(tensors, floatsOf(name, tensor.F32, shape, values))
	}
	linear := func(name string, rows, cols int) {
		add(name+".weight", 0, 1.5/math.Sqrt(float64(cols)), rows, cols)
		add(name+".bias", 0, 0.1, rows)
	}
	norm := func(name string) {
		add(name+".weight", 1, 0.1, hidden)
		add(name+".bias", 0, 0.1, hidden)
	}
	at := base + "embeddings."
	add(at+"word_embeddings.weight", 0, 1, len(s.vocabulary), hidden)
	add(at+"token_type_embeddings.weight", 0, 1, types, hidden)
	add(at+"position_embeddings.weight", 0, 1, positions, hidden)
	norm(at + "LayerNorm")
	for i := range layers {
		at := fmt.Sprintf("%sencoder.layer.%d.", base, i)
		for _, name := range []string{"self.query", "self.key", "self.value", "output.dense"} {
			linear(at+"attention."+name, hidden, hidden)
		}
		norm(at + "attention.output.LayerNorm")
		linear(at+"intermediate.dense", ffn, hidden)
		linear(at+"output.dense", hidden, ffn)
		norm(at + "output.LayerNorm")
	}
	linear(base+"pooler.dense", hidden, hidden)
	config := map[string]any{
		"architectures": []string{"BertModel"}, "model_type": "bert", "hidden_act": "gelu", "layer_norm_eps": 1e-12,
		"num_hidden_layers": layers, "hidden_size": hidden, "intermediate_size": ffn, "num_attention_heads": 4,
		"max_position_embeddings": positions, "type_vocab_size": types, "vocab_size": len(s.vocabulary),
	}
	if e.Labels > 0 {
		linear("classifier", e.Labels, hidden)
		config["architectures"] = []string{"BertForSequenceClassification"}
	}
	maps.Copy(config, e.Config)
	tok := s.tokenizerJSON(tb).(map[string]any)
	tok["post_processor"] = map[string]any{
		"type": "BertProcessing", "cls": []any{EncoderCLS, s.tokenID(tb, EncoderCLS)}, "sep": []any{EncoderSEP, s.tokenID(tb, EncoderSEP)},
	}
	dir := tb.TempDir()
	var weights bytes.Buffer
	if err := modelfile.WriteSafetensors(&weights, tensors); err != nil {
		tb.Fatal(err)
	}
	write(tb, filepath.Join(dir, "model.safetensors"), weights.Bytes())
	for name, v := range map[string]any{"config.json": config, "tokenizer.json": tok} {
		data, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			tb.Fatal(err)
		}
		write(tb, filepath.Join(dir, name), data)
	}
	for name, data := range e.Files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			tb.Fatal(err)
		}
		write(tb, path, []byte(data))
	}
	return dir
}
