package anthropic

import (
	"encoding/json"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/jsontext"
)

// A writer writes the answer to a request.
type writer struct {
	x         *server.Exchange
	id        string
	omit      bool // thoughts
	maxTokens int
	prompt    int // its tokens

	stream *server.Stream // nil where the answer comes as a whole
	events
}

func newWriter(x *server.Exchange, r *request) *writer {
	w := &writer{x: x, id: server.NewID("msg_"), omit: r.thinking.display == "omitted", maxTokens: *r.maxTokens}
	if r.stream {
		w.stream = x.Stream(server.Events, func(e *server.Error) error { return w.stream.SendEvent("error", errorBody(e)) })
	}
	return w
}

// Begin is called before the model runs.
func (w *writer) Begin(prompts [][]int32) error {
	w.prompt = len(prompts[0])
	return nil
}

// End ends the stream, or writes the whole answer.
func (w *writer) End(r *server.Result) error {
	if w.stream != nil {
		return w.endStream(r)
	}
	a := &r.Answers[0]
	b := append(w.appendHead(nil), '[')
	b = w.appendBlocks(b, a)
	b = w.appendEnd(append(b, ']'), a.Finish)
	b = appendUsage(append(b, `,"usage":`...), &r.Usage, tier)
	w.x.WriteJSON(append(appendTimings(b, r.Timings), '}'))
	return nil
}

// appendHead appends the beginning of a message, up to its content.
func (w *writer) appendHead(b []byte) []byte {
	b = jsontext.AppendString(append(b, `{"id":`...), w.id)
	b = jsontext.AppendString(append(b, `,"type":"message","role":"assistant","model":`...), w.x.Name())
	return append(b, `,"content":`...)
}

// appendBlocks appends what an answer says: its thought, its text, its calls.
func (w *writer) appendBlocks(b []byte, a *server.Answer) []byte {
	before := false // there is a block
	begin := func(kind string) {
		if before {
			b = append(b, ',')
		}
		before = true
		b = append(append(append(b, `{"type":"`...), kind...), '"')
	}
	if len(a.Reasoning) > 0 {
		begin("thinking")
		shown := a.Reasoning
		if w.omit {
			shown = nil
		}
		b = w.x.Spill(jsontext.AppendString(append(b, `,"thinking":`...), shown))
		b = w.x.Spill(append(appendSignature(append(b, `,"signature":"`...), a.Reasoning, w.omit), `"}`...))
	}
	if len(a.Text) > 0 {
		begin("text")
		b = w.x.Spill(append(jsontext.AppendString(append(b, `,"text":`...), a.Text), '}'))
	}
	for i := range a.ToolCalls {
		c := &a.ToolCalls[i]
		begin("tool_use")
		b = jsontext.AppendString(append(b, `,"id":`...), c.ID)
		b = jsontext.AppendString(append(b, `,"name":`...), c.Name)
		b = w.x.Spill(append(append(append(b, `,"input":`...), input(c.Arguments)...), '}'))
	}
	return b
}

// input is the arguments of a call, or an empty object where the answer was cut off amid
// them.
func input(arguments []byte) []byte {
	if !json.Valid(arguments) {
		return []byte("{}")
	}
	return arguments
}

// appendEnd appends why an answer ended, as members of a message, or of its last delta.
func (w *writer) appendEnd(b []byte, f *realizar.Finish) []byte {
	b = append(append(append(b, `,"stop_reason":"`...), w.reason(f)...), `","stop_sequence":`...)
	if f.StopString != "" {
		b = jsontext.AppendString(b, f.StopString)
	} else {
		b = append(b, "null"...)
	}
	return append(b, `,"stop_details":null`...)
}

// reason is why an answer ended.
func (w *writer) reason(f *realizar.Finish) string {
	switch {
	case f.StopString != "":
		return "stop_sequence"
	case f.Reason == realizar.FinishCalls:
		return "tool_use"
	case f.Reason == realizar.FinishLength && f.Usage.CompletionTokens < w.maxTokens:
		return "model_context_window_exceeded"
	case f.Reason == realizar.FinishLength:
		return "max_tokens"
	}
	return "end_turn"
}

// tier is what the counts of a message end with, and those of its last delta do not.
const tier = `,"service_tier":"standard"`

// appendUsage appends the counts of tokens. Those of the prompt that the cache held are
// counted by themselves.
func appendUsage(b []byte, u *realizar.Usage, end string) []byte {
	b = jsontext.AppendInt(append(b, `{"input_tokens":`...), u.PromptTokens-u.CachedTokens)
	b = jsontext.AppendInt(append(b, `,"cache_creation_input_tokens":0,"cache_read_input_tokens":`...), u.CachedTokens)
	b = jsontext.AppendInt(append(b, `,"output_tokens":`...), u.CompletionTokens)
	b = jsontext.AppendInt(append(b, `,"output_tokens_details":{"thinking_tokens":`...), u.ReasoningTokens)
	return append(append(append(b, '}'), end...), '}')
}

// appendTimings appends the member of an answer that reports, where it was asked for.
func appendTimings(b []byte, t *server.Timings) []byte {
	if t == nil {
		return b
	}
	data, _ := json.Marshal(t) // there is nothing in it that fails
	return append(append(b, `,"timings":`...), data...)
}
