package jinja

import (
	"fmt"
	"maps"
	"slices"

	"github.com/realizar/realizar/internal/nearest"
)

// filters are the filters that chat templates use: those of jinja2 3.1 that
// are about text, numbers, sequences and mappings, the tojson of transformers,
// and from_json.
var filters map[string]method

func init() {
	filters = map[string]method{
		"abs":        filterAbs,
		"attr":       filterAttr,
		"capitalize": textFilter((*interp).capitalize),
		"count":      filterLength,
		"d":          filterDefault,
		"default":    filterDefault,
		"dictsort":   filterDictsort,
		"first":      filterFirst,
		"float":      filterFloat,
		"from_json":  filterFromJSON,
		"indent":     filterIndent,
		"int":        filterInt,
		"items":      filterItems,
		"join":       filterJoin,
		"last":       filterLast,
		"length":     filterLength,
		"list":       filterList,
		"lower":      textFilter((*interp).lower),
		"map":        filterMap,
		"max":        extremeFilter(">"),
		"min":        extremeFilter("<"),
		"reject":     choosingFilter(false, true),
		"rejectattr": choosingFilter(true, true),
		"replace":    filterReplace,
		"reverse":    filterReverse,
		"round":      filterRound,
		"safe":       filterString, // nothing escapes HTML here
		"select":     choosingFilter(false, false),
		"selectattr": choosingFilter(true, false),
		"sort":       filterSort,
		"string":     filterString,
		"sum":        filterSum,
		"title":      textFilter((*interp).titleWords),
		"tojson":     filterTojson,
		"trim":       filterTrim,
		"unique":     filterUnique,
		"upper":      textFilter((*interp).upper),
	}
}

// callFilter applies a filter that is named at run time.
func (in *interp) callFilter(name Value, v Value, args []Value, kw *Dict) Value {
	f, text := lookupNamed(in, filters, "filter", name)
	in.enter()
	defer in.leave()
	return f(in, v, &callArgs{name: text, args: args, kw: kw})
}

// lookupNamed finds a filter or a test by a name that is a value.
func lookupNamed[F any](in *interp, table map[string]F, kind string, name Value) (F, string) {
	in.step(1)
	if s, ok := name.(*Str); ok {
		in.scan(len(s.s))
		if f, ok := table[s.s]; ok {
			return f, s.s
		}
	}
	if s, ok := name.(*Str); ok {
		panic(raise(classRuntime, "%s", unknownName(kind, s.s, table)))
	}
	panic(raise(classRuntime, "No %s named %s.", kind, in.reprText(name)))
}

// unknownName says that there is no filter, test or method called name, and
// which of those that there are may have been meant.
func unknownName[F any](kind, name string, table map[string]F) string {
	name = clip(name)
	return fmt.Sprintf("No %s named '%s'; the nearest is '%s'.", kind, name, nearest.Names(name, slices.Collect(maps.Keys(table)), 1)[0])
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
	return func(in *interp, v Value, a *callArgs) Value {
		a.bind()
		return f(in, in.str(v))
	}
}

func filterDefault(_ *interp, v Value, a *callArgs) Value {
	args := a.bind("default_value?", "boolean?")
	if _, isUndefined := v.(*undefined); isUndefined || argBool(args[1]) && !truth(v) {
		if args[0] == nil {
			return emptyStr
		}
		return args[0]
	}
	return v
}

func filterString(in *interp, v Value, a *callArgs) Value {
	a.positional(0, 0)
	return in.str(v)
}

func filterTrim(in *interp, v Value, a *callArgs) Value {
	args := a.bind("chars?")
	s := in.str(v)
	var chars *Str
	if args[0] != nil && args[0] != None {
		chars = a.argStr(args[0])
	}
	return in.strip(s, chars, true, true)
}

func filterReplace(in *interp, v Value, a *callArgs) Value {
	args := a.bind("old", "new", "count?")
	if args[2] == None {
		args[2] = nil
	}
	count := a.argInt(args[2], -1)
	var parts [3]*Str
	for i, part := range []Value{v, args[0], args[1]} {
		parts[i] = in.str(part)
	}
	return in.replace(parts[0], parts[1], parts[2], count)
}

func filterIndent(in *interp, v Value, a *callArgs) Value {
	args := a.bind("width?", "first?", "blank?")
	by := a.argIndent(in, args[0], 4)
	s, ok := v.(*Str)
	if !ok {
		panic(in.missingMethod(v, "splitlines"))
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
	return b.done()
}
