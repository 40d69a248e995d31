package jinja

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// floatText is Python's repr of a float: the shortest digits that read back
// as the same number, positional from 1e-4 up to 1e16.
func floatText(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case math.IsNaN(f):
		return "nan"
	case f == 0:
		if math.Signbit(f) {
			return "-0.0"
		}
		return "0.0"
	}
	if a := math.Abs(f); a >= 1e16 || a < 1e-4 {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// intText is Python's str of an integer.
func intText(n Int) string {
	if n.wide != "" {
		return n.wide
	}
	return strconv.FormatInt(n.small, 10)
}

// str is Python's str(v).
func (in *interp) str(v Value) *Str {
	switch v := v.(type) {
	case *Str:
		return v
	case *undefined:
		return emptyStr
	case Int:
		return &Str{s: intText(v), tmpl: v.tmpl}
	case Float:
		in.step(4)
		return &Str{s: floatText(v.f), tmpl: v.tmpl}
	}
	return in.repr(v)
}

var emptyStr = &Str{tmpl: true}

// repr is Python's repr(v).
func (in *interp) repr(v Value) *Str {
	b := in.builder()
	in.writeRepr(b, v, 0)
	return b.done()
}

// reprText is repr for messages: it never fails and is never long.
func (in *interp) reprText(v Value) string {
	s, ok := v.(*Str)
	if !ok {
		return clip(in.repr(v).s)
	}
	b := builder{in: in}
	writeStrRepr(&b, s.slice(0, len(clip(s.s))))
	return b.buf.String()
}

// clip shortens text for a message.
func clip(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	n := most
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func (in *interp) writeRepr(b *builder, v Value, depth int) {
	nesting(depth)
	in.step(2)
	switch v := v.(type) {
	case noneValue:
		b.write("None", false)
	case Bool:
		if v {
			b.write("True", false)
		} else {
			b.write("False", false)
		}
	case Int, Float:
		s := in.str(v)
		b.str(s)
	case *Str:
		writeStrRepr(b, v)
	case *List:
		in.writeItems(b, "[", v.items, "]", depth)
	case *Tuple:
		if len(v.items) == 1 {
			in.writeItems(b, "(", v.items, ",)", depth)
			break
		}
		in.writeItems(b, "(", v.items, ")", depth)
	case *Dict:
		in.writeDict(b, v, depth)
	case *dictView:
		items := make([]Value, v.dict.Len())
		in.items(len(items))
		for i := range items {
			items[i] = v.at(i)
		}
		in.writeItems(b, v.kind+"([", items, "])", depth)
	case *rangeValue:
		if v.step == 1 {
			b.write(fmt.Sprintf("range(%d, %d)", v.start, v.stop), false)
		} else {
			b.write(fmt.Sprintf("range(%d, %d, %d)", v.start, v.stop, v.step), false)
		}
	case *namespace:
		b.write("<Namespace ", false)
		in.writeDict(b, v.attrs, depth)
		b.write(">", false)
	case *undefined:
		b.write("Undefined", false)
	default:
		b.write(fmt.Sprintf("<%s at 0x0>", objectTypeName(v)), false)
	}
}

func (in *interp) writeItems(b *builder, open string, items []Value, end string, depth int) {
	b.write(open, false)
	for i, item := range items {
		if i > 0 {
			b.write(", ", false)
		}
		in.writeRepr(b, item, depth+1)
	}
	b.write(end, false)
}

func (in *interp) writeDict(b *builder, d *Dict, depth int) {
	b.write("{", false)
	for i, e := range d.entries {
		if i > 0 {
			b.write(", ", false)
		}
		in.writeRepr(b, e.key, depth+1)
		b.write(": ", false)
		in.writeRepr(b, e.value, depth+1)
	}
	b.write("}", false)
}

// writeStrRepr appends the repr of a string: in single quotes unless it holds
// those and no double ones, with everything unprintable escaped.
func writeStrRepr(b *builder, s *Str) {
	quote := byte('\'')
	if b.in.index(s.s, "'") >= 0 && b.in.index(s.s, `"`) < 0 {
		quote = '"'
	}
	b.write(string(quote), false)
	plainFrom := 0
	for i, look := 0, stretch; i < len(s.s); {
		if i > look {
			b.in.scan(stretch)
			look += stretch
		}
		r, n := rune(s.s[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(s.s[i:])
		}
		var esc string
		switch {
		case r == rune(quote) || r == '\\':
			esc = `\` + string(r)
		case r == '\n':
			esc = `\n`
		case r == '\r':
			esc = `\r`
		case r == '\t':
			esc = `\t`
		case r >= ' ' && r < 0x7f:
			i += n
			continue
		case r >= 0x80 && strconv.IsPrint(r):
			b.in.step(2)
			i += n
			continue
		case r < 0x100:
			esc = `\x` + hex(r, 2)
		case r < 0x10000:
			esc = `\u` + hex(r, 4)
		default:
			esc = `\U` + hex(r, 8)
		}
		b.slice(s, plainFrom, i)
		b.write(esc, s.origin(i))
		i += n
		plainFrom = i
	}
	b.slice(s, plainFrom, len(s.s))
	b.write(string(quote), false)
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
