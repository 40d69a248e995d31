package realizar

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/describe"
	"github.com/realizar/realizar/internal/hub"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// A Description is what a model's files say about it. Numbers that they do not
// say are 0.
type Description struct {
	Path         string `json:"path"`
	Format       string `json:"format"`     // "GGUF" or "safetensors"
	FileBytes    int64  `json:"file_bytes"` // of the files that hold weights
	Name         string `json:"name,omitempty"`
	Architecture string `json:"architecture,omitempty"` // as the files call it

	// Problem says why the model cannot be run; empty when it can.
	Problem string `json:"problem,omitempty"`

	Parameters  int64        `json:"parameters"` // elements of all tensors
	TensorCount int          `json:"tensor_count"`
	DTypes      []DTypeShare `json:"dtypes"` // the largest first

	Dimensions Dimensions `json:"dimensions"`

	Tokenizer        *TokenizerDescription `json:"tokenizer,omitempty"`         // nil when there is none that can be used
	TokenizerProblem string                `json:"tokenizer_problem,omitempty"` // why Tokenizer is nil

	ChatTemplate    bool   `json:"chat_template"`              // there is one that can be used
	ToolTemplate    bool   `json:"tool_template"`              // and another one for conversations with tools
	TemplateProblem string `json:"template_problem,omitempty"` // why one that is there cannot be used

	// Sampling is what the model's makers recommend, nil where they do not.
	Sampling *Sampling `json:"-"`

	// Tensors are in the order of the files, Metadata that of GGUF or of
	// config.json. Plan is the program that runs the model, as text; empty when
	// there is none.
	Tensors  []TensorDescription `json:"-"`
	Metadata []MetadataEntry     `json:"-"`
	Plan     string              `json:"-"`

	program *describe.Program // nil when there is none
}

// A DTypeShare is what one number format takes of the weights.
type DTypeShare struct {
	DType      tensor.DType `json:"-"`
	Name       string       `json:"dtype"`
	Tensors    int          `json:"tensors"`
	Parameters int64        `json:"parameters"`
	Bytes      int64        `json:"bytes"`
	Share      float64      `json:"share"` // of the bytes of all tensors
}

// Dimensions are a decoder's numbers. Windows count layers by the number of
// tokens that their attention sees; 0 is all of the past.
type Dimensions struct {
	Layers  int         `json:"layers,omitempty"`
	Hidden  int         `json:"hidden,omitempty"`
	FFN     int         `json:"ffn,omitempty"`
	Heads   int         `json:"heads,omitempty"`
	KVHeads int         `json:"kv_heads,omitempty"`
	HeadDim int         `json:"head_dim,omitempty"`
	Vocab   int         `json:"vocab,omitempty"`
	Context int         `json:"context,omitempty"` // tokens the model was made for
	Windows map[int]int `json:"windows,omitempty"`

	// Of a mixture of experts: how many a layer has, how many of them a token, and their
	// width.
	Experts     int `json:"experts,omitempty"`
	ExpertsUsed int `json:"experts_used,omitempty"`
	ExpertFFN   int `json:"expert_ffn,omitempty"`

	Encoder bool `json:"encoder,omitempty"` // the model reads texts and writes none
	Labels  int  `json:"labels,omitempty"`  // of an encoder that ranks or classifies texts
}

// A TokenizerDescription is what a tokenizer is.
type TokenizerDescription struct {
	Kind      string  `json:"kind"`                            // "byte-level BPE" for example
	Name      string  `json:"pre_tokenizer,omitempty"`         // of the rule that splits text before
	Guessed   bool    `json:"pre_tokenizer_guessed,omitempty"` // the file does not name it
	Vocab     int     `json:"vocab"`
	BOS       string  `json:"bos,omitempty"`
	EOS       string  `json:"eos,omitempty"`
	EndTokens []int32 `json:"end_tokens,omitempty"` // that end an answer
	AddsBOS   bool    `json:"adds_bos"`
}

// A TensorDescription is a tensor without its data.
type TensorDescription struct {
	Name  string `json:"name"`
	DType string `json:"dtype"`
	Shape []int  `json:"shape"` // outermost dimension first
	Bytes int64  `json:"bytes"`

	// Parts are the tensors of the files that it is made of; nil where it is one of
	// them. Its format and its bytes are then those that it has when it is read.
	Parts []string `json:"parts,omitempty"`
}

// A MetadataEntry is one key of GGUF's metadata or of config.json. Value is of a
// type that [modelfile.Meta] names.
type MetadataEntry struct {
	Key   string `json:"key"`
	Type  string `json:"type"`
	Value any    `json:"value"`
}

// Describe reads what a model's files say, without loading the model. A model
// whose architecture is not known, or that lacks something, is described as far
// as that goes: see [Description.Problem]. The error is that of a path that
// leads to no model.
func Describe(path string) (*Description, error) { return DescribeWith(path, "") }

// DescribeWith is [Describe] with a pre-tokenizer as in [Options].
func DescribeWith(path, preTokenizer string) (*Description, error) {
	f, err := modelfile.Open(path)
	if err != nil {
		return nil, fmt.Errorf("realizar: %w", err)
	}
	d := &Description{Path: path, Format: f.Format().String(), FileBytes: f.Size()}
	d.Name, _ = f.Meta().String("general.name")
	d.readTensors(f)
	for _, key := range f.Meta().Keys() {
		v, _ := f.Meta().Value(key)
		d.Metadata = append(d.Metadata, MetadataEntry{Key: key, Type: f.Meta().Type(key), Value: v})
	}
	d.readProgram(f)
	d.readText(f, preTokenizer)
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("realizar: %w", err)
	}
	return d, nil
}

func (d *Description) readTensors(f *modelfile.File) {
	shares := map[tensor.DType]*DTypeShare{}
	var total int64
	for _, t := range f.Tensors() {
		described := TensorDescription{Name: t.Name, DType: t.DType.String(), Shape: slices.Clone(t.Shape), Bytes: int64(t.Size())}
		if t.Source != nil {
			for _, part := range t.Source.Parts() {
				described.Parts = append(described.Parts, part.Name)
			}
		}
		d.Tensors = append(d.Tensors, described)
		s := shares[t.DType]
		if s == nil {
			s = &DTypeShare{DType: t.DType, Name: t.DType.String()}
			shares[t.DType] = s
		}
		s.Tensors++
		s.Parameters += int64(t.Elems())
		s.Bytes += int64(t.Size())
		d.Parameters += int64(t.Elems())
		total += int64(t.Size())
	}
	d.TensorCount = len(d.Tensors)
	for _, s := range shares {
		if total > 0 {
			s.Share = float64(s.Bytes) / float64(total)
		}
		d.DTypes = append(d.DTypes, *s)
	}
	slices.SortFunc(d.DTypes, func(a, b DTypeShare) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.DType, b.DType))
	})
}

func (d *Description) readProgram(f *modelfile.File) {
	m, err := arch.Build(f)
	if err != nil {
		d.Problem = strings.TrimPrefix(err.Error(), f.Path()+": ")
		if len(f.Tensors()) == 0 {
			d.Problem = "the file holds no weights"
		}
		var s arch.Spec
		d.Architecture, s = describe.Metadata(f)
		d.Dimensions = dimensions(&s)
		return
	}
	d.Architecture, d.Dimensions = m.Architecture, dimensions(&m.Spec)
	d.Dimensions.Encoder, d.Dimensions.Windows = m.Program.Whole, map[int]int{}
	for _, w := range m.Spec.Windows {
		d.Dimensions.Windows[w]++
	}
	d.Plan = m.Program.String()
	d.program = describe.NewProgram(m.Program) // the weights' data are views of a mapping that is about to go
}

func dimensions(s *arch.Spec) Dimensions {
	d := Dimensions{
		Layers: s.Layers, Hidden: s.Hidden, FFN: s.FFN, Heads: s.Heads, KVHeads: s.KVHeads,
		HeadDim: s.HeadDim, Vocab: s.Vocab, Context: s.Context, Labels: s.Labels,
	}
	if s.Experts > 0 {
		d.Experts, d.ExpertsUsed, d.ExpertFFN = s.Experts, s.Route.Used, s.ExpertFFN
	}
	return d
}

func (d *Description) readText(f *modelfile.File, pre string) {
	generation, err := hub.ReadGeneration(f)
	if err != nil && d.Problem == "" {
		d.Problem = err.Error()
	}
	tok, err := hub.ReadTokenizer(f, pre)
	if err != nil {
		d.TokenizerProblem = strings.TrimPrefix(err.Error(), fmt.Sprintf("%v: %s: ", ErrNoTokenizer, f.Path()))
	} else {
		t := &TokenizerDescription{Kind: tok.Kind(), Name: tok.Name(), Guessed: tok.Guessed(), Vocab: tok.VocabSize(), AddsBOS: tok.AddsBOS()}
		if id, ok := tok.BOS(); ok {
			t.BOS, _ = tok.Token(id)
		}
		if id, ok := tok.EOS(); ok {
			t.EOS, _ = tok.Token(id)
		}
		for id := range hub.EndTokens(f, tok, generation) {
			t.EndTokens = append(t.EndTokens, id)
		}
		slices.Sort(t.EndTokens)
		d.Tokenizer = t
	}
	all, err := hub.ReadTemplates(f)
	if errors.Is(err, chat.ErrTemplate) {
		d.TemplateProblem = strings.TrimPrefix(err.Error(), fmt.Sprintf("%v: %s: ", ErrNoTemplate, f.Path()))
	}
	d.ChatTemplate, d.ToolTemplate = all[hub.DefaultTemplate] != nil, all[hub.ToolTemplate] != nil
	s, ok, err := recommended(f, generation)
	if ok {
		d.Sampling = &s
	} else if err != nil && d.Problem == "" {
		d.Problem = err.Error()
	}
}

// TokenBytes is what choosing one token reads, in bytes, when its sequence holds
// past tokens before it: all weights but the table of embeddings (its head is
// read, whether tied to it or not), the keys and values that it attends to, and what
// the model keeps by sequence.
// It is 0 when the model cannot be run.
func (d *Description) TokenBytes(past int, a Activations, c Cache) int64 {
	if d.program == nil {
		return 0
	}
	return d.program.TokenBytes(past, c.dtype(a))
}

// TokenProducts is how many multiply-adds one token of a prompt takes in the
// products with weights on the CPU: quantized with 8-bit activations, floats in
// float32. What is computed for chosen tokens alone, as the head is, does not count,
// nor does attention, whose work grows with the tokens before. Both are 0 when the
// model cannot be run.
func (d *Description) TokenProducts(a Activations) (quantized, floats int64) {
	if d.program == nil {
		return 0, 0
	}
	return d.program.TokenProducts(a.dtype(cpu.Rounds))
}
