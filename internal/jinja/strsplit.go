package jinja

import (
	"strings"
	"unicode/utf8"
)

// splitArgs are the separator, nil for white space, and the greatest number
// of cuts, negative for any.
func splitArgs(a *callArgs) (*Str, int) {
	args := a.bind("sep?", "maxsplit?")
	most := a.argInt(args[1], -1)
	if args[0] == nil || args[0] == None {
		return nil, most
	}
	sep := a.argStr(args[0])
	if sep.s == "" {
		panic(valueErrorf("empty separator"))
	}
	return sep, most
}

func strSplit(in *interp, recv Value, a *callArgs) Value {
	sep, most := splitArgs(a)
	s := recv.(*Str)
	var out []Value
	add := func(i, j int) {
		in.items(6)
		out = append(out, s.slice(i, j))
	}
	i := 0
	if sep != nil {
		for ; most != 0; most-- {
			at := in.index(s.s[i:], sep.s)
			if at < 0 {
				break
			}
			add(i, i+at)
			i += at + len(sep.s)
		}
		add(i, len(s.s))
		return NewList(out...)
	}
	for {
		i += in.skip(s.s[i:], isSpace)
		if i == len(s.s) {
			break
		}
		if most == 0 {
			add(i, len(s.s))
			break
		}
		j := in.indexFunc(s.s[i:], isSpace)
		if j < 0 {
			j = len(s.s) - i
		}
		add(i, i+j)
		i += j
		most--
	}
	return NewList(out...)
}

func strRsplit(in *interp, recv Value, a *callArgs) Value {
	sep, most := splitArgs(a)
	return NewList(in.rsplit(recv.(*Str), sep, most)...)
}

// rsplit cuts s from its end.
func (in *interp) rsplit(s, sep *Str, most int) []Value {
	var out []Value
	add := func(i, j int) {
		in.items(6)
		out = append(out, s.slice(i, j))
	}
	j := len(s.s)
	if sep != nil {
		for ; most != 0; most-- {
			at := in.lastIndex(s.s[:j], sep.s)
			if at < 0 {
				break
			}
			add(at+len(sep.s), j)
			j = at
		}
		add(0, j)
	} else {
		for {
			j = in.skipBack(s.s[:j], isSpace)
			if j == 0 {
				break
			}
			if most == 0 {
				add(0, j)
				break
			}
			i := in.skipBack(s.s[:j], func(r rune) bool { return !isSpace(r) })
			add(i, j)
			j = i
			most--
		}
	}
	for a, b := 0, len(out)-1; a < b; a, b = a+1, b-1 {
		out[a], out[b] = out[b], out[a]
	}
	return out
}

// splitLines cuts s at its line ends, which are part of the lines if keep is
// set.
func (in *interp) splitLines(s *Str, keep bool) []*Str {
	var out []*Str
	for i := 0; i < len(s.s); {
		at := in.indexFunc(s.s[i:], isLineBreak)
		if at < 0 {
			at = len(s.s) - i
		}
		end, next := i+at, i+at
		if end < len(s.s) {
			r, n := utf8.DecodeRuneInString(s.s[end:])
			if next += n; r == '\r' && strings.HasPrefix(s.s[next:], "\n") {
				next++
			}
		}
		if keep {
			end = next
		}
		in.items(6)
		out = append(out, s.slice(i, end))
		i = next
	}
	return out
}

func strSplitlines(in *interp, recv Value, a *callArgs) Value {
	args := a.bind("keepends?")
	lines := in.splitLines(recv.(*Str), argBool(args[0]))
	in.items(len(lines))
	out := make([]Value, len(lines))
	for i, line := range lines {
		out[i] = line
	}
	return NewList(out...)
}

// partitioner makes partition and rpartition, which leave the text in the
// first or the last place where the separator is not found.
func partitioner(index func(m *meter, s, sub string) int, last bool) method {
	return func(in *interp, recv Value, a *callArgs) Value {
		args := a.positional(1, 1)
		sep := a.argStr(args[0])
		if sep.s == "" {
			panic(valueErrorf("empty separator"))
		}
		s := recv.(*Str)
		at := index(&in.meter, s.s, sep.s)
		switch {
		case at >= 0:
			end := at + len(sep.s)
			return newTuple(s.slice(0, at), s.slice(at, end), s.slice(end, len(s.s)))
		case last:
			return newTuple(s.slice(0, 0), s.slice(0, 0), s)
		}
		return newTuple(s, s.slice(0, 0), s.slice(0, 0))
	}
}
