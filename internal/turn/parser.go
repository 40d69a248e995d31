package turn

import (
	"github.com/realizar/realizar/chat"
)

// ParserOptions are what a Parser needs to know of the request. The zero value
// reads text and thoughts, and no calls.
type ParserOptions struct {
	// Tools are the tools of the request. In tagged forms the types of values
	// come from their schemas, and a call without any mark must name one.
	Tools []chat.Tool
	// Calls makes the parser look for calls; else they are text.
	Calls bool
	// Tail is the end of the prompt that belongs to the turn; see [Form.Tail].
	Tail string
	// Continues says that the prompt ends in the text of the turn. Tail is empty then.
	Continues bool
	// Special reports whether the vocabulary has a special token of this text:
	// such marks are found only where they come as special tokens. nil: marks
	// are found wherever their text stands.
	Special func(string) bool
	// Limit bounds the bytes of a call that are held in case it is malformed;
	// a longer one counts as malformed. 0: 1 MiB.
	Limit int
}

// A Parser reads a turn as it comes and tells thought, text and calls apart.
// It holds back only what may be the beginning of a mark, white space before
// one, and the text of a call that is not complete.
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

// NewParser makes a Parser of one turn.
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

// Write reads a piece of the turn and returns what it makes certain. special
// says that the piece is the text of one special token.
func (p *Parser) Write(text string, special bool) []Event {
	flags := sym(0)
	if special {
		flags = symSpecial
	}
	p.read(text, flags)
	return p.flush()
}

// Close says that the turn has ended and returns what was held back.
func (p *Parser) Close() []Event {
	p.final = true
	p.read("", 0)
	p.leave("", false)
	return p.flush()
}

// Cut says that the turn was cut off, and returns what was held back of its text. A call that
// has begun stays as far as it has come; what stands of a mark in it, or behind one, is left
// out.
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

// emit adds an event, or lengthens the last one.
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

// InReasoning reports whether the turn stands inside a thought.
func (p *Parser) InReasoning() bool { return p.region.kind == Reasoning }
