package jsonschema

import (
	"fmt"

	"github.com/realizar/realizar/internal/rx"
)

const (
	maxKeys    = 20_000 // named by one object
	maxClasses = 64     // classes of other keys
	listedKeys = 64     // classes with at most this many keys are listed one by one
)

// An objectForm is one alternative of a goal's objects, ready for rules.
type objectForm struct {
	keys     []keyRule
	open     []openKeys
	min, max int   // number of members; max < 0 means no bound
	wanted   uint8 // demands that some member must meet, as bits

	needs [][]int // see need
}

// A keyRule is a member that the form names.
type keyRule struct {
	name     string
	required bool
	variants []variant
}

// openKeys is a class of keys that the form does not list, with more keys than an object can use
// up.
type openKeys struct {
	texts    stringSet
	variants []variant
	lexemes  [2]rx.Expr // with the separator before them: [0] for later members, [1] for the first; rx.Nothing if not made yet
}

// literalsOfKey returns the literals that the member key, if present, must satisfy.
func (c *compiler) literalsOfKey(alt alternative, key string) ([]literal, error) {
	var out []literal
	for _, n := range alt.atoms {
		switch a := c.atoms[n]; a.kind {
		case keyIs:
			if a.key == key {
				out = append(out, a.lit)
			}
		case namesAre:
			fits, err := c.nameFits(a.lit, key)
			if err != nil {
				return nil, err
			}
			if !fits {
				return []literal{is(c.falsity)}, nil
			}
		case membersAre:
			hits, err := c.hits(a.names, key, a.path)
			if err != nil {
				return nil, err
			}
			out = append(out, hits...)
		}
	}
	return out, nil
}

// nameFits reports whether a key, as a string, satisfies a literal.
func (c *compiler) nameFits(l literal, key string) (bool, error) {
	s, err := c.scalarsOf(l)
	return err == nil && s.strings.has(c.strings, key), err
}

// hits returns the literals that a rule applies to the member key.
func (c *compiler) hits(rule *propertyRule, key, path string) ([]literal, error) {
	var out []literal
	hit := false
	if named := rule.find(key); named != nil {
		hit = true
		out = append(out, is(named))
	}
	for _, p := range rule.patterns {
		set, err := c.pattern(p.name, path+"/patternProperties")
		if err != nil {
			return nil, err
		}
		if set.has(c.strings, key) {
			hit = true
			out = append(out, is(p.schema))
		}
	}
	if !hit && rule.other != nil {
		out = append(out, is(rule.other))
	}
	return out, nil
}

// objectForm returns the form of an alternative, or nil if it obviously has no object.
func (c *compiler) objectForm(alt alternative, path string) (*objectForm, error) {
	f := &objectForm{max: -1}
	var names []string
	named := map[string]bool{}
	name := func(key string) {
		if !named[key] {
			named[key] = true
			names = append(names, key)
		}
	}
	required, lacking := map[string]bool{}, map[string]bool{}
	texts := anyString
	var demands []atom
	for _, n := range alt.atoms {
		if a := c.atoms[n]; a.kind == membersAre {
			for _, p := range a.names.named {
				name(p.name)
			}
		}
	}
	for _, n := range alt.atoms {
		switch a := c.atoms[n]; a.kind {
		case hasKey:
			name(a.key)
			required[a.key] = true
		case lacksKey:
			name(a.key)
			lacking[a.key] = true
		case keyIs:
			name(a.key)
		case namesAre:
			s, err := c.scalarsOf(a.lit)
			if err != nil {
				return nil, err
			}
			texts = texts.and(c.strings, s.strings)
		case someKey:
			demands = append(demands, a)
		case atLeast:
			f.min = max(f.min, a.n)
		case atMost:
			if f.max < 0 || a.n < f.max {
				f.max = a.n
			}
		}
	}
	if len(demands) > maxDemands {
		return nil, &UnsupportedError{"not", path, "too many properties are excluded at once"}
	}
	if len(names) > maxKeys {
		return nil, fmt.Errorf("%w: an object at %s names more than %d properties", ErrTooLarge, path, maxKeys)
	}
	f.wanted = uint8(1<<len(demands) - 1)
	classes, more, err := c.classes(alt, texts, names, demands, path)
	if err != nil {
		return nil, err
	}
	for _, key := range more {
		name(key)
	}
	wanted := make([]literal, len(demands))
	for i, d := range demands {
		wanted[i] = d.lit
		if d.which == wrongNames {
			wanted[i] = is(c.truth)
		}
	}
	never := func(int) bool { return false }
	for _, key := range names {
		rule := keyRule{name: key, required: required[key]}
		literals, err := c.literalsOfKey(alt, key)
		if err != nil {
			return nil, err
		}
		if !lacking[key] {
			var may uint8
			for i, d := range demands {
				about, err := c.isAbout(d, key)
				if err != nil {
					return nil, err
				}
				if about {
					may |= 1 << i
				}
			}
			if rule.variants, err = c.variants(literals, may, wanted, never); err != nil {
				return nil, err
			}
		}
		if len(rule.variants) > 0 {
			f.keys = append(f.keys, rule)
		} else if rule.required {
			return nil, nil
		}
	}
	for _, class := range classes {
		variants, err := c.variants(class.literals, class.may, wanted, never)
		if err != nil {
			return nil, err
		}
		if len(variants) > 0 {
			f.open = append(f.open, openKeys{texts: class.texts, variants: variants})
		}
	}
	return f, nil
}
