package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/modelfile"
)

// inspectCommand is `realizar inspect`.
type inspectCommand struct {
	Model       string `arg:"" help:"${model}"`
	Context     int    `default:"0" placeholder:"N" common:"" help:"Context to plan memory for, in tokens of prompt and answer together. Default: what the model supports, or on a GPU the largest power of two that fits."`
	Parallel    int    `default:"1" placeholder:"M" common:"" help:"Number of running requests to plan memory for. Default: ${default}."`
	Activations string `default:"auto" enum:"auto,f32,f8" placeholder:"auto|f32|f8" help:"Arithmetic to plan memory for."`
	Device      string `default:"auto" placeholder:"auto|cpu|cuda" common:"" help:"Device to plan memory for: cuda is an NVIDIA GPU, cuda:1 the GPU with number 1. auto is the device that run chooses."`
	Devices     int    `default:"1" placeholder:"N" help:"Show what each of N devices would hold if they ran the model together, each with a part of it. Default: ${default}."`
	Replicas    int    `default:"1" placeholder:"N" help:"Show what N copies of the model take, each on one GPU, or on an equal share of those that --device numbers, as serve --replicas runs them. Default: ${default}."`
	Tensors     bool   `common:"" help:"List the tensors."`
	Metadata    bool   `common:"" help:"List the metadata of a GGUF file, or config.json."`
	Plan        bool   `common:"" help:"Show the program that runs the model, and on a GPU its kernels."`
	JSON        bool   `name:"json" common:"" help:"Write everything as one JSON object."`

	speculativeFlags
	splitFlag
	memoryFlags
	tokenizerFlags
}

// Help is shown below the command's line.
func (*inspectCommand) Help() string {
	return `inspect reads the description of the model, and no weights. If the model cannot run, the output says
why and has what is known; a GGUF file with a vocabulary alone is described too. With --json and
--plan on a GPU, kernels is a list of texts, one for each launch of kernels in the plan. Kernels of
products are listed by the number of rows from which each runs, and with the reason: measured by
realizar doctor --tune, or estimated.

On a GPU the memory is planned as run does it: which weights are in GPU memory, and which stream to
it from pinned host memory, or from the file if they do not fit there. If even that does not fit, the
error has the smallest numbers that work. With --gpu-memory or --stream-weights, and if weights
stream, the bandwidth of GPU memory and of the link to it are measured, and the resulting speed of
one request is shown.

--devices N divides the model and shows what each device would hold: its rows of the weights and the
states of its heads for one request of the context, or with --split layers the weights and states of
its layers. Run it so with --device cuda:0,1.

--replicas N shows what each of N copies takes of its GPU, and all of them together, as serve
--replicas N runs them: --parallel, --context and --gpu-memory are those of each copy, and --memory
and --kv-host are divided among the copies. All have the longest context for which each GPU has
room. serve runs 64 requests at a time on a GPU unless --parallel says otherwise.

Examples:

    realizar inspect model.gguf
    realizar inspect model.gguf --context 32768 --parallel 8
    realizar inspect ./Qwen3-0.6B --tensors --metadata
    realizar inspect model.gguf --plan --device cuda
    realizar inspect model.gguf --device cuda --gpu-memory 8GiB
    realizar inspect model.gguf --device cuda --replicas 2 --parallel 64
    realizar inspect model.gguf --json | jq .dtypes`
}

// Validate implements the parser's interface.
func (c *inspectCommand) Validate() error {
	if c.Context < 0 {
		return fmt.Errorf("--context=%d: want 1 or more, or 0 for what the model supports", c.Context)
	}
	if c.Parallel < 1 {
		return fmt.Errorf("--parallel=%d: want 1 or more", c.Parallel)
	}
	if c.Devices < 1 || c.Devices > realizar.MaxParts {
		return fmt.Errorf("--devices=%d: want 1 to %d", c.Devices, realizar.MaxParts)
	}
	if c.Replicas < 1 || c.Replicas > realizar.MaxReplicas {
		return fmt.Errorf("--replicas=%d: want 1 to %d", c.Replicas, realizar.MaxReplicas)
	}
	if err := c.validSpeculative(); err != nil {
		return err
	}
	return checkDevice(c.Device)
}

// Run describes the model.
func (c *inspectCommand) Run(a *app) error {
	path, err := a.modelPath(c.Model, false)
	if err != nil {
		return err
	}
	d, err := realizar.DescribeWith(path, c.PreTokenizer)
	if err != nil {
		return err
	}
	var planned plannedModel
	if d.Problem == "" {
		if planned, err = c.plan(a, d); err != nil {
			return err
		}
	}
	if c.JSON {
		return c.writeJSON(a.out, d, &planned)
	}
	var b strings.Builder
	b.WriteString(summary(d, &planned))
	if c.Tensors {
		b.WriteString("\nTensors\n\n" + tensorList(d))
	}
	if c.Metadata {
		b.WriteString("\nMetadata\n\n" + metadataList(d))
	}
	if c.Plan {
		b.WriteString("\nPlan\n\n")
		if d.Plan == "" {
			b.WriteString("none: " + printable(d.Problem) + "\n")
		}
		b.WriteString(printable(d.Plan))
	}
	if len(planned.kernels) > 0 {
		b.WriteString("\nKernels\n\n" + printable(strings.Join(planned.kernels, "\n")) + "\n")
	}
	_, err = io.WriteString(a.out, b.String())
	return err
}

// A plannedModel is a plan for running a model.
type plannedModel struct {
	memory   *realizar.Memory      // of the first copy; nil if the model cannot run
	copies   []*realizar.Memory    // nil unless --replicas asks for several
	expected *realizar.Expectation // nil if it was not requested
	parts    []realizar.PartMemory // nil unless --devices asks for several
	kernels  []string
}

// plan plans the memory of the model. It adds the expected speed if a GPU's memory is limited, and
// the kernels if --plan asks for them.
func (c *inspectCommand) plan(a *app, d *realizar.Description) (p plannedModel, err error) {
	activations, err := realizar.ParseActivations(c.Activations)
	if err != nil {
		return p, err
	}
	o := realizar.Options{Device: c.Device, Context: c.Context, Parallel: c.Parallel, Activations: activations, Kernels: a.kernels, Replicas: c.Replicas}
	c.splitFlag.apply(&o)
	c.memoryFlags.apply(&o)
	c.setSpeculative(&o)
	if err := a.findDraft(&o); err != nil {
		return p, err
	}
	copies, err := d.Replicas(o)
	if err != nil {
		return p, err
	}
	if p.memory = copies[0]; len(copies) > 1 {
		p.copies = copies
	}
	if p.memory.DeviceProblem != "" {
		a.noteDevice(errors.New(p.memory.DeviceProblem))
	}
	if c.Devices > 1 {
		if p.parts, err = d.Parts(a.ctx, o, c.Devices); err != nil {
			return p, err
		}
	}
	if backends.All.Kind(p.memory.Device).Host {
		return p, nil
	}
	if p.memory.Limit > 0 || o.StreamWeights != realizar.StreamAuto || p.memory.Streaming != nil {
		if p.expected, err = d.Expect(a.ctx, o); err != nil {
			return p, err
		}
	}
	if c.Plan {
		p.kernels, err = d.Kernels(o)
	}
	return p, err
}

// writeJSON writes the requested parts as one object.
func (c *inspectCommand) writeJSON(w io.Writer, d *realizar.Description, p *plannedModel) error {
	all := struct {
		*realizar.Description
		Memory   *realizar.Memory             `json:"memory,omitempty"`
		Expected *realizar.Expectation        `json:"expected,omitempty"`
		Tensors  []realizar.TensorDescription `json:"tensors,omitempty"`
		Metadata []jsonEntry                  `json:"metadata,omitempty"`
		Plan     string                       `json:"plan,omitempty"`
		Parts    []realizar.PartMemory        `json:"divided,omitempty"`
		Replicas *replicasMemory              `json:"replicas,omitempty"`
		Kernels  []string                     `json:"kernels,omitempty"`
		Sampling *jsonSampling                `json:"sampling,omitempty"`
	}{Description: d, Memory: p.memory, Expected: p.expected, Parts: p.parts, Replicas: newReplicasMemory(p.copies), Kernels: p.kernels}
	if s := d.Sampling; s != nil {
		all.Sampling = &jsonSampling{s.Temperature, s.TopK, s.Typical, s.TopP, s.MinP, s.RepetitionPenalty}
	}
	if c.Tensors {
		all.Tensors = d.Tensors
	}
	if c.Metadata {
		for _, e := range d.Metadata {
			all.Metadata = append(all.Metadata, jsonEntry{e.Key, e.Type, jsonValue(e.Value)})
		}
	}
	if c.Plan {
		all.Plan = d.Plan
	}
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	return out.Encode(all)
}

type jsonSampling struct {
	Temperature float32 `json:"temperature"`
	TopK        int     `json:"top_k"`
	Typical     float32 `json:"typical_p,omitempty"`
	TopP        float32 `json:"top_p"`
	MinP        float32 `json:"min_p"`
	Repetition  float32 `json:"repetition_penalty,omitempty"`
}

type jsonEntry struct {
	Key   string `json:"key"`
	Type  string `json:"type"`
	Value any    `json:"value"`
}

// jsonValue converts a metadata value for encoding/json: objects become maps, bytes become numbers,
// and floats that are not finite become strings.
func jsonValue(v any) any {
	switch v := v.(type) {
	case *modelfile.Meta:
		object := map[string]any{}
		for _, key := range v.Keys() {
			value, _ := v.Value(key)
			object[key] = jsonValue(value)
		}
		return object
	case string, bool, nil, []string, []bool:
		return v
	}
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.Slice:
		list := make([]any, r.Len())
		for i := range list {
			list[i] = jsonValue(r.Index(i).Interface())
		}
		return list
	case reflect.Float32, reflect.Float64:
		if _, err := json.Marshal(v); err != nil {
			return fmt.Sprint(v)
		}
	}
	return v
}

// summary returns the description that begins every inspection.
func summary(d *realizar.Description, p *plannedModel) string {
	t := newTable()
	add := func(name, value string) {
		if value != "" {
			t.row(name, oneLine(value))
		}
	}
	add("model", d.Path)
	add("name", d.Name)
	add("architecture", d.Architecture)
	if d.Problem != "" {
		add("cannot run", d.Problem)
	}
	add("format", fmt.Sprintf("%s, %s", d.Format, byteText(d.FileBytes)))
	add("parameters", fmt.Sprintf("%s in %d tensors", count(d.Parameters), d.TensorCount))
	add("dtypes", shares(d))
	n := d.Dimensions
	add("context", positive(n.Context, "tokens"))
	add("layers", positive(n.Layers, "")+windows(n.Windows))
	add("width", positive(n.Hidden, "")+aside(n.FFN, ", feed-forward %d"))
	if n.Experts > 0 {
		add("experts", fmt.Sprintf("%d of %d for a token, feed-forward %d", n.ExpertsUsed, n.Experts, n.ExpertFFN))
	}
	if n.Encoder {
		add("made for", madeFor(n.Labels))
	}
	add("heads", positive(n.Heads, "")+aside(n.KVHeads, ", key/value heads %d")+aside(n.HeadDim, ", head width %d"))
	add("token ids", positive(n.Vocab, ""))
	add("tokenizer", tokenizerText(d))
	add("chat template", templateText(d))
	add("sampling", samplingText(d.Sampling))
	if p.memory == nil {
		return t.text()
	}
	return t.text() + memoryText(p.memory, d.Dimensions.Layers, max(1, len(p.copies))) + replicasText(newReplicasMemory(p.copies)) + dividedText(p.parts) + expectedText(p.expected, p.memory.Streaming)
}

// oneLine returns s as one printable line.
func oneLine(s string) string { return strings.Join(strings.Fields(printable(s)), " ") }

func positive(n int, unit string) string {
	if n <= 0 {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", n, unit))
}

func aside(n int, format string) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(format, n)
}

// count formats a number; from a million up it has three digits and a unit.
func count(n int64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e12, "T"}, {1e9, "B"}, {1e6, "M"}} {
		if float64(n) >= u.size {
			return fmt.Sprintf("%.3g%s", float64(n)/u.size, u.name)
		}
	}
	return strconv.FormatInt(n, 10)
}

func shares(d *realizar.Description) string {
	var parts []string
	for _, s := range d.DTypes {
		parts = append(parts, fmt.Sprintf("%s %.1f%%", s.Name, 100*s.Share))
	}
	return strings.Join(parts, ", ")
}

// windows says how many layers have an attention window.
func windows(by map[int]int) string {
	var parts []string
	for _, w := range slices.Sorted(maps.Keys(by)) {
		if w > 0 {
			parts = append(parts, fmt.Sprintf(", %d with a window of %d tokens", by[w], w))
		}
	}
	return strings.Join(parts, "")
}

func tokenizerText(d *realizar.Description) string {
	t := d.Tokenizer
	if t == nil {
		return "none: " + d.TokenizerProblem
	}
	text := t.Kind
	if t.Name != "" {
		text += ", " + t.Name
	}
	if t.Guessed {
		text += " (the file names none)"
	}
	text += fmt.Sprintf(", %d tokens", t.Vocab)
	if t.AddsBOS {
		text += fmt.Sprintf(", begins with %s", t.BOS)
	}
	if len(t.EndTokens) > 0 {
		text += fmt.Sprintf(", ends with %s", strings.Trim(fmt.Sprint(t.EndTokens), "[]"))
	}
	return text
}

func templateText(d *realizar.Description) string {
	switch {
	case d.ToolTemplate && d.ChatTemplate:
		return "yes, and another one for tools"
	case d.ToolTemplate:
		return "for tools only"
	case d.ChatTemplate:
		return "yes"
	}
	if d.TemplateProblem != "" {
		return "none: " + d.TemplateProblem
	}
	return "none"
}

func samplingText(s *realizar.Sampling) string {
	switch {
	case s == nil:
		return ""
	case s.Temperature == 0:
		return "greedy" + fraction(s.RepetitionPenalty, ", repetition penalty %g")
	}
	return fmt.Sprintf("temperature %g", s.Temperature) + aside(s.TopK, ", top-k %d") + fraction(s.Typical, ", typical-p %g") +
		fraction(s.TopP, ", top-p %g") + fraction(s.MinP, ", min-p %g") + fraction(s.RepetitionPenalty, ", repetition penalty %g")
}

func fraction(f float32, format string) string {
	if f == 0 {
		return ""
	}
	return fmt.Sprintf(format, f)
}

func tensorList(d *realizar.Description) string {
	t := newTable()
	for _, x := range d.Tensors {
		t.row(oneLine(x.Name), x.DType, strings.ReplaceAll(strings.Trim(fmt.Sprint(x.Shape), "[]"), " ", "x"), strconv.FormatInt(x.Bytes, 10), partsText(x))
	}
	return t.text(3)
}

// partsText says what a derived tensor is made of. Names are shortened by the prefix that they
// share with the tensor's own.
func partsText(x realizar.TensorDescription) string {
	if len(x.Parts) == 0 {
		return ""
	}
	var parts []string
	for _, p := range x.Parts {
		parts = append(parts, strings.TrimPrefix(p, x.Name[:strings.LastIndexByte(x.Name, '.')+1]))
	}
	return "made of " + oneLine(strings.Join(parts, ", "))
}

func metadataList(d *realizar.Description) string {
	var b strings.Builder
	for _, e := range d.Metadata {
		fmt.Fprintf(&b, "%s = %s\n", oneLine(e.Key), short(e.Value))
	}
	return b.String()
}

// How much of a long metadata value is shown.
const (
	shownElements = 8
	shownText     = 200 // characters
)

// short formats a value on one line. A long one is cut, and its length added.
func short(v any) string {
	switch v := v.(type) {
	case string:
		if r := []rune(v); len(r) > shownText {
			return fmt.Sprintf("%q... (%d characters)", string(r[:shownText]), len(r))
		}
		return strconv.Quote(v)
	case nil:
		return "null"
	case *modelfile.Meta:
		return fmt.Sprintf("an object of %d", len(v.Keys()))
	}
	r := reflect.ValueOf(v)
	if r.Kind() != reflect.Slice {
		return fmt.Sprint(v)
	}
	var parts []string
	for i := range min(r.Len(), shownElements) {
		parts = append(parts, short(r.Index(i).Interface()))
	}
	text := "[" + strings.Join(parts, ", ")
	if r.Len() > shownElements {
		return fmt.Sprintf("%s, ...] (%d elements)", text, r.Len())
	}
	return text + "]"
}

// madeFor says what an encoder is for, by its number of labels.
func madeFor(labels int) string {
	switch labels {
	case 0:
		return "embeddings"
	case 1:
		return "ranking texts"
	}
	return fmt.Sprintf("classifying texts by %d labels", labels)
}
