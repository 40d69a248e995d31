package tokenizer

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// term is a node of a regular expression.
type term struct {
	kind       termKind
	set        runeRanges // of termSet: the characters it matches
	parts      []*term
	min, max   int  // of a repetition; a max of -1 is unlimited
	lazy       bool // the repetition takes as few as it can
	possessive bool // the repetition does not backtrack
	behind     bool // a lookbehind
	negative   bool
	place      place
}

type termKind int

const (
	termSequence termKind = iota // parts in order; empty without parts
	termChoice
	termSet
	termRepeat
	termAtomic
	termLook
	termPlace
)

// place is a condition on a position in a text.
type place int

const (
	lineStart place = iota
	lineEnd
	textStart
	textEnd
	lastLineEnd // the end of the text, or before its last line feed
	wordEdge
	noWordEdge
)

// Limits of expressions, far above those of published files.
const (
	maxNesting = 100
	maxRepeat  = 1000
)

// parser reads an expression in the syntax of Oniguruma. It does not read backreferences or
// anything else that depends on captures.
type parser struct {
	rest    string
	fold    bool // case is ignored
	dotAll  bool // a dot matches a line feed
	nesting int
}

// unsupportedExpression stops a parser.
type unsupportedExpression string

func (u unsupportedExpression) Error() string { return string(u) }

// parseExpression parses an expression. The error says why it cannot be read.
func parseExpression(expression string) (t *term, err error) {
	if !utf8.ValidString(expression) {
		return nil, unsupportedExpression("it is not UTF-8")
	}
	p := &parser{rest: expression}
	if t, err = p.choice(); err == nil && p.rest != "" {
		err = unsupportedExpression("a parenthesis that closes nothing")
	}
	return t, err
}

func (p *parser) take(prefix string) bool {
	rest, ok := strings.CutPrefix(p.rest, prefix)
	p.rest = rest
	return ok
}

// next consumes and returns one character, 0 at the end.
func (p *parser) next() rune {
	if p.rest == "" {
		return 0
	}
	r, n := utf8.DecodeRuneInString(p.rest)
	p.rest = p.rest[n:]
	return r
}

// choice reads alternatives up to a closing parenthesis.
func (p *parser) choice() (*term, error) {
	p.nesting++
	defer func() { p.nesting-- }()
	if p.nesting > maxNesting {
		return nil, unsupportedExpression("groups in groups in groups")
	}
	out := &term{kind: termChoice}
	for {
		t, err := p.sequence()
		if err != nil {
			return nil, err
		}
		out.parts = append(out.parts, t)
		if !p.take("|") {
			break
		}
	}
	if len(out.parts) == 1 {
		return out.parts[0], nil
	}
	return out, nil
}

func (p *parser) sequence() (*term, error) {
	out := &term{kind: termSequence}
	for p.rest != "" && p.rest[0] != '|' && p.rest[0] != ')' {
		t, err := p.atom()
		if err != nil {
			return nil, err
		}
		if t == nil { // a comment
			continue
		}
		for err == nil {
			var more bool
			if t, more, err = p.repeat(t); !more {
				break
			}
		}
		if err != nil {
			return nil, err
		}
		out.parts = append(out.parts, t)
	}
	return out, nil
}

// repeat reads a quantifier after t, if there is one.
func (p *parser) repeat(t *term) (_ *term, more bool, err error) {
	out := &term{kind: termRepeat, parts: []*term{t}, max: -1}
	counted := false
	switch {
	case p.take("*"):
	case p.take("+"):
		out.min = 1
	case p.take("?"):
		out.max = 1
	case strings.HasPrefix(p.rest, "{"):
		least, most, rest, ok := interval(p.rest)
		if !ok {
			return t, false, nil // the brace is an ordinary character
		}
		out.min, out.max, p.rest, counted = least, most, rest, true
	default:
		return t, false, nil
	}
	switch {
	case out.min > maxRepeat || out.max > maxRepeat || out.max >= 0 && out.max < out.min:
		return nil, false, unsupportedExpression("a repetition from " + strconv.Itoa(out.min) + " to " + strconv.Itoa(out.max) + " times")
	case counted && out.min == out.max && strings.HasPrefix(p.rest, "?"):
		return nil, false, unsupportedExpression("a question mark after a fixed number")
	case p.take("?"):
		out.lazy = true
	case !counted && p.take("+"):
		out.possessive = true
	}
	return out, true, nil
}

// interval reads the two numbers of a repetition like {1,3}.
func interval(text string) (least, most int, rest string, ok bool) {
	inside, rest, ok := strings.Cut(text[1:], "}")
	if !ok {
		return 0, 0, "", false
	}
	first, second, two := strings.Cut(inside, ",")
	number := func(text string, missing int) (int, bool) {
		if text == "" {
			return missing, true
		}
		n, err := strconv.ParseUint(text, 10, 30)
		return int(n), err == nil
	}
	least, ok = number(first, 0)
	most = least
	if two && ok {
		most, ok = number(second, -1)
	}
	return least, most, rest, ok && (first != "" || second != "")
}

// atom reads a term that a quantifier may follow.
func (p *parser) atom() (*term, error) {
	switch r := p.next(); r {
	case '(':
		return p.group()
	case '[':
		set, err := p.class()
		return &term{kind: termSet, set: set}, err
	case '.':
		if p.dotAll {
			return &term{kind: termSet, set: runeRanges{{0, unicode.MaxRune}}}, nil
		}
		return &term{kind: termSet, set: runeRanges{{'\n', '\n'}}.not()}, nil
	case '^':
		return &term{kind: termPlace, place: lineStart}, nil
	case '$':
		return &term{kind: termPlace, place: lineEnd}, nil
	case '*', '+', '?':
		return nil, unsupportedExpression("a repetition of nothing")
	case '\\':
		return p.escape()
	default:
		return p.single(r), nil
	}
}

// single returns the term that matches one character.
func (p *parser) single(r rune) *term {
	set := runeRanges{{r, r}}
	if p.fold {
		set = set.folded()
	}
	return &term{kind: termSet, set: set}
}

// group reads a group after its opening parenthesis.
func (p *parser) group() (*term, error) {
	fold, dotAll := p.fold, p.dotAll
	defer func() { p.fold, p.dotAll = fold, dotAll }()
	out := &term{kind: termSequence}
	switch {
	case !p.take("?"):
	case p.take("#"):
		_, rest, ok := strings.Cut(p.rest, ")")
		p.rest = rest
		if !ok {
			return nil, unsupportedExpression("a comment without an end")
		}
		return nil, nil
	case p.take(":"):
	case p.take(">"):
		out.kind = termAtomic
	case p.take("="):
		out.kind = termLook
	case p.take("!"):
		out.kind, out.negative = termLook, true
	case p.take("<="):
		out.kind, out.behind = termLook, true
	case p.take("<!"):
		out.kind, out.behind, out.negative = termLook, true, true
	case strings.HasPrefix(p.rest, "<"), strings.HasPrefix(p.rest, "P<"):
		_, rest, ok := strings.Cut(p.rest, ">")
		p.rest = rest
		if !ok {
			return nil, unsupportedExpression("a name without an end")
		}
	default:
		on := true
		for {
			switch r := p.next(); r {
			case '-':
				on = false
				continue
			case 'i':
				p.fold = on
				continue
			case 'm':
				p.dotAll = on
				continue
			case ')': // applies up to the end of the enclosing group, across alternatives
				t, err := p.choice()
				return t, err
			case ':':
			default:
				return nil, unsupportedExpression("a group that begins with (?" + string(r))
			}
			break
		}
	}
	t, err := p.choice()
	if err != nil {
		return nil, err
	}
	if !p.take(")") {
		return nil, unsupportedExpression("a parenthesis that is not closed")
	}
	out.parts = []*term{t}
	return out, nil
}

// escape reads an escape sequence after its backslash.
func (p *parser) escape() (*term, error) {
	if p.rest == "" {
		return nil, unsupportedExpression("it ends with a backslash")
	}
	places := map[byte]place{
		'A': textStart, 'z': textEnd, 'Z': lastLineEnd, 'b': wordEdge, 'B': noWordEdge,
	}
	if at, ok := places[p.rest[0]]; ok {
		p.rest = p.rest[1:]
		return &term{kind: termPlace, place: at}, nil
	}
	if p.take("R") {
		breaks := &term{kind: termSet, set: runeRanges{{'\n', '\r'}, {0x85, 0x85}, {0x2028, 0x2029}}}
		pair := &term{kind: termSequence, parts: []*term{p.single('\r'), p.single('\n')}}
		return &term{kind: termAtomic, parts: []*term{{kind: termChoice, parts: []*term{pair, breaks}}}}, nil
	}
	var set runeRanges
	var err error
	switch {
	case p.take("w"):
		set = wideWordRunes()
	case p.take("W"):
		set = wideWordRunes().not()
	default:
		set, err = p.escapedSet()
	}
	if err == nil && p.fold {
		set = set.folded()
	}
	return &term{kind: termSet, set: set}, err
}

// escapedSet reads an escape sequence that stands for a set, after its backslash, inside or outside
// of brackets.
func (p *parser) escapedSet() (runeRanges, error) {
	one := func(r rune) (runeRanges, error) { return runeRanges{{r, r}}, nil }
	switch r := p.next(); r {
	case 't':
		return one('\t')
	case 'n':
		return one('\n')
	case 'r':
		return one('\r')
	case 'f':
		return one('\f')
	case 'v':
		return one('\v')
	case 'a':
		return one('\a')
	case 'e':
		return one(0x1B)
	case 'd':
		return categoryRunes("Nd"), nil
	case 'D':
		return categoryRunes("Nd").not(), nil
	case 'w':
		return wordRunes(), nil
	case 'W':
		return wordRunes().not(), nil
	case 's':
		return runesIn(unicode.White_Space), nil
	case 'S':
		return runesIn(unicode.White_Space).not(), nil
	case 'h':
		return posixRunes["xdigit"](), nil
	case 'H':
		return posixRunes["xdigit"]().not(), nil
	case 'p', 'P':
		return p.property(r == 'P')
	case 'x', 'u':
		return p.number(r)
	case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		if r == '0' && (p.rest == "" || p.rest[0] < '0' || p.rest[0] > '7') {
			return one(0)
		}
		return nil, unsupportedExpression(`the escape \` + string(r))
	default:
		if r < utf8.RuneSelf && (unicode.IsLetter(r) || r == 0) {
			return nil, unsupportedExpression(`the escape \` + string(r))
		}
		return one(r)
	}
}

// property reads the name of a property.
func (p *parser) property(negative bool) (runeRanges, error) {
	if !p.take("{") {
		return nil, unsupportedExpression("a property without braces")
	}
	negative = p.take("^") != negative
	name, rest, ok := strings.Cut(p.rest, "}")
	p.rest = rest
	set := propertyRunes(name)
	switch {
	case !ok || set == nil:
		return nil, unsupportedExpression("the property " + quoted(name))
	case negative:
		return set.not(), nil
	}
	return set, nil
}

// number reads the number of a character after \x or \u.
func (p *parser) number(kind rune) (runeRanges, error) {
	digits := ""
	switch {
	case kind == 'x' && p.take("{"):
		inside, rest, _ := strings.Cut(p.rest, "}")
		digits, p.rest = inside, rest
	case kind == 'x':
		n := 0
		for n < min(2, len(p.rest)) && strings.IndexByte("0123456789abcdefABCDEF", p.rest[n]) >= 0 {
			n++
		}
		digits, p.rest = p.rest[:n], p.rest[n:]
	case len(p.rest) >= 4:
		digits, p.rest = p.rest[:4], p.rest[4:]
	}
	n, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || n > unicode.MaxRune || kind == 'x' && len(digits) < 3 && n > unicode.MaxASCII {
		return nil, unsupportedExpression(fmt.Sprintf(`the number %s after \%c`, quoted(digits), kind))
	}
	return runeRanges{{rune(n), rune(n)}}, nil
}

// class reads a bracket expression after its opening bracket.
func (p *parser) class() (runeRanges, error) {
	p.nesting++
	defer func() { p.nesting-- }()
	if p.nesting > maxNesting {
		return nil, unsupportedExpression("brackets in brackets in brackets")
	}
	negative := p.take("^")
	var all, set runeRanges
	intersects := false
	// part ends an operand of && or of the whole expression.
	part := func() {
		set = union(set)
		if p.fold {
			set = set.folded()
		}
		if intersects {
			set = all.and(set)
		}
	}
	for first := true; ; first = false {
		switch {
		case p.rest == "":
			return nil, unsupportedExpression("a bracket that is not closed")
		case !first && p.take("]"):
			if part(); negative {
				set = set.not()
			}
			return set, nil
		case p.take("&&"):
			part()
			all, set, intersects = set, nil, true
			continue
		}
		item, last, err := p.classItem()
		if err != nil {
			return nil, err
		}
		// A range joins two single characters.
		if last >= 0 && strings.HasPrefix(p.rest, "-") && !strings.HasPrefix(p.rest, "-]") && !strings.HasPrefix(p.rest, "-[") {
			rest := p.rest
			p.rest = p.rest[1:]
			_, end, err := p.classItem()
			switch {
			case err != nil:
				return nil, err
			case end < 0: // the hyphen is an ordinary character
				p.rest = rest
			case end < last:
				return nil, unsupportedExpression("a range that ends before it begins")
			default:
				item = runeRanges{{last, end}}
			}
		}
		set = append(set, item...)
	}
}

// classItem reads one item of a bracket expression. single is its character, or -1 for a class.
func (p *parser) classItem() (set runeRanges, single rune, err error) {
	switch {
	case strings.HasPrefix(p.rest, "[:"):
		name, rest, ok := strings.Cut(p.rest[2:], ":]")
		name, negative := strings.CutPrefix(name, "^")
		if in, known := posixRunes[name]; ok && known {
			p.rest = rest
			if set = in(); negative {
				set = set.not()
			}
			return set, -1, nil
		}
		return nil, -1, unsupportedExpression("the class " + quoted(name))
	case p.take("["):
		set, err = p.class()
		return set, -1, err
	case p.take(`\b`):
		return runeRanges{{'\b', '\b'}}, '\b', nil
	case p.take(`\`):
		if p.rest == "" {
			return nil, -1, unsupportedExpression("it ends with a backslash")
		}
		set, err = p.escapedSet()
		if len(set) == 1 && set[0].first == set[0].last {
			return set, set[0].first, err
		}
		return set, -1, err
	}
	r := p.next()
	return runeRanges{{r, r}}, r, nil
}
