package turn

import (
	"bytes"
	"encoding/json"
)

// readKey reads, in a tagged form, the mark before an argument's key, or the end of the call.
func (p *Parser) readKey() bool {
	m := p.plan
	p.takeSpace()
	if n, ok := m.key.match(p.in, p.final); ok == yes {
		p.take(n)
		p.call.header = p.call.header[:0]
		p.step = p.readKeyName
		return true
	} else if ok == maybe {
		return p.wait()
	}
	switch n, ok := m.callEnd.match(p.in, p.final); ok {
	case yes:
		p.take(n)
		p.arguments([]byte{'}'})
		p.complete()
		p.step = p.readAfter
		return true
	case maybe:
		return p.wait()
	}
	return p.fail()
}

func (p *Parser) readKeyName() bool {
	m, c := p.plan, &p.call
	for len(p.in) > 0 {
		n, ok := m.keyEnd.match(p.in, p.final)
		marked := false
		if ok != yes && m.hasOther {
			other, also := m.keyEndOther.match(p.in, p.final)
			switch also {
			case yes:
				n, ok, marked = other, yes, true
			case maybe:
				ok = maybe
			}
		}
		switch ok {
		case maybe:
			return p.wait()
		case yes:
			p.take(n)
			p.beginArgument(marked)
			return true
		}
		if len(c.header) >= maxHeader {
			return p.fail()
		}
		c.header = append(c.header, byte(p.in[0]))
		p.take(1)
	}
	return p.wait()
}

// beginArgument continues after a key. marked says that the value is marked as not a string.
func (p *Parser) beginArgument(marked bool) {
	m, c := p.plan, &p.call
	key := bytes.TrimSpace(c.header)
	var out []byte
	if c.arguments > 0 {
		out = append(out, ',')
	}
	c.arguments++
	out = append(appendString(out, key), ':')
	end := &m.keyEnd
	switch {
	case marked:
		end = &m.keyEndOther
		c.types = allTypes &^ stringType
	case m.hasOther:
		c.types = stringType
	default:
		c.types = argumentTypes(p.o.Tools, c.name, string(key))
	}
	c.skip, c.space, c.raw = end.tail, nil, nil
	p.step = p.readOther
	switch c.types {
	case stringType:
		out = append(out, '"')
		p.step = p.readRaw
	default:
		if c.types&stringType != 0 {
			p.step = p.readMixed
		}
	}
	p.arguments(out)
}

// argumentEnd matches the end of a value at the front of in: its mark, followed by another argument
// or the end of the call. The mark alone may be part of the value.
func (p *Parser) argumentEnd(in []sym) (int, verdict) {
	m := p.plan
	n, ok := m.valueEnd.match(in, p.final)
	if ok != yes {
		return 0, ok
	}
	rest := in[n:]
	rest = rest[skipSpace(rest):]
	if len(rest) == 0 {
		if p.final {
			return n, yes
		}
		return 0, maybe
	}
	wait := no
	for _, l := range []*literal{&m.key, &m.callEnd} {
		switch _, ok := l.match(rest, p.final); ok {
		case yes:
			return n, yes
		case maybe:
			wait = maybe
		}
	}
	return 0, wait
}

// readValueText reads the text of a value and passes its bytes to put. The verdict is yes at its
// end.
func (p *Parser) readValueText(put func(byte)) verdict {
	m, c := p.plan, &p.call
	lead := m.valueEnd.lead
	for len(p.in) > 0 {
		n, ok := p.argumentEnd(p.in)
		switch ok {
		case maybe:
			return maybe
		case yes:
			p.take(n)
			rest := c.space
			for k := min(len(lead), len(rest)); k > 0; k-- {
				if bytes.HasSuffix(rest, []byte(lead[len(lead)-k:])) {
					rest = rest[:len(rest)-k]
					break
				}
			}
			for _, b := range rest {
				put(b)
			}
			return yes
		}
		b := byte(p.in[0])
		switch {
		case c.skip != "" && c.skip[0] == b:
			c.skip = c.skip[1:]
		case isSpace(p.in[0]):
			c.skip = ""
			c.space = append(c.space, b)
			if len(c.space) > len(lead) {
				put(c.space[0])
				c.space = append(c.space[:0], c.space[1:]...)
			}
		default:
			c.skip = ""
			for _, s := range c.space {
				put(s)
			}
			c.space = c.space[:0]
			put(b)
		}
		p.take(1)
	}
	return maybe
}

// readRaw reads a string.
func (p *Parser) readRaw() bool {
	var out []byte
	ok := p.readValueText(func(b byte) { out = appendByte(out, b) })
	if ok == yes {
		out = append(out, '"')
	}
	p.arguments(out)
	if ok != yes {
		return p.wait()
	}
	p.step = p.readKey
	return true
}

// readMixed reads a value that may be a string or something else.
func (p *Parser) readMixed() bool {
	ok := p.readValueText(func(b byte) { p.call.raw = append(p.call.raw, b) })
	if ok != yes {
		return p.wait()
	}
	p.arguments(classify(p.call.raw, p.call.types))
	p.step = p.readKey
	return true
}

// readOther reads a value that is not a string.
func (p *Parser) readOther() bool {
	p.takeSpace()
	if len(p.in) == 0 {
		return p.wait()
	}
	switch byte(p.in[0]) {
	case '{', '[', '"', '\'':
		p.call.value.start(SyntaxPython, 0, nil)
		p.step = p.readNested
	default:
		p.step = p.readMixed
	}
	return true
}

func (p *Parser) readNested() bool {
	switch p.readValue() {
	case no:
		return p.fail()
	case maybe:
		return p.wait()
	}
	p.step = p.readNestedEnd
	return true
}

func (p *Parser) readNestedEnd() bool {
	p.takeSpace()
	n, ok := p.plan.valueEnd.match(p.in, p.final)
	switch ok {
	case maybe:
		return p.wait()
	case no:
		return p.fail()
	}
	p.take(n)
	p.step = p.readKey
	return true
}

// classify converts a value in plain text to JSON.
func classify(raw []byte, allowed types) []byte {
	text := bytes.Trim(raw, spaces)
	if len(text) > 0 {
		if word := constant(text, true); word != nil && allowed&typeOf(word) != 0 {
			return word
		}
		if text[0] == '{' || text[0] == '[' {
			if object := asJSON(text); object != nil && allowed&typeOf(object) != 0 {
				return object
			}
		}
		if allowed&stringType == 0 && text[0] == '"' && json.Valid(text) {
			return text
		}
	}
	return appendString(nil, raw)
}

// asJSON converts a whole value in JSON or Python notation to JSON, or returns nil.
func asJSON(text []byte) []byte {
	in := make([]sym, len(text))
	for i, c := range text {
		in[i] = sym(c)
	}
	var v value
	v.start(SyntaxPython, 0, nil)
	if n, ok := v.step(in, true); ok != yes || n != len(in) {
		return nil
	}
	return v.out
}
