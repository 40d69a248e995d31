package turn

import "encoding/json"

// readObject reads a JSON object that holds the name and the arguments of a
// call, in any order.
func (p *Parser) readObject() bool {
	p.takeSpace()
	if len(p.in) == 0 {
		return p.wait()
	}
	if byte(p.in[0]) != '{' {
		return p.fail()
	}
	p.take(1)
	p.step = p.readMember
	return true
}

// readMember reads up to the opening quote of a member's key, or to the end of the object.
func (p *Parser) readMember() bool {
	p.takeSpace()
	if len(p.in) == 0 {
		return p.wait()
	}
	switch byte(p.in[0]) {
	case ',':
		if !p.call.member {
			return p.fail()
		}
		p.call.member = false
		p.take(1)
		return true
	case '}':
		return p.endObject()
	case '"':
		if p.call.member {
			return p.fail()
		}
		p.call.member = true
		p.call.value.start(SyntaxJSON, 0, nil)
		p.step = p.readMemberKey
		return true
	}
	return p.fail()
}

func (p *Parser) endObject() bool {
	if p.call.name == "" {
		return p.fail()
	}
	p.take(1)
	if !p.call.begun && p.call.held == nil {
		p.call.held = []byte("{}")
	}
	p.begin()
	p.complete()
	p.step = p.readTail
	return true
}

// readString reads a JSON string. The verdict is yes at its end.
func (p *Parser) readString(text *string) verdict {
	v := &p.call.value
	n, ok := v.step(p.in, p.final)
	p.take(n)
	if ok == yes && json.Unmarshal(v.out, text) != nil {
		return no
	}
	return ok
}

func (p *Parser) readMemberKey() bool {
	switch p.readString(&p.call.key) {
	case no:
		return p.fail()
	case maybe:
		return p.wait()
	}
	e := p.plan.object
	if p.plan.bare {
		switch p.call.key {
		case e.name, e.arguments, e.id, "type", "id":
		default:
			return p.fail()
		}
	}
	if e.name == "" && p.call.name == "" {
		if !p.setName(p.call.key) {
			return p.fail()
		}
		p.call.key = ""
	}
	p.step = p.readMemberColon
	return true
}

func (p *Parser) readMemberColon() bool {
	p.takeSpace()
	if len(p.in) == 0 {
		return p.wait()
	}
	if byte(p.in[0]) != ':' {
		return p.fail()
	}
	p.take(1)
	p.call.value.start(SyntaxJSON, 0, nil)
	p.step = p.readMemberValue
	return true
}

// readMemberValue begins a value according to its key.
func (p *Parser) readMemberValue() bool {
	p.takeSpace()
	if len(p.in) == 0 {
		return p.wait()
	}
	e := p.plan.object
	first := byte(p.in[0])
	switch p.call.key {
	case e.arguments:
		switch {
		case p.call.begun && p.call.arguments > 0:
			return p.fail() // arguments twice
		case first == '{':
			p.call.arguments++
			if p.call.name != "" {
				p.begin()
			}
			p.step = p.readMemberArguments
			return true
		case first != '"' && first != 'n': // not null either
			return p.fail()
		}
	case e.name:
		if first != '"' {
			return p.fail()
		}
	}
	p.step = p.readMemberWhole
	return true
}

func (p *Parser) readMemberArguments() bool {
	switch p.readValue() {
	case no:
		return p.fail()
	case maybe:
		return p.wait()
	}
	p.step = p.readMember
	return true
}

// readMemberWhole reads a value that is used once it is complete.
func (p *Parser) readMemberWhole() bool {
	v := &p.call.value
	n, ok := v.step(p.in, p.final)
	p.take(n)
	switch ok {
	case no:
		return p.fail()
	case maybe:
		return p.wait()
	}
	var text string
	isText := json.Unmarshal(v.out, &text) == nil && string(v.out) != "null"
	e := p.plan.object
	switch p.call.key {
	case e.name:
		if !p.setName(text) {
			return p.fail()
		}
		if p.call.held != nil {
			p.begin()
		}
	case e.arguments:
		object := "{}"
		if isText && text != "" {
			object = text
		}
		var check map[string]json.RawMessage
		if json.Unmarshal([]byte(object), &check) != nil {
			return p.fail()
		}
		p.call.arguments++
		p.arguments([]byte(object))
		if p.call.name != "" {
			p.begin()
		}
	case e.id:
		if isText {
			p.call.id = text
		} else {
			p.call.id = string(v.out)
		}
	}
	p.step = p.readMember
	return true
}
