package synth

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/realizar/realizar/internal/random"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// A File is the plan of a GGUF file with random weights. It has no weights in memory.
type File struct {
	meta    []modelfile.KeyValue
	tensors []plannedTensor
	size    int64
}

// A plannedTensor is a weight in its format.
type plannedTensor struct {
	*weight
	dtype  tensor.DType
	filler *random.Filler // nil if the values are not random
}

// bytes returns the size of the tensor's data.
func (t *plannedTensor) bytes() int { return t.elems() / t.dtype.BlockLen() * t.dtype.BlockBytes() }

// New plans a file. The bytes of the file depend only on shape, mix and seed, not on the machine or
// the number of workers. New returns an error if no model can have the shape.
func New(s *Shape, m *Mix, seed uint64) (*File, error) {
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("synth: shape %s: %w", s.Name, err)
	}
	f := &File{meta: s.metadata(m, seed)}
	weights := s.weights()
	for i := range weights {
		w := &weights[i]
		t := plannedTensor{weight: w, dtype: m.dtype(s, w.role, w.layer, w.cols())}
		if w.values == nil {
			var err error
			if t.filler, err = w.filler(seed, t.dtype); err != nil {
				return nil, fmt.Errorf("synth: shape %s as %s: tensor %s: %w", s.Name, m.Name, w.name, err)
			}
		}
		f.tensors = append(f.tensors, t)
	}
	layout, err := f.layout(func(*plannedTensor) io.WriterTo { return nil })
	if err != nil {
		return nil, err
	}
	f.size = layout.Size()
	return f, nil
}

// check returns an error if no model can have the shape.
func (s *Shape) check() error {
	switch {
	case min(s.Layers, s.Hidden, s.FFN, s.Heads, s.KVHeads, s.HeadDim, s.Context) < 1:
		return fmt.Errorf("%+v: layers, widths, heads and context are at least 1", *s)
	case s.Heads%s.KVHeads != 0:
		return fmt.Errorf("%d query heads cannot share %d key/value heads", s.Heads, s.KVHeads)
	case s.HeadDim%2 != 0:
		return fmt.Errorf("heads of width %d cannot be rotated in pairs; want an even width", s.HeadDim)
	case s.Experts != 0 && (min(s.Experts, s.Used, s.ExpertFFN) < 1 || s.Used > s.Experts):
		return fmt.Errorf("%d of %d experts of width %d: want 1 or more of each, and no more for a token than there are", s.Used, s.Experts, s.ExpertFFN)
	case (s.Attending != nil || s.Taps > 0) && s.family().mixer == nil, s.Latent != LatentShape{} && s.family().attention == nil:
		return fmt.Errorf("%s has no layers but those with attention", s.Architecture)
	case s.Attending == nil && s.family().mixer != nil:
		return fmt.Errorf("%s needs the layers that have attention", s.Architecture)
	case s.Vocab < minVocab:
		return fmt.Errorf("a vocabulary of %d, want %d or more", s.Vocab, minVocab)
	}
	return nil
}

// Size returns the length of the file in bytes.
func (f *File) Size() int64 { return f.size }

// layout returns a writer of the file. data returns the data of a random tensor.
func (f *File) layout(data func(*plannedTensor) io.WriterTo) (*modelfile.GGUFWriter, error) {
	sources := make([]modelfile.TensorSource, len(f.tensors))
	for i := range f.tensors {
		t := &f.tensors[i]
		sources[i] = modelfile.TensorSource{Name: t.name, DType: t.dtype, Shape: t.shape}
		if t.filler == nil {
			sources[i].Data = fixed(t.values)
		} else {
			sources[i].Data = data(t)
		}
	}
	return modelfile.NewGGUFWriter(f.meta, sources)
}

// Write writes the file to w. The given number of workers, limited to 1 to 16, computes the
// weights. Write takes a few MiB of memory. It returns the error of w, or the cause of ctx's
// cancellation.
func (f *File) Write(ctx context.Context, w io.Writer, workers int) error {
	chunks, stop := f.fill(ctx, workers)
	defer stop()
	layout, err := f.layout(func(t *plannedTensor) io.WriterTo { return &tensorData{chunks, t.bytes()} })
	if err != nil {
		return err
	}
	_, err = layout.WriteTo(w)
	return err
}

// metadata returns the file's metadata.
func (s *Shape) metadata(m *Mix, seed uint64) []modelfile.KeyValue {
	v := newVocabulary(s.Vocab)
	a := s.Architecture + "."
	end := v.id("<|endoftext|>")
	meta := []modelfile.KeyValue{
		{Key: "general.architecture", Value: s.Architecture},
		{Key: "general.type", Value: "model"},
		{Key: "general.name", Value: fmt.Sprintf("%s %s: random weights, seed %d", s.Name, m.Name, seed)},
		{Key: "general.file_type", Value: m.file},
		{Key: a + "vocab_size", Value: uint32(s.Vocab)},
		{Key: a + "context_length", Value: uint32(s.Context)},
		{Key: a + "block_count", Value: uint32(s.Layers)},
		{Key: a + "embedding_length", Value: uint32(s.Hidden)},
		{Key: a + "feed_forward_length", Value: uint32(s.FFN)},
		{Key: a + "attention.head_count", Value: uint32(s.Heads)},
		{Key: a + "attention.head_count_kv", Value: uint32(s.KVHeads)},
		{Key: a + "attention.key_length", Value: uint32(s.HeadDim)},
		{Key: a + "attention.value_length", Value: uint32(s.HeadDim)},
		{Key: a + "attention.layer_norm_rms_epsilon", Value: float32(s.Eps)},
		{Key: a + "rope.dimension_count", Value: uint32(cmp.Or(s.RopeDims, s.HeadDim))},
		{Key: a + "rope.freq_base", Value: float32(s.RopeBase)},
	}
	if s.Experts > 0 {
		meta = append(meta,
			modelfile.KeyValue{Key: a + "expert_count", Value: uint32(s.Experts)},
			modelfile.KeyValue{Key: a + "expert_used_count", Value: uint32(s.Used)},
			modelfile.KeyValue{Key: a + "expert_feed_forward_length", Value: uint32(s.ExpertFFN)},
		)
	}
	if s.SharedFFN > 0 {
		meta = append(meta, modelfile.KeyValue{Key: a + "expert_shared_feed_forward_length", Value: uint32(s.SharedFFN)})
	}
	meta = s.withKeys(meta)
	if m.base.Quantized() {
		meta = append(meta, modelfile.KeyValue{Key: "general.quantization_version", Value: uint32(2)})
	}
	return append(meta,
		modelfile.KeyValue{Key: "tokenizer.ggml.model", Value: "gpt2"},
		modelfile.KeyValue{Key: "tokenizer.ggml.pre", Value: "gpt-2"},
		modelfile.KeyValue{Key: "tokenizer.ggml.tokens", Value: v.tokens},
		modelfile.KeyValue{Key: "tokenizer.ggml.token_type", Value: v.types},
		modelfile.KeyValue{Key: "tokenizer.ggml.merges", Value: v.merges},
		modelfile.KeyValue{Key: "tokenizer.ggml.bos_token_id", Value: end},
		modelfile.KeyValue{Key: "tokenizer.ggml.eos_token_id", Value: v.id("<|im_end|>")},
		modelfile.KeyValue{Key: "tokenizer.ggml.padding_token_id", Value: end},
		modelfile.KeyValue{Key: "tokenizer.ggml.add_bos_token", Value: false},
		modelfile.KeyValue{Key: "tokenizer.chat_template", Value: chatTemplate},
	)
}
