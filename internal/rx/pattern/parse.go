package pattern

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// A parser parses a pattern from left to right.
type parser struct {
	o     Options
	text  string
	pos   int
	depth int
	flags flags
}

// flags are the flags in force, such as those of (?ims).
type flags struct{ fold, lines, dotAll, extended, ascii bool }

func (p *parser) errorf(at int, format string, args ...any) error {
	return &Error{Pattern: p.text, Offset: at, Problem: fmt.Sprintf(format, args...)}
}

func (p *parser) parse() (*node, error) {
	if len(p.text) > maxText {
		return nil, p.errorf(maxText, "the pattern has %d bytes; at most %d work", len(p.text), maxText)
	}
	for i, r := range p.text {
		if r == utf8.RuneError && !strings.HasPrefix(p.text[i:], string(r)) {
			return nil, p.errorf(i, "the pattern is not valid UTF-8")
		}
	}
	p.flags.ascii = p.o.ASCII
	for _, f := range p.o.Flags {
		if !p.flags.set(f, true) {
			return nil, p.errorf(0, "the flag %q is not known; i, m, s and x are", f)
		}
	}
	n, err := p.alternatives()
	if err != nil {
		return nil, err
	}
	if p.pos < len(p.text) { // alternatives stops at a ) or at the end
		return nil, p.errorf(p.pos, `this ) closes no group; a ) of the text is written \)`)
	}
	return n, nil
}

func (p *parser) more() bool { return p.pos < len(p.text) }

func (p *parser) ahead(text string) bool { return strings.HasPrefix(p.text[p.pos:], text) }

func (p *parser) accept(text string) bool {
	if !p.ahead(text) {
		return false
	}
	p.pos += len(text)
	return true
}

// next returns the code point at pos and moves past it.
func (p *parser) next() rune {
	r, n := utf8.DecodeRuneInString(p.text[p.pos:])
	p.pos += n
	return r
}

// alternatives parses up to the end of the group. Flags set inside end with it.
func (p *parser) alternatives() (*node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.errorf(p.pos, "groups are nested deeper than %d", maxDepth)
	}
	outer := p.flags
	defer func() { p.depth--; p.flags = outer }()
	at := p.pos
	var subs []*node
	for {
		n, err := p.sequence()
		if err != nil {
			return nil, err
		}
		subs = append(subs, n)
		if !p.accept("|") {
			return altNode(at, subs), nil
		}
	}
}

func (p *parser) sequence() (*node, error) {
	at := p.pos
	var subs []*node
	for {
		p.skipSpace()
		if !p.more() || p.ahead("|") || p.ahead(")") {
			return catNode(at, subs), nil
		}
		n, err := p.atom()
		if err != nil {
			return nil, err
		}
		if n == nil { // a comment or flags
			continue
		}
		if n, err = p.repeated(n); err != nil {
			return nil, err
		}
		subs = append(subs, n)
	}
}

// skipSpace skips white space and comments under the flag x.
func (p *parser) skipSpace() {
	for p.flags.extended && p.more() {
		switch c := p.text[p.pos]; {
		case c == ' ' || '\t' <= c && c <= '\r':
			p.pos++
		case c == '#':
			if i := strings.IndexByte(p.text[p.pos:], '\n'); i >= 0 {
				p.pos += i
			} else {
				p.pos = len(p.text)
			}
		default:
			return
		}
	}
}

// atom parses an item that a quantifier may follow. It returns nil for a comment or flags.
func (p *parser) atom() (*node, error) {
	at := p.pos
	switch r := p.next(); r {
	case '(':
		return p.group(at)
	case '[':
		s, err := p.class(at)
		return setNode(at, s), err
	case '.':
		if p.flags.dotAll {
			return setNode(at, everything), nil
		}
		return setNode(at, p.lineEnds().not()), nil
	case '^':
		if p.flags.lines {
			return hereNode(at, pair{side{p.lineEnds(), true}, anySide}), nil
		}
		return textStart(at), nil
	case '$':
		if p.flags.lines {
			return hereNode(at, pair{anySide, side{p.lineEnds(), true}}), nil
		}
		return textEnd(at), nil
	case '\\':
		return p.escape(at)
	case '*', '+', '?':
		return nil, p.errorf(at, `nothing stands before this %c to repeat; a %c of the text is written \%c`, r, r, r)
	case '{':
		p.pos = at
		_, _, ok, err := p.counts()
		if err != nil {
			return nil, err
		}
		if ok {
			return nil, p.errorf(at, `nothing stands before this count to repeat; a { of the text is written \{`)
		}
		p.pos = at + 1
		return p.character(at, '{'), nil
	default:
		return p.character(at, r), nil
	}
}

func textStart(at int) *node { return hereNode(at, pair{side{edge: true}, anySide}) }
func textEnd(at int) *node   { return hereNode(at, pair{anySide, side{edge: true}}) }

func (p *parser) character(at int, r rune) *node { return setNode(at, p.folded(single(r))) }

func (p *parser) folded(s set) set {
	if p.flags.fold {
		return s.fold()
	}
	return s
}
