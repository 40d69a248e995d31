package anthropic

import (
	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/jsontext"
)

// A kind is the kind of a block of an answer.
type kind uint8

const (
	nothing kind = iota // no block is open
	thought
	text
	call
)

// events is the state of a stream.
type events struct {
	opened  bool // message_start was sent
	on      kind // the kind of the open block
	index   int  // of the next block
	call    int  // the number of the call in the open block
	omitted []byte
	finish  *realizar.Finish
	data    []byte // scratch
}

// Delta sends the next part of the answer.
func (w *writer) Delta(d *server.Delta) error {
	if !w.opened {
		w.opened = true
		b := w.appendHead(append(w.data[:0], `{"type":"message_start","message":`...))
		b = append(b, `[],"stop_reason":null,"stop_sequence":null,"stop_details":null,"usage":`...)
		// The number of cached tokens is known at the end.
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

// addThought sends the next part of the thinking, unless the client asked to omit it.
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

// omittedCopies bounds the memory of omitted thinking, in bytes per byte: its slice grows, and its
// signature is held twice.
const omittedCopies = 6

// addCall sends the next part of a call. The API has no way to say that a call is broken; the
// call's text follows.
func (w *writer) addCall(p *realizar.ToolCallPart) {
	if p.ID != "" {
		b := jsontext.AppendString(append(w.start("tool_use"), `,"id":`...), p.ID)
		b = jsontext.AppendString(append(b, `,"name":`...), p.Name)
		w.begin(call, append(b, `,"input":{}}}`...))
		w.call = p.Call
	}
	switch {
	case w.on != call || p.Call != w.call: // part of a broken call
	case p.Broken:
		w.end()
	case p.Arguments != "":
		w.send("content_block_delta", append(jsontext.AppendString(w.delta(`input_json_delta","partial_json":`), p.Arguments), "}}"...))
	}
}

// start ends the open block and returns the beginning of the event that opens one of the given
// type.
func (w *writer) start(of string) []byte {
	w.end()
	b := jsontext.AppendInt(append(w.data[:0], `{"type":"content_block_start","index":`...), w.index)
	return append(append(append(b, `,"content_block":{"type":"`...), of...), '"')
}

// begin sends the event b, which opens a block.
func (w *writer) begin(of kind, b []byte) {
	w.on = of
	w.index++
	w.send("content_block_start", b)
}

// delta returns the beginning of an event with a delta of the open block; of is the delta's type,
// and may continue with its first members.
func (w *writer) delta(of string) []byte {
	b := jsontext.AppendInt(append(w.data[:0], `{"type":"content_block_delta","index":`...), w.index-1)
	return append(append(b, `,"delta":{"type":"`...), of...)
}

// end closes the open block, if there is one. A thinking block gets its signature.
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

// endStream sends why the answer ended, and its token counts.
func (w *writer) endStream(r *server.Result) error {
	b := append(w.data[:0], `{"type":"message_delta","delta":{`...)
	b = append(b, w.appendEnd(nil, w.finish)[1:]...) // without the leading comma
	b = appendUsage(append(b, `},"usage":`...), &r.Usage, "")
	w.send("message_delta", append(appendTimings(b, r.Timings), '}'))
	return w.stream.SendEvent("message_stop", []byte(`{"type":"message_stop"}`))
}

// send adds an event to the stream.
func (w *writer) send(name string, data []byte) {
	w.data = data
	w.stream.AddEvent(name, data)
}
