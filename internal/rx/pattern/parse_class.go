package pattern

import "strings"

// class parses the rest of a class after the [ at offset at.
func (p *parser) class(at int) (set, error) {
	common := p.o.Dialect == Common
	negate := p.accept("^")
	var sets []set
	for first := true; ; first = false {
		if !p.more() {
			return nil, p.errorf(at, `this [ has no ]; a [ of the text is written \[`)
		}
		if p.ahead("]") && (!first || !common) {
			p.pos++
			break
		}
		if common {
			for _, op := range []string{"&&", "--", "~~"} {
				if p.ahead(op) && (op != "--" || !first) {
					return nil, p.errorf(p.pos, `%s in a class is an operation in Rust and two characters in Python and RE2; put a backslash before each of them if they are characters`, op)
				}
			}
		}
		if s, ok, err := p.posixClass(); err != nil {
			return nil, err
		} else if ok {
			sets = append(sets, s)
			continue
		}
		begin := p.pos
		lo, s, err := p.member()
		if err != nil {
			return nil, err
		}
		if !p.ahead("-") || p.ahead("-]") || common && p.ahead("--") {
			sets = append(sets, p.memberSet(lo, s))
			continue
		}
		p.pos++
		if !p.more() {
			return nil, p.errorf(at, `this [ has no ]; a [ of the text is written \[`)
		}
		hi, s2, err := p.member()
		if err != nil {
			return nil, err
		}
		if (s != nil || s2 != nil) && !common { // the hyphen is a character, as in [\w-.]
			sets = append(sets, p.memberSet(lo, s), single('-'), p.memberSet(hi, s2))
			continue
		}
		if s != nil || s2 != nil {
			return nil, p.errorf(begin, `a range cannot begin or end with a class such as \d; a hyphen of the text is written \-`)
		}
		if lo > hi {
			return nil, p.errorf(begin, "the range %c-%c goes backwards", lo, hi)
		}
		sets = append(sets, p.folded(setOf(lo, hi)))
	}
	s := set(nil).union(sets...)
	if negate {
		s = s.not()
	}
	return p.solid(s), nil
}

// member parses one character of a class, or an escape for a set.
func (p *parser) member() (rune, set, error) {
	at := p.pos
	r := p.next()
	if r != '\\' {
		return r, nil, nil
	}
	if p.accept("b") {
		return '\b', nil, nil
	}
	if p.more() && '1' <= p.text[p.pos] && p.text[p.pos] <= '9' {
		return 0, nil, p.errorf(at, `\%c in a class is no character; write its code as \xHH`, p.text[p.pos])
	}
	return p.escaped(at)
}

// memberSet returns s, or the set of r if s is nil.
func (p *parser) memberSet(r rune, s set) set {
	if s == nil {
		return p.folded(single(r))
	}
	return s
}

// posixClass parses [:name:] or [:^name:].
func (p *parser) posixClass() (set, bool, error) {
	if !p.ahead("[:") {
		return nil, false, nil
	}
	at := p.pos
	end := strings.Index(p.text[at+2:], ":]")
	if end < 0 {
		return nil, false, nil
	}
	name := p.text[at+2 : at+2+end]
	bare, negate := strings.CutPrefix(name, "^")
	s, ok := posix[bare]
	if !ok {
		if strings.ContainsAny(name, "]\\[") {
			return nil, false, nil // not meant as a class
		}
		return nil, false, p.errorf(at, "the class [:%s:] is not known", name)
	}
	if p.o.Dialect == ECMA {
		return nil, false, p.errorf(at, "ECMA-262 has no class [:%s:]; write its characters", name)
	}
	p.pos += 2 + end + 2
	s = p.folded(s)
	if negate {
		s = s.not()
	}
	return s, true, nil
}
