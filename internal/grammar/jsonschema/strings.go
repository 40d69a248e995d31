package jsonschema

import (
	"slices"
	"unicode/utf8"

	"github.com/realizar/realizar/internal/rx"
)

// A stringSet is a set of texts in the simplest of four forms: all texts in a range of lengths, a
// list, all texts except a list, or an expression over spellings.
type stringSet struct {
	form     setForm
	min, max int // in code points; max < 0 means no bound
	list     []string
	expr     rx.Expr
}

type setForm uint8

const (
	formRange setForm = iota
	formList
	formExcept
	formExpr
)

var (
	anyString = stringSet{max: -1}
	noString  = stringSet{form: formList}
)

func listed(list []string) stringSet {
	list = slices.Clone(list)
	slices.Sort(list)
	return stringSet{form: formList, list: slices.Compact(list)}
}

// except returns all texts but those of a.
func except(a stringSet) stringSet {
	if len(a.list) == 0 {
		return anyString
	}
	return stringSet{form: formExcept, list: a.list}
}

func (a stringSet) isAny() bool { return a.form == formRange && a.min == 0 && a.max < 0 }

func (a stringSet) isNothing(s *spelling) bool {
	switch a.form {
	case formList:
		return len(a.list) == 0
	case formExpr:
		return s.space.IsEmpty(a.expr)
	}
	return false
}

// has reports whether a text is in the set.
func (a stringSet) has(s *spelling, text string) bool {
	switch a.form {
	case formList:
		_, ok := slices.BinarySearch(a.list, text)
		return ok
	case formExcept:
		_, ok := slices.BinarySearch(a.list, text)
		return !ok
	case formExpr:
		return s.has(a.expr, text)
	}
	n := utf8.RuneCountInString(text)
	return n >= a.min && (a.max < 0 || n <= a.max)
}

// spelled returns the set as an expression.
func (a stringSet) spelled(s *spelling) rx.Expr {
	switch a.form {
	case formList, formExcept:
		var all []rx.Expr
		for _, text := range a.list {
			all = append(all, s.text(text))
		}
		if a.form == formExcept {
			return s.not(s.space.Or(all...))
		}
		return s.space.Or(all...)
	case formExpr:
		return a.expr
	}
	return s.space.Repeat(s.char, a.min, a.max)
}

func (a stringSet) and(s *spelling, b stringSet) stringSet {
	if a.form == formRange && b.form == formRange {
		out := stringSet{min: max(a.min, b.min), max: a.max}
		if out.max < 0 || b.max >= 0 && b.max < out.max {
			out.max = b.max
		}
		if out.max >= 0 && out.max < out.min {
			return noString
		}
		return out
	}
	switch {
	case a.isAny():
		return b
	case b.isAny():
		return a
	case b.form == formList:
		a, b = b, a
		fallthrough
	case a.form == formList:
		var list []string
		for _, text := range a.list {
			if b.has(s, text) {
				list = append(list, text)
			}
		}
		return listed(list)
	case a.form == formExcept && b.form == formExcept:
		return except(listed(append(slices.Clone(a.list), b.list...)))
	}
	return stringSet{form: formExpr, expr: s.space.And(a.spelled(s), b.spelled(s))}
}

func (a stringSet) or(s *spelling, b stringSet) stringSet {
	switch {
	case a.form == formList && b.form == formList:
		return listed(append(slices.Clone(a.list), b.list...))
	case (a.form == formExcept || a.form == formList) && (b.form == formExcept || b.form == formList):
		return a.not(s).and(s, b.not(s)).not(s)
	case a.isAny() || b.form == formList && len(b.list) == 0:
		return a
	case b.isAny() || a.form == formList && len(a.list) == 0:
		return b
	}
	return stringSet{form: formExpr, expr: s.space.Or(a.spelled(s), b.spelled(s))}
}

func (a stringSet) not(s *spelling) stringSet {
	switch {
	case a.isAny():
		return noString
	case a.form == formList:
		return except(a)
	case a.form == formExcept:
		return stringSet{form: formList, list: a.list}
	case a.form == formRange && a.min == 0:
		return stringSet{min: a.max + 1, max: -1}
	case a.form == formRange && a.max < 0:
		return stringSet{max: a.min - 1}
	}
	return stringSet{form: formExpr, expr: s.not(a.spelled(s))}
}
