// Package modeltest makes small models for tests, with random weights from a fixed seed, a
// byte-level tokenizer and a chat template. Their output is meaningless, but they are computed like
// real files of their kind.
//
// The same options give the same model as a GGUF file ([Llama]) and as a folder of a model hub
// ([Hub]). The package writes the two layouts; it runs nothing.
package modeltest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// ChatTemplate is the default chat template. It rejects roles other than system, user and
// assistant.
const ChatTemplate = `{% for message in messages %}` +
	`{% if message.role not in ['system', 'user', 'assistant'] %}{{ raise_exception('unknown role ' ~ message.role) }}{% endif %}` +
	`<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`

// shape holds the values of the options.
type shape struct {
	architecture         string // of GGUF
	layers, hidden, ffn  int
	heads, kvHeads, head int
	context, window      int
	dtype                tensor.DType
	biases, tied, addBOS bool
	template             string
	ends                 []string
	seed                 uint64
	broken, overflowing  string
	metadata             []modelfile.KeyValue
	withoutTensors       bool
	vocabulary, merges   []string
	silent               func(token int) bool // tokens whose row of the head is zero
	layout               *Layout              // of the projections in a hub's file, or nil
	dequantised          bool                 // they are stored as the layout's values
	latent               bool                 // attention is latent
	predicting           bool                 // a further layer predicts the token after the next one
	lastToken            bool                 // layers change the residual stream little
}

// An Option changes the default model: 2 layers, 4 query and 2 key/value heads of 16, width 64, a
// context of 256 tokens, float32.
type Option func(*shape)

// DType stores the matrices in d: F32, F16, BF16 or Q8_0. Norms and biases are
// float32. A folder of a hub cannot hold Q8_0.
func DType(d tensor.DType) Option { return func(s *shape) { s.dtype = d } }

// HeadDim sets the head size to n, which may differ from the width divided by the heads.
func HeadDim(n int) Option { return func(s *shape) { s.head = n } }

// Biases adds biases to the projections of attention.
func Biases() Option { return func(s *shape) { s.biases = true } }

// Window limits attention to the last n tokens.
func Window(n int) Option { return func(s *shape) { s.window = n } }

// Tied uses the embedding table as the head.
func Tied() Option { return func(s *shape) { s.tied = true } }

// Context sets the context length in tokens.
func Context(n int) Option { return func(s *shape) { s.context = n } }

// Template sets the chat template. An empty one means none.
func Template(source string) Option { return func(s *shape) { s.template = source } }

// EndTokens names tokens that end an answer, among [SpecialTokens]. <|im_end|>
// and <|endoftext|> always do.
func EndTokens(tokens ...string) Option { return func(s *shape) { s.ends = tokens } }

// AddBOS makes the tokenizer begin every text with <|endoftext|>.
func AddBOS() Option { return func(s *shape) { s.addBOS = true } }

// Seed sets the seed of the weights.
func Seed(seed uint64) Option { return func(s *shape) { s.seed = seed } }

// NotFinite puts a NaN into each row of the tensor with that GGUF name. Such a model cannot be
// opened.
func NotFinite(name string) Option { return func(s *shape) { s.broken = name } }

// Overflow sets the tensor with that name to the largest finite numbers: the model opens and
// computes infinities.
func Overflow(name string) Option { return func(s *shape) { s.overflowing = name } }

// Architecture sets the architecture name in a GGUF file.
func Architecture(name string) Option { return func(s *shape) { s.architecture = name } }

// Metadata adds or replaces an entry in a GGUF file.
func Metadata(key string, value any) Option {
	return func(s *shape) { s.metadata = append(s.metadata, modelfile.KeyValue{Key: key, Value: value}) }
}

// Latent makes a GGUF file of the architecture deepseek2 with latent attention and no experts.
func Latent() Option {
	return func(s *shape) {
		s.architecture, s.latent, s.head = "deepseek2", true, latentPlain+latentTurned
		Metadata("deepseek2.attention.kv_lora_rank", uint32(latentRank))(s)
		Metadata("deepseek2.attention.value_length", uint32(latentValue))(s)
		Metadata("deepseek2.rope.dimension_count", uint32(latentTurned))(s)
	}
}

// LastToken makes layers change the residual stream little, so that the model's tokens depend most on
// the last one.
func LastToken() Option { return func(s *shape) { s.lastToken = true } }

// Predicting adds to [Latent] and [LastToken] a layer for multi-token prediction, which is often right:
// it reads little more than the last token.
func Predicting() Option {
	return func(s *shape) {
		Latent()(s)
		LastToken()(s)
		s.predicting = true
		Metadata("deepseek2.block_count", uint32(s.layers+1))(s)
		Metadata("deepseek2.nextn_predict_layers", uint32(1))(s)
	}
}

// The lengths of latent attention: the row of a token, and the parts of a head.
const latentRank, latentPlain, latentTurned, latentValue = 32, 16, 32, 32

// VocabularyOnly omits all tensors.
func VocabularyOnly() Option { return func(s *shape) { s.withoutTensors = true } }

func newShape(options []Option) *shape {
	s := &shape{
		architecture: "llama", layers: 2, hidden: 64, ffn: 96, heads: 4, kvHeads: 2, head: 16, context: 256,
		dtype: tensor.F32, template: ChatTemplate, ends: []string{"<|im_end|>"}, seed: 1,
		vocabulary: vocabulary(), merges: merges,
	}
	for _, o := range options {
		o(s)
	}
	return s
}

// Llama writes a GGUF file into a temporary folder of the test and returns its path.
func Llama(tb testing.TB, options ...Option) string {
	tb.Helper()
	s := newShape(options)
	var tensors []*tensor.Tensor
	if !s.withoutTensors {
		tensors = s.ggufTensors(tb)
	}
	var file bytes.Buffer
	if err := modelfile.WriteGGUF(&file, s.ggufMetadata(tb), tensors); err != nil {
		tb.Fatal(err)
	}
	path := filepath.Join(tb.TempDir(), "model.gguf")
	write(tb, path, file.Bytes())
	return path
}

// Hub writes a folder in the layout of model hubs and returns its path.
func Hub(tb testing.TB, options ...Option) string {
	tb.Helper()
	s := newShape(options)
	dir := tb.TempDir()
	if !s.withoutTensors {
		var weights bytes.Buffer
		if err := modelfile.WriteSafetensors(&weights, s.hubTensors(tb)); err != nil {
			tb.Fatal(err)
		}
		write(tb, filepath.Join(dir, "model.safetensors"), weights.Bytes())
	}
	// Readers of GGUF know these two by their spelling; here they must be named.
	ends := []int{s.tokenID(tb, "<|im_end|>"), s.tokenID(tb, "<|endoftext|>")}
	for _, e := range s.ends {
		if id := s.tokenID(tb, e); !slices.Contains(ends, id) {
			ends = append(ends, id)
		}
	}
	config := map[string]any{
		"architectures": []string{"LlamaForCausalLM"}, "model_type": "llama", "hidden_act": "silu",
		"num_hidden_layers": s.layers, "hidden_size": s.hidden, "intermediate_size": s.ffn,
		"num_attention_heads": s.heads, "num_key_value_heads": s.kvHeads, "head_dim": s.head,
		"max_position_embeddings": s.context, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
		"vocab_size": len(s.vocabulary), "tie_word_embeddings": s.tied, "attention_bias": s.biases,
	}
	if s.layout != nil && !s.dequantised {
		config["quantization_config"] = s.layout.Config
	}
	if s.window > 0 {
		config["architectures"], config["model_type"] = []string{"MistralForCausalLM"}, "mistral"
		config["sliding_window"] = s.window
	}
	tokenizerConfig := map[string]any{"bos_token": "<|endoftext|>", "eos_token": s.ends[0], "add_bos_token": s.addBOS}
	if s.template != "" {
		tokenizerConfig["chat_template"] = s.template
	}
	for name, v := range map[string]any{
		"config.json":            config,
		"generation_config.json": map[string]any{"eos_token_id": ends},
		"tokenizer.json":         s.tokenizerJSON(tb),
		"tokenizer_config.json":  tokenizerConfig,
	} {
		data, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			tb.Fatal(err)
		}
		write(tb, filepath.Join(dir, name), data)
	}
	return dir
}

func write(tb testing.TB, path string, data []byte) {
	tb.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		tb.Fatal(err)
	}
}
