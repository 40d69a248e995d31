package turn

import "strings"

// Harmony is the form of gpt-oss. A turn consists of messages. Each has a header that names a
// channel and optionally a recipient.
//
//	<|channel|>analysis<|message|>thought<|end|><|start|>assistant
//	<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>
//	<|channel|>final<|message|>text<|return|>
//
// The recipient may also precede the channel.
const (
	harmonyStart     = "<|start|>"
	harmonyChannel   = "<|channel|>"
	harmonyConstrain = "<|constrain|>"
	harmonyMessage   = "<|message|>"
	harmonyEnd       = "<|end|>"
	harmonyReturn    = "<|return|>"
	harmonyCall      = "<|call|>"
	harmonyFunctions = "functions."
)

const (
	headerBegin meaning = bareCall + 1 + iota
	bodyEnd
)

func (f *Form) harmonyMarks() []string {
	if f.Calls.Syntax != SyntaxHarmony {
		return nil
	}
	return []string{harmonyStart, harmonyChannel, harmonyConstrain, harmonyMessage, harmonyEnd, harmonyReturn, harmonyCall}
}

func (p *Parser) beginHarmony() {
	for _, text := range p.plan.form.harmonyMarks() {
		l := newLiteral(text, p.o.Special, "")
		k := mark{literal: &l, means: bodyEnd}
		switch text {
		case harmonyStart, harmonyChannel:
			k.means = headerBegin
		case harmonyConstrain, harmonyMessage:
			continue
		}
		p.marks = append(p.marks, k)
		p.first[text[0]] = true
	}
	p.endBody()
}

// endBody begins the text between two messages.
func (p *Parser) endBody() {
	p.enter(Text, "")
	p.step = p.readRecipient
}

// readRecipient reads a header that begins with a recipient.
func (p *Parser) readRecipient() bool {
	n := skipSpace(p.in)
	to := newLiteral("to=", nil, "")
	_, ok := to.match(p.in[n:], p.final)
	if ok == maybe && n <= maxHeader {
		return false
	}
	p.source = nil
	p.step = p.readText
	if ok == yes {
		p.step = p.readMessageHeader
	}
	return true
}

// readMessageHeader reads the header of a message.
func (p *Parser) readMessageHeader() bool {
	for len(p.in) > 0 {
		n, ok := p.plan.call.match(p.in, p.final)
		switch ok {
		case maybe:
			return p.wait()
		case yes:
			header := string(p.call.header)
			p.take(n)
			return p.beginBody(header)
		}
		if len(p.call.header) >= maxHeader || byte(p.in[0]) == '\n' {
			return p.fail()
		}
		p.call.header = append(p.call.header, byte(p.in[0]))
		p.take(1)
	}
	return p.wait()
}

// beginBody continues after a header.
func (p *Parser) beginBody(header string) bool {
	_, recipient, _ := strings.Cut(header, "to=")
	if i := strings.IndexAny(recipient, " <"); i >= 0 {
		recipient = recipient[:i]
	}
	_, channel, _ := strings.Cut(header, harmonyChannel)
	p.call.header = nil
	switch {
	case recipient != "" && recipient != "user" && recipient != "all":
		if !p.o.Calls || !p.setName(strings.TrimPrefix(recipient, harmonyFunctions)) {
			return p.fail()
		}
		p.begin()
		p.call.value.start(SyntaxJSON, 0, nil)
		p.step = p.readHarmonyCall
		return true
	case strings.HasPrefix(channel, "analysis"):
		p.enter(Reasoning, "")
	default:
		p.enter(Text, "")
	}
	p.source = nil
	p.step = p.readText
	return true
}

func (p *Parser) readHarmonyCall() bool {
	begun := len(p.call.value.stack) > 0
	if !begun {
		p.takeSpace()
	}
	if len(p.in) == 0 && !p.final {
		return p.wait()
	}
	if !begun && (len(p.in) == 0 || byte(p.in[0]) != '{') {
		for _, k := range p.marks {
			switch _, ok := k.literal.match(p.in, p.final); {
			case ok == maybe:
				return p.wait()
			case ok == yes && k.means == bodyEnd: // no arguments
				p.arguments([]byte("{}"))
				p.complete()
				p.endCalls("")
				return true
			}
		}
		return p.fail()
	}
	switch p.readValue() {
	case no:
		return p.fail()
	case maybe:
		return p.wait()
	}
	p.complete()
	p.endCalls("")
	return true
}
