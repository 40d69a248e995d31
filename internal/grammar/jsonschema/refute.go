package jsonschema

import "slices"

// refuted reports whether an alternative is known to have no array or object. It searches to a
// limited depth, so false proves nothing.
func (c *compiler) refuted(alt alternative, of typeSet, depth int) bool {
	least := 0
	for _, n := range alt.atoms {
		if a := c.atoms[n]; a.kind == atLeast {
			least = max(least, a.n)
		}
	}
	if of == arrayType {
		for i := range min(least, 8) {
			if c.impossible(c.literalsOfItem(alt, i), depth-1) {
				return true
			}
		}
		return false
	}
	for _, n := range alt.atoms {
		if a := c.atoms[n]; a.kind == hasKey {
			literals, err := c.literalsOfKey(alt, a.key)
			if err == nil && c.impossible(literals, depth-1) {
				return true
			}
		}
	}
	return false
}

// simplified drops "member is not x" atoms that the other constraints on the member imply. This
// makes equivalent alternatives equal.
func (c *compiler) simplified(alt alternative) alternative {
	for i := 0; i < len(alt.atoms); i++ {
		a := c.atoms[alt.atoms[i]]
		if a.kind != keyIs || !a.lit.not {
			continue
		}
		c.work += 1 + len(alt.atoms)/8
		rest := alternative{slices.Delete(slices.Clone(alt.atoms), i, i+1), alt.evaluated}
		literals, err := c.literalsOfKey(rest, a.key)
		if err == nil && len(literals) > 0 && c.impossible(append(literals, a.lit.negated()), 1) {
			alt = rest
			i--
		}
	}
	return alt
}

type refuteKey struct {
	literals string
	depth    int
}

// impossible reports whether it is known that no value satisfies all literals.
func (c *compiler) impossible(literals []literal, depth int) bool {
	literals, ok, err := normal(literals)
	if err != nil || len(literals) == 0 {
		return false
	}
	if !ok {
		return true
	}
	key := refuteKey{keyOf(literals), depth}
	if out, ok := c.refutations[key]; ok {
		return out
	}
	c.work += 5
	c.refutations[key] = false // assumed during the search
	out := c.findImpossible(literals, depth)
	c.refutations[key] = out
	return out
}

func (c *compiler) findImpossible(literals []literal, depth int) bool {
	all := allScalars
	for _, l := range literals {
		one, err := c.scalarsOf(l)
		if err != nil {
			return false
		}
		all = c.and(all, one)
	}
	if !c.isNothing(all) {
		return false
	}
	for _, of := range []typeSet{arrayType, objectType} {
		if slices.ContainsFunc(literals, func(l literal) bool { return !l.not && l.schema.types&of == 0 }) {
			continue
		}
		if depth <= 0 {
			return false
		}
		left := everything
		for _, l := range literals {
			if c.expanding[expandKey{l, of, false}] {
				return false
			}
			alts, err := c.expand(l, of, false)
			if err != nil || len(left)*len(alts) > 256 {
				return false
			}
			var met []alternative
			for _, a := range left {
				for _, b := range alts {
					if m, ok := c.meet(a, b); ok && !c.refuted(m, of, depth) {
						met = append(met, m)
					}
				}
			}
			left = met
		}
		if len(left) > 0 {
			return false
		}
	}
	return true
}
