package jinja

import (
	"math"
	"strings"
	"unicode/utf8"
)

// jsonStyle holds the parameters of Python's json.dumps that templates use.
type jsonStyle struct {
	ensureASCII bool
	sortKeys    bool
	indent      *Str // nil for one line
	itemSep     *Str
	keySep      *Str
}

// filterTojson is the tojson filter of transformers: json.dumps, without the
// escaping for HTML that jinja2's own filter does.
func filterTojson(in *interp, v Value, a *callArgs) Value {
	args := a.bind("ensure_ascii?", "indent?", "separators?", "sort_keys?")
	style := jsonStyle{
		ensureASCII: argBool(args[0]),
		sortKeys:    argBool(args[3]),
		itemSep:     &Str{s: ", "},
		keySep:      &Str{s: ": "},
	}
	if args[1] != nil && args[1] != None {
		style.itemSep = &Str{s: ","}
		style.indent = a.argIndent(in, args[1], 0)
	}
	if args[2] != nil && args[2] != None {
		pair := in.unpack(args[2], 2)
		for i, to := range []**Str{&style.itemSep, &style.keySep} {
			*to = a.argStr(pair[i])
		}
	}
	b := in.builder()
	in.writeJSON(b, v, &style, 0)
	return b.done()
}

// writeJSON appends v as JSON. The punctuation counts as the caller's, as do
// all numbers and constants that are not the template's own.
func (in *interp) writeJSON(b *builder, v Value, style *jsonStyle, depth int) {
	nesting(depth)
	in.step(1)
	switch v := v.(type) {
	case noneValue:
		b.write("null", false)
	case Bool:
		if v {
			b.write("true", false)
		} else {
			b.write("false", false)
		}
	case Int:
		b.write(intText(v), v.tmpl)
	case Float:
		b.write(jsonFloat(v.f), v.tmpl)
	case *Str:
		writeJSONString(b, v, style.ensureASCII)
	case *List:
		in.writeJSONList(b, v.items, style, depth)
	case *Tuple:
		in.writeJSONList(b, v.items, style, depth)
	case *Dict:
		in.writeJSONDict(b, v, style, depth)
	default:
		panic(typeErrorf("Object of type %s is not JSON serializable", v.typeName()))
	}
}

func jsonFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return floatText(f)
}

func (in *interp) jsonBreak(b *builder, style *jsonStyle, depth int) {
	if style.indent == nil {
		return
	}
	b.write("\n", false)
	in.step(depth)
	for range depth {
		b.str(style.indent)
	}
}

func (in *interp) writeJSONList(b *builder, items []Value, style *jsonStyle, depth int) {
	if len(items) == 0 {
		b.write("[]", false)
		return
	}
	b.write("[", false)
	for i, item := range items {
		if i > 0 {
			b.str(style.itemSep)
		}
		in.jsonBreak(b, style, depth+1)
		in.writeJSON(b, item, style, depth+1)
	}
	in.jsonBreak(b, style, depth)
	b.write("]", false)
}

func (in *interp) writeJSONDict(b *builder, d *Dict, style *jsonStyle, depth int) {
	if d.Len() == 0 {
		b.write("{}", false)
		return
	}
	entries := d.entries
	if style.sortKeys {
		entries = in.sortedEntries(entries)
	}
	b.write("{", false)
	for i, e := range entries {
		if i > 0 {
			b.str(style.itemSep)
		}
		in.jsonBreak(b, style, depth+1)
		key := in.jsonKey(e.key)
		writeJSONString(b, key, style.ensureASCII)
		b.str(style.keySep)
		in.writeJSON(b, e.value, style, depth+1)
	}
	in.jsonBreak(b, style, depth)
	b.write("}", false)
}

// sortedEntries returns the entries in the order of their keys.
func (in *interp) sortedEntries(entries []entry) []entry {
	in.items(3 * len(entries))
	out := append([]entry(nil), entries...)
	sortStable(in, out, func(a, b entry) bool { return in.order("<", a.key, b.key) })
	return out
}

// jsonKey returns a key as a string, the only kind of key in JSON.
func (in *interp) jsonKey(key Value) *Str {
	switch key := key.(type) {
	case *Str:
		return key
	case noneValue, Bool, Int, Float:
		b := in.builder()
		in.writeJSON(b, key, nil, 0)
		return b.done()
	}
	panic(typeErrorf("keys must be str, int, float, bool or None, not %s", key.typeName()))
}

func writeJSONString(b *builder, s *Str, ensureASCII bool) {
	b.write(`"`, false)
	from := 0
	for i, look := 0, stretch; i < len(s.s); {
		if i > look {
			b.in.scan(stretch)
			look += stretch
		}
		r, n := rune(s.s[i]), 1
		if r >= ' ' && r != '"' && r != '\\' && (r < utf8.RuneSelf || !ensureASCII) {
			i++
			continue
		}
		if r >= utf8.RuneSelf {
			b.in.step(2)
			r, n = utf8.DecodeRuneInString(s.s[i:])
		}
		esc := jsonEscape(r)
		b.slice(s, from, i)
		b.write(esc, s.origin(i))
		i += n
		from = i
	}
	b.slice(s, from, len(s.s))
	b.write(`"`, false)
}

// jsonEscape is the escape of a character that does not stand for itself.
func jsonEscape(r rune) string {
	if at := strings.IndexRune("\"\\\n\r\t\f\b", r); at >= 0 {
		return `\` + `"\nrtfb`[at:at+1]
	}
	if r < 0x10000 {
		return `\u` + hex(r, 4)
	}
	r -= 0x10000
	return `\u` + hex(0xd800+r>>10, 4) + `\u` + hex(0xdc00+r&0x3ff, 4)
}
