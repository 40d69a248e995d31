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
		"casefold":     mapping((*interp).casefold),
		"lower":        mapping((*interp).lower),
		"swapcase":     mapping((*interp).swapcase),
		"title":        mapping((*interp).titlecase),
		"upper":        mapping((*interp).upper),
		"isalnum":      predicate(everyRune(isAlnum)),
		"isalpha":      predicate(everyRune(unicode.IsLetter)),
		"isascii":      predicate(func(in *interp, s string) bool { return in.isASCII(s) }),
		"isdecimal":    predicate(everyRune(isDecimal)),
		"isdigit":      predicate(everyRune(isDigit)),
		"isidentifier": predicate((*interp).isIdentifier),
		"islower":      predicate(func(in *interp, s string) bool { return in.hasCase(s, isLower, isUpper) }),
		"isnumeric":    predicate(everyRune(isNumeric)),
		"isprintable":  predicate(func(in *interp, s string) bool { return s == "" || in.every(s, isPrintable) }),
		"isspace":      predicate(everyRune(isSpace)),
		"istitle":      predicate((*interp).isTitle),
		"isupper":      predicate(func(in *interp, s string) bool { return in.hasCase(s, isUpper, isLower) }),
		"strip":        stripper(true, true),
		"lstrip":       stripper(true, false),
		"rstrip":       stripper(false, true),
		"split":        strSplit,
		"rsplit":       strRsplit,
		"splitlines":   strSplitlines,
		"partition":    strPartition,
		"rpartition":   strRpartition,
		"startswith":   affix(strings.HasPrefix),
		"endswith":     affix(strings.HasSuffix),
		"removeprefix": strRemoveprefix,
		"removesuffix": strRemovesuffix,
		"find":         finder((*meter).index, false),
		"rfind":        finder((*meter).lastIndex, false),
		"index":        finder((*meter).index, true),
		"rindex":       finder((*meter).lastIndex, true),
		"count":        strCount,
		"replace":      strReplace,
		"join":         strJoin,
		"format":       strFormat,
		"format_map":   strFormatMap,
		"center":       justifier(func(in *interp, s *Str, width int, fill *Str) *Str { return in.center(s, width, fill) }),
		"ljust": justifier(func(in *interp, s *Str, width int, fill *Str) *Str {
			return in.pad(s, 0, width-in.runeCount(s.s), fill)
		}),
		"rjust": justifier(func(in *interp, s *Str, width int, fill *Str) *Str {
			return in.pad(s, width-in.runeCount(s.s), 0, fill)
		}),
		"zfill":      strZfill,
		"expandtabs": strExpandtabs,
		"unescape":   markupOnly(func(in *interp, s *Str) *Str { return in.unescape(plain(s)) }),
		"striptags":  markupOnly(func(in *interp, s *Str) *Str { return in.striptags(plain(s)) }),
	}
}

// mapping makes a method of a function from string to string.
func mapping(f func(*interp, *Str) *Str) method {
	return func(in *interp, recv Value, a *callArgs) (Value, error) {
		if _, err := a.positional(0, 0); err != nil {
			return nil, err
		}
		return f(in, recv.(*Str)), nil
	}
}

// markupOnly makes a method that only markup has.
func markupOnly(f func(*interp, *Str) *Str) method {
	return func(in *interp, recv Value, a *callArgs) (Value, error) {
		if s := recv.(*Str); !s.safe {
			return nil, in.failUndefined(&undefined{obj: s, name: String(a.name, true)})
		}
		return mapping(f)(in, recv, a)
	}
}

func everyRune(f func(rune) bool) func(*interp, string) bool {
	return func(in *interp, s string) bool { return in.every(s, f) }
}

func predicate(f func(*interp, string) bool) method {
	return func(in *interp, recv Value, a *callArgs) (Value, error) {
		if _, err := a.positional(0, 0); err != nil {
			return nil, err
		}
		return Bool(f(in, recv.(*Str).s)), nil
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
	return func(in *interp, recv Value, a *callArgs) (Value, error) {
		args, err := a.positional(0, 1)
		if err != nil {
			return nil, err
		}
		var chars *Str
		if args[0] != nil && args[0] != None {
			if chars, err = a.argStr(args[0]); err != nil {
				return nil, err
			}
		}
		return in.strip(recv.(*Str), chars, left, right), nil
	}
}

// within returns the byte bounds of s[start:end] for the optional arguments
// of the searching methods. Ok is false when start lies behind the end of s.
func (in *interp) within(s *Str, start, end Value) (i, j int, ok bool, err error) {
	if start == nil && end == nil {
		return 0, len(s.s), true, nil
	}
	if start == nil {
		start = None
	}
	if end == nil {
		end = None
	}
	n := in.runeCount(s.s)
	i, j, _, err = in.bounds(start, end, None, n)
	if err != nil {
		return 0, 0, false, err
	}
	if first, isInt := asInt(start); isInt && first.clamp() > n || i > j {
		return 0, 0, false, nil
	}
	return in.runeOffset(s.s, i), in.runeOffset(s.s, j), true, nil
}

func affix(has func(s, affix string) bool) method {
	return func(in *interp, recv Value, a *callArgs) (Value, error) {
		args, err := a.positional(1, 3)
		if err != nil {
			return nil, err
		}
		s := recv.(*Str)
		i, j, ok, err := in.within(s, args[1], args[2])
		if err != nil {
			return nil, err
		}
		wanted := []Value{args[0]}
		if t, isTuple := args[0].(*Tuple); isTuple {
			wanted = t.items
		}
		found := false
		for _, w := range wanted {
			ws, isStr := w.(*Str)
			if !isStr {
				return nil, typeErrorf("%s first arg must be str or a tuple of str, not %s", a.name, w.typeName())
			}
			in.scan(min(len(ws.s), len(s.s)))
			found = found || ok && has(s.s[i:j], ws.s)
		}
		return Bool(found), nil
	}
}

func finder(index func(m *meter, s, sub string) int, must bool) method {
	return func(in *interp, recv Value, a *callArgs) (Value, error) {
		args, err := a.positional(1, 3)
		if err != nil {
			return nil, err
		}
		s := recv.(*Str)
		sub, err := a.argStr(args[0])
		if err != nil {
			return nil, err
		}
		i, j, ok, err := in.within(s, args[1], args[2])
		if err != nil {
			return nil, err
		}
		at := -1
		if ok {
			if at = index(&in.meter, s.s[i:j], sub.s); at >= 0 {
				at = in.runeCount(s.s[:i+at])
			}
		}
		if at < 0 && must {
			return nil, valueErrorf("substring not found")
		}
		return Integer(int64(at)), nil
	}
}

func strCount(in *interp, recv Value, a *callArgs) (Value, error) {
	args, err := a.positional(1, 3)
	if err != nil {
		return nil, err
	}
	s := recv.(*Str)
	sub, err := a.argStr(args[0])
	if err != nil {
		return nil, err
	}
	i, j, ok, err := in.within(s, args[1], args[2])
	if err != nil || !ok {
		return Integer(0), err
	}
	return Integer(int64(in.countText(s.s[i:j], sub.s))), nil
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
	out := b.done()
	out.safe = s.safe
	return out
}

func strReplace(in *interp, recv Value, a *callArgs) (Value, error) {
	args, err := a.positional(2, 3)
	if err != nil {
		return nil, err
	}
	old, err := a.argStr(args[0])
	if err != nil {
		return nil, err
	}
	with, err := a.argStr(args[1])
	if err != nil {
		return nil, err
	}
	count, err := a.argInt(args[2], -1)
	if err != nil {
		return nil, err
	}
	s := recv.(*Str)
	if s.safe {
		with = in.escape(with)
	}
	return in.replace(s, old, with, count), nil
}

// joinWith joins the string forms of items. Str gives that form.
func (in *interp) joinWith(sep *Str, items Value, str func(int, Value) (*Str, error)) (*Str, error) {
	b := in.builder()
	n := 0
	err := in.each(items, func(item Value) (bool, error) {
		s, err := str(n, item)
		if err != nil {
			return false, err
		}
		if n > 0 {
			b.str(sep)
		}
		b.str(s)
		n++
		return true, nil
	})
	return b.done(), err
}

func strJoin(in *interp, recv Value, a *callArgs) (Value, error) {
	args, err := a.positional(1, 1)
	if err != nil {
		return nil, err
	}
	sep := recv.(*Str)
	out, err := in.joinWith(sep, args[0], func(i int, item Value) (*Str, error) {
		if sep.safe {
			return in.escapeValue(item)
		}
		s, ok := item.(*Str)
		if !ok {
			return nil, typeErrorf("sequence item %d: expected str instance, %s found", i, item.typeName())
		}
		return s, nil
	})
	if err != nil {
		return nil, err
	}
	out.safe = sep.safe
	return out, nil
}

// pad puts left and right copies of fill around s.
func (in *interp) pad(s *Str, left, right int, fill *Str) *Str {
	left, right = max(0, left), max(0, right)
	if left+right == 0 {
		return s
	}
	b := in.builder()
	b.repeat(fill.s, left, fill.trusted())
	b.str(s)
	b.repeat(fill.s, right, fill.trusted())
	out := b.done()
	out.safe = s.safe
	return out
}

// center pads both sides; an odd space goes to the left in an odd width.
func (in *interp) center(s *Str, width int, fill *Str) *Str {
	more := width - in.runeCount(s.s)
	if more <= 0 {
		return s
	}
	left := more/2 + more&width&1
	return in.pad(s, left, more-left, fill)
}

// space is the blank this package fills fields with. It counts as the
// caller's: nobody wrote it.
var space = &Str{s: " "}

func justifier(f func(in *interp, s *Str, width int, fill *Str) *Str) method {
	return func(in *interp, recv Value, a *callArgs) (Value, error) {
		args, err := a.positional(1, 2)
		if err != nil {
			return nil, err
		}
		width, err := a.argInt(args[0], 0)
		if err != nil {
			return nil, err
		}
		fill := space
		if args[1] != nil {
			if fill, err = a.argStr(args[1]); err != nil {
				return nil, err
			}
			if in.runeCount(fill.s) != 1 {
				return nil, typeErrorf("The fill character must be exactly one character long")
			}
		}
		s := recv.(*Str)
		if s.safe {
			fill = in.escape(fill)
		}
		return f(in, s, width, fill), nil
	}
}

func strZfill(in *interp, recv Value, a *callArgs) (Value, error) {
	args, err := a.positional(1, 1)
	if err != nil {
		return nil, err
	}
	width, err := a.argInt(args[0], 0)
	if err != nil {
		return nil, err
	}
	s := recv.(*Str)
	sign := 0
	if s.s != "" && (s.s[0] == '+' || s.s[0] == '-') {
		sign = 1
	}
	b := in.builder()
	b.slice(s, 0, sign)
	b.repeat("0", width-in.runeCount(s.s), false)
	b.slice(s, sign, len(s.s))
	out := b.done()
	out.safe = s.safe
	return out, nil
}

func strExpandtabs(in *interp, recv Value, a *callArgs) (Value, error) {
	args, err := a.bind("tabsize?")
	if err != nil {
		return nil, err
	}
	size, err := a.argInt(args[0], 8)
	if err != nil {
		return nil, err
	}
	s := recv.(*Str)
	b := in.builder()
	column := 0
	for i, r := range s.s {
		in.step(1)
		switch r {
		case '\t':
			if size > 0 {
				n := size - column%size
				b.repeat(" ", n, s.origin(i))
				column += n
			}
		case '\n', '\r':
			column = 0
			b.slice(s, i, i+1)
		default:
			column++
			b.slice(s, i, i+utf8.RuneLen(r))
		}
	}
	out := b.done()
	out.safe = s.safe
	return out, nil
}
