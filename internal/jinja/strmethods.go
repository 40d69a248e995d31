package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// strMethods are the methods of strings.
var strMethods map[string]method

func init() {
	strMethods = map[string]method{
		"capitalize":   mapping((*interp).capitalize),
		"lower":        mapping((*interp).lower),
		"title":        mapping((*interp).titlecase),
		"upper":        mapping((*interp).upper),
		"isalnum":      predicate(everyRune(func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) })),
		"isalpha":      predicate(everyRune(unicode.IsLetter)),
		"isdigit":      predicate(everyRune(unicode.IsDigit)),
		"islower":      predicate(func(in *interp, s string) bool { return in.hasCase(s, isLower, isUpper) }),
		"isspace":      predicate(everyRune(isSpace)),
		"isupper":      predicate(func(in *interp, s string) bool { return in.hasCase(s, isUpper, isLower) }),
		"strip":        stripper(true, true),
		"lstrip":       stripper(true, false),
		"rstrip":       stripper(false, true),
		"split":        strSplit,
		"rsplit":       strRsplit,
		"splitlines":   strSplitlines,
		"partition":    partitioner((*meter).index, false),
		"rpartition":   partitioner((*meter).lastIndex, true),
		"startswith":   affix(strings.HasPrefix),
		"endswith":     affix(strings.HasSuffix),
		"removeprefix": affixRemover(strings.HasPrefix, true),
		"removesuffix": affixRemover(strings.HasSuffix, false),
		"find":         finder((*meter).index, false),
		"rfind":        finder((*meter).lastIndex, false),
		"index":        finder((*meter).index, true),
		"rindex":       finder((*meter).lastIndex, true),
		"count":        strCount,
		"replace":      strReplace,
		"join":         strJoin,
		"format":       strFormat,
		"ljust":        justifier('<'),
		"rjust":        justifier('>'),
		"zfill":        justifier('='),
	}
}

// mapping makes a method of a function from string to string.
func mapping(f func(*interp, *Str) *Str) method {
	return func(in *interp, recv Value, a *callArgs) Value {
		a.positional(0, 0)
		return f(in, recv.(*Str))
	}
}

func everyRune(f func(rune) bool) func(*interp, string) bool {
	return func(in *interp, s string) bool { return in.every(s, f) }
}

func predicate(f func(*interp, string) bool) method {
	return func(in *interp, recv Value, a *callArgs) Value {
		a.positional(0, 0)
		return Bool(f(in, recv.(*Str).s))
	}
}

// strip removes the characters of chars, or white space when it is nil, from
// the chosen ends.
func (in *interp) strip(s *Str, chars *Str, left, right bool) *Str {
	cut := isSpace
	if chars != nil {
		cut = func(r rune) bool { return in.index(chars.s, string(r)) >= 0 }
	}
	i, j := 0, len(s.s)
	if left {
		i = in.skip(s.s, cut)
	}
	if right {
		j = i + in.skipBack(s.s[i:], cut)
	}
	return s.slice(i, j)
}

func stripper(left, right bool) method {
	return func(in *interp, recv Value, a *callArgs) Value {
		args := a.positional(0, 1)
		var chars *Str
		if args[0] != nil && args[0] != None {
			chars = a.argStr(args[0])
		}
		return in.strip(recv.(*Str), chars, left, right)
	}
}

// within returns the byte bounds of s[start:end] for the optional arguments
// of the searching methods. Ok is false when start lies behind the end of s.
func (in *interp) within(s *Str, start, end Value) (i, j int, ok bool) {
	if start == nil && end == nil {
		return 0, len(s.s), true
	}
	if start == nil {
		start = None
	}
	if end == nil {
		end = None
	}
	n := in.runeCount(s.s)
	i, j, _ = in.bounds(start, end, None, n)
	if first, isInt := asInt(start); isInt && first.clamp() > n || i > j {
		return 0, 0, false
	}
	return in.runeOffset(s.s, i), in.runeOffset(s.s, j), true
}

func affix(has func(s, affix string) bool) method {
	return func(in *interp, recv Value, a *callArgs) Value {
		args := a.positional(1, 3)
		s := recv.(*Str)
		i, j, ok := in.within(s, args[1], args[2])
		wanted := []Value{args[0]}
		if t, isTuple := args[0].(*Tuple); isTuple {
			wanted = t.items
		}
		found := false
		for _, w := range wanted {
			ws, isStr := w.(*Str)
			if !isStr {
				panic(typeErrorf("%s first arg must be str or a tuple of str, not %s", a.name, w.typeName()))
			}
			in.scan(min(len(ws.s), len(s.s)))
			found = found || ok && has(s.s[i:j], ws.s)
		}
		return Bool(found)
	}
}

func finder(index func(m *meter, s, sub string) int, must bool) method {
	return func(in *interp, recv Value, a *callArgs) Value {
		args := a.positional(1, 3)
		s := recv.(*Str)
		sub := a.argStr(args[0])
		i, j, ok := in.within(s, args[1], args[2])
		at := -1
		if ok {
			if at = index(&in.meter, s.s[i:j], sub.s); at >= 0 {
				at = in.runeCount(s.s[:i+at])
			}
		}
		if at < 0 && must {
			panic(valueErrorf("substring not found"))
		}
		return Integer(int64(at))
	}
}

func strCount(in *interp, recv Value, a *callArgs) Value {
	args := a.positional(1, 3)
	s := recv.(*Str)
	sub := a.argStr(args[0])
	i, j, ok := in.within(s, args[1], args[2])
	if !ok {
		return Integer(0)
	}
	return Integer(int64(in.countText(s.s[i:j], sub.s)))
}

// replace replaces up to count occurrences of old, all when count is negative.
func (in *interp) replace(s, old, with *Str, count int) *Str {
	if count == 0 || old.s != "" && in.index(s.s, old.s) < 0 {
		return s
	}
	b := in.builder()
	i := 0
	for ; count != 0; count-- {
		if old.s == "" {
			b.str(with)
			if i == len(s.s) {
				break
			}
			_, n := utf8.DecodeRuneInString(s.s[i:])
			b.slice(s, i, i+n)
			i += n
			continue
		}
		at := in.index(s.s[i:], old.s)
		if at < 0 {
			break
		}
		b.slice(s, i, i+at)
		b.str(with)
		i += at + len(old.s)
	}
	b.slice(s, i, len(s.s))
	return b.done()
}

func strReplace(in *interp, recv Value, a *callArgs) Value {
	args := a.positional(2, 3)
	old := a.argStr(args[0])
	with := a.argStr(args[1])
	return in.replace(recv.(*Str), old, with, a.argInt(args[2], -1))
}

// joinWith joins the string forms of items. Str gives that form.
func (in *interp) joinWith(sep *Str, items Value, str func(int, Value) *Str) *Str {
	b := in.builder()
	n := 0
	in.each(items, func(item Value) bool {
		s := str(n, item)
		if n > 0 {
			b.str(sep)
		}
		b.str(s)
		n++
		return true
	})
	return b.done()
}

func strJoin(in *interp, recv Value, a *callArgs) Value {
	args := a.positional(1, 1)
	return in.joinWith(recv.(*Str), args[0], func(i int, item Value) *Str {
		s, ok := item.(*Str)
		if !ok {
			panic(typeErrorf("sequence item %d: expected str instance, %s found", i, item.typeName()))
		}
		return s
	})
}

// justifier makes ljust, rjust and zfill, which fills behind the sign.
func justifier(align byte) method {
	return func(in *interp, recv Value, a *callArgs) Value {
		args := a.positional(1, 2)
		width := a.argInt(args[0], 0)
		fill := &Str{s: " "}
		if args[1] != nil {
			fill = a.argStr(args[1])
			if in.runeCount(fill.s) != 1 {
				panic(typeErrorf("The fill character must be exactly one character long"))
			}
		}
		s, sign := recv.(*Str), 0
		if align == '=' {
			fill = &Str{s: "0"}
			if s.s != "" && (s.s[0] == '+' || s.s[0] == '-') {
				sign = 1
			}
		}
		spec := fieldSpec{fill: fill.s, align: align, width: width}
		return in.justify(spec, s.slice(0, sign), s.slice(sign, len(s.s)))
	}
}

// affixRemover makes removeprefix and removesuffix.
func affixRemover(has func(s, affix string) bool, front bool) method {
	return func(in *interp, recv Value, a *callArgs) Value {
		args := a.positional(1, 1)
		fix := a.argStr(args[0])
		s := recv.(*Str)
		in.scan(len(fix.s))
		switch {
		case !has(s.s, fix.s):
			return s
		case front:
			return s.slice(len(fix.s), len(s.s))
		}
		return s.slice(0, len(s.s)-len(fix.s))
	}
}
