package jsonschema

import "slices"

// anyOf returns the alternatives of all branches. If the expansion tracks evaluation, it returns
// those of each combination of valid branches.
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

// oneOf returns the alternatives of each branch without the values of the others.
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

// apart reports whether two schemas are known to have no array or object in common.
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

// conditional returns the alternatives of if, then and else.
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
