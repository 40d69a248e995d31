package gbnf

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/internal/grammar/ebnf"
	"github.com/realizar/realizar/internal/rx"
)

// A parser parses the text from left to right.
type parser struct {
	b     *grammar.Builder
	s     *rx.Space
	text  string
	pos   int
	depth int
	rules []rule
	index map[string]int
}

type rule struct {
	name string
	at   int // position of the definition, or of the first reference
	body *ebnf.Node
}

func (p *parser) errorf(at int, format string, args ...any) error {
	before := p.text[:min(at, len(p.text))]
	return &Error{
		Line:    1 + strings.Count(before, "\n"),
		Column:  len(before) - strings.LastIndexByte(before, '\n'),
		Problem: fmt.Sprintf(format, args...),
	}
}

func (p *parser) parse() error {
	if len(p.text) > maxText {
		return p.errorf(0, "the grammar has %d bytes; at most %d work", len(p.text), maxText)
	}
	for i, r := range p.text {
		if r == utf8.RuneError && !strings.HasPrefix(p.text[i:], string(r)) {
			return p.errorf(i, "the grammar is not valid UTF-8")
		}
	}
	for p.space(); p.more(); p.space() {
		at := p.pos
		name := p.name()
		if name == "" {
			return p.errorf(at, "this is %s where the name of a rule is due, as in name ::= ...", p.shown())
		}
		p.space()
		if !p.accept("::=") {
			return p.errorf(p.pos, "this is %s where ::= is due behind the name %s", p.shown(), name)
		}
		i := p.rule(name, at)
		if p.rules[i].body != nil {
			return p.errorf(at, "the rule %s is defined twice; join its alternatives with |", name)
		}
		body, err := p.alternatives()
		if err != nil {
			return err
		}
		if p.more() && !p.atRule() {
			return p.errorf(p.pos, "this %s does not belong here", p.shown())
		}
		p.rules[i].at, p.rules[i].body = at, body
	}
	return nil
}

// rule returns the index of a rule. It adds the rule if it is new.
func (p *parser) rule(name string, at int) int {
	i, ok := p.index[name]
	if !ok {
		i = len(p.rules)
		p.index[name] = i
		p.rules = append(p.rules, rule{name: name, at: at})
	}
	return i
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

// shown returns the next character for error messages.
func (p *parser) shown() string {
	if !p.more() {
		return "the end"
	}
	r, _ := utf8.DecodeRuneInString(p.text[p.pos:])
	return strconv.QuoteRune(r)
}

// space skips white space, line ends and comments.
func (p *parser) space() {
	for p.more() {
		switch c := p.text[p.pos]; c {
		case ' ', '\t', '\n', '\r':
			p.pos++
		case '#':
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

func (p *parser) name() string {
	begin := p.pos
	for p.more() && isName(p.text[p.pos]) {
		p.pos++
	}
	return p.text[begin:p.pos]
}

func isName(c byte) bool {
	return c == '-' || c == '_' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

// atRule reports whether a name and ::= follow.
func (p *parser) atRule() bool {
	back := p.pos
	defer func() { p.pos = back }()
	if p.name() == "" {
		return false
	}
	p.space()
	return p.ahead("::=")
}

func (p *parser) alternatives() (*ebnf.Node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.errorf(p.pos, "groups are nested deeper than %d", maxDepth)
	}
	defer func() { p.depth-- }()
	var subs []*ebnf.Node
	for {
		n, err := p.sequence()
		if err != nil {
			return nil, err
		}
		subs = append(subs, n)
		if !p.accept("|") {
			return ebnf.Alt(subs...), nil
		}
	}
}

func (p *parser) sequence() (*ebnf.Node, error) {
	var subs []*ebnf.Node
	for {
		p.space()
		if !p.more() || p.ahead("|") || p.ahead(")") || p.depth == 1 && isName(p.text[p.pos]) && p.atRule() {
			return ebnf.Cat(subs...), nil
		}
		n, err := p.item()
		if err != nil {
			return nil, err
		}
		if n, err = p.repeated(n); err != nil {
			return nil, err
		}
		subs = append(subs, n)
	}
}

// item parses an item that quantifiers may follow.
func (p *parser) item() (*ebnf.Node, error) {
	at := p.pos
	switch c := p.text[p.pos]; {
	case isName(c):
		return ebnf.Ref(p.rule(p.name(), at)), nil
	case c == '"':
		return p.literal()
	case c == '[':
		return p.class()
	case c == '.':
		p.pos++
		return ebnf.Lexeme(p.s.Runes(everything), 1), nil
	case c == '(':
		p.pos++
		n, err := p.alternatives()
		if err != nil {
			return nil, err
		}
		if !p.accept(")") {
			return nil, p.errorf(at, "this ( has no )")
		}
		return n, nil
	case c == '<', c == '!':
		return p.token()
	case c == '*', c == '+', c == '?', c == '{':
		return nil, p.errorf(at, "nothing stands before this %c to repeat", c)
	case c == '\'':
		return nil, p.errorf(at, `a literal stands in double quotes, as in "text"`)
	}
	return nil, p.errorf(at, "this is %s where a name, a literal, a class, a token or a group is due", p.shown())
}

// repeated parses the quantifiers after n.
func (p *parser) repeated(n *ebnf.Node) (*ebnf.Node, error) {
	for {
		p.space()
		switch {
		case p.accept("*"):
			n = ebnf.Repeat(n, 0, -1)
		case p.accept("+"):
			n = ebnf.Repeat(n, 1, -1)
		case p.accept("?"):
			n = ebnf.Repeat(n, 0, 1)
		case p.ahead("{"):
			low, high, err := p.counts()
			if err != nil {
				return nil, err
			}
			n = ebnf.Repeat(n, low, high)
		default:
			return n, nil
		}
		if p.depth++; p.depth > maxDepth {
			return nil, p.errorf(p.pos, "quantifiers are nested deeper than %d", maxDepth)
		}
		defer func() { p.depth-- }()
	}
}

// counts parses {m}, {m,}, {m,n} or {,n}.
func (p *parser) counts() (low, high int, err error) {
	at := p.pos
	p.pos++
	low, hasLow := p.count()
	high, hasHigh := low, hasLow
	if p.space(); p.accept(",") {
		if high, hasHigh = p.count(); !hasHigh {
			high = -1
		}
	}
	p.space()
	if !p.accept("}") || !hasLow && !hasHigh {
		return 0, 0, p.errorf(at, "a count is written {m}, {m,}, {m,n} or {,n}")
	}
	if low > maxCount || high > maxCount {
		return 0, 0, p.errorf(at, "a count is above %d", maxCount)
	}
	if high >= 0 && low > high {
		return 0, 0, p.errorf(at, "the minimum %d is above the maximum %d", low, high)
	}
	return low, high, nil
}

func (p *parser) count() (int, bool) {
	p.space()
	begin := p.pos
	for p.more() && '0' <= p.text[p.pos] && p.text[p.pos] <= '9' {
		p.pos++
	}
	if p.pos == begin {
		return 0, false
	}
	n, err := strconv.Atoi(p.text[begin:p.pos])
	if err != nil || n > maxCount {
		n = maxCount + 1
	}
	return n, true
}
