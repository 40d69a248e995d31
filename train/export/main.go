// Command export writes a folder of safetensors of the LLaMA architecture, or of an EAGLE-3 head, as
// training leaves it, as one GGUF file:
//
//	go run ./train/export -type Q8_0 -out demo.gguf FOLDER
//
// Names, metadata and the order of the rows of queries and keys are llama.cpp's. All
// matrices take the type asked for; vectors are float32.
package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

func main() {
	name := flag.String("name", "demo", "what the model is called")
	typ := flag.String("type", "Q8_0", "the type of matrices: F32, F16, BF16, Q8_0, Q6_K, Q5_K, Q4_K or Q4_0")
	pre := flag.String("pre", "qwen2", "llama.cpp's name of the tokenizer's pre-tokenizer")
	out := flag.String("out", "demo.gguf", "the file to write")
	flag.Usage = func() {
		_, _ = fmt.Fprintln(flag.CommandLine.Output(), "Usage: export [flags] FOLDER")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := export(flag.Arg(0), *out, *name, *typ, *pre); err != nil {
		fmt.Fprintln(os.Stderr, "export:", err)
		os.Exit(1)
	}
}

func export(folder, out, name, typ, pre string) error {
	d, err := tensor.ParseDType(typ)
	if err != nil {
		return err
	}
	f, err := modelfile.Open(folder)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	var meta []modelfile.KeyValue
	if kinds, _ := f.Meta().Strings("architectures"); slices.Contains(kinds, "LlamaForCausalLMEagle3") {
		meta, err = headMetadata(f, name)
	} else {
		meta, err = metadata(f, name, pre)
	}
	if err != nil {
		return err
	}
	weights, err := weights(f, d)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := modelfile.WriteGGUF(&b, meta, weights); err != nil {
		return err
	}
	return os.WriteFile(out, b.Bytes(), 0o644) //nolint:gosec // for everybody to read
}

// numbers are the keys of config.json and what GGUF calls them.
var numbers = []struct {
	config, gguf string
	float        bool
}{
	{"vocab_size", "vocab_size", false},
	{"max_position_embeddings", "context_length", false},
	{"num_hidden_layers", "block_count", false},
	{"hidden_size", "embedding_length", false},
	{"intermediate_size", "feed_forward_length", false},
	{"num_attention_heads", "attention.head_count", false},
	{"num_key_value_heads", "attention.head_count_kv", false},
	{"head_dim", "rope.dimension_count", false},
	{"rms_norm_eps", "attention.layer_norm_rms_epsilon", true},
	{"rope_theta", "rope.freq_base", true},
}

func metadata(f *modelfile.File, name, pre string) ([]modelfile.KeyValue, error) {
	if kind, _ := f.Meta().String("model_type"); kind != "llama" {
		return nil, fmt.Errorf("%s: config.json: model_type is %q, want llama", f.Path(), kind)
	}
	meta, err := general(f, "llama", name)
	if err != nil {
		return nil, err
	}
	tokens, err := vocabulary(f, pre)
	return append(meta, tokens...), err
}

// headMetadata is the metadata of an EAGLE-3 head.
func headMetadata(f *modelfile.File, name string) ([]modelfile.KeyValue, error) {
	meta, err := general(f, "eagle3", name)
	if err != nil {
		return nil, err
	}
	head, _ := f.Meta().Int("head_dim")
	target, _ := f.Meta().Int("target_hidden_size")
	before, _ := f.Meta().Ints("eagle_config.eagle_aux_hidden_state_layer_ids")
	var layers []int32 // before each stream; the configuration has the last of them, counted from 0
	for _, n := range before {
		layers = append(layers, int32(n)+1) //nolint:gosec // the number of a layer
	}
	return append(meta,
		modelfile.KeyValue{Key: "eagle3.attention.key_length", Value: uint32(head)},   //nolint:gosec // a head's width
		modelfile.KeyValue{Key: "eagle3.attention.value_length", Value: uint32(head)}, //nolint:gosec // likewise
		modelfile.KeyValue{Key: "eagle3.target_hidden_size", Value: uint32(target)},   //nolint:gosec // a width, too
		modelfile.KeyValue{Key: "eagle3.extract_layers", Value: layers},
		modelfile.KeyValue{Key: "eagle3.norm_before_residual", Value: false},
	), nil
}

// general is the name of a model and its numbers.
func general(f *modelfile.File, architecture, name string) ([]modelfile.KeyValue, error) {
	meta := []modelfile.KeyValue{
		{Key: "general.architecture", Value: architecture},
		{Key: "general.type", Value: "model"},
		{Key: "general.name", Value: name},
	}
	for _, n := range numbers {
		v, ok := f.Meta().Float(n.config)
		if !ok {
			v, ok = f.Meta().Float("rope_parameters." + n.config)
		}
		if !ok {
			return nil, fmt.Errorf("%s: config.json: %s is missing", f.Path(), n.config)
		}
		if n.float {
			meta = append(meta, modelfile.KeyValue{Key: architecture + "." + n.gguf, Value: float32(v)})
		} else {
			meta = append(meta, modelfile.KeyValue{Key: architecture + "." + n.gguf, Value: uint32(v)})
		}
	}
	return meta, nil
}

// The kinds of token in GGUF (tokenizer.ggml.token_type).
const (
	normalToken  int32 = 1
	controlToken int32 = 3
	userToken    int32 = 4
)

// vocabulary is the byte-level BPE of tokenizer.json, and the chat template.
func vocabulary(f *modelfile.File, pre string) ([]modelfile.KeyValue, error) {
	var file struct {
		Model struct {
			Type   string
			Vocab  map[string]int
			Merges []json.RawMessage
		}
		AddedTokens []struct {
			ID      int
			Content string
			Special bool
		} `json:"added_tokens"`
	}
	var config struct {
		EOS      string `json:"eos_token"`
		Template string `json:"chat_template"`
	}
	for name, into := range map[string]any{"tokenizer.json": &file, "tokenizer_config.json": &config} {
		data, _ := f.Asset(name)
		if err := json.Unmarshal(data, into); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", f.Path(), name, err)
		}
	}
	if template, ok := f.Asset("chat_template.jinja"); ok {
		config.Template = string(template)
	}
	if file.Model.Type != "BPE" {
		return nil, fmt.Errorf("%s: tokenizer.json: a model of type %q, want BPE", f.Path(), file.Model.Type)
	}
	size := len(file.Model.Vocab)
	for _, t := range file.AddedTokens {
		size = max(size, t.ID+1)
	}
	tokens, types := make([]string, size), make([]int32, size)
	for text, id := range file.Model.Vocab {
		if id < 0 || id >= size {
			return nil, fmt.Errorf("%s: tokenizer.json: id %d of %q is not below %d", f.Path(), id, text, size)
		}
		tokens[id], types[id] = text, normalToken
	}
	for _, t := range file.AddedTokens {
		if tokens[t.ID], types[t.ID] = t.Content, userToken; t.Special {
			types[t.ID] = controlToken
		}
	}
	if i := slices.Index(types, 0); i >= 0 {
		return nil, fmt.Errorf("%s: tokenizer.json: no token has the id %d", f.Path(), i)
	}
	merges := make([]string, len(file.Model.Merges))
	for i, m := range file.Model.Merges {
		var pair []string
		if json.Unmarshal(m, &pair) == nil {
			merges[i] = strings.Join(pair, " ")
		} else if err := json.Unmarshal(m, &merges[i]); err != nil {
			return nil, fmt.Errorf("%s: tokenizer.json: merge %d: %w", f.Path(), i, err)
		}
	}
	meta := []modelfile.KeyValue{
		{Key: "tokenizer.ggml.model", Value: "gpt2"},
		{Key: "tokenizer.ggml.pre", Value: pre},
		{Key: "tokenizer.ggml.tokens", Value: tokens},
		{Key: "tokenizer.ggml.token_type", Value: types},
		{Key: "tokenizer.ggml.merges", Value: merges},
		{Key: "tokenizer.ggml.add_bos_token", Value: false},
	}
	if id := slices.Index(tokens, config.EOS); id >= 0 {
		meta = append(meta, modelfile.KeyValue{Key: "tokenizer.ggml.eos_token_id", Value: uint32(id)})
	}
	if config.Template != "" {
		meta = append(meta, modelfile.KeyValue{Key: "tokenizer.chat_template", Value: config.Template})
	}
	return meta, nil
}

// names are what a layer's tensors are called, after the layer's prefix.
var names = map[string]string{
	"input_layernorm":          "attn_norm",
	"self_attn.q_proj":         "attn_q",
	"self_attn.k_proj":         "attn_k",
	"self_attn.v_proj":         "attn_v",
	"self_attn.o_proj":         "attn_output",
	"post_attention_layernorm": "ffn_norm",
	"hidden_norm":              "attn_norm_2",
	"mlp.gate_proj":            "ffn_gate",
	"mlp.up_proj":              "ffn_up",
	"mlp.down_proj":            "ffn_down",
}

var topNames = map[string]string{
	"model.embed_tokens": "token_embd",
	"model.norm":         "output_norm",
	"lm_head":            "output",
	"norm":               "output_norm",
	"fc":                 "fc",
}

// ggufName is what GGUF calls a tensor.
func ggufName(name string) (string, error) {
	stem, suffix := name, ""
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		stem, suffix = name[:i], name[i:]
	}
	if to, ok := topNames[stem]; ok {
		return to + suffix, nil
	}
	var layer int
	var rest string
	stem = strings.Replace(stem, "midlayer.", "model.layers.0.", 1) // of a head
	if n, _ := fmt.Sscanf(stem, "model.layers.%d.%s", &layer, &rest); n == 2 && names[rest] != "" {
		return fmt.Sprintf("blk.%d.%s%s", layer, names[rest], suffix), nil
	}
	return "", fmt.Errorf("tensor %s has no place in a GGUF file of the LLaMA architecture", name)
}

// weights are the tensors in the types that the file shall have.
func weights(f *modelfile.File, d tensor.DType) ([]*tensor.Tensor, error) {
	heads, _ := f.Meta().Int("num_attention_heads")
	kvHeads, _ := f.Meta().Int("num_key_value_heads")
	var all []*tensor.Tensor
	for _, t := range f.Tensors() {
		if t.Name == "d2t" {
			all = append(all, tokenIDs(t))
			continue
		}
		name, err := ggufName(t.Name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Path(), err)
		}
		values, err := t.Float32s()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Path(), err)
		}
		switch {
		case strings.HasSuffix(name, ".attn_q.weight"):
			values, err = interleave(t, values, int(heads))
		case strings.HasSuffix(name, ".attn_k.weight"):
			values, err = interleave(t, values, int(kvHeads))
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Path(), err)
		}
		w := &tensor.Tensor{Name: name, DType: d, Shape: t.Shape}
		if len(t.Shape) < 2 {
			w.DType = tensor.F32
		}
		size, err := w.DType.Size(t.Elems())
		if err == nil {
			w.Data = make([]byte, size)
			err = tensor.Quantize(w.DType, w.Data, values)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: tensor %s: %w", f.Path(), t.Name, err)
		}
		all = append(all, w)
	}
	return all, nil
}

// tokenIDs is d2t, which has differences to a head's own numbers in safetensors and tokens in GGUF.
func tokenIDs(t *tensor.Tensor) *tensor.Tensor {
	of := &tensor.Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape}
	for i := range t.Elems() {
		of.Data = binary.LittleEndian.AppendUint64(of.Data, binary.LittleEndian.Uint64(t.Data[8*i:])+uint64(i)) //nolint:gosec // an index
	}
	return of
}

// interleave puts the rows of each head into the order of GGUF's llama: the two that
// are turned together, half a head apart in the hub's file, are neighbours.
func interleave(t *tensor.Tensor, values []float32, heads int) ([]float32, error) {
	if heads < 1 || t.Rows()%(2*heads) != 0 {
		return nil, fmt.Errorf("tensor %s: %d rows are not pairs of %d heads", t.Name, t.Rows(), heads)
	}
	head, cols := t.Rows()/heads, t.Cols()
	out := make([]float32, 0, len(values))
	for begin := 0; begin < t.Rows(); begin += head {
		for i := range head {
			from := begin + i/2 + i%2*head/2
			out = append(out, values[from*cols:(from+1)*cols]...)
		}
	}
	return out, nil
}
