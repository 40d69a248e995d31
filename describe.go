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

// A Description describes a model by its files. Numbers that the files do not have are 0.
type Description struct {
	Path         string `json:"path"`
	Format       string `json:"format"`     // "GGUF" or "safetensors"
	FileBytes    int64  `json:"file_bytes"` // size of the files with weights
	Name         string `json:"name,omitempty"`
	Architecture string `json:"architecture,omitempty"` // as the files name it

	// Problem says why the model cannot be run. It is empty if the model can be run.
	Problem string `json:"problem,omitempty"`

	Parameters  int64        `json:"parameters"` // elements of all tensors
	TensorCount int          `json:"tensor_count"`
	DTypes      []DTypeShare `json:"dtypes"` // by descending bytes

	Dimensions Dimensions `json:"dimensions"`

	Tokenizer        *TokenizerDescription `json:"tokenizer,omitempty"`         // nil if there is none that can be used
	TokenizerProblem string                `json:"tokenizer_problem,omitempty"` // why Tokenizer is nil

	ChatTemplate    bool   `json:"chat_template"`              // there is a chat template that can be used
	ToolTemplate    bool   `json:"tool_template"`              // there is a separate one for conversations with tools
	TemplateProblem string `json:"template_problem,omitempty"` // why the chat template cannot be used

	// Sampling are the sampling parameters that the files recommend, or nil.
	Sampling *Sampling `json:"-"`

	// Tensors are in the order of the files.
	Tensors []TensorDescription `json:"-"`
	// Metadata is that of the GGUF file, or config.json.
	Metadata []MetadataEntry `json:"-"`
	// Plan is the program that runs the model, as text. It is empty if the model cannot be run.
	Plan string `json:"-"`

	program *describe.Program // nil if the model cannot be run
}

// A DTypeShare counts the tensors of one data type.
type DTypeShare struct {
	DType      tensor.DType `json:"-"`
	Name       string       `json:"dtype"`
	Tensors    int          `json:"tensors"`
	Parameters int64        `json:"parameters"`
	Bytes      int64        `json:"bytes"`
	Share      float64      `json:"share"` // of the bytes of all tensors, 0 to 1
}

// Dimensions are the sizes of a model.
type Dimensions struct {
	Layers  int `json:"layers,omitempty"`
	Hidden  int `json:"hidden,omitempty"` // width of hidden states
	FFN     int `json:"ffn,omitempty"`    // width of the feed-forward layers
	Heads   int `json:"heads,omitempty"`
	KVHeads int `json:"kv_heads,omitempty"`
	HeadDim int `json:"head_dim,omitempty"`
	Vocab   int `json:"vocab,omitempty"`
	Context int `json:"context,omitempty"` // tokens that the model was trained for
	// Windows has the number of layers by their attention window in tokens. 0 is an unlimited
	// window.
	Windows map[int]int `json:"windows,omitempty"`

	// Experts, ExpertsUsed and ExpertFFN are, in a mixture of experts, the experts of a layer, the
	// experts that compute each token, and the width of an expert.
	Experts     int `json:"experts,omitempty"`
	ExpertsUsed int `json:"experts_used,omitempty"`
	ExpertFFN   int `json:"expert_ffn,omitempty"`

	Encoder bool `json:"encoder,omitempty"` // the model reads whole texts and generates none
	Labels  int  `json:"labels,omitempty"`  // see [Model.Labels]
}

// A TokenizerDescription describes a tokenizer.
type TokenizerDescription struct {
	Kind      string  `json:"kind"`                            // for example "byte-level BPE"
	Name      string  `json:"pre_tokenizer,omitempty"`         // rule that splits text before merges
	Guessed   bool    `json:"pre_tokenizer_guessed,omitempty"` // the file does not name the rule
	Vocab     int     `json:"vocab"`
	BOS       string  `json:"bos,omitempty"`
	EOS       string  `json:"eos,omitempty"`
	EndTokens []int32 `json:"end_tokens,omitempty"` // ids that end an answer
	AddsBOS   bool    `json:"adds_bos"`
}

// A TensorDescription describes a tensor.
type TensorDescription struct {
	Name  string `json:"name"`
	DType string `json:"dtype"`
	Shape []int  `json:"shape"` // outermost dimension first
	Bytes int64  `json:"bytes"`

	// Parts are the names of the tensors in the files that this tensor is composed of when it is
	// read; DType and Bytes are those of the result. Parts is nil if the files have the tensor
	// itself.
	Parts []string `json:"parts,omitempty"`
}

// A MetadataEntry is one key of a GGUF file's metadata or of config.json. [modelfile.Meta] lists
// the types of Value.
type MetadataEntry struct {
	Key   string `json:"key"`
	Type  string `json:"type"`
	Value any    `json:"value"`
}

// Describe reads the description of the model at path from its files, without loading the model. It
// describes a model that cannot be run as far as possible and sets [Description.Problem]. It
// returns an error only if path names no model.
func Describe(path string) (*Description, error) { return DescribeWith(path, "") }

// DescribeWith is like [Describe] but uses preTokenizer as [Options.PreTokenizer].
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
	d.program = describe.NewProgram(m.Program) // without weights, since the file is closed
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

// TokenBytes returns the bytes that the decode of one token reads after past tokens: all weights
// including the head but without the embedding table, the keys and values that the token attends
// to, and states per sequence. It is 0 if the model cannot be run.
func (d *Description) TokenBytes(past int, a Activations, c Cache) int64 {
	if d.program == nil {
		return 0
	}
	return d.program.TokenBytes(past, c.dtype(a))
}

// TokenProducts returns the number of multiply-adds that the prefill of one token takes in products
// with weights on the CPU: quantized are those with 8-bit activations, floats those in float32. The
// head and attention do not count: the head is computed for sampled tokens only, and attention
// grows with the number of tokens. Both are 0 if the model cannot be run.
func (d *Description) TokenProducts(a Activations) (quantized, floats int64) {
	if d.program == nil {
		return 0, 0
	}
	return d.program.TokenProducts(a.dtype(cpu.Rounds))
}
