package turn

import (
	"bytes"
	"strings"
)

// readHeader reads the name of a call, and its id if the id is next to the name, up to the
// arguments.
func (p *Parser) readHeader() bool {
	m, c := p.plan, &p.call
	for len(p.in) > 0 {
		n, ok := p.headerEnd()
		switch ok {
		case maybe:
			return p.wait()
		case yes:
			p.take(n)
			return p.endHeader()
		}
		b := byte(p.in[0])
		space := isSpace(p.in[0])
		seen := len(c.header) > 0 && strings.IndexByte(spaces, c.header[len(c.header)-1]) >= 0
		if b < ' ' && !space || seen && !space || space && len(c.header) == 0 || len(c.header) >= maxHeader {
			return p.fail()
		}
		if m.bare && !p.known(string(c.header)+string(b), false) {
			return p.fail()
		}
		c.header = append(c.header, b)
		p.take(1)
	}
	return p.wait()
}

// headerEnd matches the end of the header.
func (p *Parser) headerEnd() (int, verdict) {
	m := p.plan
	b := byte(p.in[0])
	switch {
	case m.closing == ')':
		if b == '(' {
			return 1, yes
		}
		return 0, no
	case m.closing == '}':
		if b == '{' {
			return 1, yes
		}
		return 0, no
	case !m.afterName.empty():
		return m.afterName.match(p.in, p.final)
	case m.form.Calls.Syntax == SyntaxTagged:
		wait := no
		for _, l := range []*literal{&m.key, &m.callEnd} {
			switch _, ok := l.match(p.in, p.final); ok {
			case yes:
				return 0, yes
			case maybe:
				wait = maybe
			}
		}
		return 0, wait
	}
	if isSpace(p.in[0]) || b == '{' {
		return 0, yes
	}
	return 0, no
}

// endHeader parses the header and continues with the arguments.
func (p *Parser) endHeader() bool {
	m, c := p.plan, &p.call
	name, id := string(bytes.TrimRight(c.header, spaces)), ""
	if len(m.header) > 0 {
		mark := string(plain(m.header[0].words[0]))
		if prefix := m.form.Calls.IDPrefix; prefix != "" {
			if i := strings.LastIndex(name, mark); i >= 0 {
				id, name = prefix+name, name[:i]
			}
		} else {
			name, id, _ = strings.Cut(name, mark)
		}
	}
	if !p.setName(name) || strings.ContainsAny(id, " \n\t\r<>{}()[]\"'\\") {
		return p.fail()
	}
	c.id = id
	switch m.form.Calls.Syntax {
	case SyntaxTagged:
		p.begin()
		p.arguments([]byte{'{'})
		p.step = p.readKey
		return true
	case SyntaxPython:
		p.begin()
		c.value.start(SyntaxPython, '(', nil)
	case SyntaxBraces:
		p.begin()
		c.value.start(SyntaxBraces, '{', m.quote)
	default:
		c.value.start(SyntaxJSON, 0, nil)
	}
	p.step = p.readArguments
	return true
}

// readArguments reads the arguments after the header as one value.
func (p *Parser) readArguments() bool {
	if !p.call.begun { // JSON: an object must come
		p.takeSpace()
		if len(p.in) == 0 {
			return p.wait()
		}
		if byte(p.in[0]) != '{' {
			return p.fail()
		}
		p.begin()
	}
	switch p.readValue() {
	case no:
		return p.fail()
	case maybe:
		return p.wait()
	}
	p.complete()
	p.step = p.readTail
	return true
}
