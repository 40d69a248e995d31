package anthropic

import (
	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/jsontext"
)

// A kind is that of a block of the answer.
type kind uint8

const (
	nothing kind = iota // goes on
	thought
	text
	call
)

// events are how far a stream has come.
type events struct {
	opened  bool // the message was sent while nothing had come
	on      kind // of the block that goes on
	index   int  // of the next block
	call    int  // the number of the call that goes on
	omitted []byte
	finish  *realizar.Finish
	data    []byte // scratch
}

// Delta sends what the answer goes on with.
func (w *writer) Delta(d *server.Delta) error {
	if !w.opened {
		w.opened = true
		b := w.appendHead(append(w.data[:0], `{"type":"message_start","message":`...))
		b = append(b, `[],"stop_reason":null,"stop_sequence":null,"stop_details":null,"usage":`...)
		// What of the prompt was in the cache is known at the end.
		w.send("message_start", append(appendUsage(b, &realizar.Usage{PromptTokens: w.prompt}, tier), "}}"...))
		w.send("ping", append(w.data[:0], `{"type":"ping"}`...))
	}
	if d.Reasoning != "" {
		if err := w.addThought(d.Reasoning); err != nil {
			return err
		}
	}
	if d.Text != "" {
		if w.on != text {
			w.begin(text, append(w.start("text"), `,"text":""}}`...))
		}
		w.send("content_block_delta", append(jsontext.AppendString(w.delta(`text_delta","text":`), d.Text), "}}"...))
	}
	for i := range d.ToolCalls {
		w.addCall(&d.ToolCalls[i])
	}
	if d.Finish != nil {
		w.end()
		w.finish = d.Finish
	}
	return w.stream.Flush()
}

// addThought sends what a thought goes on with, unless the client wants none.
func (w *writer) addThought(piece string) error {
	if w.on != thought {
		w.begin(thought, append(w.start("thinking"), `,"thinking":"","signature":""}}`...))
	}
	if w.omit {
		w.omitted = append(w.omitted, piece...)
		return w.x.Reserve(omittedCopies * len(piece))
	}
	w.send("content_block_delta", append(jsontext.AppendString(w.delta(`thinking_delta","thinking":`), piece), "}}"...))
	return nil
}

// omittedCopies bounds what a thought that is not shown takes: it grows, and its signature
// is there twice.
const omittedCopies = 6

// addCall sends what a call goes on with. That it is broken cannot be told; its text
// follows.
func (w *writer) addCall(p *realizar.ToolCallPart) {
	if p.ID != "" {
		b := jsontext.AppendString(append(w.start("tool_use"), `,"id":`...), p.ID)
		b = jsontext.AppendString(append(b, `,"name":`...), p.Name)
		w.begin(call, append(b, `,"input":{}}}`...))
		w.call = p.Call
	}
	switch {
	case w.on != call || p.Call != w.call: // of one that is broken
	case p.Broken:
		w.end()
	case p.Arguments != "":
		w.send("content_block_delta", append(jsontext.AppendString(w.delta(`input_json_delta","partial_json":`), p.Arguments), "}}"...))
	}
}

// start is the event that begins a block of that type, up to what it holds. The block
// before is ended.
func (w *writer) start(of string) []byte {
	w.end()
	b := jsontext.AppendInt(append(w.data[:0], `{"type":"content_block_start","index":`...), w.index)
	return append(append(append(b, `,"content_block":{"type":"`...), of...), '"')
}

// begin sends that a block begins.
func (w *writer) begin(of kind, b []byte) {
	w.on = of
	w.index++
	w.send("content_block_start", b)
}

// delta is an event of the block that goes on, whose delta is of a type and begins so.
func (w *writer) delta(of string) []byte {
	b := jsontext.AppendInt(append(w.data[:0], `{"type":"content_block_delta","index":`...), w.index-1)
	return append(append(b, `,"delta":{"type":"`...), of...)
}

// end ends the block that goes on, if there is one. A thought is signed.
func (w *writer) end() {
	switch w.on {
	case nothing:
		return
	case thought:
		w.send("content_block_delta", append(appendSignature(w.delta(`signature_delta","signature":"`), w.omitted, w.omit), `"}}`...))
		w.omitted = w.omitted[:0]
	}
	w.on = nothing
	b := jsontext.AppendInt(append(w.data[:0], `{"type":"content_block_stop","index":`...), w.index-1)
	w.send("content_block_stop", append(b, '}'))
}

// endStream sends why the answer ended, and its counts of tokens.
func (w *writer) endStream(r *server.Result) error {
	b := append(w.data[:0], `{"type":"message_delta","delta":{`...)
	b = append(b, w.appendEnd(nil, w.finish)[1:]...) // without its comma
	b = appendUsage(append(b, `},"usage":`...), &r.Usage, "")
	w.send("message_delta", append(appendTimings(b, r.Timings), '}'))
	return w.stream.SendEvent("message_stop", []byte(`{"type":"message_stop"}`))
}

// send adds an event to those to be sent.
func (w *writer) send(name string, data []byte) {
	w.data = data
	w.stream.AddEvent(name, data)
}
