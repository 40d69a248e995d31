package jsonschema

import "slices"

// An atom is a basic constraint on an array or an object. Alternatives are conjunctions of atoms.
// Atoms are comparable; the kind says which fields are used.
type atom struct {
	kind     atomKind
	key      string        // hasKey, lacksKey, keyIs
	n        int           // atLeast, atMost, itemIs; countIs: the first item to count
	min, max int           // countIs; max < 0 means no bound
	lit      literal       // keyIs, itemIs, countIs, namesAre, someKey
	names    *propertyRule // membersAre, someKey
	items    *itemRule     // itemsAre
	which    int           // someKey: which members may satisfy lit
	path     string        // position of a keyword that may be refused
}

type atomKind uint8

const (
	// For objects.
	hasKey     atomKind = iota
	lacksKey            // the member key is absent
	keyIs               // the member key, if present, satisfies lit
	membersAre          // the members obey the rule names
	namesAre            // the names of all members, as strings, satisfy lit
	someKey             // one of the members that which selects satisfies lit
	// For arrays.
	itemIs   // item n, if present, satisfies lit
	itemsAre // the items obey the rule items
	countIs  // min to max of the items from n on satisfy lit
	unique   // no two items are equal
	repeated // two items are equal
	// For both.
	atLeast // n items or members
	atMost
)

// Values of which for someKey. From 0 up: members that match that pattern of the rule.
// otherMembers: members that the rule does not mention. wrongNames: members whose names do not
// satisfy lit.
const (
	otherMembers = -1
	wrongNames   = -2
)

// An alternative is a conjunction of atoms.
type alternative struct {
	atoms     []int32 // indexes in compiler.atoms, in the order of addition
	evaluated *evaluated
}

// evaluated records which members and items were evaluated by the schemas that led to an
// alternative, for unevaluatedProperties and unevaluatedItems. It is nil if neither needs it.
type evaluated struct {
	allMembers, allItems bool
	rules                []*propertyRule
	items                int
	counted              []*schema // schemas of contains: items that satisfy one are evaluated
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

// intern returns the index of an atom.
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

// alt returns the alternative of the atoms.
func (c *compiler) alt(atoms ...atom) alternative {
	var out alternative
	for _, a := range atoms {
		out.atoms = append(out.atoms, c.intern(a))
	}
	return out
}

// meet returns the conjunction of two alternatives. It returns false if they obviously contradict.
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

// contradict reports whether two atoms obviously cannot both hold.
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

// within reports whether b contains all atoms of a.
func (a alternative) within(b alternative) bool {
	for _, n := range a.atoms {
		if !slices.Contains(b.atoms, n) {
			return false
		}
	}
	return true
}
