package jsonschema

// withUnevaluated adds to each alternative that all unevaluated members or items satisfy the schema
// rest.
func (x *expansion) withUnevaluated(alts []alternative, rest *schema) ([]alternative, error) {
	var out []alternative
	for _, alt := range alts {
		more := alternative{}
		if a, ok := x.restRule(alt.evaluated, rest); ok {
			more = x.alt(a)
		}
		both, ok := x.meet(alt, more)
		if !ok {
			continue
		}
		both.evaluated = nil
		if x.track {
			both.evaluated = &evaluated{allMembers: x.of == objectType, allItems: x.of == arrayType}
		}
		out = append(out, both)
	}
	return x.reduced(out)
}

// restRule returns the atom that requires unevaluated members or items to satisfy rest. It returns
// false if all are evaluated.
func (x *expansion) restRule(e *evaluated, rest *schema) (atom, bool) {
	if e == nil {
		e = &evaluated{}
	}
	if x.of == objectType {
		if e.allMembers {
			return atom{}, false
		}
		rule := &propertyRule{other: rest}
		for _, r := range e.rules {
			for _, p := range r.named {
				rule.named = append(rule.named, property{p.name, x.truth})
			}
			for _, p := range r.patterns {
				rule.patterns = append(rule.patterns, property{p.name, x.truth})
			}
		}
		return atom{kind: membersAre, names: rule, path: x.s.path}, true
	}
	if e.allItems {
		return atom{}, false
	}
	rule := &itemRule{rest: rest}
	for range e.items {
		rule.prefix = append(rule.prefix, x.truth)
	}
	if len(e.counted) > 0 && x.s.draftContains {
		either := x.synthetic(rest.path)
		either.anyOf = append([]*schema{rest}, e.counted...)
		rule.rest = either
	}
	return atom{kind: itemsAre, items: rule}, true
}

// notUnevaluated returns the alternatives in which an unevaluated member or item violates
// unevaluatedProperties or unevaluatedItems, while the rest of the schema holds.
func (x *expansion) notUnevaluated() ([]alternative, error) {
	alts, err := x.body()
	if err != nil {
		return nil, err
	}
	var out []alternative
	for _, alt := range alts {
		a, ok := x.restRule(alt.evaluated, x.unevaluated())
		if !ok {
			continue
		}
		alt.evaluated = nil
		both, err := x.both([]alternative{alt}, x.negatedAtom(a))
		if err != nil {
			return nil, err
		}
		out = append(out, both...)
	}
	return out, nil
}
