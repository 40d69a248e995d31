package jsonschema

import "slices"

// negative returns the alternatives of the negated schema.
func (x *expansion) negative() ([]alternative, error) {
	s := x.s
	if s.never || s.types&x.of == 0 {
		return everything, nil
	}
	var out []alternative
	for _, a := range x.ownAtoms() {
		out = append(out, x.negatedAtom(a)...)
	}
	add := func(alts []alternative, err error) error {
		out = append(out, alts...)
		return err
	}
	subs := s.allOf
	if s.ref != nil {
		subs = append(slices.Clone(subs), s.ref)
	}
	for _, sub := range subs {
		if err := add(x.expand(isNot(sub), x.of, false)); err != nil {
			return nil, err
		}
	}
	for _, part := range []struct {
		on bool
		f  func() ([]alternative, error)
	}{
		{s.enum != nil, func() ([]alternative, error) { return x.none(x.composites()) }},
		{s.anyOf != nil, func() ([]alternative, error) { return x.none(s.anyOf) }},
		{s.oneOf != nil, x.notOne},
		{s.not != nil, func() ([]alternative, error) { return x.expand(is(s.not), x.of, false) }},
		{s.test != nil, x.notConditional},
		{x.of == objectType, x.notDependent},
		{x.unevaluated() != nil, x.notUnevaluated},
	} {
		if part.on {
			if err := add(part.f()); err != nil {
				return nil, err
			}
		}
	}
	return x.reduced(out)
}

// negatedAtom returns the alternatives in which a does not hold.
func (x *expansion) negatedAtom(a atom) []alternative {
	one := func(atoms ...atom) []alternative { return []alternative{x.alt(atoms...)} }
	switch a.kind {
	case hasKey:
		return one(atom{kind: lacksKey, key: a.key})
	case atLeast:
		return one(atom{kind: atMost, n: a.n - 1})
	case atMost:
		return one(atom{kind: atLeast, n: a.n + 1})
	case unique:
		return one(atom{kind: repeated, path: a.path})
	case countIs:
		var out []alternative
		if a.min > 0 {
			out = one(atom{kind: countIs, lit: a.lit, n: a.n, max: a.min - 1})
		}
		if a.max >= 0 {
			out = append(out, x.alt(atom{kind: countIs, lit: a.lit, n: a.n, min: a.max + 1, max: -1}))
		}
		return out
	case namesAre:
		return one(atom{kind: someKey, which: wrongNames, lit: a.lit.negated()})
	case itemsAre:
		return x.someItem(a.items)
	}
	return x.someMember(a)
}

// someItem returns the alternatives in which an item violates the rule.
func (x *expansion) someItem(rule *itemRule) []alternative {
	var out []alternative
	for i, s := range rule.prefix {
		if l := isNot(s); !l.never() {
			out = append(out, x.alt(atom{kind: atLeast, n: i + 1}, atom{kind: itemIs, n: i, lit: l}))
		}
	}
	if rule.rest != nil && !isNot(rule.rest).never() {
		n := len(rule.prefix)
		if rule.rest.never {
			return append(out, x.alt(atom{kind: atLeast, n: n + 1}))
		}
		out = append(out, x.alt(atom{kind: countIs, n: n, lit: isNot(rule.rest), min: 1, max: -1}))
	}
	return out
}

// someMember returns the alternatives in which a member violates the rule.
func (x *expansion) someMember(a atom) []alternative {
	var out []alternative
	for _, p := range a.names.named {
		if l := isNot(p.schema); !l.never() {
			out = append(out, x.alt(atom{kind: hasKey, key: p.name}, atom{kind: keyIs, key: p.name, lit: l}))
		}
	}
	for i, p := range a.names.patterns {
		if l := isNot(p.schema); !l.never() {
			out = append(out, x.alt(atom{kind: someKey, names: a.names, which: i, lit: l, path: a.path}))
		}
	}
	if a.names.other != nil && !isNot(a.names.other).never() {
		out = append(out, x.alt(atom{kind: someKey, names: a.names, which: otherMembers, lit: isNot(a.names.other), path: a.path}))
	}
	return out
}

// none returns the alternatives that satisfy none of the schemas.
func (x *expansion) none(subs []*schema) ([]alternative, error) {
	out := everything
	for _, sub := range subs {
		alts, err := x.expand(isNot(sub), x.of, false)
		if err == nil {
			out, err = x.both(out, alts)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// notOne returns the alternatives that satisfy none of the branches of oneOf, or two of them.
func (x *expansion) notOne() ([]alternative, error) {
	out, err := x.none(x.s.oneOf)
	for i, a := range x.s.oneOf {
		for _, b := range x.s.oneOf[i+1:] {
			if err != nil {
				return nil, err
			}
			var p, q []alternative
			if p, err = x.expand(is(a), x.of, false); err == nil {
				if q, err = x.expand(is(b), x.of, false); err == nil {
					p, err = x.both(p, q)
					out = append(out, p...)
				}
			}
		}
	}
	return out, err
}

func (x *expansion) notConditional() ([]alternative, error) {
	var out []alternative
	for _, side := range []struct {
		test literal
		then *schema
	}{{is(x.s.test), x.s.then}, {isNot(x.s.test), x.s.orElse}} {
		if side.then == nil {
			continue
		}
		alts, err := x.expand(side.test, x.of, false)
		if err != nil {
			return nil, err
		}
		not, err := x.expand(isNot(side.then), x.of, false)
		if err != nil {
			return nil, err
		}
		if alts, err = x.both(alts, not); err != nil {
			return nil, err
		}
		out = append(out, alts...)
	}
	return out, nil
}

func (x *expansion) notDependent() ([]alternative, error) {
	var out []alternative
	for _, d := range x.s.dependentRequired {
		for _, name := range d.then {
			if name != d.name {
				out = append(out, x.alt(atom{kind: hasKey, key: d.name}, atom{kind: lacksKey, key: name}))
			}
		}
	}
	for _, d := range x.s.dependentSchemas {
		not, err := x.expand(isNot(d.schema), x.of, false)
		if err != nil {
			return nil, err
		}
		alts, err := x.both([]alternative{x.alt(atom{kind: hasKey, key: d.name})}, not)
		if err != nil {
			return nil, err
		}
		out = append(out, alts...)
	}
	return out, nil
}
