package jsonschema

import (
	"fmt"
	"slices"
)

// Limits of the alternatives of a literal for one type, and of the work for all of them.
const (
	maxAlternatives = 1000
	maxWork         = 100_000
)

// An expandKey identifies an expansion.
type expandKey struct {
	lit   literal
	of    typeSet // arrayType or objectType
	track bool
}

// expand returns the arrays or the objects that satisfy a literal, as a disjunction of
// alternatives. If track is set, the alternatives record what they evaluated.
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

// An expansion computes the alternatives of one schema.
type expansion struct {
	*compiler
	s     *schema
	of    typeSet
	track bool
}

var everything = []alternative{{}}

// both returns the conjunction of two disjunctions.
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

// reduced drops alternatives that others imply.
func (x *expansion) reduced(alts []alternative) ([]alternative, error) {
	if x.work > maxWork {
		return nil, x.tooMuch()
	}
	if len(alts) > 8*maxAlternatives {
		return nil, x.tooMany()
	}
	var out []alternative
	if x.track {
		out = alts // alternatives that evaluate different things are different
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

// positive returns the alternatives of the schema itself.
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

// body returns the alternatives without the unevaluated keywords.
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

// unevaluated returns the schema of unevaluatedProperties or unevaluatedItems, or nil.
func (x *expansion) unevaluated() *schema {
	if x.of == objectType {
		return x.s.unevaluatedProperties
	}
	return x.s.unevaluatedItems
}

// parts returns a function for the alternatives of each keyword present.
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

// composites returns the schemas of the arrays, or objects, in enum.
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
