package turn

import (
	"cmp"
	"slices"
)

// A mark is a literal with a meaning in text or reasoning.
type mark struct {
	literal *literal
	means   meaning
}

type meaning uint8

const (
	thoughtBegin meaning = iota
	thoughtEnd
	contentBegin
	contentEnd
	turnEnd
	nothing // an ignored mark
	sectionBegin
	callBegin
	bareCall // a bracket that may begin a call
)

var bareObject = newLiteral("{", nil, "")

// setMarks lists the marks of the form, the longest first.
func (p *Parser) setMarks() {
	m := p.plan
	add := func(l *literal, means meaning) {
		if !l.empty() {
			p.marks = append(p.marks, mark{l, means})
		}
	}
	add(&m.thought[0], thoughtBegin)
	add(&m.thought[1], thoughtEnd)
	add(&m.content[0], contentBegin)
	add(&m.content[1], contentEnd)
	add(&m.end, turnEnd)
	if p.o.Calls && m.form.HasCalls() {
		add(&m.optional, nothing)
		switch {
		case m.bare && !m.section[0].empty():
			add(&m.section[0], bareCall)
		case m.bare:
			add(&bareObject, bareCall)
		case !m.section[0].empty():
			add(&m.section[0], sectionBegin)
		default:
			add(&m.call, callBegin)
			add(&m.section[1], nothing)
		}
	}
	length := func(a mark) int {
		n := 0
		for _, w := range a.literal.words {
			n += len(w)
		}
		return n
	}
	slices.SortStableFunc(p.marks, func(a, b mark) int { return cmp.Compare(length(b), length(a)) })
	for _, k := range p.marks {
		p.first[byte(k.literal.words[0][0])] = true
	}
	p.step = p.readText
}

// allowed reports whether a mark counts here. blank says that the region so far is white space.
func (p *Parser) allowed(k mark, blank bool) bool {
	if p.region.kind == Reasoning {
		switch k.means {
		case thoughtEnd, headerBegin, bodyEnd:
			return true
		case sectionBegin, callBegin, turnEnd:
			return k.literal.isSpecial()
		}
		return false
	}
	switch k.means {
	case thoughtBegin, thoughtEnd:
		return k.literal.isSpecial() || blank && !p.spoken && (k.means == thoughtBegin || !p.mused)
	case bareCall:
		return blank && (!p.spoken || p.calls > 0)
	}
	return true
}

// readText reads text or reasoning up to the next mark.
func (p *Parser) readText() bool {
	blank := !p.region.said
	for i, s := range p.in {
		if p.first[byte(s)] {
			for _, k := range p.marks {
				if !p.allowed(k, blank) {
					continue
				}
				n, ok := k.literal.match(p.in[i:], p.final)
				if ok == no {
					continue
				}
				p.put(p.in[:i])
				p.in = p.in[i:]
				if ok == yes {
					p.reach(k, n)
				}
				return ok == yes
			}
		}
		blank = blank && isSpace(s)
	}
	p.put(p.in)
	p.in = p.in[:0]
	return false
}

// reach continues after a mark of n syms.
func (p *Parser) reach(k mark, n int) {
	dropped := p.leave(k.literal.lead, true)
	took := plain(p.in[:n])
	tail := k.literal.tail
	switch {
	case k.means == bareCall && p.plan.section[0].empty(), k.means == headerBegin:
		took = nil // read them again
	default:
		p.in = p.in[n:]
	}
	switch k.means {
	case thoughtBegin:
		p.mused = true
		p.enter(Reasoning, tail)
	case thoughtEnd:
		p.mused = true
		p.enter(Text, tail)
	case contentBegin, contentEnd, nothing, turnEnd:
		said := p.region.said
		p.enter(p.region.kind, tail)
		p.region.said = said && k.means == nothing
	case bodyEnd:
		p.endBody()
	case headerBegin:
		p.enter(Text, "")
		p.source = dropped
		p.call = call{}
		p.step = p.readMessageHeader
	default:
		if p.region.kind == Reasoning {
			p.enter(Text, "")
		}
		p.source = append(dropped, took...)
		p.call = call{}
		switch {
		case k.means == callBegin, k.means == bareCall && p.plan.section[0].empty():
			p.beginCall()
		default:
			p.step = p.readSection
		}
	}
}
