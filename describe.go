package realizar

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
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

	program *plan.Program // weights without data; nil when there is none
	fixed   int64         // bytes of weights that every token reads
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
		d.readNumbers(f)
		return
	}
	s := m.Spec
	d.Architecture = m.Architecture
	d.Dimensions = Dimensions{
		Layers: s.Layers, Hidden: s.Hidden, FFN: s.FFN, Heads: s.Heads, KVHeads: s.KVHeads,
		HeadDim: s.HeadDim, Vocab: s.Vocab, Context: s.Context, Windows: map[int]int{},
	}
	for _, w := range s.Windows {
		d.Dimensions.Windows[w]++
	}
	if s.Experts > 0 {
		d.Dimensions.Experts, d.Dimensions.ExpertsUsed, d.Dimensions.ExpertFFN = s.Experts, s.Route.Used, s.ExpertFFN
	}
	d.Dimensions.Encoder, d.Dimensions.Labels = m.Program.Whole, s.Labels
	d.Plan = m.Program.String()
	d.fixed = readByAll(m.Program)
	for i := range m.Program.Nodes { // the data are views of a mapping that is about to go
		m.Program.Nodes[i].Replace(withoutData)
	}
	d.program = m.Program
}

func withoutData(w *tensor.Tensor) *tensor.Tensor {
	t := &tensor.Tensor{Name: w.Name, DType: w.DType, Shape: w.Shape}
	if w.Source != nil {
		t.Source = noRows{} // backends plan other memory for derived weights
	}
	return t
}

// noRows is the source of derived weights that are only planned with.
type noRows struct{}

func (noRows) ReadRows([]byte, int, int) error {
	return errors.New("the weight is described, not read")
}

func (noRows) Parts() []*tensor.Tensor { return nil }

// readByAll is the bytes of weights that every token reads: all but tables of
// embeddings that are not the head too, and of experts as many as a token has.
func readByAll(p *plan.Program) int64 {
	read := map[*tensor.Tensor]int64{}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Op == plan.Embed || n.Op == plan.Position {
			continue
		}
		used, of := active(n)
		for _, w := range n.Tensors() {
			read[w] = int64(w.Size()) * used / of
		}
	}
	var total int64
	for _, n := range read {
		total += n
	}
	return total
}

// readNumbers reads the metadata that most architectures share, for a model
// whose own is not known.
func (d *Description) readNumbers(f *modelfile.File) {
	m := f.Meta()
	d.Architecture, _ = m.String("general.architecture")
	prefix, column := d.Architecture+".", 0
	if f.Format() == modelfile.Safetensors {
		if list, ok := m.Strings("architectures"); ok && len(list) > 0 {
			d.Architecture = list[0]
		}
		prefix, column = "", 1
	}
	n := &d.Dimensions
	for _, k := range []struct {
		to   *int
		keys [2]string // of GGUF, of config.json
	}{
		{&n.Layers, [2]string{"block_count", "num_hidden_layers"}},
		{&n.Hidden, [2]string{"embedding_length", "hidden_size"}},
		{&n.FFN, [2]string{"feed_forward_length", "intermediate_size"}},
		{&n.Heads, [2]string{"attention.head_count", "num_attention_heads"}},
		{&n.KVHeads, [2]string{"attention.head_count_kv", "num_key_value_heads"}},
		{&n.HeadDim, [2]string{"attention.key_length", "head_dim"}},
		{&n.Vocab, [2]string{"vocab_size", "vocab_size"}},
		{&n.Context, [2]string{"context_length", "max_position_embeddings"}},
	} {
		if v, ok := m.Int(prefix + k.keys[column]); ok && v > 0 && v <= math.MaxInt32 {
			*k.to = int(v)
		}
	}
}

func (d *Description) readText(f *modelfile.File, pre string) {
	generation, err := readGeneration(f)
	if err != nil && d.Problem == "" {
		d.Problem = err.Error()
	}
	tok, err := tokenizerOf(f, pre)
	if err != nil {
		d.TokenizerProblem = err.Error()
	} else {
		t := &TokenizerDescription{Kind: tok.Kind(), Name: tok.Name(), Guessed: tok.Guessed(), Vocab: tok.VocabSize(), AddsBOS: tok.AddsBOS()}
		if id, ok := tok.BOS(); ok {
			t.BOS, _ = tok.Token(id)
		}
		if id, ok := tok.EOS(); ok {
			t.EOS, _ = tok.Token(id)
		}
		for id := range endTokens(f, tok, generation) {
			t.EndTokens = append(t.EndTokens, id)
		}
		slices.Sort(t.EndTokens)
		d.Tokenizer = t
	}
	all, err := readTemplates(f)
	if errors.Is(err, chat.ErrTemplate) {
		d.TemplateProblem = strings.TrimPrefix(err.Error(), fmt.Sprintf("%v: %s: ", ErrNoTemplate, f.Path()))
	}
	d.ChatTemplate, d.ToolTemplate = all[defaultTemplate] != nil, all[toolTemplate] != nil
	s, ok, err := readSampling(f, generation)
	if ok {
		d.Sampling = &s
	} else if err != nil && d.Problem == "" {
		d.Problem = err.Error()
	}
}

// Memory is what a model takes while it runs, in bytes.
type Memory struct {
	Context  int           `json:"context"`
	Parallel int           `json:"parallel"`
	Weights  int64         `json:"weights"`  // each counts once, wherever it is read from
	Resident int64         `json:"resident"` // what lies in the device's memory: on the processor, of Weights what is laid out anew, while the rest is mapped from the file and the system can let go of it
	States   []StateMemory `json:"states"`
	Scratch  int64         `json:"scratch"`              // of one step
	Total    int64         `json:"total"`                // of weights, states and scratch; on a device, of what is there
	Limit    int64         `json:"limit,omitempty"`      // of Total, by Options.DeviceMemory; 0: there is none
	Free     int64         `json:"free,omitempty"`       // what the device has left; 0 where it does not say
	Device   string        `json:"device"`               // that Free is of
	Cache    string        `json:"cache,omitempty"`      // number format of keys and values
	Host     int64         `json:"host_cache,omitempty"` // of the host, beside Total

	// Sequences of Context tokens each is what the states have room for at one time,
	// or this many Tokens of however many sequences.
	Sequences int `json:"sequences"`
	Tokens    int `json:"tokens"`

	Streaming *Streaming `json:"streaming,omitempty"` // nil where no weights stream

	DeviceName    string `json:"device_name,omitempty"`    // what the device is called; empty for the processor
	DeviceProblem string `json:"device_problem,omitempty"` // as [Model.DeviceProblem] has it
}

// StateMemory is what one kind of state takes for all sequences together.
type StateMemory struct {
	Kind   string `json:"kind"`             // "kv": keys and values
	Window int    `json:"window,omitempty"` // tokens kept of a sequence, 0: its context
	Layers int    `json:"layers"`
	Bytes  int64  `json:"bytes"`
}

// Memory plans what the model takes with o's Device, Context, Parallel, Memory,
// DeviceMemory, StreamWeights, Activations, Cache and HostCache; a Parallel of 0 is 1.
//
// On the processor a Context of 0 is the one that the model was made for, and where
// one answer does not fit, it is what that would take. On a device it is what the
// model would be opened with, and what does not fit is an error that wraps
// [ErrMemory], or where the choice is open, why it is the processor that is planned
// for. It is an error when the model cannot be run, or not so.
func (d *Description) Memory(o Options) (*Memory, error) {
	p, err := d.planner(&o)
	if err != nil {
		return nil, err
	}
	device, problem, err := o.device()
	if err != nil {
		return nil, wrap(err)
	}
	if device != nil {
		p.on(device)
		m, err := d.memory(p)
		if err = errors.Join(err, device.Close()); err == nil {
			return m, nil
		}
		if !o.automatic() {
			return nil, wrap(err)
		}
		problem = fmt.Errorf("%s: %w", device.Description(), err)
	}
	processor, err := o.processor()
	if err != nil {
		return nil, wrap(err)
	}
	p.on(processor)
	m, err := d.memory(p)
	if err != nil {
		return nil, wrap(err)
	}
	if problem != nil {
		m.DeviceProblem = problem.Error()
	}
	return m, nil
}

// Kernels says what runs the model on the device that o chooses, a line for each
// part of the plan that is done as one. It is empty for the processor.
func (d *Description) Kernels(o Options) (kernels []string, err error) {
	err = d.onDevice(&o, func(device backends.Device, l plan.Limits) error {
		kernels = device.Kernels(d.program, l)
		return nil
	})
	return kernels, err
}

// onDevice does something with the device that o chooses, where the model has room
// with l. It does nothing where the model is to run on the processor.
func (d *Description) onDevice(o *Options, do func(device backends.Device, l plan.Limits) error) error {
	p, err := d.planner(o)
	if err != nil {
		return err
	}
	device, _, err := o.device()
	if err != nil {
		return wrap(err)
	}
	if device == nil {
		return nil
	}
	p.on(device)
	c, err := p.sizes()
	switch {
	case err == nil:
		err = do(device, c.Limits(d.program))
	case o.automatic():
		err = nil // the processor is the choice
	}
	if err = errors.Join(err, device.Close()); err != nil {
		return wrap(err)
	}
	return nil
}

// planner plans the memory of the model on a backend that is still to be chosen.
func (d *Description) planner(o *Options) (*planner, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if d.program == nil {
		return nil, fmt.Errorf("realizar: %w", errors.New(d.Problem))
	}
	p := &planner{program: d.program, made: d.Dimensions.Context, options: *o}
	p.options.Parallel = max(1, o.Parallel)
	if _, err := p.config(); err != nil {
		return nil, wrap(err)
	}
	return p, nil
}

// shown is what a description says of an engine: on a device what the model is opened
// with, and on the processor the context that was asked for, or the one that the model
// was made for, whether it fits or not.
func (p *planner) shown() (engine.Config, error) {
	if p.device != nil {
		return p.sizes()
	}
	asked := *p
	asked.options.Context = cmp.Or(p.options.Context, p.made)
	c, err := asked.config()
	if err != nil {
		return c, err
	}
	if c, _, _, err = asked.fit(c, placement{}); err != nil {
		return c, fmt.Errorf("%w: %w", ErrMemory, err)
	}
	return c, nil
}

// memory is what an engine takes on p's backend.
func (d *Description) memory(p *planner) (*Memory, error) {
	c, err := p.shown()
	if err != nil {
		return nil, err
	}
	need, err := c.Memory(d.program, p.backend)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMemory, err)
	}
	m := &Memory{
		Context: c.Context, Parallel: c.Parallel, Resident: int64(need.Weights), Scratch: int64(need.Scratch), Cache: c.Cache.String(), Host: p.options.HostCache,
		Free: p.backend.Memory().Free, Device: p.backend.Name(),
	}
	for _, t := range d.Tensors {
		m.Weights += t.Bytes
	}
	m.Weights = max(m.Weights, m.Resident) // rows that fill up a layout can make it the larger one
	limits := c.Limits(d.program)
	m.Total = m.Weights + int64(need.States) + m.Scratch
	if p.device != nil {
		m.DeviceName, m.Limit = p.device.Description(), p.limit()
		m.Total = m.Resident + int64(need.States) + m.Scratch
		streaming := p.device.Streaming(d.program, limits)
		m.Streaming = newStreaming(&streaming)
	}
	for g, group := range d.program.Groups {
		page, err := limits.PageBytes(d.program, g)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrMemory, err)
		}
		s := StateMemory{Kind: group.Kind.String(), Window: group.Window, Bytes: int64(page) * int64(limits.Pages[g])}
		for _, state := range d.program.States {
			if state.Group == g {
				s.Layers++
			}
		}
		m.States = append(m.States, s)
	}
	m.Sequences, m.Tokens = holds(d.program, c)
	return m, nil
}

// holds is how many sequences of c's context its pools have room for, and how many
// tokens of sequences of any length. Windows keep a part of each sequence alone, so
// they do not bound the tokens where something else does.
func holds(p *plan.Program, c engine.Config) (sequences, tokens int) {
	limits := c.Limits(p)
	c.States, c.Parallel = 1, 1
	one := c.Limits(p)
	sequences, tokens = math.MaxInt, math.MaxInt
	for g, group := range p.Groups {
		sequences = min(sequences, limits.Pages[g]/one.Pages[g])
		if group.KeepsAll() {
			tokens = min(tokens, limits.Pages[g]*limits.PageTokens)
		}
	}
	if len(p.Groups) == 0 {
		return 0, 0
	}
	return sequences, max(sequences*c.Context, min(tokens, limits.Seqs*c.Context))
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
	total, dtype := d.fixed, c.dtype(a)
	for _, s := range d.program.States {
		if s.Kind == plan.PerSequence {
			total += 4 * int64(s.Size)
			continue
		}
		seen := past
		if s.Window > 0 {
			seen = min(seen, s.Window)
		}
		total += int64(seen) * int64(s.Width()/dtype.BlockLen()) * int64(dtype.BlockBytes())
	}
	return total
}

// TokenProducts is how many multiply-adds one token of a prompt takes in the
// products with weights: quantized with 8-bit activations, floats in float32. What
// is computed for chosen tokens alone, as the head is, does not count, nor does
// attention, whose work grows with the tokens before. Both are 0 when the model
// cannot be run.
func (d *Description) TokenProducts(a Activations) (quantized, floats int64) {
	if d.program == nil {
		return 0, 0
	}
	for i := range d.program.Nodes {
		n := &d.program.Nodes[i]
		if n.Op != plan.Linear && n.Op != plan.Experts || d.program.Shapes[n.Out][0] != plan.Tokens {
			continue
		}
		used, of := active(n)
		for _, w := range n.Tensors() {
			products := int64(w.Elems()) * used / of
			switch {
			case len(w.Shape) != 2: // a bias
			case plan.InBytes(w.DType) && a.products() == tensor.Q8_0:
				quantized += products
			default:
				floats += products
			}
		}
	}
	return quantized, floats
}

// active is how many of so many parts of n's weights a token reads: all, or its experts.
func active(n *plan.Node) (used, of int64) {
	if a, ok := n.Attr.(plan.ExpertsAttr); ok {
		return int64(a.Route.Used), int64(len(a.Gate))
	}
	return 1, 1
}
