package turn

import (
	"github.com/realizar/realizar/chat"
)

// ParserOptions are the options of a Parser, which depend on the request. The zero value parses
// text and reasoning but no calls.
type ParserOptions struct {
	// Tools are the tools of the request. In tagged forms their schemas give the types of values.
	// A call without a mark must have the name of one of them.
	Tools []chat.Tool
	// Calls enables parsing of calls. If false, calls are text.
	Calls bool
	// Tail is the end of the prompt that belongs to the turn; see [Form.Tail].
	Tail string
	// Continues says that the prompt ends in the text of the turn. Tail is empty then.
	Continues bool
	// Special reports whether the vocabulary has a special token with this text. Such a mark is
	// recognized only as a special token. If Special is nil, all marks are recognized in text.
	Special func(string) bool
	// Limit is the largest size of a call in bytes; a longer call counts as malformed. 0 is 1 MiB.
	Limit int
}

// A Parser splits a streamed turn into reasoning, text and calls. It holds back only text that may
// begin a mark, white space before a mark, and the text of an incomplete call.
type Parser struct {
	plan  *plan
	o     ParserOptions
	in    []sym
	final bool
	step  func() bool // reads more of in; false: it needs more

	events []Event
	region region
	spoken bool // text of the answer has been given out
	mused  bool // a thought has begun or ended

	marks []mark
	first [256]bool // the bytes that marks begin with

	call   call
	calls  int
	behind bool   // a call has ended, and nothing is known of what follows it
	source []byte // what the call, or the mark before it, is made of so far
}

const defaultLimit = 1 << 20

// NewParser returns a Parser of one turn.
func (f *Form) NewParser(o ParserOptions) *Parser {
	if o.Limit <= 0 {
		o.Limit = defaultLimit
	}
	p := &Parser{plan: newPlan(f, o.Special), o: o}
	if f.Calls.Syntax == SyntaxHarmony {
		p.beginHarmony()
	} else {
		p.setMarks()
		p.enter(Text, p.plan.content[0].lead)
	}
	if o.Continues {
		p.enter(Text, "")
		p.region.said, p.spoken, p.mused = true, true, true
		p.step = p.readText
	}
	p.read(o.Tail, symSpecial|symPrompt)
	p.events = nil
	return p
}

// Write parses a piece of the turn and returns the events that are certain. special says that the
// piece is the text of one special token.
func (p *Parser) Write(text string, special bool) []Event {
	flags := sym(0)
	if special {
		flags = symSpecial
	}
	p.read(text, flags)
	return p.flush()
}

// Close ends the turn and returns the events that were held back.
func (p *Parser) Close() []Event {
	p.final = true
	p.read("", 0)
	p.leave("", false)
	return p.flush()
}

// Cut ends a turn that was cut off and returns the events that were held back. A call that has
// begun stays incomplete; a partial mark in a call or after it is dropped.
func (p *Parser) Cut() []Event {
	inCall := p.call.begun || p.behind || len(p.source) > 0 && !p.plan.bare
	if !inCall {
		return p.Close()
	}
	p.in = nil
	return p.flush()
}

func (p *Parser) read(text string, flags sym) {
	for i := range len(text) {
		p.in = append(p.in, sym(text[i])|flags)
	}
	for p.step() {
	}
	p.in = append([]sym(nil), p.in...)
}

func (p *Parser) flush() []Event {
	events := p.events
	p.events = nil
	return events
}

// emit adds an event, or extends the last one if both are pieces of the same text.
func (p *Parser) emit(e Event) {
	if e.Kind == Text || e.Kind == Reasoning || e.Kind == CallArguments {
		if e.Text == "" {
			return
		}
		if n := len(p.events); n > 0 {
			if last := &p.events[n-1]; last.Kind == e.Kind && last.Call == e.Call {
				last.Text += e.Text
				return
			}
		}
	}
	p.events = append(p.events, e)
}

// InReasoning reports whether the parser is inside the reasoning.
func (p *Parser) InReasoning() bool { return p.region.kind == Reasoning }
