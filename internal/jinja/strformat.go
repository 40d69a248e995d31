package jinja

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// A fieldFormat runs str.format: replacement fields in braces, looked up with
// the rules of the sandbox.
type fieldFormat struct {
	in     *interp
	args   []Value
	names  func(key *Str) (Value, error)
	auto   int // the next automatic field, -1 after a numbered one
	escape bool
}

func strFormat(in *interp, recv Value, a *callArgs) (Value, error) {
	return in.format(recv.(*Str), a.args, func(key *Str) (Value, error) {
		if a.kw != nil {
			if v, ok := a.kw.Get(key.s); ok {
				return v, nil
			}
		}
		return nil, raise(classKey, "%s", in.reprText(key))
	})
}

func strFormatMap(in *interp, recv Value, a *callArgs) (Value, error) {
	args, err := a.positional(1, 1)
	if err != nil {
		return nil, err
	}
	return in.format(recv.(*Str), nil, func(key *Str) (Value, error) {
		if v, ok := in.item(args[0], key); ok {
			return v, nil
		}
		return nil, raise(classKey, "%s", in.reprText(key))
	})
}

func (in *interp) format(format *Str, args []Value, names func(*Str) (Value, error)) (Value, error) {
	f := &fieldFormat{in: in, args: args, names: names, escape: format.safe}
	out, err := f.expand(format, 2)
	if err != nil {
		return nil, err
	}
	out.safe = format.safe
	return out, nil
}

// expand replaces the fields of format. Fields nest once, in the
// specification of a field.
func (f *fieldFormat) expand(format *Str, depth int) (*Str, error) {
	if depth < 1 {
		return nil, valueErrorf("Max string recursion exceeded")
	}
	f.in.step(len(format.s)) // it is read byte by byte, and more than once
	b := f.in.builder()
	s := format.s
	for i := 0; i < len(s); {
		at := strings.IndexAny(s[i:], "{}")
		if at < 0 {
			b.slice(format, i, len(s))
			break
		}
		b.slice(format, i, i+at)
		i += at
		if i+1 < len(s) && s[i+1] == s[i] {
			b.slice(format, i, i+1)
			i += 2
			continue
		}
		if s[i] == '}' {
			return nil, valueErrorf("Single '}' encountered in format string")
		}
		end, nest := i+1, 1
		for ; end < len(s); end++ {
			if s[end] == '{' {
				nest++
			} else if s[end] == '}' {
				if nest--; nest == 0 {
					break
				}
			}
		}
		if end == len(s) {
			if i+1 == len(s) {
				return nil, valueErrorf("Single '{' encountered in format string")
			}
			return nil, valueErrorf("expected '}' before end of string")
		}
		text, err := f.field(format.slice(i+1, end), depth)
		if err != nil {
			return nil, err
		}
		b.str(text)
		i = end + 1
	}
	return b.done(), nil
}

// field formats the inside of one pair of braces.
func (f *fieldFormat) field(field *Str, depth int) (*Str, error) {
	s := field.s
	nameEnd, bracket := 0, false
	for ; nameEnd < len(s); nameEnd++ {
		c := s[nameEnd]
		if c == '[' {
			bracket = true
		} else if c == ']' {
			bracket = false
		} else if !bracket && (c == ':' || c == '!') {
			break
		} else if c == '{' || c == '}' {
			return nil, valueErrorf("unexpected '%c' in field name", c)
		}
	}
	v, err := f.lookup(field.slice(0, nameEnd))
	if err != nil {
		return nil, err
	}
	rest := field.slice(nameEnd, len(s))
	if strings.HasPrefix(rest.s, "!") {
		if len(rest.s) < 2 {
			return nil, valueErrorf("end of string while looking for conversion specifier")
		}
		_, n := utf8.DecodeRuneInString(rest.s[1:])
		if len(rest.s) > 1+n && rest.s[1+n] != ':' {
			return nil, valueErrorf("expected ':' after conversion specifier")
		}
		switch rest.s[1] {
		case 's':
			v, err = f.in.str(v)
		case 'r':
			v, err = f.in.repr(v)
		case 'a':
			v, err = f.in.ascii(v)
		default:
			err = valueErrorf("Unknown conversion specifier '%s'", rest.s[1:1+n])
		}
		if err != nil {
			return nil, err
		}
		rest = rest.slice(1+n, len(rest.s))
	}
	spec := emptyStr
	if rest.s != "" {
		if spec, err = f.expand(rest.slice(1, len(rest.s)), depth-1); err != nil {
			return nil, err
		}
	}
	if !f.escape {
		return f.in.formatValue(v, spec)
	}
	if s, ok := v.(*Str); ok && s.safe {
		if spec.s != "" {
			return nil, valueErrorf("Unsupported format specification for Markup.")
		}
		return s, nil
	}
	out, err := f.in.formatValue(v, spec)
	if err != nil {
		return nil, err
	}
	return f.in.escape(out), nil
}

// lookup finds the value of a field name: an argument, then attributes and
// items of it.
func (f *fieldFormat) lookup(name *Str) (Value, error) {
	end := strings.IndexAny(name.s, ".[")
	if end < 0 {
		end = len(name.s)
	}
	v, err := f.argument(name.slice(0, end), end == len(name.s))
	if err != nil {
		return nil, err
	}
	for i := end; i < len(name.s); {
		if name.s[i] == '.' {
			j := strings.IndexAny(name.s[i+1:], ".[")
			if j < 0 {
				j = len(name.s) - i - 1
			}
			if j == 0 {
				return nil, valueErrorf("Empty attribute in format string")
			}
			if v, err = f.in.attribute(v, name.slice(i+1, i+1+j)); err != nil {
				return nil, err
			}
			i += 1 + j
			continue
		}
		if name.s[i] != '[' {
			return nil, valueErrorf("Only '.' or '[' may follow ']' in format field specifier")
		}
		j := strings.IndexByte(name.s[i:], ']')
		switch {
		case j < 0:
			return nil, valueErrorf("Missing ']' in format string")
		case j == 1:
			return nil, valueErrorf("Empty attribute in format string")
		}
		var key Value = name.slice(i+1, i+j)
		if n, ok := fieldNumber(name.s[i+1 : i+j]); ok {
			key = templateInt(n)
		}
		if v, err = f.in.subscript(v, key); err != nil {
			return nil, err
		}
		i += j + 1
	}
	return v, nil
}

// argument finds the argument that a field begins with. Fields are numbered
// automatically or not at all, which only counts for those that are whole.
func (f *fieldFormat) argument(name *Str, whole bool) (Value, error) {
	n, numbered := fieldNumber(name.s)
	switch {
	case name.s == "" && whole:
		if f.auto < 0 {
			return nil, valueErrorf("cannot switch from manual field specification to automatic field numbering")
		}
		n = f.auto
		f.auto++
	case numbered && whole:
		if f.auto > 0 {
			return nil, valueErrorf("cannot switch from automatic field numbering to manual field specification")
		}
		f.auto = -1
	case numbered:
	default:
		return f.names(name)
	}
	if n >= len(f.args) {
		return nil, raise(classIndex, "Replacement index %d out of range for positional args tuple", n)
	}
	return f.args[n], nil
}

func fieldNumber(s string) (int, bool) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return 1 << 62, true
	}
	return n, true
}

// A fieldSpec is a parsed format specification (Python's format mini-language).
type fieldSpec struct {
	numberSpec
	fill  string
	align byte
	width int
}

func parseFieldSpec(s string) (fieldSpec, error) {
	spec := fieldSpec{numberSpec: numberSpec{precision: -1}, fill: " "}
	filled := false
	isAlign := func(s string) bool { return s != "" && strings.IndexByte("<>=^", s[0]) >= 0 }
	if _, n := utf8.DecodeRuneInString(s); n > 0 && isAlign(s[n:]) {
		spec.fill, spec.align, s, filled = s[:n], s[n], s[n+1:], true
	} else if isAlign(s) {
		spec.align, s = s[0], s[1:]
	}
	take := func(set string) byte {
		if s == "" || strings.IndexByte(set, s[0]) < 0 {
			return 0
		}
		c := s[0]
		s = s[1:]
		return c
	}
	spec.sign = take("+- ")
	take("z")
	spec.alternate = take("#") != 0
	if !filled && take("0") != 0 {
		spec.fill = "0"
		if spec.align == 0 {
			spec.align = '='
		}
	}
	number := func() (int, bool, error) {
		n, found := 0, false
		for s != "" && isDigitByte(s[0]) {
			if n = n*10 + int(s[0]-'0'); n > 1<<31-1 {
				return 0, false, valueErrorf("Too many decimal digits in format string")
			}
			s, found = s[1:], true
		}
		return n, found, nil
	}
	var err error
	if spec.width, _, err = number(); err != nil {
		return spec, err
	}
	spec.grouping = take(",_")
	if take(",_") != 0 {
		return spec, valueErrorf("Cannot specify both ',' and '_'.")
	}
	if take(".") != 0 {
		n, found, err := number()
		if err != nil {
			return spec, err
		}
		if !found {
			return spec, valueErrorf("Format specifier missing precision")
		}
		spec.precision = n
	}
	spec.verb = take("bcdeEfFgGnosxX%")
	if s != "" {
		return spec, valueErrorf("Invalid format specifier")
	}
	return spec, nil
}

// formatValue is Python's format(v, spec).
func (in *interp) formatValue(v Value, specText *Str) (*Str, error) {
	if specText.s == "" {
		return in.softStr(v)
	}
	_, isStr := v.(*Str)
	if !isStr && !isNumber(v) {
		return nil, typeErrorf("unsupported format string passed to %s.__format__", v.typeName())
	}
	spec, err := parseFieldSpec(specText.s)
	if err != nil {
		return nil, err
	}
	if s, ok := v.(*Str); ok {
		return in.formatStr(spec, s)
	}
	prefix, digits, err := in.formatNumber(spec, v)
	if err != nil {
		return nil, err
	}
	more := spec.width - in.runeCount(prefix) - in.runeCount(digits)
	b := in.builder()
	left := more
	switch spec.align {
	case '<':
		left = 0
	case '^':
		left = more / 2
	case '=':
		b.write(prefix, numberOrigin(v))
		prefix = ""
		if spec.grouping != 0 && spec.fill == "0" {
			digits, left = in.zeroGroups(spec, digits, more), 0
		}
	}
	right := more - left
	if spec.align == '=' {
		right = 0
	}
	b.repeat(spec.fill, left, false)
	b.write(prefix+digits, numberOrigin(v))
	b.repeat(spec.fill, right, false)
	return b.done(), nil
}

// zeroGroups pads digits with zeros that are grouped as the digits are.
func (in *interp) zeroGroups(spec fieldSpec, digits string, more int) string {
	whole := strings.IndexFunc(digits, func(r rune) bool { return !strings.ContainsRune("0123456789abcdefABCDEF,_", r) })
	if whole < 0 {
		whole = len(digits)
	}
	group := 3
	if strings.IndexByte("boxX", spec.verb) >= 0 {
		group = 4
	}
	in.grow(max(0, more))
	in.grow(2 * len(digits))
	bare := strings.ReplaceAll(digits[:whole], string(spec.grouping), "")
	for want := len(digits[:whole]) + more; len(groupDigits(bare, spec.grouping, group)) < want; {
		missing := want - len(groupDigits(bare, spec.grouping, group))
		bare = strings.Repeat("0", max(1, missing*group/(group+1))) + bare
	}
	return groupDigits(bare, spec.grouping, group) + digits[whole:]
}

func (in *interp) formatStr(spec fieldSpec, s *Str) (*Str, error) {
	switch {
	case spec.verb != 0 && spec.verb != 's':
		return nil, valueErrorf("Unknown format code '%c' for object of type 'str'", spec.verb)
	case spec.sign != 0:
		return nil, valueErrorf("Sign not allowed in string format specifier")
	case spec.alternate:
		return nil, valueErrorf("Alternate form (#) not allowed in string format specifier")
	case spec.grouping != 0:
		return nil, valueErrorf("Cannot specify '%c' with 's'.", spec.grouping)
	case spec.align == '=' && spec.fill != "0":
		return nil, valueErrorf("'=' alignment not allowed in string format specifier")
	}
	if spec.precision >= 0 && spec.precision < len(s.s) {
		s = s.slice(0, in.runeOffset(s.s, spec.precision))
	}
	more := spec.width - in.runeCount(s.s)
	left := 0
	switch spec.align {
	case '>':
		left = more
	case '^':
		left = more / 2
	}
	return in.pad(s, left, more-left, String(spec.fill, false)), nil
}

// formatNumber returns the sign with the prefix and the digits of a number.
func (in *interp) formatNumber(spec fieldSpec, v Value) (prefix, digits string, err error) {
	n, isInt := asInt(v)
	if isInt && strings.IndexByte("eEfFgG%", spec.verb) < 0 {
		if spec.precision >= 0 {
			return "", "", valueErrorf("Precision not allowed in integer format specifier")
		}
		switch spec.verb {
		case 's':
			return "", "", valueErrorf("Unknown format code 's' for object of type '%s'", v.typeName())
		case 'c':
			if spec.sign != 0 || spec.alternate {
				return "", "", valueErrorf("Sign not allowed with integer format specifier 'c'")
			}
			s, err := in.percentChar(n)
			if err != nil {
				return "", "", err
			}
			return "", s.s, nil
		}
		if spec.grouping == ',' && strings.IndexByte("boxXn", spec.verb) >= 0 {
			return "", "", valueErrorf("Cannot specify ',' with '%c'.", spec.verb)
		}
		return in.formatInt(spec.numberSpec, n)
	}
	f, _, err := in.asFloat(v)
	if err != nil {
		return "", "", err
	}
	switch {
	case strings.IndexByte("bcdosxX", spec.verb) >= 0:
		return "", "", valueErrorf("Unknown format code '%c' for object of type 'float'", spec.verb)
	case spec.verb == 0 && spec.precision < 0:
		prefix = spec.signed(strings.HasPrefix(floatText(f), "-"))
		return prefix, groupFloat(strings.TrimPrefix(floatText(f), "-"), spec.grouping), nil
	case spec.verb == 0:
		spec.verb = 'g'
		prefix, digits = in.formatFloat(spec.numberSpec, f)
		// Without a verb a number keeps at least one digit behind the
		// point where there is no exponent, and one digit fewer before it
		// turns to the exponent.
		return prefix, in.pointZero(f, digits, spec), nil
	}
	prefix, digits = in.formatFloat(spec.numberSpec, f)
	return prefix, digits, nil
}

// pointZero applies the rules of a float without a verb to what g made of it.
func (in *interp) pointZero(f float64, digits string, spec fieldSpec) string {
	if strings.ContainsAny(digits, ".eni") {
		return digits
	}
	if len(digits) >= max(1, spec.precision) && digits != "0" {
		in.chargeDecimal(f)
		abs := strconv.FormatFloat(max(f, -f), 'e', max(1, spec.precision)-1, 64)
		at := strings.IndexByte(abs, 'e')
		if strings.Contains(abs[:at], ".") {
			abs = strings.TrimRight(strings.TrimRight(abs[:at], "0"), ".") + abs[at:]
		}
		return abs
	}
	return digits + ".0"
}
