package ollama

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/fields"
	"github.com/realizar/realizar/internal/server/jsontext"
)

// A showRequest is the body of POST /api/show.
type showRequest struct {
	model, older string
	verbose      bool
}

var showFields = fields.List[showRequest]{
	fields.Text("model", "name", func(r *showRequest) *string { return &r.model }),
	fields.Text("name", "model, its newer name", func(r *showRequest) *string { return &r.older }),
	fields.Flag("verbose", "false: arrays of the metadata and the tensors are left out", func(r *showRequest) *bool { return &r.verbose }),
	fields.Only[showRequest]("system", `""`, "it shows the model as it is", `""`),
	fields.Only[showRequest]("template", `""`, "it shows the model as it is", `""`),
	fields.Ignored[showRequest]("options"),
}

// describedBytes bounds the memory of one tensor in a [realizar.Description], in bytes.
const describedBytes = 512

// show handles POST /api/show. A model of the store that is not served is described from its files.
func show(x *server.Exchange) error {
	var r showRequest
	if err := server.Read(x, showFields, &r); err != nil {
		return err
	}
	name, err := nameOf(r.model, r.older)
	if err != nil {
		return err
	}
	if store, err := x.Server.Store(); err == nil {
		if _, err := x.Server.Find(name); err != nil && stored(x, store, name) {
			return showStored(x, store, name, r.verbose)
		}
	}
	if err := x.Hold(name); err != nil {
		return err
	}
	m := x.Model()
	is := catalogOf(m)
	if err := x.Reserve(describedBytes * is.tensors); err != nil {
		return err
	}
	d := m.Description()
	able, err := capabilities(x, d)
	if err != nil {
		return err
	}
	to := shown{name: x.Name(), details: is.details, parameters: parametersOf(defaults(m.Model), m.Context()), capabilities: able, modified: m.Created}
	if t, err := m.ChatTemplate(); err == nil {
		to.template = t.Source()
	}
	to.write(x, d, r.verbose)
	return nil
}

// showStored answers with a model of the store that is not loaded.
func showStored(x *server.Exchange, store server.Store, name string, verbose bool) error {
	m, err := store.Find(x.Work(), name)
	if err != nil {
		return err
	}
	if m.Description != nil {
		if err := x.Reserve(describedBytes * m.Description.TensorCount); err != nil {
			return err
		}
	}
	d, err := store.Describe(x.Work(), name)
	if err != nil {
		return err
	}
	to := shown{
		name: m.Name, details: detailsOf(d), parameters: parametersOf(orOllamas(d.Sampling), d.Dimensions.Context),
		capabilities: []string{"completion"}, modified: m.Modified,
	}
	switch {
	case d.Dimensions.Labels > 0:
		to.capabilities = []string{}
	case d.Dimensions.Encoder:
		to.capabilities = []string{"embedding"}
	}
	to.template, _ = textOf(d, "tokenizer.chat_template")
	to.write(x, d, verbose)
	return nil
}

// shown is the answer of POST /api/show without the metadata and the tensors.
type shown struct {
	name         string
	details      details
	parameters   []string
	template     string
	capabilities []string
	modified     time.Time
}

// write writes the answer: the metadata of d, its tensors if verbose, and s.
func (s *shown) write(x *server.Exchange, d *realizar.Description, verbose bool) {
	b := append(appendJSON([]byte(`{"details":`), s.details), `,"model_info":{`...)
	b = appendInfo(x, b, d, verbose)
	if verbose {
		b = appendTensors(x, append(b, `},"tensors":[`...), d)
		b = append(b, `],`...)
	} else {
		b = append(b, `},`...)
	}
	b = jsontext.AppendString(append(b, `"modelfile":`...), modelfileOf(s.name, s.parameters))
	b = jsontext.AppendString(append(b, `,"parameters":`...), strings.Join(s.parameters, "\n"))
	if s.template != "" {
		b = jsontext.AppendString(append(b, `,"template":`...), s.template)
	}
	if license, ok := textOf(d, "general.license"); ok {
		b = jsontext.AppendString(append(b, `,"license":`...), license)
	}
	b = appendJSON(append(b, `,"capabilities":`...), s.capabilities)
	b = jsontext.AppendString(append(b, `,"modified_at":`...), s.modified.Format(time.RFC3339Nano))
	x.WriteJSON(append(b, '}'))
}

func appendJSON(b []byte, v any) []byte {
	data, err := jsontext.Encode(v)
	if err != nil {
		return append(b, "null"...) // JSON has no NaN and no infinity
	}
	return append(b, data...)
}

// textOf returns the metadata with the key if it is a string.
func textOf(d *realizar.Description, key string) (string, bool) {
	for _, e := range d.Metadata {
		if e.Key == key {
			s, ok := e.Value.(string)
			return s, ok
		}
	}
	return "", false
}

// appendInfo appends the metadata of the files, and under GGUF's names what clients expect and some
// files lack. Long arrays are null unless verbose.
func appendInfo(x *server.Exchange, b []byte, d *realizar.Description, verbose bool) []byte {
	known, first := map[string]bool{"tokenizer.chat_template": true}, true
	add := func(key string, value any) {
		if known[key] {
			return
		}
		if known[key] = true; !first {
			b = append(b, ',')
		}
		first = false
		b = append(jsontext.AppendString(b, key), ':')
		switch v := reflect.ValueOf(value); {
		case v.Kind() != reflect.Slice:
			b = x.Spill(appendJSON(b, finiteOrNil(value)))
		case verbose:
			b = appendArray(x, b, v)
		default:
			b = append(b, "null"...)
		}
	}
	for _, e := range d.Metadata {
		add(e.Key, e.Value)
	}
	n, a := &d.Dimensions, familyOf(d)
	add("general.architecture", a)
	add("general.parameter_count", d.Parameters)
	for _, e := range []struct {
		key   string
		value int
	}{
		{"context_length", n.Context}, {"embedding_length", n.Hidden}, {"block_count", n.Layers}, {"feed_forward_length", n.FFN},
		{"attention.head_count", n.Heads}, {"attention.head_count_kv", n.KVHeads}, {"vocab_size", n.Vocab},
	} {
		if e.value > 0 {
			add(a+"."+e.key, e.value)
		}
	}
	return b
}

// appendArray appends an array of the metadata, which may be as long as the vocabulary.
func appendArray(x *server.Exchange, b []byte, list reflect.Value) []byte {
	b = append(b, '[')
	for i := range list.Len() {
		if i > 0 {
			b = append(b, ',')
		}
		b = x.Spill(appendJSON(b, finiteOrNil(list.Index(i).Interface())))
	}
	return append(b, ']')
}

// finiteOrNil returns value, or nil if it is NaN or infinite, which JSON does not have.
func finiteOrNil(value any) any {
	if v := reflect.ValueOf(value); v.CanFloat() && (math.IsNaN(v.Float()) || math.IsInf(v.Float(), 0)) {
		return nil
	}
	return value
}

// appendTensors appends the tensors; their shapes begin with the innermost dimension.
func appendTensors(x *server.Exchange, b []byte, d *realizar.Description) []byte {
	for i := range d.Tensors {
		t := &d.Tensors[i]
		if i > 0 {
			b = append(b, ',')
		}
		shape := slices.Clone(t.Shape)
		slices.Reverse(shape)
		b = jsontext.AppendString(append(b, `{"name":`...), t.Name)
		b = jsontext.AppendString(append(b, `,"type":`...), t.DType)
		b = x.Spill(append(appendJSON(append(b, `,"shape":`...), shape), '}'))
	}
	return b
}

// parametersOf returns the default options, one per line.
func parametersOf(s realizar.Sampling, context int) (lines []string) {
	line := func(name string, value any) { lines = append(lines, fmt.Sprintf("%-30s %v", name, value)) }
	line("num_ctx", context)
	line("temperature", s.Temperature)
	for _, p := range []struct {
		name    string
		value   float32
		neutral float32
	}{{"min_p", s.MinP, 0}, {"repeat_penalty", s.RepetitionPenalty, 1}, {"top_p", s.TopP, 1}, {"typical_p", s.Typical, 1}} {
		if p.value != 0 && p.value != p.neutral {
			line(p.name, p.value)
		}
	}
	if s.TopK > 0 {
		line("top_k", s.TopK)
	}
	return lines
}

// modelfileOf returns a Modelfile of the model.
func modelfileOf(name string, parameters []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# The model is served from its own file, which holds the chat template, in Jinja.\nFROM %s\n", server.Tagged(name))
	for _, p := range parameters {
		name, value, _ := strings.Cut(p, " ")
		fmt.Fprintf(&b, "PARAMETER %s %s\n", name, strings.TrimSpace(value))
	}
	return b.String()
}

// capabilities returns what the model can do. Those that depend on the chat template are found as
// for a request.
func capabilities(x *server.Exchange, d *realizar.Description) ([]string, error) {
	switch {
	case x.Model().Labels() > 0:
		return []string{}, nil
	case d.Dimensions.Encoder:
		return []string{"embedding"}, nil
	}
	able := []string{"completion"}
	if x.CheckSuffix() == nil {
		able = append(able, "insert")
	}
	for _, c := range []struct {
		name    string
		request realizar.ChatRequest
	}{
		{"tools", realizar.ChatRequest{Tools: []chat.Tool{{Name: "f", Parameters: json.RawMessage(`{"type":"object"}`)}}, ToolChoice: realizar.ToolChoice{Mode: realizar.ToolRequired}}},
		{"thinking", realizar.ChatRequest{ThinkingTokens: new(1)}},
	} {
		c.request.Messages = []chat.Message{{Role: "user", Content: "a"}}
		if _, err := x.ChatPrompt(&c.request, promptNames); err == nil {
			able = append(able, c.name)
		} else if err := x.Work().Err(); err != nil {
			return nil, err
		}
	}
	return able, nil
}
