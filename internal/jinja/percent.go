package jinja

import (
	"strings"
	"unicode/utf8"
)

// A percentSpec is one conversion of a % format.
type percentSpec struct {
	numberSpec
	left, zero bool
	width      int
}

// percent is Python's format % value.
func (in *interp) percent(format *Str, value Value) (Value, error) {
	in.step(len(format.s)) // some of it is read byte by byte, and more than once
	p := &percentFormat{in: in, format: format, b: in.builder()}
	switch v := value.(type) {
	case *Tuple:
		p.args = v.items
	case *Str:
		p.args = []Value{v}
	default:
		p.args = []Value{v}
		switch v.(type) {
		case *Dict, *List, *rangeValue, *undefined:
			p.mapping = v
		}
	}
	if err := p.run(); err != nil {
		return nil, err
	}
	out := p.b.done()
	out.safe = format.safe
	return out, nil
}

type percentFormat struct {
	in      *interp
	format  *Str
	b       *builder
	args    []Value
	used    int
	mapping Value // what %(name)s looks names up in, or nil
}

func (p *percentFormat) next() (Value, error) {
	if p.used >= len(p.args) {
		return nil, typeErrorf("not enough arguments for format string")
	}
	p.used++
	return p.args[p.used-1], nil
}

func (p *percentFormat) run() error {
	s := p.format.s
	for i := 0; i < len(s); {
		at := strings.IndexByte(s[i:], '%')
		if at < 0 {
			at = len(s) - i
		}
		p.b.slice(p.format, i, i+at)
		i += at
		if i == len(s) {
			break
		}
		n, err := p.conversion(s, i+1)
		if err != nil {
			return err
		}
		i = n
	}
	if p.used < len(p.args) && p.mapping == nil {
		return typeErrorf("not all arguments converted during string formatting")
	}
	return nil
}

// conversion formats the conversion whose % lies before i, and returns where
// it ends.
func (p *percentFormat) conversion(s string, i int) (int, error) {
	start := i - 1
	spec := percentSpec{numberSpec: numberSpec{precision: -1}}
	var arg Value
	if i < len(s) && s[i] == '(' {
		if p.mapping == nil {
			return 0, typeErrorf("format requires a mapping")
		}
		end, depth := i+1, 1
		for ; end < len(s); end++ {
			if s[end] == '(' {
				depth++
			} else if s[end] == ')' {
				if depth--; depth == 0 {
					break
				}
			}
		}
		if end == len(s) {
			return 0, valueErrorf("incomplete format key")
		}
		key := p.format.slice(i+1, end)
		v, ok := p.in.item(p.mapping, key)
		if !ok {
			return 0, raise(classKey, "%s", p.in.reprText(key))
		}
		arg, i = v, end+1
		p.args, p.used = []Value{v}, 1
	}
flags:
	for ; i < len(s); i++ {
		switch s[i] {
		case '-':
			spec.left = true
		case '+':
			spec.sign = '+'
		case ' ':
			if spec.sign == 0 {
				spec.sign = ' '
			}
		case '#':
			spec.alternate = true
		case '0':
			spec.zero = true
		default:
			break flags
		}
	}
	var err error
	if spec.width, i, err = p.number(s, i); err != nil {
		return 0, err
	}
	if spec.width < 0 {
		spec.left, spec.width = true, -spec.width
	}
	if i < len(s) && s[i] == '.' {
		if spec.precision, i, err = p.number(s, i+1); err != nil {
			return 0, err
		}
		spec.precision = max(0, spec.precision)
	}
	if i < len(s) && strings.IndexByte("hlL", s[i]) >= 0 {
		i++
	}
	if i >= len(s) {
		return 0, valueErrorf("incomplete format")
	}
	c, n := utf8.DecodeRuneInString(s[i:])
	if c == '%' {
		p.b.slice(p.format, i, i+1)
		return i + 1, nil
	}
	if arg == nil {
		if arg, err = p.next(); err != nil {
			return 0, err
		}
	}
	if c > 0x7f || strings.IndexByte("sradiuoxXeEfFgGc", byte(c)) < 0 {
		return 0, valueErrorf("unsupported format character '%c' (0x%x) at index %d", c, c, p.in.runeCount(s[:start])+1)
	}
	spec.verb = byte(c)
	return i + n, p.convert(spec, arg)
}

// number reads a width or a precision: digits, or * for an argument.
func (p *percentFormat) number(s string, i int) (int, int, error) {
	if i < len(s) && s[i] == '*' {
		v, err := p.next()
		if err != nil {
			return 0, 0, err
		}
		n, ok := asInt(v)
		if !ok {
			return 0, 0, typeErrorf("* wants int")
		}
		return n.clamp(), i + 1, nil
	}
	n := 0
	for ; i < len(s) && isDigitByte(s[i]); i++ {
		if n = n*10 + int(s[i]-'0'); n > 1<<31-1 {
			return 0, 0, valueErrorf("width too big")
		}
	}
	return n, i, nil
}

func (p *percentFormat) convert(spec percentSpec, arg Value) error {
	switch spec.verb {
	case 's', 'r', 'a':
		text, err := p.text(spec.verb, arg)
		if err != nil {
			return err
		}
		if spec.precision >= 0 && spec.precision < len(text.s) {
			text = text.slice(0, p.in.runeOffset(text.s, spec.precision))
		}
		p.fill(spec, text)
		return nil
	case 'c':
		text, err := p.in.percentChar(arg)
		if err != nil {
			return err
		}
		p.fill(spec, text)
		return nil
	}
	prefix, digits, err := p.digits(spec, arg)
	if err != nil {
		return err
	}
	if more := spec.width - len(prefix) - len(digits); spec.zero && !spec.left && more > 0 {
		p.in.grow(more)
		digits = strings.Repeat("0", more) + digits
	}
	p.fill(spec, &Str{s: prefix + digits, tmpl: numberOrigin(arg)})
	return nil
}

// digits formats a number: its sign with a prefix, and what follows.
func (p *percentFormat) digits(spec percentSpec, arg Value) (prefix, digits string, err error) {
	if u, ok := arg.(*undefined); ok {
		return "", "", p.in.failUndefined(u)
	}
	if strings.IndexByte("eEfFgG", spec.verb) >= 0 {
		f, ok, err := p.in.asFloat(arg)
		if err != nil {
			return "", "", err
		}
		if !ok {
			return "", "", typeErrorf("must be real number, not %s", arg.typeName())
		}
		prefix, digits = p.in.formatFloat(spec.numberSpec, f)
		return prefix, digits, nil
	}
	n, ok := asInt(arg)
	if f, isFloat := arg.(Float); isFloat && strings.IndexByte("diu", spec.verb) >= 0 {
		whole, err := truncate(f.f, f.tmpl)
		if err != nil {
			return "", "", err
		}
		n, ok = whole.(Int)
	}
	if !ok {
		want := "a real number is required"
		if strings.IndexByte("diu", spec.verb) < 0 {
			want = "an integer is required"
		}
		return "", "", typeErrorf("%%%c format: %s, not %s", spec.verb, want, arg.typeName())
	}
	prefix, digits, err = p.in.formatInt(spec.numberSpec, n)
	if more := spec.precision - len(digits); more > 0 {
		p.in.grow(more)
		digits = strings.Repeat("0", more) + digits
	}
	return prefix, digits, err
}

// text is the string form of a value for the verbs s, r and a.
func (p *percentFormat) text(verb byte, arg Value) (*Str, error) {
	var text *Str
	var err error
	switch {
	case verb == 's' && p.format.safe:
		return p.in.escapeValue(arg)
	case verb == 's':
		return p.in.softStr(arg)
	case verb == 'r':
		text, err = p.in.repr(arg)
	default:
		text, err = p.in.ascii(arg)
	}
	if err == nil && p.format.safe {
		text = p.in.escape(text)
	}
	return text, err
}

func (in *interp) percentChar(arg Value) (*Str, error) {
	if s, ok := arg.(*Str); ok {
		if in.runeCount(s.s) != 1 {
			return nil, typeErrorf("%%c requires int or char")
		}
		return s, nil
	}
	n, ok := asInt(arg)
	if !ok {
		return nil, typeErrorf("%%c requires int or char")
	}
	if r := n.clamp(); r >= 0 && r <= utf8.MaxRune {
		return &Str{s: string(rune(r)), tmpl: n.tmpl}, nil
	}
	return nil, raise(classOverflow, "%%c arg not in range(0x110000)")
}

// fill writes text in a field of the width of spec.
func (p *percentFormat) fill(spec percentSpec, text *Str) {
	more := spec.width - p.in.runeCount(text.s)
	if !spec.left {
		p.b.repeat(" ", more, false)
	}
	p.b.str(text)
	if spec.left {
		p.b.repeat(" ", more, false)
	}
}

// ascii is Python's ascii(v): repr with everything beyond ASCII escaped.
func (in *interp) ascii(v Value) (*Str, error) {
	s, err := in.repr(v)
	if err != nil || in.isASCII(s.s) {
		return s, err
	}
	return in.mapRunes(s, func(_ string, r rune, _ string) string {
		switch {
		case r < 0x80:
			return string(r)
		case r < 0x100:
			return `\x` + hex(r, 2)
		case r < 0x10000:
			return `\u` + hex(r, 4)
		}
		return `\U` + hex(r, 8)
	}), nil
}

// hex writes r in lower case with the given number of digits.
func hex(r rune, digits int) string {
	const set = "0123456789abcdef"
	out := make([]byte, digits)
	for i := digits - 1; i >= 0; i-- {
		out[i] = set[r&15]
		r >>= 4
	}
	return string(out)
}
