package ollama

import (
	"bytes"
	"encoding/json"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/jsontext"
)

// pending are the calls of an answer that no line has yet. Arguments are objects, so that a
// call is sent when it is complete; one that the end of the answer cuts off never is.
type pending struct {
	now   server.ToolCall // that goes on
	open  bool            // there is one
	ready []byte          // those that are complete, a list without brackets
	count int             // of all that were complete
	space bytes.Buffer    // scratch
}

// callBytes is the memory of a call beside its texts.
const callBytes = 128

// add adds what calls go on with. A call is complete when another begins, when text
// follows, and at the end.
func (p *pending) add(x *server.Exchange, d *server.Delta) error {
	if d.Text != "" && len(d.ToolCalls) == 0 {
		p.close()
	}
	for i := range d.ToolCalls {
		if err := p.part(x, &d.ToolCalls[i]); err != nil {
			return err
		}
	}
	if d.Finish != nil {
		p.close()
	}
	return nil
}

func (p *pending) part(x *server.Exchange, part *realizar.ToolCallPart) error {
	if part.ID != "" {
		p.close()
		p.now = server.ToolCall{ID: part.ID, Name: part.Name, Arguments: p.now.Arguments[:0]}
		p.open = true
	}
	if part.Broken {
		p.open = false
	}
	if err := x.Reserve(callBytes + 4*len(part.Arguments)); err != nil { // as they come, and as they are sent
		return err
	}
	p.now.Arguments = append(p.now.Arguments, part.Arguments...)
	return nil
}

// close ends the call that goes on.
func (p *pending) close() {
	if p.open {
		p.finish(&p.now)
	}
	p.open = false
}

// finish adds a whole call, unless it was cut off.
func (p *pending) finish(c *server.ToolCall) {
	p.space.Reset()
	if json.Compact(&p.space, c.Arguments) != nil { // a line has no line feeds
		return
	}
	b := p.ready
	if len(b) > 0 {
		b = append(b, ',')
	}
	b = jsontext.AppendString(append(b, `{"id":`...), c.ID)
	b = jsontext.AppendInt(append(b, `,"function":{"index":`...), p.count)
	b = jsontext.AppendString(append(b, `,"name":`...), c.Name)
	b = append(append(b, `,"arguments":`...), p.space.Bytes()...)
	p.ready = append(b, "}}"...)
	p.count++
}

// take appends the member of a message that has what is ready.
func (p *pending) take(b []byte) []byte {
	if len(p.ready) == 0 {
		return b
	}
	b = append(append(append(b, `,"tool_calls":[`...), p.ready...), ']')
	p.ready = p.ready[:0]
	return b
}
