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

// parse returns the statements of a template.
func parse(name, source string) ([]node, error) {
	tokens, err := tokenize(name, source)
	if err != nil {
		return nil, err
	}
	p := &parser{name: name, tokens: tokens}
	body, err := p.statements(nil)
	if err != nil {
		return nil, err
	}
	return body, nil
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

func (p *parser) fail(line int, format string, args ...any) error {
	return &SyntaxError{Name: p.name, Line: line, Message: fmt.Sprintf(format, args...)}
}

// deepen counts a level of the syntax tree; the caller takes it back.
func (p *parser) deepen() error {
	if p.depth++; p.depth > maxSyntaxDepth {
		return p.fail(p.cur().line, "nested deeper than %d", maxSyntaxDepth)
	}
	return nil
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

func (p *parser) unexpected(want string) error {
	t := p.cur()
	if t.kind == tokEOF {
		return p.fail(t.line, "unexpected end of template, expected '%s'.", want)
	}
	return p.fail(t.line, "expected token '%s', got '%s'", want, t.describe())
}

func (p *parser) expectOp(op string) error {
	if !p.skipOp(op) {
		return p.unexpected(op)
	}
	return nil
}

func (p *parser) expectKind(kind tokenKind) error {
	if p.cur().kind != kind {
		return p.unexpected(token{kind: kind}.describe())
	}
	p.next()
	return nil
}

func (p *parser) expectName() (token, error) {
	if p.cur().kind != tokName {
		return token{}, p.unexpected("name")
	}
	return p.next(), nil
}

// statements reads until one of the tags in ends, which it leaves as the
// current token, or until the end of the template when ends is nil.
func (p *parser) statements(ends []string) ([]node, error) {
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
				return nil, p.unclosed("", t.line)
			}
			return body, nil
		case tokData:
			add(t.line, &textExpr{&Str{s: t.text, tmpl: true}})
		case tokVariableBegin:
			n, err := p.tuple(tupleOptions{})
			if err != nil {
				return nil, err
			}
			add(t.line, n)
			if err := p.expectKind(tokVariableEnd); err != nil {
				return nil, err
			}
		case tokBlockBegin:
			out = nil
			if ends != nil && p.cur().isName(ends...) {
				return body, nil
			}
			s, err := p.statement()
			if err != nil {
				return nil, err
			}
			body = append(body, s)
			if err := p.expectKind(tokBlockEnd); err != nil {
				return nil, err
			}
		}
	}
}

// unclosed is the error of a tag that nothing waits for, or of the end of the
// template where a tag is missing.
func (p *parser) unclosed(tag string, line int) error {
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
	return p.fail(line, "%s", message)
}

// body reads the end of a tag and the statements up to one of ends. It moves
// past that one when drop is set.
func (p *parser) body(drop bool, ends ...string) ([]node, error) {
	p.skipOp(":")
	if err := p.expectKind(tokBlockEnd); err != nil {
		return nil, err
	}
	body, err := p.statements(ends)
	if err == nil && drop {
		p.next()
	}
	return body, err
}

func (p *parser) statement() (node, error) {
	t := p.cur()
	if t.kind != tokName {
		return nil, p.fail(t.line, "tag name expected")
	}
	if err := p.deepen(); err != nil {
		return nil, err
	}
	defer func(depth int) { p.depth = depth }(p.depth - 1)
	var parse func(line int) (node, error)
	switch t.text {
	case "for":
		parse = p.forTag
	case "if":
		parse = p.ifTag
	case "block":
		parse = p.blockTag
	case "print":
		parse = p.printTag
	case "macro":
		parse = p.macroTag
	case "extends", "include", "import", "from":
		parse = p.loaderTag
	case "set":
		parse = p.setTag
	case "with":
		parse = p.withTag
	case "autoescape":
		parse = p.autoescapeTag
	case "call":
		parse = p.callTag
	case "filter":
		parse = p.filterTag
	case "generation":
		parse = p.generationTag
	case "break":
		p.next()
		return &breakStmt{t.line}, nil
	case "continue":
		p.next()
		return &continueStmt{t.line}, nil
	default:
		return nil, p.unclosed(t.text, t.line)
	}
	if p.tags = append(p.tags, t.text); len(p.tags) > maxTagDepth {
		return nil, p.fail(t.line, "tags nested deeper than %d", maxTagDepth)
	}
	defer func() { p.tags = p.tags[:len(p.tags)-1] }()
	if t.text != "from" && t.text != "import" && t.text != "extends" && t.text != "include" {
		p.next()
	}
	return parse(t.line)
}

func (p *parser) setTag(line int) (node, error) {
	target, err := p.target(tupleOptions{namespace: true})
	if err != nil {
		return nil, err
	}
	if p.skipOp("=") {
		value, err := p.tuple(tupleOptions{})
		return &assignStmt{line, target, value}, err
	}
	filter, err := p.filters(nil, false)
	if err != nil {
		return nil, err
	}
	body, err := p.body(true, "endset")
	s := &assignBlockStmt{line: line, target: target, body: body}
	s.filter, _ = filter.(*filterExpr)
	return s, err
}

func (p *parser) forTag(line int) (node, error) {
	s := &forStmt{line: line}
	var err error
	if s.target, err = p.target(tupleOptions{ends: "in"}); err != nil {
		return nil, err
	}
	if !p.skipName("in") {
		return nil, p.unexpected("in")
	}
	if s.iter, err = p.tuple(tupleOptions{noCond: true, ends: "recursive"}); err != nil {
		return nil, err
	}
	if p.skipName("if") {
		if s.test, err = p.expression(); err != nil {
			return nil, err
		}
	}
	s.recursive = p.skipName("recursive")
	if s.body, err = p.body(false, "endfor", "else"); err != nil {
		return nil, err
	}
	if p.next().text == "else" {
		s.orElse, err = p.body(true, "endfor")
	}
	return s, err
}

func (p *parser) ifTag(line int) (node, error) {
	result := &ifStmt{line: line}
	s := result
	for {
		var err error
		if s.test, err = p.tuple(tupleOptions{noCond: true}); err != nil {
			return nil, err
		}
		if s.body, err = p.body(false, "elif", "else", "endif"); err != nil {
			return nil, err
		}
		switch t := p.next(); t.text {
		case "elif":
			s = &ifStmt{line: t.line}
			result.elifs = append(result.elifs, s)
			continue
		case "else":
			result.orElse, err = p.body(true, "endif")
		}
		return result, err
	}
}

func (p *parser) withTag(line int) (node, error) {
	s := &withStmt{line: line}
	for p.cur().kind != tokBlockEnd {
		if len(s.targets) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		target, err := p.target(tupleOptions{})
		if err != nil {
			return nil, err
		}
		setAccess(target, param)
		if err := p.expectOp("="); err != nil {
			return nil, err
		}
		value, err := p.expression()
		if err != nil {
			return nil, err
		}
		s.targets = append(s.targets, target)
		s.values = append(s.values, value)
	}
	var err error
	s.body, err = p.body(true, "endwith")
	return s, err
}

func (p *parser) autoescapeTag(line int) (node, error) {
	value, err := p.expression()
	if err != nil {
		return nil, err
	}
	body, err := p.body(true, "endautoescape")
	return &autoescapeStmt{line, value, body}, err
}

func (p *parser) blockTag(line int) (node, error) {
	name, err := p.expectName()
	if err != nil {
		return nil, err
	}
	s := &blockStmt{line: line, name: name.text, scoped: p.skipName("scoped"), required: p.skipName("required")}
	if p.cur().is("-") {
		return nil, p.fail(p.cur().line, "Block names in Jinja have to be valid Python identifiers and may not contain hyphens, use an underscore instead.")
	}
	if s.body, err = p.body(true, "endblock"); err != nil {
		return nil, err
	}
	p.skipName(s.name)
	if s.required {
		for _, n := range s.body {
			if !isBlank(n) {
				return nil, p.fail(p.cur().line, "Required blocks can only contain comments or whitespace")
			}
		}
	}
	return s, nil
}

// isBlank reports whether a statement outputs white space only.
func isBlank(n node) bool {
	out, ok := n.(*outputStmt)
	if !ok {
		return false
	}
	for _, part := range out.nodes {
		if text, ok := part.(*textExpr); !ok || spaces(text.text.s) < len(text.text.s) {
			return false
		}
	}
	return true
}

// loaderTag reads the tags that load other templates.
func (p *parser) loaderTag(line int) (node, error) {
	s := &loaderStmt{line: line, tag: p.next().text}
	var err error
	if s.source, err = p.expression(); err != nil {
		return nil, err
	}
	switch s.tag {
	case "import":
		if !p.skipName("as") {
			return nil, p.unexpected("as")
		}
		name, err := p.targetName()
		if err != nil {
			return nil, err
		}
		s.stores = append(s.stores, name.name)
	case "from":
		if !p.skipName("import") {
			return nil, p.unexpected("import")
		}
		for {
			name, err := p.targetName()
			if err != nil {
				return nil, err
			}
			if p.skipName("as") {
				if name, err = p.targetName(); err != nil {
					return nil, err
				}
			}
			s.stores = append(s.stores, name.name)
			if !p.skipOp(",") {
				break
			}
		}
	case "include":
		if p.cur().isName("ignore") && p.look().isName("missing") {
			p.next()
			p.next()
		}
	}
	if p.cur().isName("with", "without") && p.look().isName("context") {
		p.next()
		p.next()
	}
	return s, nil
}

// signature reads the parameters of a macro or a call block.
func (p *parser) signature() (args, defaults []node, err error) {
	if err := p.expectOp("("); err != nil {
		return nil, nil, err
	}
	for !p.cur().is(")") {
		if len(args) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, nil, err
			}
		}
		arg, err := p.targetName()
		if err != nil {
			return nil, nil, err
		}
		arg.ctx = param
		for _, other := range args {
			if other.(*nameExpr).name == arg.name {
				return nil, nil, p.fail(arg.line, "duplicate argument '%s' in function definition", arg.name)
			}
		}
		if p.skipOp("=") {
			def, err := p.expression()
			if err != nil {
				return nil, nil, err
			}
			defaults = append(defaults, def)
		} else if len(defaults) > 0 {
			return nil, nil, p.fail(arg.line, "non-default argument follows default argument")
		}
		args = append(args, arg)
	}
	return args, defaults, p.expectOp(")")
}

func (p *parser) callTag(line int) (node, error) {
	s := &callStmt{line: line}
	var err error
	if p.cur().is("(") {
		if s.args, s.defaults, err = p.signature(); err != nil {
			return nil, err
		}
	}
	call, err := p.expression()
	if err != nil {
		return nil, err
	}
	var ok bool
	if s.call, ok = call.(*callExpr); !ok {
		return nil, p.fail(line, "expected call")
	}
	s.body, err = p.body(true, "endcall")
	return s, err
}

func (p *parser) generationTag(line int) (node, error) {
	body, err := p.body(true, "endgeneration")
	return &callStmt{line: line, body: body}, err
}

func (p *parser) filterTag(line int) (node, error) {
	filter, err := p.filters(nil, true)
	if err != nil {
		return nil, err
	}
	body, err := p.body(true, "endfilter")
	return &filterStmt{line, body, filter.(*filterExpr)}, err
}

func (p *parser) macroTag(line int) (node, error) {
	name, err := p.targetName()
	if err != nil {
		return nil, err
	}
	s := &macroStmt{line: line, name: name.name}
	if s.args, s.defaults, err = p.signature(); err != nil {
		return nil, err
	}
	s.body, err = p.body(true, "endmacro")
	return s, err
}

func (p *parser) printTag(line int) (node, error) {
	s := &outputStmt{line: line}
	for p.cur().kind != tokBlockEnd {
		if len(s.nodes) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		n, err := p.expression()
		if err != nil {
			return nil, err
		}
		s.nodes = append(s.nodes, n)
		s.lines = append(s.lines, line)
	}
	return s, nil
}
