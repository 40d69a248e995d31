package pattern

import (
	"strings"
	"unicode"
)

// group parses the rest of a group after the ( at offset at.
func (p *parser) group(at int) (*node, error) {
	if !p.accept("?") {
		if p.ahead("*") {
			return nil, p.errorf(at, `verbs such as (*SKIP) are not supported`)
		}
		return p.groupEnd(at, kindCat, false)
	}
	switch {
	case p.accept(":"):
		return p.groupEnd(at, kindCat, false)
	case p.accept("="):
		return p.groupEnd(at, kindAhead, false)
	case p.accept("!"):
		return p.groupEnd(at, kindAhead, true)
	case p.accept("<="):
		return p.groupEnd(at, kindBehind, false)
	case p.accept("<!"):
		return p.groupEnd(at, kindBehind, true)
	case p.ahead("P="):
		return nil, p.errorf(at, "a back reference (?P=name) is not regular and not supported")
	case p.accept("P<"), p.accept("<"):
		if _, err := p.name(at); err != nil {
			return nil, err
		}
		return p.groupEnd(at, kindCat, false)
	case p.ahead("#"):
		end := strings.IndexByte(p.text[p.pos:], ')')
		if end < 0 {
			return nil, p.errorf(at, "this comment has no end )")
		}
		p.pos += end + 1
		return nil, nil
	case p.ahead(">"):
		return nil, p.errorf(at, "an atomic group (?>...) is not supported; write (?:...) if the texts are the same")
	case p.ahead("("):
		return nil, p.errorf(at, "a conditional (?(...)...) is not supported; write out its cases as alternatives")
	case p.ahead("|"):
		return nil, p.errorf(at, "(?|...) is not supported; write (?:...)")
	case p.ahead("R"), p.ahead("&"), p.ahead("P>"), p.ahead("0"):
		return nil, p.errorf(at, "recursion is not regular and not supported; a grammar can say it")
	}
	return p.flagGroup(at)
}

// groupEnd parses the alternatives of a group and its ).
func (p *parser) groupEnd(at int, k kind, negate bool) (*node, error) {
	n, err := p.alternatives()
	if err != nil {
		return nil, err
	}
	if !p.accept(")") {
		return nil, p.errorf(at, `this ( has no ); a ( of the text is written \(`)
	}
	if k == kindCat {
		if n.bare() { // an assertion in a group may be repeated
			return &node{kind: kindCat, at: at, subs: []*node{n}, looks: n.looks}, nil
		}
		return n, nil
	}
	return lookNode(at, k, n, negate), nil
}

// name parses the name of a group and its >.
func (p *parser) name(at int) (string, error) {
	end := strings.IndexByte(p.text[p.pos:], '>')
	if end <= 0 {
		return "", p.errorf(at, "the name of this group has no end >")
	}
	name := p.text[p.pos : p.pos+end]
	for i, r := range name {
		if r != '_' && r != '$' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r)) {
			return "", p.errorf(p.pos, "a group cannot be named %s; use letters, digits and _", clip(name))
		}
	}
	p.pos += end + 1
	return name, nil
}

// flagGroup parses (?flags) and (?flags:...), after the question mark.
func (p *parser) flagGroup(at int) (*node, error) {
	outer := p.flags
	on := true
	for p.more() {
		r := p.next()
		switch {
		case r == '-' && on:
			on = false
		case r == ')':
			return nil, nil
		case r == ':':
			n, err := p.groupEnd(at, kindCat, false)
			p.flags = outer
			return n, err
		case !p.flags.set(r, on):
			return nil, p.errorf(at, "(?%c is not known; (?:...), (?=...), (?!...), (?<=...), (?<!...), (?<name>...) and the flags i, m, s and x are", r)
		}
	}
	return nil, p.errorf(at, "this group has no end )")
}

// set sets a flag and reports whether the name is known.
func (f *flags) set(name rune, on bool) bool {
	switch name {
	case 'i':
		f.fold = on
	case 'm':
		f.lines = on
	case 's':
		f.dotAll = on
	case 'x':
		f.extended = on
	case 'a':
		f.ascii = on
	case 'u':
		f.ascii = !on
	case 'U': // lazy quantifiers by default: matches the same texts
	default:
		return false
	}
	return true
}
