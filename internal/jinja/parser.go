package jinja

import (
	"fmt"
	"strings"
)

// A parser turns tokens into statements and expressions.
type parser struct {
	name   string
	tokens []token
	pos    int
	depth  int
	// ends are the tags that the open blocks wait for, tags the open blocks.
	ends [][]string
	tags []string
}

// parse returns the statements of a template. Within it, the parser panics with
// its *SyntaxError.
func parse(name, source string) (body []node, err error) {
	tokens, err := tokenize(name, source)
	if err != nil {
		return nil, err
	}
	defer func() {
		if r := recover(); r != nil {
			failed, ok := r.(*SyntaxError)
			if !ok {
				panic(r)
			}
			body, err = nil, failed
		}
	}()
	p := &parser{name: name, tokens: tokens}
	return p.statements(nil), nil
}

func (p *parser) cur() token { return p.tokens[p.pos] }

func (p *parser) look() token { return p.tokens[min(p.pos+1, len(p.tokens)-1)] }

// next returns the current token and moves on.
func (p *parser) next() token {
	t := p.tokens[p.pos]
	if t.kind != tokEOF {
		p.pos++
	}
	return t
}

func (p *parser) fail(line int, format string, args ...any) {
	panic(&SyntaxError{Name: p.name, Line: line, Message: fmt.Sprintf(format, args...)})
}

// deepen counts a level of the syntax tree; the caller takes it back.
func (p *parser) deepen() {
	if p.depth++; p.depth > maxSyntaxDepth {
		p.fail(p.cur().line, "nested deeper than %d", maxSyntaxDepth)
	}
}

func (p *parser) skipOp(op string) bool {
	if p.cur().is(op) {
		p.next()
		return true
	}
	return false
}

func (p *parser) skipName(name string) bool {
	if p.cur().isName(name) {
		p.next()
		return true
	}
	return false
}

func (p *parser) unexpected(want string) {
	t := p.cur()
	if t.kind == tokEOF {
		p.fail(t.line, "unexpected end of template, expected '%s'.", want)
	}
	p.fail(t.line, "expected token '%s', got '%s'", want, t.describe())
}

func (p *parser) expectOp(op string) {
	if !p.skipOp(op) {
		p.unexpected(op)
	}
}

func (p *parser) expectKind(kind tokenKind) {
	if p.cur().kind != kind {
		p.unexpected(token{kind: kind}.describe())
	}
	p.next()
}

func (p *parser) expectName() token {
	if p.cur().kind != tokName {
		p.unexpected("name")
	}
	return p.next()
}

// statements reads until one of the tags in ends, which it leaves as the
// current token, or until the end of the template when ends is nil.
func (p *parser) statements(ends []string) []node {
	if ends != nil {
		p.ends = append(p.ends, ends)
		defer func() { p.ends = p.ends[:len(p.ends)-1] }()
	}
	var body []node
	var out *outputStmt
	add := func(line int, n node) {
		if out == nil {
			out = &outputStmt{line: line}
			body = append(body, out)
		}
		out.nodes = append(out.nodes, n)
		out.lines = append(out.lines, line)
	}
	for {
		t := p.next()
		switch t.kind {
		case tokEOF:
			if ends != nil {
				p.unclosed("", t.line)
			}
			return body
		case tokData:
			add(t.line, &textExpr{&Str{s: t.text, tmpl: true}})
		case tokVariableBegin:
			n := p.tuple(tupleOptions{})
			add(t.line, n)
			p.expectKind(tokVariableEnd)
		case tokBlockBegin:
			out = nil
			if ends != nil && p.cur().isName(ends...) {
				return body
			}
			s := p.statement()
			body = append(body, s)
			p.expectKind(tokBlockEnd)
		}
	}
}

// unclosed is the error of a tag that nothing waits for, or of the end of the
// template where a tag is missing.
func (p *parser) unclosed(tag string, line int) {
	message := "Unexpected end of template."
	if tag != "" {
		message = fmt.Sprintf("Encountered unknown tag '%s'.", clip(tag))
	}
	if len(p.ends) > 0 {
		looking := "'" + strings.Join(p.ends[len(p.ends)-1], "' or '") + "'"
		nested := false
		for _, ends := range p.ends {
			for _, e := range ends {
				nested = nested || e == tag
			}
		}
		if nested {
			message += " You probably made a nesting mistake. Jinja is expecting this tag, but currently looking for " + looking + "."
		} else {
			message += " Jinja was looking for the following tags: " + looking + "."
		}
	}
	if len(p.tags) > 0 {
		message += " The innermost block that needs to be closed is '" + p.tags[len(p.tags)-1] + "'."
	}
	p.fail(line, "%s", message)
}

// body reads the end of a tag and the statements up to one of ends. It moves
// past that one when drop is set.
func (p *parser) body(drop bool, ends ...string) []node {
	p.skipOp(":")
	p.expectKind(tokBlockEnd)
	body := p.statements(ends)
	if drop {
		p.next()
	}
	return body
}

func (p *parser) statement() node {
	t := p.cur()
	if t.kind != tokName {
		p.fail(t.line, "tag name expected")
	}
	p.deepen()
	defer func(depth int) { p.depth = depth }(p.depth - 1)
	var parse func(line int) node
	switch t.text {
	case "for":
		parse = p.forTag
	case "if":
		parse = p.ifTag
	case "macro":
		parse = p.macroTag
	case "extends", "include", "import", "from", "block":
		p.fail(t.line, "the tag '%s' is not available: a chat template stands alone", t.text)
	case "set":
		parse = p.setTag
	case "with":
		parse = p.withTag
	case "call":
		parse = p.callTag
	case "filter":
		parse = p.filterTag
	case "generation":
		parse = p.generationTag
	case "break":
		p.next()
		return &breakStmt{t.line}
	case "continue":
		p.next()
		return &continueStmt{t.line}
	default:
		p.unclosed(t.text, t.line)
	}
	if p.tags = append(p.tags, t.text); len(p.tags) > maxTagDepth {
		p.fail(t.line, "tags nested deeper than %d", maxTagDepth)
	}
	defer func() { p.tags = p.tags[:len(p.tags)-1] }()
	p.next()
	return parse(t.line)
}

func (p *parser) setTag(line int) node {
	target := p.target(tupleOptions{namespace: true})
	if p.skipOp("=") {
		return &assignStmt{line, target, p.tuple(tupleOptions{})}
	}
	filter := p.filters(nil, false)
	s := &assignBlockStmt{line: line, target: target, body: p.body(true, "endset")}
	s.filter, _ = filter.(*filterExpr)
	return s
}

func (p *parser) forTag(line int) node {
	s := &forStmt{line: line}
	s.target = p.target(tupleOptions{ends: "in"})
	if !p.skipName("in") {
		p.unexpected("in")
	}
	s.iter = p.tuple(tupleOptions{noCond: true, ends: "recursive"})
	if p.skipName("if") {
		s.test = p.expression()
	}
	s.recursive = p.skipName("recursive")
	s.body = p.body(false, "endfor", "else")
	if p.next().text == "else" {
		s.orElse = p.body(true, "endfor")
	}
	return s
}

func (p *parser) ifTag(line int) node {
	result := &ifStmt{line: line}
	s := result
	for {
		s.test = p.tuple(tupleOptions{noCond: true})
		s.body = p.body(false, "elif", "else", "endif")
		switch t := p.next(); t.text {
		case "elif":
			s = &ifStmt{line: t.line}
			result.elifs = append(result.elifs, s)
			continue
		case "else":
			result.orElse = p.body(true, "endif")
		}
		return result
	}
}

func (p *parser) withTag(line int) node {
	s := &withStmt{line: line}
	for p.cur().kind != tokBlockEnd {
		if len(s.targets) > 0 {
			p.expectOp(",")
		}
		target := p.target(tupleOptions{})
		setAccess(target, param)
		p.expectOp("=")
		value := p.expression()
		s.targets = append(s.targets, target)
		s.values = append(s.values, value)
	}
	s.body = p.body(true, "endwith")
	return s
}

// signature reads the parameters of a macro or a call block.
func (p *parser) signature() (args, defaults []node) {
	p.expectOp("(")
	for !p.cur().is(")") {
		if len(args) > 0 {
			p.expectOp(",")
		}
		arg := p.targetName()
		arg.ctx = param
		for _, other := range args {
			if other.(*nameExpr).name == arg.name {
				p.fail(arg.line, "duplicate argument '%s' in function definition", arg.name)
			}
		}
		if p.skipOp("=") {
			defaults = append(defaults, p.expression())
		} else if len(defaults) > 0 {
			p.fail(arg.line, "non-default argument follows default argument")
		}
		args = append(args, arg)
	}
	p.expectOp(")")
	return args, defaults
}

func (p *parser) callTag(line int) node {
	s := &callStmt{line: line}
	if p.cur().is("(") {
		s.args, s.defaults = p.signature()
	}
	call := p.expression()
	var ok bool
	if s.call, ok = call.(*callExpr); !ok {
		p.fail(line, "expected call")
	}
	s.body = p.body(true, "endcall")
	return s
}

func (p *parser) generationTag(line int) node {
	return &callStmt{line: line, body: p.body(true, "endgeneration")}
}

func (p *parser) filterTag(line int) node {
	filter := p.filters(nil, true).(*filterExpr)
	return &filterStmt{line, p.body(true, "endfilter"), filter}
}

func (p *parser) macroTag(line int) node {
	name := p.targetName()
	s := &macroStmt{line: line, name: name.name}
	s.args, s.defaults = p.signature()
	s.body = p.body(true, "endmacro")
	return s
}
