package jsonschema

import (
	"fmt"
	"slices"
)

// The most alternatives that a literal may have for one type, and the work for
// all of them.
const (
	maxAlternatives = 1000
	maxWork         = 300_000
)

// expandKey is what an expansion depends on.
type expandKey struct {
	lit   literal
	of    typeSet // arrayType or objectType
	track bool
}

// expand is the arrays or the objects that satisfy a literal, as a disjunction
// of alternatives. With track these say what was evaluated.
func (c *compiler) expand(l literal, of typeSet, track bool) ([]alternative, error) {
	l, err := l.simple()
	if err != nil {
		return nil, err
	}
	key := expandKey{l, of, track}
	if out, ok := c.expanded[key]; ok {
		return out, nil
	}
	if c.expanding[key] {
		return nil, endless(l.schema)
	}
	if len(c.expanding) > maxNesting {
		return nil, tooDeep(l.schema)
	}
	c.expanding[key] = true
	defer delete(c.expanding, key)
	x := &expansion{c, l.schema, of, track}
	var out []alternative
	if l.not {
		out, err = x.negative()
	} else {
		out, err = x.positive()
	}
	if err != nil {
		return nil, err
	}
	c.expanded[key] = out
	return out, nil
}

// An expansion is of one schema.
type expansion struct {
	*compiler
	s     *schema
	of    typeSet
	track bool
}

var everything = []alternative{{}}

// both is the conjunction of two disjunctions.
func (x *expansion) both(a, b []alternative) ([]alternative, error) {
	var out []alternative
	x.work += len(a) * len(b)
	for _, p := range a {
		for _, q := range b {
			if x.work > maxWork {
				return nil, x.tooMuch()
			}
			m, ok := x.meet(p, q)
			if ok && len(a)*len(b) > 1 && !slices.ContainsFunc(out, func(o alternative) bool { return slices.Equal(o.atoms, m.atoms) && o.evaluated == m.evaluated }) {
				ok = !x.refuted(m, x.of, 2)
			}
			if ok {
				out = append(out, x.simplified(m))
			}
			if len(out) > 8*maxAlternatives {
				return nil, x.tooMany()
			}
		}
	}
	return x.reduced(out)
}

func (x *expansion) tooMuch() error {
	return fmt.Errorf("%w: its alternatives, of which the schema at %s has some, take too long to tell apart", ErrTooLarge, x.s.path)
}

func (x *expansion) tooMany() error {
	return fmt.Errorf("%w: the schema at %s has more than %d alternatives", ErrTooLarge, x.s.path, maxAlternatives)
}

// reduced leaves out alternatives that others hold.
func (x *expansion) reduced(alts []alternative) ([]alternative, error) {
	if x.work > maxWork {
		return nil, x.tooMuch()
	}
	if len(alts) > 8*maxAlternatives {
		return nil, x.tooMany()
	}
	var out []alternative
	if x.track {
		out = alts // two that differ in what is evaluated are not the same
	} else {
		for i, a := range alts {
			held := slices.ContainsFunc(alts[:i], func(b alternative) bool { return b.within(a) }) ||
				slices.ContainsFunc(alts[i+1:], func(b alternative) bool { return b.within(a) && len(b.atoms) < len(a.atoms) })
			if !held {
				out = append(out, a)
			}
		}
	}
	if len(out) > maxAlternatives {
		return nil, x.tooMany()
	}
	return out, nil
}

// evaluates is an alternative without atoms that says what was evaluated.
func (x *expansion) evaluates(e evaluated) []alternative {
	if !x.track {
		return everything
	}
	return []alternative{{evaluated: &e}}
}

// positive is the alternatives of the schema itself.
func (x *expansion) positive() ([]alternative, error) {
	s := x.s
	if s.never || s.types&x.of == 0 {
		return nil, nil
	}
	out, err := x.body()
	if err != nil {
		return nil, err
	}
	if rest := x.unevaluated(); rest != nil {
		return x.withUnevaluated(out, rest)
	}
	return out, nil
}

// body is positive without the unevaluated keywords.
func (x *expansion) body() ([]alternative, error) {
	tracked := *x
	tracked.track = x.track || x.unevaluated() != nil
	out := everything
	for _, part := range tracked.parts() {
		alts, err := part()
		if err == nil {
			out, err = tracked.both(out, alts)
		}
		if err != nil || len(out) == 0 {
			return nil, err
		}
	}
	return out, nil
}

// unevaluated is the schema of unevaluatedProperties or unevaluatedItems.
func (x *expansion) unevaluated() *schema {
	if x.of == objectType {
		return x.s.unevaluatedProperties
	}
	return x.s.unevaluatedItems
}

// parts makes the alternatives of each keyword that there is.
func (x *expansion) parts() []func() ([]alternative, error) {
	s := x.s
	var parts []func() ([]alternative, error)
	add := func(keyword string, on bool, f func() ([]alternative, error)) {
		if on {
			parts = append(parts, f)
		}
	}
	keywords := []string{"own", "$ref", "allOf", "anyOf", "oneOf", "if", "dependent"}
	if s.rulesLast {
		keywords = append(keywords[1:], "own")
	}
	for _, keyword := range keywords {
		switch keyword {
		case "own":
			add(keyword, true, x.own)
		case "$ref":
			add(keyword, s.ref != nil, func() ([]alternative, error) { return x.expand(is(s.ref), x.of, x.track) })
		case "allOf":
			for _, sub := range s.allOf {
				add(keyword, true, func() ([]alternative, error) { return x.expand(is(sub), x.of, x.track) })
			}
		case "anyOf":
			add(keyword, s.anyOf != nil, x.anyOf)
		case "oneOf":
			add(keyword, s.oneOf != nil, x.oneOf)
		case "if":
			add(keyword, s.test != nil, x.conditional)
		case "dependent":
			if x.of == objectType {
				for _, d := range s.dependentRequired {
					add(keyword, true, func() ([]alternative, error) { return x.dependentRequired(d), nil })
				}
				for _, d := range s.dependentSchemas {
					add(keyword, true, func() ([]alternative, error) { return x.dependentSchema(d) })
				}
			}
		}
	}
	add("not", s.not != nil, func() ([]alternative, error) { return x.expand(isNot(s.not), x.of, false) })
	add("enum", s.enum != nil, x.enumerated)
	return parts
}

// composites is the values of enum that are arrays, or objects.
func (x *expansion) composites() []*schema {
	if x.of == objectType {
		return x.s.enum.objects
	}
	return x.s.enum.arrays
}

func (x *expansion) enumerated() ([]alternative, error) {
	var out []alternative
	for _, one := range x.composites() {
		alts, err := x.expand(is(one), x.of, false)
		if err != nil {
			return nil, err
		}
		out = append(out, alts...)
	}
	return x.reduced(out)
}

// anyOf is the branches' alternatives; where it counts which branches are valid,
// those of each choice of them.
func (x *expansion) anyOf() ([]alternative, error) {
	if !x.track {
		var out []alternative
		for _, sub := range x.s.anyOf {
			alts, err := x.expand(is(sub), x.of, false)
			if err != nil {
				return nil, err
			}
			out = append(out, alts...)
		}
		return x.reduced(out)
	}
	none, some := everything, []alternative(nil)
	for _, sub := range x.s.anyOf {
		yes, err := x.expand(is(sub), x.of, true)
		if err != nil {
			return nil, err
		}
		no, err := x.expand(isNot(sub), x.of, false)
		if err != nil {
			return nil, err
		}
		a, err := x.both(some, yes)
		if err != nil {
			return nil, err
		}
		b, err := x.both(some, no)
		if err != nil {
			return nil, err
		}
		first, err := x.both(none, yes)
		if err != nil {
			return nil, err
		}
		if some, err = x.reduced(slices.Concat(a, b, first)); err != nil {
			return nil, err
		}
		if none, err = x.both(none, no); err != nil {
			return nil, err
		}
	}
	return some, nil
}

// oneOf is each branch without the values of the others.
func (x *expansion) oneOf() ([]alternative, error) {
	var out []alternative
	for i, sub := range x.s.oneOf {
		alts, err := x.expand(is(sub), x.of, x.track)
		if err != nil {
			return nil, err
		}
		for j, other := range x.s.oneOf {
			if i == j || len(alts) == 0 {
				continue
			}
			apart, err := x.apart(sub, other)
			if err != nil {
				return nil, err
			}
			if apart {
				continue
			}
			not, err := x.expand(isNot(other), x.of, false)
			if err != nil {
				return nil, err
			}
			if alts, err = x.both(alts, not); err != nil {
				return nil, err
			}
		}
		out = append(out, alts...)
	}
	return x.reduced(out)
}

// apart says that two schemas are known to have no array, or object, in common.
func (x *expansion) apart(a, b *schema) (bool, error) {
	p, err := x.expand(is(a), x.of, false)
	if err != nil {
		return false, err
	}
	q, err := x.expand(is(b), x.of, false)
	if err != nil {
		return false, err
	}
	if x.work += len(p) * len(q); x.work > maxWork {
		return false, x.tooMuch()
	}
	for _, one := range p {
		for _, other := range q {
			if m, ok := x.meet(one, other); ok && !x.refuted(m, x.of, 3) {
				return false, nil
			}
		}
	}
	return true, nil
}

// conditional is if, then and else.
func (x *expansion) conditional() ([]alternative, error) {
	var out []alternative
	for _, side := range []struct {
		test literal
		then *schema
	}{{is(x.s.test), x.s.then}, {isNot(x.s.test), x.s.orElse}} {
		alts, err := x.expand(side.test, x.of, x.track && !side.test.not)
		if err == nil && side.then != nil {
			var then []alternative
			if then, err = x.expand(is(side.then), x.of, x.track); err == nil {
				alts, err = x.both(alts, then)
			}
		}
		if err != nil {
			return nil, err
		}
		out = append(out, alts...)
	}
	return x.reduced(out)
}

func (x *expansion) dependentRequired(d dependency) []alternative {
	atoms := []atom{{kind: hasKey, key: d.name}}
	for _, name := range d.then {
		atoms = append(atoms, atom{kind: hasKey, key: name})
	}
	return []alternative{x.alt(atom{kind: lacksKey, key: d.name}), x.alt(atoms...)}
}

func (x *expansion) dependentSchema(d property) ([]alternative, error) {
	alts, err := x.expand(is(d.schema), x.of, x.track)
	if err != nil {
		return nil, err
	}
	has, err := x.both([]alternative{x.alt(atom{kind: hasKey, key: d.name})}, alts)
	if err != nil {
		return nil, err
	}
	return append([]alternative{x.alt(atom{kind: lacksKey, key: d.name})}, has...), nil
}

// own is the keywords of the schema that hold no alternatives.
func (x *expansion) own() ([]alternative, error) {
	var out alternative
	var seen evaluated
	for _, a := range x.ownAtoms() {
		out.atoms = append(out.atoms, x.intern(a))
		switch a.kind {
		case membersAre:
			seen.rules = append(seen.rules, a.names)
			seen.allMembers = a.names.other != nil
		case itemsAre:
			seen.items = len(a.items.prefix)
			seen.allItems = a.items.rest != nil
		case countIs:
			seen.counted = append(seen.counted, a.lit.schema)
		}
	}
	if x.track {
		out.evaluated = &seen
	}
	return []alternative{out}, nil
}

// ownAtoms is the demands of the schema's own keywords.
func (x *expansion) ownAtoms() []atom {
	s := x.s
	var out []atom
	if x.of == objectType {
		if s.properties != nil {
			out = append(out, atom{kind: membersAre, names: s.properties, path: s.path})
		}
		for _, name := range s.required {
			out = append(out, atom{kind: hasKey, key: name})
		}
		if s.names != nil {
			out = append(out, atom{kind: namesAre, lit: is(s.names)})
		}
		return append(out, bounds(s.minProperties, s.maxProperties)...)
	}
	if s.items != nil {
		out = append(out, atom{kind: itemsAre, items: s.items})
	}
	if s.contains != nil {
		a := atom{kind: countIs, lit: is(s.contains), min: 1, max: -1}
		if s.minContains != nil {
			a.min = *s.minContains
		}
		if s.maxContains != nil {
			a.max = *s.maxContains
		}
		out = append(out, a)
	}
	if s.unique {
		out = append(out, atom{kind: unique, path: s.path + "/uniqueItems"})
	}
	return append(out, bounds(s.minItems, s.maxItems)...)
}

func bounds(min, max *int) []atom {
	var out []atom
	if min != nil && *min > 0 {
		out = append(out, atom{kind: atLeast, n: *min})
	}
	if max != nil {
		out = append(out, atom{kind: atMost, n: *max})
	}
	return out
}
