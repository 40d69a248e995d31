package describe

import (
	"math"

	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/modelfile"
)

// Metadata returns what a file's metadata say of a model whose architecture is unknown: the name of
// the architecture, and the numbers that most architectures share. Missing numbers are 0.
func Metadata(f *modelfile.File) (architecture string, s arch.Spec) {
	m := f.Meta()
	architecture, _ = m.String("general.architecture")
	prefix, column := architecture+".", 0
	if f.Format() == modelfile.Safetensors {
		if list, ok := m.Strings("architectures"); ok && len(list) > 0 {
			architecture = list[0]
		}
		prefix, column = "", 1
	}
	for _, k := range []struct {
		to   *int
		keys [2]string // in GGUF, in config.json
	}{
		{&s.Layers, [2]string{"block_count", "num_hidden_layers"}},
		{&s.Hidden, [2]string{"embedding_length", "hidden_size"}},
		{&s.FFN, [2]string{"feed_forward_length", "intermediate_size"}},
		{&s.Heads, [2]string{"attention.head_count", "num_attention_heads"}},
		{&s.KVHeads, [2]string{"attention.head_count_kv", "num_key_value_heads"}},
		{&s.HeadDim, [2]string{"attention.key_length", "head_dim"}},
		{&s.Vocab, [2]string{"vocab_size", "vocab_size"}},
		{&s.Context, [2]string{"context_length", "max_position_embeddings"}},
	} {
		if v, ok := m.Int(prefix + k.keys[column]); ok && v > 0 && v <= math.MaxInt32 {
			*k.to = int(v)
		}
	}
	return architecture, s
}
