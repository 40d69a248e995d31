package jsonschema

// own returns the alternative of the schema's own constraints, without its subschemas for the same
// value.
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

// ownAtoms returns the atoms of the schema's own constraints.
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
