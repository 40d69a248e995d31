package ollama

import (
	"bytes"
	"encoding/json"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/jsontext"
)

// pending holds the calls of an answer that have not been sent. Arguments are sent as objects, so a
// call is sent once it is complete, and never if the end of the answer cuts it off.
type pending struct {
	now   server.ToolCall // the open call
	open  bool            // a call is open
	ready []byte          // complete calls, a list without brackets
	count int             // of all complete calls
	space bytes.Buffer    // scratch
}

// callBytes bounds the memory of a call without its texts, in bytes.
const callBytes = 128

// add adds the next parts of calls. A call is complete when another begins, when text follows, and
// at the end of the answer.
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
	if err := x.Reserve(callBytes + 4*len(part.Arguments)); err != nil { // the arguments as received, and as sent
		return err
	}
	p.now.Arguments = append(p.now.Arguments, part.Arguments...)
	return nil
}

// close ends the open call.
func (p *pending) close() {
	if p.open {
		p.finish(&p.now)
	}
	p.open = false
}

// finish adds a complete call. It drops one whose arguments were cut off.
func (p *pending) finish(c *server.ToolCall) {
	p.space.Reset()
	if json.Compact(&p.space, c.Arguments) != nil { // a line must not have line feeds
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

// take appends the member with the complete calls, if there are any, and removes them from p.
func (p *pending) take(b []byte) []byte {
	if len(p.ready) == 0 {
		return b
	}
	b = append(append(append(b, `,"tool_calls":[`...), p.ready...), ']')
	p.ready = p.ready[:0]
	return b
}
