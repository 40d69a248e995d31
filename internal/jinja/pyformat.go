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

// intText is Python's str of an integer, which refuses very long ones.
func (in *interp) intText(n Int) (string, error) {
	if n.big == nil {
		return strconv.FormatInt(n.small, 10), nil
	}
	// 10^4300 has 14285 bits.
	if n.big.BitLen() > 14286 {
		return "", valueErrorf("Exceeds the limit (%d digits) for integer string conversion", maxIntDigits)
	}
	in.step(n.big.BitLen() / 4)
	s := n.big.Text(10)
	if len(strings.TrimPrefix(s, "-")) > maxIntDigits {
		return "", valueErrorf("Exceeds the limit (%d digits) for integer string conversion", maxIntDigits)
	}
	return s, nil
}

// str is Python's str(v). Markup becomes a plain string.
func (in *interp) str(v Value) (*Str, error) {
	switch v := v.(type) {
	case *Str:
		return plain(v), nil
	case *undefined:
		return emptyStr, nil
	case Int:
		s, err := in.intText(v)
		return &Str{s: s, tmpl: v.tmpl}, err
	case Float:
		in.step(4)
		return &Str{s: floatText(v.f), tmpl: v.tmpl}, nil
	}
	return in.repr(v)
}

var emptyStr = &Str{tmpl: true}

// softStr is markupsafe's soft_str: str(v), but markup stays what it is.
func (in *interp) softStr(v Value) (*Str, error) {
	if s, ok := v.(*Str); ok {
		return s, nil
	}
	return in.str(v)
}

// repr is Python's repr(v).
func (in *interp) repr(v Value) (*Str, error) {
	b := in.builder()
	if err := in.writeRepr(b, v, 0); err != nil {
		return nil, err
	}
	return b.done(), nil
}

// reprText is repr for messages: it never fails and is never long.
func (in *interp) reprText(v Value) string {
	s, ok := v.(*Str)
	if !ok {
		r, err := in.repr(v)
		if err != nil {
			return v.typeName()
		}
		return clip(r.s)
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

func (in *interp) writeRepr(b *builder, v Value, depth int) error {
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
		s, err := in.str(v)
		if err != nil {
			return err
		}
		b.str(s)
	case *Str:
		if v.safe {
			b.write("Markup(", false)
			writeStrRepr(b, v)
			b.write(")", false)
		} else {
			writeStrRepr(b, v)
		}
	case *List:
		return in.writeItems(b, "[", v.items, "]", depth)
	case *Tuple:
		if len(v.items) == 1 {
			return in.writeItems(b, "(", v.items, ",)", depth)
		}
		return in.writeItems(b, "(", v.items, ")", depth)
	case *Dict:
		return in.writeDict(b, v, depth)
	case *dictView:
		items := make([]Value, v.dict.Len())
		in.items(len(items))
		for i := range items {
			items[i] = v.at(i)
		}
		return in.writeItems(b, v.kind+"([", items, "])", depth)
	case *rangeValue:
		if v.step == 1 {
			b.write(fmt.Sprintf("range(%d, %d)", v.start, v.stop), false)
		} else {
			b.write(fmt.Sprintf("range(%d, %d, %d)", v.start, v.stop, v.step), false)
		}
	case *namespace:
		b.write("<Namespace ", false)
		if err := in.writeDict(b, v.attrs, depth); err != nil {
			return err
		}
		b.write(">", false)
	case *macro:
		if v.def.name == "" {
			b.write("<Macro anonymous>", false)
		} else {
			in.scan(len(v.def.name))
			b.write("<Macro ", false)
			writeStrRepr(b, String(v.def.name, false))
			b.write(">", false)
		}
	case *loopContext:
		n, err := v.count(in)
		if err != nil {
			return err
		}
		b.write(fmt.Sprintf("<LoopContext %d/%d>", v.index0+1, n), false)
	case *builtin:
		b.write(v.describe(), false)
	case *undefined:
		b.write("Undefined", false)
	case *generator:
		if v.desc != "" {
			b.write(fmt.Sprintf("<%s object %s at 0x0>", v.kind, v.desc), false)
		} else {
			b.write(fmt.Sprintf("<%s object at 0x0>", v.kind), false)
		}
	default:
		b.write(fmt.Sprintf("<%s at 0x0>", objectTypeName(v)), false)
	}
	return nil
}

func (f *builtin) describe() string {
	switch {
	case f.kind == "type":
		return "<class '" + f.name + "'>"
	case f.recv != nil:
		return fmt.Sprintf("<built-in method %s of %s object at 0x0>", f.name, f.recv.typeName())
	}
	return fmt.Sprintf("<function %s at 0x0>", f.name)
}

func (in *interp) writeItems(b *builder, open string, items []Value, end string, depth int) error {
	b.write(open, false)
	for i, item := range items {
		if i > 0 {
			b.write(", ", false)
		}
		if err := in.writeRepr(b, item, depth+1); err != nil {
			return err
		}
	}
	b.write(end, false)
	return nil
}

func (in *interp) writeDict(b *builder, d *Dict, depth int) error {
	b.write("{", false)
	for i, e := range d.entries {
		if i > 0 {
			b.write(", ", false)
		}
		if err := in.writeRepr(b, e.key, depth+1); err != nil {
			return err
		}
		b.write(": ", false)
		if err := in.writeRepr(b, e.value, depth+1); err != nil {
			return err
		}
	}
	b.write("}", false)
	return nil
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
		case r >= 0x80 && isPrintable(r):
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
