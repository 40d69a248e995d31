package jsonschema

import "slices"

// An atom is a demand on an array or an object that alternatives are made of.
// Atoms are comparable; which fields count depends on the kind.
type atom struct {
	kind     atomKind
	key      string        // hasKey, lacksKey, keyIs
	n        int           // atLeast, atMost, itemIs, countIs: the first item that counts
	min, max int           // countIs; max < 0 is no bound
	lit      literal       // keyIs, itemIs, countIs, namesAre, someKey
	names    *propertyRule // membersAre, someKey
	items    *itemRule     // itemsAre
	which    int           // someKey: which members may be the one
	path     string        // where a keyword stands that may be refused
}

type atomKind uint8

const (
	// Of objects.
	hasKey     atomKind = iota
	lacksKey            // there is no member key
	keyIs               // the member key, if there, satisfies lit
	membersAre          // the members obey the rule names
	namesAre            // the names of all members, as strings, satisfy lit
	someKey             // a member among those of which satisfies lit
	// Of arrays.
	itemIs   // item n, if there, satisfies lit
	itemsAre // the items obey the rule items
	countIs  // from min to max of the items from n on satisfy lit
	unique   // no two items are equal
	repeated // two items are equal
	// Of both.
	atLeast // n items or members
	atMost
)

// Which members a someKey is about: those that match pattern which of the rule,
// those that the rule does not name, those whose names do not satisfy lit.
const (
	otherMembers = -1
	wrongNames   = -2
)

// An alternative is a conjunction of atoms.
type alternative struct {
	atoms     []int32 // of compiler.atoms, in the order in which they came
	evaluated *evaluated
}

// evaluated is which members and items the schemas that led to an alternative
// have looked at, where unevaluatedProperties or unevaluatedItems ask for it.
type evaluated struct {
	allMembers, allItems bool
	rules                []*propertyRule
	items                int
	counted              []*schema // contains: items that satisfy these
}

func (a *evaluated) with(b *evaluated) *evaluated {
	if a == nil || b == nil {
		if a == nil {
			return b
		}
		return a
	}
	return &evaluated{
		a.allMembers || b.allMembers, a.allItems || b.allItems,
		append(slices.Clone(a.rules), b.rules...), max(a.items, b.items), append(slices.Clone(a.counted), b.counted...),
	}
}

// intern is the number of an atom.
func (c *compiler) intern(a atom) int32 {
	if a.lit.schema != nil {
		if l, err := a.lit.simple(); err == nil {
			a.lit = l
		}
	}
	n, ok := c.atomIDs[a]
	if !ok {
		n = int32(len(c.atoms))
		c.atoms = append(c.atoms, a)
		c.atomIDs[a] = n
	}
	return n
}

// alt is the alternative of the atoms.
func (c *compiler) alt(atoms ...atom) alternative {
	var out alternative
	for _, a := range atoms {
		out.atoms = append(out.atoms, c.intern(a))
	}
	return out
}

// meet is the conjunction of two alternatives, if it is not plainly false.
func (c *compiler) meet(a, b alternative) (alternative, bool) {
	out := alternative{a.atoms, a.evaluated.with(b.evaluated)}
	if len(a.atoms) == 0 {
		out.atoms = b.atoms
		return out, true
	}
	out.atoms = slices.Clone(a.atoms)
	for _, n := range b.atoms {
		if slices.Contains(out.atoms, n) {
			continue
		}
		for _, m := range out.atoms {
			if contradict(&c.atoms[m], &c.atoms[n]) {
				return out, false
			}
		}
		out.atoms = append(out.atoms, n)
	}
	return out, true
}

// contradict says that two atoms plainly cannot both be true.
func contradict(a, b *atom) bool {
	if a.kind > b.kind {
		a, b = b, a
	}
	switch {
	case a.kind == hasKey && b.kind == lacksKey:
		return a.key == b.key
	case a.kind == atLeast && b.kind == atMost:
		return a.n > b.n
	}
	return false
}

// within says whether all atoms of a are among those of b.
func (a alternative) within(b alternative) bool {
	for _, n := range a.atoms {
		if !slices.Contains(b.atoms, n) {
			return false
		}
	}
	return true
}
