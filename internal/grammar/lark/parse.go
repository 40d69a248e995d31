package lark

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// A parser parses the text from left to right. A statement ends with its line, unless brackets are
// open or the next line begins with |.
type parser struct {
	*file
	pos         int
	depth       int // of recursion
	inside      int // number of open brackets
	definitions []*definition
	defined     map[string]int
	ignored     []*expr
	options     options
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
	for {
		p.blank()
		if !p.more() {
			return nil
		}
		var err error
		if p.ahead("%") {
			err = p.directive()
		} else {
			err = p.definition()
		}
		if err != nil {
			return err
		}
		p.space()
		if p.more() && !p.accept("\n") {
			return p.errorf(p.pos, "this %s does not belong here", p.shown())
		}
	}
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
		return "end"
	}
	if p.ahead("\n") {
		return "end of the line"
	}
	r, _ := utf8.DecodeRuneInString(p.text[p.pos:])
	return strconv.QuoteRune(r)
}

// space skips white space and comments within a line. Inside brackets it also skips line ends.
func (p *parser) space() {
	for p.more() {
		switch {
		case p.ahead(" "), p.ahead("\t"), p.ahead("\r"), p.inside > 0 && p.ahead("\n"):
			p.pos++
		case p.ahead("#"), p.ahead("//"):
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

// blank skips white space, comments and line ends.
func (p *parser) blank() {
	p.inside++
	p.space()
	p.inside--
}

// carriesOn skips to the next line if that line begins with |.
func (p *parser) carriesOn() {
	back := p.pos
	if p.blank(); !p.ahead("|") {
		p.pos = back
	}
}

// name parses a name. It returns "" if the text continues otherwise.
func (p *parser) name() string {
	begin := p.pos
	for p.more() {
		c := p.text[p.pos]
		letter := c == '_' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
		if !letter && (p.pos == begin || c != '-' && (c < '0' || c > '9')) {
			break
		}
		p.pos++
	}
	name := p.text[begin:p.pos]
	if trimmed := strings.TrimRight(name, "-"); trimmed != name { // A->b is A with an alias
		p.pos -= len(name) - len(trimmed)
		name = trimmed
	}
	return name
}

// definition parses name: body, with modifiers and attributes of the name.
func (p *parser) definition() error {
	for p.accept("?") || p.accept("!") { // modifiers of the syntax tree, without effect here
	}
	d := &definition{at: p.pos}
	d.name = p.name()
	if d.name == "" {
		return p.errorf(p.pos, "this is %s where a name, a %%directive or a comment is due", p.shown())
	}
	p.space()
	switch {
	case p.ahead("::"):
		return p.errorf(p.pos, "rules with parameters (name::_) are not supported")
	case p.ahead("{"):
		return p.errorf(p.pos, "templates (name{...}) are not supported; write out a rule for each use")
	case p.ahead("."):
		return p.errorf(p.pos, "priorities (name.2) are not supported: all ways to read a text are followed; leave it away")
	case p.ahead("["):
		if isTerminal(d.name) {
			return p.errorf(p.pos, "a terminal has no attributes; give them to a rule")
		}
		if err := p.attributes(d); err != nil {
			return err
		}
		p.space()
	}
	if !p.accept(":") {
		return p.errorf(p.pos, "this is %s where : is due behind the name %s", p.shown(), d.name)
	}
	if _, ok := p.defined[d.name]; ok {
		return p.errorf(d.at, "%s is defined twice; join its alternatives with |", d.name)
	}
	var err error
	if d.body, err = p.alternatives(); err != nil {
		return err
	}
	p.define(d)
	return nil
}

func (p *parser) define(d *definition) {
	p.defined[d.name] = len(p.definitions)
	p.definitions = append(p.definitions, d)
}

// attributes parses [lazy, suffix="...", ...] after the name of a rule.
func (p *parser) attributes(d *definition) error {
	open := p.pos
	p.pos++
	p.inside++
	defer func() { p.inside-- }()
	for {
		p.space()
		at := p.pos
		key := p.name()
		p.space()
		var value *expr
		if p.accept("=") {
			p.space()
			begin := p.pos
			for p.more() && strings.IndexByte("0123456789.", p.text[p.pos]) >= 0 {
				p.pos++
			}
			if p.pos == begin {
				var err error
				if value, err = p.value(); err != nil {
					return err
				}
			}
		}
		switch key {
		case "capture", "stop_capture": // report text to the caller and do not change the language
		case "lazy":
			d.lazy = true
		case "suffix":
			if value == nil {
				return p.errorf(at, `suffix needs a terminal, as in suffix="</end>"`)
			}
			if value.kind != kindString || value.text != "" {
				d.suffix = value
			}
		case "stop":
			return p.errorf(at, `stop hides text that the model wrote and is not supported; use suffix="..." or lazy`)
		case "max_tokens":
			return p.errorf(at, "max_tokens is not supported; bound the text instead, as in /.{0,100}/")
		case "temperature":
			return p.errorf(at, "temperature is not supported in a grammar; set it for the request")
		default:
			return p.errorf(at, "the attribute %q is not known; lazy, suffix and capture are", key)
		}
		p.space()
		if p.accept("]") {
			return nil
		}
		if !p.accept(",") {
			return p.errorf(open, "this [ has no ]")
		}
	}
}

func (p *parser) alternatives() (*expr, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.errorf(p.pos, "groups are nested deeper than %d", maxDepth)
	}
	defer func() { p.depth-- }()
	p.space()
	at := p.pos
	var subs []*expr
	for {
		n, err := p.conjunction()
		if err != nil {
			return nil, err
		}
		subs = append(subs, n)
		p.space()
		if p.accept("->") { // a name in the syntax tree, without effect here
			p.space()
			if p.name() == "" {
				return nil, p.errorf(p.pos, "a name follows ->")
			}
			p.space()
		}
		if p.ahead("%if") {
			return nil, p.errorf(p.pos, "conditions (%%if) are not supported")
		}
		if p.carriesOn(); !p.accept("|") {
			return list(kindAlt, at, subs), nil
		}
	}
}

func list(k kind, at int, subs []*expr) *expr {
	if len(subs) == 1 {
		return subs[0]
	}
	return &expr{kind: k, at: at, subs: subs}
}

func (p *parser) conjunction() (*expr, error) {
	p.space()
	at := p.pos
	var subs []*expr
	for {
		n, err := p.sequence()
		if err != nil {
			return nil, err
		}
		subs = append(subs, n)
		if !p.accept("&") {
			return list(kindAnd, at, subs), nil
		}
	}
}

func (p *parser) sequence() (*expr, error) {
	p.space()
	at := p.pos
	var subs []*expr
	for {
		p.space()
		if !p.more() || p.ahead("\n") || p.ahead("|") || p.ahead("&") || p.ahead(")") || p.ahead("]") || p.ahead("->") || p.ahead("%if") {
			return list(kindCat, at, subs), nil
		}
		n, err := p.prefixed()
		if err != nil {
			return nil, err
		}
		if n, err = p.repeated(n); err != nil {
			return nil, err
		}
		subs = append(subs, n)
	}
}

// prefixed parses a value with any number of ~ before it.
func (p *parser) prefixed() (*expr, error) {
	at := p.pos
	if !p.accept("~") {
		return p.value()
	}
	if p.depth++; p.depth > maxDepth {
		return nil, p.errorf(at, "~ is nested deeper than %d", maxDepth)
	}
	defer func() { p.depth-- }()
	p.space()
	n, err := p.prefixed()
	return &expr{kind: kindNot, at: at, subs: []*expr{n}}, err
}

// value parses a group, a string, a range, a regular expression, a name, a token, %json or %regex.
func (p *parser) value() (*expr, error) {
	at := p.pos
	if !p.more() {
		return nil, p.errorf(at, "the grammar ends where a value is due")
	}
	switch c := p.text[p.pos]; c {
	case '(', '[':
		return p.group()
	case '"', '\'':
		return p.string()
	case '/':
		return p.regex()
	case '<':
		return p.token()
	case '%':
		return p.embedded()
	case '@':
		return nil, p.errorf(at, "other grammars (@name) are not supported; write the rules here")
	case '*', '+', '?', '{':
		return nil, p.errorf(at, "nothing stands before this %c to repeat", c)
	}
	name := p.name()
	if name == "" {
		return nil, p.errorf(at, "this is %s where a name, a string, a regular expression, a token or a group is due", p.shown())
	}
	if p.ahead("::") {
		return nil, p.errorf(p.pos, "rules with parameters (name::_) are not supported")
	}
	return &expr{kind: kindName, at: at, text: name}, nil
}

func (p *parser) group() (*expr, error) {
	at := p.pos
	end := ")"
	if p.text[p.pos] == '[' {
		end = "]"
	}
	p.pos++
	p.inside++
	n, err := p.alternatives()
	p.space()
	p.inside--
	if err != nil {
		return nil, err
	}
	if !p.accept(end) {
		return nil, p.errorf(at, "this %c has no %s", p.text[at], end)
	}
	if end == "]" {
		n = &expr{kind: kindRepeat, at: at, subs: []*expr{n}, low: 0, high: 1}
	}
	return n, nil
}
