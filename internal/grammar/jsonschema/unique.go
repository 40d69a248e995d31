package jsonschema

import (
	"bytes"
	"slices"

	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/internal/rx"
)

// maxListedValues is the most values that are listed. A larger set counts as infinite.
const maxListedValues = 2000

// maxMatching bounds the values times positions that are matched.
const maxMatching = 10_000

// A scalarValue is one scalar. Equal values are equal under ==.
type scalarValue struct {
	kind   kind
	truth  bool
	text   string
	number decimal
}

// A uniquePlace is the values for one position of an array with unique items.
type uniquePlace struct {
	goal   *goal
	values []scalarValue
	finite bool
}

// checkUnique computes the values for each position once the goals are built. Only scalar items are
// supported.
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

// valuesOf lists scalars. It returns false if there are too many.
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

// A uniqueState is the items read so far.
type uniqueState struct {
	n    int
	used map[scalarValue]bool
}

// with returns the state after one more item.
func (s uniqueState) with(v scalarValue) uniqueState {
	used := make(map[scalarValue]bool, len(s.used)+1)
	for old := range s.used {
		used[old] = true
	}
	used[v] = true
	return uniqueState{s.n + 1, used}
}

// uniqueAlive reports whether an array can be completed: whether enough values are left for the
// required items. It computes a bipartite matching of positions and values, or a count once all
// positions are alike.
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

// left returns the number of values left for the next item.
func (f *arrayForm) left(s uniqueState) int {
	n := 0
	for _, v := range f.placeAt(s.n).values {
		if !s.used[v] {
			n++
		}
	}
	return n
}

// assign finds a value for position i. It moves positions that hold the value to others if it must.
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

// more reports whether another item may follow such that the array can still be completed.
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

// uniqueItems returns the rules for the items of an array with unique items.
func (c *compiler) uniqueItems(f *arrayForm, s uniqueState) grammar.Symbol {
	b := c.b
	if s.n > 0 {
		b = b.Fork() // these rules are garbage collected with the text
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

// uniqueItem returns one more item and what follows it.
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
			// Without exponents, so that the rules recognize equal numbers.
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

// candidates returns the values of a finite set that may come next and leave enough for the rest.
func (f *arrayForm) candidates(s uniqueState) []scalarValue {
	place := f.placeAt(s.n)
	var out []scalarValue
	alike := s.n >= len(f.places)-1 // then every value leaves equally many
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

// textsOf returns all texts of a value.
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
