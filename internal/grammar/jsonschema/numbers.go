package jsonschema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/realizar/realizar/internal/rx"
)

// A numberSet is a set of numbers: all, a list, all but a list, or an expression over their texts.
// The expression has all or none of a number's texts without exponents, and may have some of those
// with exponents.
type numberSet struct {
	form    setForm // formRange means all numbers
	list    []decimal
	expr    rx.Expr
	integer bool        // all numbers are integers; unused for lists
	rule    *numberRule // set if expr is that of one rule
}

var (
	anyNumber = numberSet{}
	noNumber  = numberSet{form: formList}
)

func listedNumbers(list []decimal) numberSet {
	list = slices.Clone(list)
	slices.SortFunc(list, decimal.compare)
	return numberSet{form: formList, list: slices.Compact(list)}
}

// exceptNumbers returns all numbers but those of the list.
func exceptNumbers(list []decimal) numberSet {
	if len(list) == 0 {
		return anyNumber
	}
	return numberSet{form: formExcept, list: listedNumbers(list).list}
}

// numberTexts makes expressions over the texts of numbers.
type numberTexts struct {
	space    *rx.Space
	plain    bool    // one text for each constant, and integers without a fraction
	decimals rx.Expr // all texts without exponents
	whole    rx.Expr // all texts without fraction and exponent
	digit    rx.Expr
	shortest rx.Expr // one text of each number
	err      error   // from combining two rules
	rules    map[string]*numberMachine
}

func newNumberTexts(space *rx.Space, plain bool) *numberTexts {
	t := &numberTexts{space: space, plain: plain, rules: map[string]*numberMachine{}}
	t.digit = space.Bytes(rx.ByteRange('0', '9'))
	t.whole = space.Concat(t.optional(space.Literal("-")),
		space.Or(space.Literal("0"), space.Concat(space.Bytes(rx.ByteRange('1', '9')), space.Repeat(t.digit, 0, wholeDigits-1))))
	t.decimals = space.Concat(t.whole, t.optional(space.Concat(space.Literal("."), space.Repeat(t.digit, 1, fractionDigits))))
	nonzero := space.Bytes(rx.ByteRange('1', '9'))
	t.shortest = space.And(space.Not(space.Literal("-0")), space.Concat(t.whole,
		t.optional(space.Concat(space.Literal("."), space.Repeat(t.digit, 0, fractionDigits-1), nonzero))))
	return t
}

// few returns the numbers of a set, or false if there are more than limit.
func (t *numberTexts) few(a numberSet, limit int) ([]decimal, bool) {
	if a.form == formList {
		return a.list, len(a.list) <= limit
	}
	texts, ok := t.space.List(t.space.And(t.value(a), t.shortest), limit)
	if !ok {
		return nil, false
	}
	var out []decimal
	for _, text := range texts {
		d, err := parseDecimal(text)
		if err != nil {
			return nil, false
		}
		out = append(out, d)
	}
	return out, true
}

func (t *numberTexts) optional(e rx.Expr) rx.Expr { return t.space.Or(rx.Empty, e) }

// rule returns the numbers within a rule.
func (t *numberTexts) rule(rule numberRule) (numberSet, error) {
	e, err := t.machine(rule, true)
	if err != nil || e == rx.Nothing {
		return noNumber, err
	}
	return numberSet{form: formExpr, expr: e, integer: rule.integer, rule: &rule}, nil
}

// machine returns the texts within a rule. If pointed is false, they have no fraction.
func (t *numberTexts) machine(rule numberRule, pointed bool) (rx.Expr, error) {
	key := fmt.Sprint(rule.key(), pointed)
	m, ok := t.rules[key]
	if !ok {
		var err error
		if m, err = newNumberMachine(rule, pointed); err != nil {
			return rx.Nothing, err
		}
		t.rules[key] = m
	}
	e := m.expr(t.space)
	if m.overflows() {
		return rx.Nothing, fmt.Errorf("its numbers are too hard to tell from others")
	}
	return e, nil
}

func (t *numberTexts) isNothing(a numberSet) bool {
	switch a.form {
	case formList:
		return len(a.list) == 0
	case formExpr:
		return t.space.IsEmpty(a.expr)
	}
	return false
}

func (t *numberTexts) has(a numberSet, d decimal) bool {
	switch a.form {
	case formList, formExcept:
		return slices.Contains(a.list, d) == (a.form == formList)
	case formExpr:
		e := a.expr
		for _, b := range []byte(d.String()) {
			e = t.space.Derive(e, b)
		}
		return t.space.Nullable(e)
	}
	return true
}

// value returns the set as an expression with all texts of its numbers.
func (t *numberTexts) value(a numberSet) rx.Expr {
	switch a.form {
	case formList, formExcept:
		var all []rx.Expr
		for _, d := range a.list {
			all = append(all, t.texts(d))
		}
		if a.form == formExcept {
			return t.space.And(t.decimals, t.space.Not(t.space.Or(all...)))
		}
		return t.space.Or(all...)
	case formExpr:
		return a.expr
	}
	return t.decimals
}

// texts returns the texts of one number.
func (t *numberTexts) texts(d decimal) rx.Expr {
	text := d.String()
	_, fraction, _ := strings.Cut(text, ".")
	zeros := t.space.Repeat(t.space.Literal("0"), 0, max(0, fractionDigits-len(fraction)))
	if fraction == "" {
		zeros = t.optional(t.space.Concat(t.space.Literal("."), t.space.Repeat(t.space.Literal("0"), 1, fractionDigits)))
	}
	e := t.space.Concat(t.space.Literal(text), zeros)
	if d.digits == "" {
		e = t.space.Concat(t.optional(t.space.Literal("-")), e)
	}
	return e
}

// written returns the texts that an answer may contain.
func (t *numberTexts) written(a numberSet) rx.Expr {
	switch {
	case a.form == formRange:
		exponent := t.space.Concat(t.space.Bytes(rx.BytesOf('e', 'E')), t.optional(t.space.Bytes(rx.BytesOf('+', '-'))), t.space.Repeat(t.digit, 1, exponentDigits))
		return t.space.Concat(t.decimals, t.optional(exponent))
	case a.form == formList && t.plain:
		var all []rx.Expr
		for _, d := range a.list {
			all = append(all, t.space.Literal(d.String()))
		}
		return t.space.Or(all...)
	case a.form == formExpr && t.plain && a.rule != nil && *a.rule == numberRule{integer: true}:
		return t.whole
	case a.form == formExpr && t.plain && a.integer && a.rule != nil:
		e, _ := t.machine(*a.rule, false)
		return e
	case a.form == formExpr && t.plain && a.integer:
		return t.space.And(a.expr, t.whole)
	}
	return t.value(a)
}

func (t *numberTexts) and(a, b numberSet) numberSet {
	switch {
	case a.form == formRange:
		return b
	case b.form == formRange:
		return a
	case b.form == formList:
		a, b = b, a
		fallthrough
	case a.form == formList:
		var list []decimal
		for _, d := range a.list {
			if t.has(b, d) {
				list = append(list, d)
			}
		}
		return listedNumbers(list)
	case a.form == formExcept && b.form == formExcept:
		return exceptNumbers(append(slices.Clone(a.list), b.list...))
	case a.rule != nil && b.rule != nil:
		set, err := t.rule(a.rule.and(b.rule))
		if err != nil && t.err == nil {
			t.err = err
		}
		return set
	}
	return numberSet{form: formExpr, expr: t.space.And(t.value(a), t.value(b)), integer: a.integer || b.integer}
}

func (t *numberTexts) or(a, b numberSet) numberSet {
	switch {
	case a.form == formRange || b.form == formList && len(b.list) == 0:
		return a
	case b.form == formRange || a.form == formList && len(a.list) == 0:
		return b
	case a.form == formList && b.form == formList:
		return listedNumbers(append(slices.Clone(a.list), b.list...))
	case (a.form == formExcept || a.form == formList) && (b.form == formExcept || b.form == formList):
		return t.not(t.and(t.not(a), t.not(b)))
	}
	return numberSet{form: formExpr, expr: t.space.Or(t.value(a), t.value(b)), integer: t.allWhole(a) && t.allWhole(b)}
}

func (t *numberTexts) allWhole(a numberSet) bool {
	if a.form == formList {
		return !slices.ContainsFunc(a.list, func(d decimal) bool { return !d.isInteger() })
	}
	return a.integer
}

func (t *numberTexts) not(a numberSet) numberSet {
	switch a.form {
	case formRange:
		return noNumber
	case formList:
		return exceptNumbers(a.list)
	case formExcept:
		return listedNumbers(a.list)
	}
	return numberSet{form: formExpr, expr: t.space.And(t.decimals, t.space.Not(t.value(a)))}
}
