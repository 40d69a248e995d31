package jinja

import (
	"errors"
	"strings"
)

// filters are the filters every template knows: those of jinja2 3.1, with the
// tojson of transformers.
var filters map[string]method

func init() {
	filters = map[string]method{
		"abs":            filterAbs,
		"attr":           filterAttr,
		"batch":          filterBatch,
		"capitalize":     textFilter((*interp).capitalize),
		"center":         filterCenter,
		"count":          filterLength,
		"d":              filterDefault,
		"default":        filterDefault,
		"dictsort":       filterDictsort,
		"e":              filterEscape,
		"escape":         filterEscape,
		"filesizeformat": filterFilesizeformat,
		"first":          filterFirst,
		"float":          filterFloat,
		"forceescape":    filterForceescape,
		"format":         filterFormat,
		"groupby":        filterGroupby,
		"indent":         filterIndent,
		"int":            filterInt,
		"items":          filterItems,
		"join":           filterJoin,
		"last":           filterLast,
		"length":         filterLength,
		"list":           filterList,
		"lower":          textFilter((*interp).lower),
		"map":            filterMap,
		"max":            extremeFilter(">"),
		"min":            extremeFilter("<"),
		"pprint":         filterPprint,
		"random":         filterRandom,
		"reject":         choosingFilter("select_or_reject", false, true),
		"rejectattr":     choosingFilter("select_or_reject", true, true),
		"replace":        filterReplace,
		"reverse":        filterReverse,
		"round":          filterRound,
		"safe":           filterSafe,
		"select":         choosingFilter("select_or_reject", false, false),
		"selectattr":     choosingFilter("select_or_reject", true, false),
		"slice":          filterSlice,
		"sort":           filterSort,
		"string":         filterString,
		"striptags":      filterStriptags,
		"sum":            filterSum,
		"title":          textFilter((*interp).titleWords),
		"tojson":         filterTojson,
		"trim":           filterTrim,
		"truncate":       filterTruncate,
		"unique":         filterUnique,
		"upper":          textFilter((*interp).upper),
		"urlencode":      filterUrlencode,
		"urlize":         filterUrlize,
		"wordcount":      filterWordcount,
		"wordwrap":       filterWordwrap,
		"xmlattr":        filterXmlattr,
	}
}

// callFilter applies a filter that is named at run time.
func (in *interp) callFilter(name Value, v Value, args []Value, kw *Dict) (Value, error) {
	f, text, err := lookupNamed(in, filters, "filter", name)
	if err != nil {
		return nil, err
	}
	in.enter()
	defer in.leave()
	return f(in, v, &callArgs{name: text, args: args, kw: kw})
}

// lookupNamed finds a filter or a test by a name that is a value.
func lookupNamed[F any](in *interp, table map[string]F, kind string, name Value) (F, string, error) {
	in.step(1)
	if s, ok := name.(*Str); ok {
		in.scan(len(s.s))
		if f, ok := table[s.s]; ok {
			return f, s.s, nil
		}
	}
	var none F
	hint := ""
	if u, ok := name.(*undefined); ok {
		hint = " (" + undefinedMessage(in.failUndefined(u)) + "; did you forget to quote the callable name?)"
	}
	return none, "", raise(classRuntime, "No %s named %s.%s", kind, in.reprText(name), hint)
}

func undefinedMessage(err error) string {
	var re *RuntimeError
	if errors.As(err, &re) {
		return re.Message
	}
	return err.Error()
}

// missingMethod is the error of a value that is not of the type whose method
// a filter needs.
func (in *interp) missingMethod(v Value, method string) error {
	if u, ok := v.(*undefined); ok {
		return in.failUndefined(u)
	}
	return raise(classAttribute, "'%s' object has no attribute '%s'", v.typeName(), method)
}

// textFilter makes a filter of a function from string to string.
func textFilter(f func(*interp, *Str) *Str) method {
	return func(in *interp, v Value, a *callArgs) (Value, error) {
		if _, err := a.bind(); err != nil {
			return nil, err
		}
		s, err := in.softStr(v)
		if err != nil {
			return nil, err
		}
		return f(in, s), nil
	}
}

// titleWords is the filter title, which unlike the method splits words at
// white space and opening brackets only.
func (in *interp) titleWords(s *Str) *Str {
	start := true
	out := in.mapRunes(s, func(before string, r rune, after string) string {
		first := start
		start = isSpace(r) || strings.ContainsRune("-({[<", r)
		if first {
			return in.upperRune(r)
		}
		return lowerRune(before, r, after)
	})
	return plain(out)
}

func filterDefault(_ *interp, v Value, a *callArgs) (Value, error) {
	args, err := a.bind("default_value?", "boolean?")
	if err != nil {
		return nil, err
	}
	if _, isUndefined := v.(*undefined); isUndefined || argBool(args[1]) && !truth(v) {
		if args[0] == nil {
			return emptyStr, nil
		}
		return args[0], nil
	}
	return v, nil
}

func filterString(in *interp, v Value, a *callArgs) (Value, error) {
	if _, err := a.positional(0, 0); err != nil {
		return nil, err
	}
	return in.softStr(v)
}

func filterTrim(in *interp, v Value, a *callArgs) (Value, error) {
	args, err := a.bind("chars?")
	if err != nil {
		return nil, err
	}
	s, err := in.softStr(v)
	if err != nil {
		return nil, err
	}
	var chars *Str
	if args[0] != nil && args[0] != None {
		if chars, err = a.argStr(args[0]); err != nil {
			return nil, err
		}
	}
	return in.strip(s, chars, true, true), nil
}

func filterReplace(in *interp, v Value, a *callArgs) (Value, error) {
	args, err := a.bind("old", "new", "count?")
	if err != nil {
		return nil, err
	}
	if args[2] == None {
		args[2] = nil
	}
	count, err := a.argInt(args[2], -1)
	if err != nil {
		return nil, err
	}
	if !in.autoescape {
		var parts [3]*Str
		for i, part := range []Value{v, args[0], args[1]} {
			if parts[i], err = in.str(part); err != nil {
				return nil, err
			}
		}
		return in.replace(parts[0], parts[1], parts[2], count), nil
	}
	s, err := in.softStr(v)
	if err != nil {
		return nil, err
	}
	old, err := in.softStr(args[0])
	if err != nil {
		return nil, err
	}
	with, err := in.softStr(args[1])
	if err != nil {
		return nil, err
	}
	if isMarkup(args[0]) || isMarkup(args[1]) && !isMarkup(v) {
		s = in.escape(s)
	}
	if s.safe {
		with = in.escape(with)
	}
	return in.replace(s, old, with, count), nil
}

func isMarkup(v Value) bool {
	s, ok := v.(*Str)
	return ok && s.safe
}

func filterFormat(in *interp, v Value, a *callArgs) (Value, error) {
	format, err := in.softStr(v)
	if err != nil {
		return nil, err
	}
	if a.kw == nil || a.kw.Len() == 0 {
		return in.percent(format, newTuple(a.args...))
	}
	if len(a.args) > 0 {
		return nil, raise(classFilterArg, "can't handle positional and keyword arguments at the same time")
	}
	return in.percent(format, a.kw)
}

func filterCenter(in *interp, v Value, a *callArgs) (Value, error) {
	args, err := a.bind("width?")
	if err != nil {
		return nil, err
	}
	width, err := a.argInt(args[0], 80)
	if err != nil {
		return nil, err
	}
	s, err := in.softStr(v)
	if err != nil {
		return nil, err
	}
	return in.center(s, width, space), nil
}

func filterIndent(in *interp, v Value, a *callArgs) (Value, error) {
	args, err := a.bind("width?", "first?", "blank?")
	if err != nil {
		return nil, err
	}
	by, ok := args[0].(*Str)
	if !ok {
		width, err := a.argInt(args[0], 4)
		if err != nil {
			return nil, err
		}
		b := in.builder()
		b.repeat(" ", width, false)
		by = b.done()
	}
	s, ok := v.(*Str)
	if !ok {
		return nil, in.missingMethod(v, "splitlines")
	}
	lines := in.splitLines(in.concat(s, &Str{s: "\n"}), false)
	b := in.builder()
	for i, line := range lines {
		if i > 0 {
			b.write("\n", false)
		}
		if i == 0 && argBool(args[1]) || i > 0 && (line.s != "" || argBool(args[2])) {
			b.str(by)
		}
		b.str(line)
	}
	out := b.done()
	out.safe = s.safe
	return out, nil
}

func filterTruncate(in *interp, v Value, a *callArgs) (Value, error) {
	args, err := a.bind("length?", "killwords?", "end?", "leeway?")
	if err != nil {
		return nil, err
	}
	most, err := a.argInt(args[0], 255)
	if err != nil {
		return nil, err
	}
	if args[3] == None {
		args[3] = nil
	}
	leeway, err := a.argInt(args[3], 5)
	if err != nil {
		return nil, err
	}
	end := &Str{s: "..."}
	if args[2] != nil {
		if end, err = a.argStr(args[2]); err != nil {
			return nil, err
		}
	}
	n := in.runeCount(end.s)
	if most < n {
		return nil, raise(classAssertion, "expected length >= %d, got %d", n, most)
	}
	if leeway < 0 {
		return nil, raise(classAssertion, "expected leeway >= 0, got %d", leeway)
	}
	s, ok := v.(*Str)
	if !ok {
		if n, sized := size(v); sized && n <= most+leeway {
			return v, nil
		}
		return nil, typeErrorf("truncate() needs a string, not '%s'", v.typeName())
	}
	if in.runeCount(s.s) <= most+leeway {
		return s, nil
	}
	cut := s.slice(0, in.runeOffset(s.s, most-n))
	if !argBool(args[1]) {
		if at := in.lastIndex(cut.s, " "); at >= 0 {
			cut = cut.slice(0, at)
		}
	}
	joined, _, err := in.join(cut, end)
	return joined, err
}

func filterWordcount(in *interp, v Value, a *callArgs) (Value, error) {
	if _, err := a.bind(); err != nil {
		return nil, err
	}
	s, err := in.softStr(v)
	if err != nil {
		return nil, err
	}
	n, inWord := int64(0), false
	in.indexFunc(s.s, func(r rune) bool {
		was := inWord
		if inWord = isWord(r); inWord && !was {
			n++
		}
		return false
	})
	return Integer(n), nil
}
