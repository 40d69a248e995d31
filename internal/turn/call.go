package turn

import (
	"bytes"
	"strings"
)

// A call is the state of the call that is being parsed.
type call struct {
	name, id  string
	begun     bool   // CallBegin has been emitted
	member    bool   // a member of the object has been read, but no comma after it
	held      []byte // arguments that came before the name
	header    []byte // the name and the text between it and the arguments
	value     value
	key       string
	arguments int // number of arguments so far in a tagged form
	types     types
	space     []byte // white space at the end of a value
	skip      string // white space that a value may begin with
	raw       []byte // a value whose type is known only at its end
}

const maxHeader = 512

// take moves n syms from the input to the source of the call.
func (p *Parser) take(n int) {
	p.source = append(p.source, plain(p.in[:n])...)
	p.in = p.in[n:]
}

func (p *Parser) takeSpace() { p.take(skipSpace(p.in)) }

// fail ends the parsing of a malformed call. It emits the input since the last call as text, or as
// CallBroken if CallBegin has been emitted.
func (p *Parser) fail() bool {
	source := p.source
	p.source = nil
	begun := p.call.begun
	p.call = call{}
	p.step = p.readText
	if begun {
		p.emit(Event{Kind: CallBroken, Call: p.calls, Text: string(source)})
		p.calls++
		p.enter(Text, "")
		p.region.said = true
		return true
	}
	p.putText(source)
	return true
}

// wait returns false to wait for more input. It fails if the input has ended or the call exceeds
// its limit.
func (p *Parser) wait() bool {
	if p.final || len(p.source) > p.o.Limit {
		return p.fail()
	}
	return false
}

// readSection reads the text between the mark that begins the calls and the first call.
func (p *Parser) readSection() bool {
	p.takeSpace()
	if p.plan.call.empty() {
		if len(p.in) == 0 {
			return p.wait()
		}
		p.beginCall()
		return true
	}
	n, ok := p.plan.call.match(p.in, p.final)
	switch ok {
	case maybe:
		return p.wait()
	case yes:
		p.take(n)
		p.beginCall()
		return true
	}
	if !p.plan.section[1].empty() { // no call at all
		if n, ok := p.plan.section[1].match(p.in, p.final); ok == yes {
			p.take(n)
			return p.fail()
		} else if ok == maybe {
			return p.wait()
		}
	}
	return p.fail()
}

// beginCall continues after the mark of a call.
func (p *Parser) beginCall() {
	p.call, p.behind = call{}, false
	switch {
	case p.plan.object != nil:
		p.step = p.readObject
	default:
		p.step = p.readHeader
	}
}

// known reports whether a tool has this name, or unless whole is set a name that begins with it.
func (p *Parser) known(name string, whole bool) bool {
	for i := range p.o.Tools {
		if t := p.o.Tools[i].Name; t == name || !whole && strings.HasPrefix(t, name) {
			return true
		}
	}
	return false
}

// setName sets the name of the call and reports whether it is valid.
func (p *Parser) setName(name string) bool {
	if name == "" || len(name) > maxHeader || strings.ContainsAny(name, " \n\t\r<>{}()[]\"'\\") ||
		p.plan.bare && !p.known(name, true) {
		return false
	}
	p.call.name = name
	return true
}

// begin emits CallBegin.
func (p *Parser) begin() {
	if p.call.begun {
		return
	}
	p.call.begun = true
	p.emit(Event{Kind: CallBegin, Call: p.calls, Name: p.call.name, ID: p.call.id})
	p.arguments(p.call.held)
	p.call.held = nil
}

// arguments emits a piece of the arguments.
func (p *Parser) arguments(text []byte) {
	if !p.call.begun {
		p.call.held = append(p.call.held, text...)
		return
	}
	p.emit(Event{Kind: CallArguments, Call: p.calls, Text: string(text)})
}

// complete emits CallEnd.
func (p *Parser) complete() {
	p.emit(Event{Kind: CallEnd, Call: p.calls, ID: p.call.id})
	p.calls++
	p.source = nil
	p.call = call{}
	p.behind = true
}

// readValue reads the arguments as one value and emits them.
func (p *Parser) readValue() verdict {
	v := &p.call.value
	n, ok := v.step(p.in, p.final)
	p.take(n)
	p.arguments(v.out)
	v.out = v.out[:0]
	return ok
}

// readTail reads the text after the arguments of a call.
func (p *Parser) readTail() bool {
	if p.plan.callEnd.empty() {
		p.step = p.readAfter
		return true
	}
	p.takeSpace()
	n, ok := p.plan.callEnd.match(p.in, p.final)
	switch ok {
	case maybe:
		if len(p.source) <= p.o.Limit {
			return false
		}
	case yes:
		p.take(n)
		p.source = nil
	}
	p.step = p.readAfter
	return true
}

// readAfter reads the text after a call: another call, the end of the calls, or text of the answer.
func (p *Parser) readAfter() bool {
	m := p.plan
	p.takeSpace()
	if len(p.in) == 0 && len(p.source) <= p.o.Limit {
		return false
	}
	wait := false
	try := func(l *literal) bool {
		if l.empty() {
			return false
		}
		n, ok := l.match(p.in, p.final)
		if ok == yes {
			p.take(n)
		}
		wait = wait || ok == maybe
		return ok == yes
	}
	if try(&m.section[1]) {
		p.source = nil
		p.endCalls(m.section[1].tail)
		return true
	}
	if try(&m.call) {
		p.beginCall()
		return true
	}
	if m.call.empty() && (m.object != nil && byte(p.in[0]) == '{' || m.object == nil && isWordByte(byte(p.in[0]))) {
		if m.bare || !m.section[0].empty() {
			p.beginCall()
			return true
		}
	}
	if try(&m.separator) {
		return true
	}
	if wait && len(p.source) <= p.o.Limit {
		return false
	}
	p.endCalls("")
	source := p.source
	p.source = nil
	if len(bytes.Trim(source, spaces)) > 0 {
		p.putText(source)
	} else {
		p.region.space = source
	}
	return true
}

func isWordByte(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// endCalls continues with the text after the calls.
func (p *Parser) endCalls(skip string) {
	p.step = p.readText
	p.enter(Text, skip)
}
