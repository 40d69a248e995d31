package jsonschema

import (
	"bytes"
	"slices"

	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/internal/rx"
)

// A set of more values than this never runs out.
const maxListedValues = 2000

// The most values times places that are matched.
const maxMatching = 10_000

// A scalarValue is one scalar; equal values are == .
type scalarValue struct {
	kind   kind
	truth  bool
	text   string
	number decimal
}

// place is what may stand at one place of an array without equal items.
type uniquePlace struct {
	goal   *goal
	values []scalarValue
	finite bool
}

// checkUnique finds what may stand at each place, when the goals are built. Only
// items that are scalars are told apart.
func (c *compiler) checkUnique(f *arrayForm) error {
	refuse := func(reason string) error { return &UnsupportedError{"uniqueItems", f.uniquePath, reason} }
	if len(f.counts) > 0 {
		return refuse("contains stands beside it")
	}
	values := 0
	for _, variants := range append(slices.Clone(f.prefix), f.tail) {
		place := uniquePlace{finite: true}
		if len(variants) > 0 {
			place.goal = variants[0].goal
			if len(place.goal.arrays)+len(place.goal.objects) > 0 {
				return refuse("the items may be arrays or objects, which are not compared; say that they are strings or numbers, or set maxItems to 1")
			}
			place.values, place.finite = c.valuesOf(place.goal.scalars)
		}
		f.places = append(f.places, place)
		values += len(place.values)
	}
	if len(f.prefix) > 0 && values > 0 && values*f.min > maxMatching {
		return refuse("too many values are shared out among its places")
	}
	return nil
}

// valuesOf lists scalars, if they are few.
func (c *compiler) valuesOf(s scalars) ([]scalarValue, bool) {
	var out []scalarValue
	if s.null {
		out = append(out, scalarValue{})
	}
	if s.yes {
		out = append(out, scalarValue{kind: boolKind, truth: true})
	}
	if s.no {
		out = append(out, scalarValue{kind: boolKind})
	}
	texts, ok := c.numbers.few(s.numbers, maxListedValues)
	for _, d := range texts {
		out = append(out, scalarValue{kind: numberKind, number: d})
	}
	if !ok {
		return nil, false
	}
	list, ok := c.few(s.strings, maxListedValues)
	for _, text := range list {
		out = append(out, scalarValue{kind: stringKind, text: text})
	}
	return out, ok
}

// uniqueState is the items read.
type uniqueState struct {
	n    int
	used map[scalarValue]bool
}

// with is the state after one more item.
func (s uniqueState) with(v scalarValue) uniqueState {
	used := make(map[scalarValue]bool, len(s.used)+1)
	for old := range s.used {
		used[old] = true
	}
	used[v] = true
	return uniqueState{s.n + 1, used}
}

// uniqueAlive says whether an array can be completed: whether there are values
// left for the items that it must have. It is a matching of places and values, or
// a count where all places are alike.
func (f *arrayForm) uniqueAlive(s uniqueState) bool {
	if f.max >= 0 && f.max < max(f.min, s.n) {
		return false
	}
	if s.n >= len(f.places)-1 {
		place := f.placeAt(s.n)
		return s.n >= f.min || place.goal != nil && place.goal.inhabited && (!place.finite || f.left(s) >= f.min-s.n)
	}
	holds := map[scalarValue]int{}
	for i := s.n; i < f.min; i++ {
		place := f.placeAt(i)
		if place.goal == nil || !place.goal.inhabited {
			return false
		}
		if place.finite && !f.assign(s, i, holds, map[scalarValue]bool{}) {
			return false
		}
	}
	return true
}

// left is how many values there are for the next item.
func (f *arrayForm) left(s uniqueState) int {
	n := 0
	for _, v := range f.placeAt(s.n).values {
		if !s.used[v] {
			n++
		}
	}
	return n
}

// assign finds a value for place i, and other ones for those whose values it takes.
func (f *arrayForm) assign(s uniqueState, i int, holds map[scalarValue]int, tried map[scalarValue]bool) bool {
	for _, v := range f.placeAt(i).values {
		if tried[v] || s.used[v] {
			continue
		}
		tried[v] = true
		other, taken := holds[v]
		if !taken || f.assign(s, other, holds, tried) {
			holds[v] = i
			return true
		}
	}
	return false
}

func (f *arrayForm) placeAt(i int) *uniquePlace { return &f.places[min(i, len(f.places)-1)] }

// more says whether another item may follow, and the array be completed then.
func (f *arrayForm) more(s uniqueState) bool {
	place := f.placeAt(s.n)
	if place.goal == nil || !place.goal.inhabited || f.max >= 0 && s.n >= f.max {
		return false
	}
	if s.n < f.min {
		return f.uniqueAlive(s)
	}
	return !place.finite || f.left(s) > 0
}

// uniqueItems is the rules for the items of an array no two of which are equal.
func (c *compiler) uniqueItems(f *arrayForm, s uniqueState) grammar.Symbol {
	b := c.b
	if s.n > 0 {
		b = b.Fork() // the rules of a text are collected with it
	}
	var out [][]grammar.Symbol
	if s.n >= f.min {
		out = append(out, []grammar.Symbol{c.rightBracket})
	}
	if f.more(s) {
		out = append(out, []grammar.Symbol{c.uniqueItem(b, f, s)})
	}
	rule := b.Rule("items")
	b.Define(rule, out...)
	return rule
}

// uniqueItem is one more item and what follows it.
func (c *compiler) uniqueItem(b *grammar.Builder, f *arrayForm, s uniqueState) grammar.Symbol {
	lead := c.lead(c.space, s.n == 0)
	var fits []rx.Expr
	for _, v := range f.candidates(s) {
		fits = append(fits, c.textsOf(v))
	}
	e := c.space.Or(fits...)
	if fits == nil {
		all := f.placeAt(s.n).goal.scalars
		if all.numbers.form != formList {
			// Without exponents, so that equal numbers are known as such.
			all.numbers = numberSet{form: formExpr, expr: c.space.And(c.numbers.value(all.numbers), c.numbers.decimals), integer: all.numbers.integer}
		}
		e = c.space.Or(c.lexemesOf(all)...)
		for v := range s.used {
			e = c.space.And(e, c.space.Not(c.textsOf(v)))
		}
	}
	return b.Then(c.space.Concat(lead, e), func(text []byte) grammar.Symbol {
		c.mu.Lock()
		defer c.mu.Unlock()
		v, err := parseJSON(bytes.TrimLeft(text, " \t\r\n,"))
		if err != nil {
			return grammar.Symbol{}
		}
		return c.uniqueItems(f, s.with(scalarOf(v)))
	})
}

// candidates is the values that may come next and leave enough for the rest, of
// a finite set.
func (f *arrayForm) candidates(s uniqueState) []scalarValue {
	place := f.placeAt(s.n)
	var out []scalarValue
	alike := s.n >= len(f.places)-1 // then each leaves as many as the others
	for _, v := range place.values {
		if place.finite && !s.used[v] && (alike || f.uniqueAlive(s.with(v))) {
			out = append(out, v)
		}
	}
	return out
}

func scalarOf(v *value) scalarValue {
	out := scalarValue{kind: v.kind, truth: v.truth}
	if v.kind == stringKind {
		out.text = v.text
	}
	if v.kind == numberKind {
		out.number, _ = parseDecimal(v.text)
	}
	return out
}

// textsOf is all texts of a value.
func (c *compiler) textsOf(v scalarValue) rx.Expr {
	switch {
	case v.kind == nullKind:
		return c.space.Literal("null")
	case v.kind == boolKind && v.truth:
		return c.space.Literal("true")
	case v.kind == boolKind:
		return c.space.Literal("false")
	case v.kind == numberKind:
		return c.numbers.texts(v.number)
	}
	return c.free.quoted(c.free.text(v.text))
}
