package jsonschema

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/realizar/realizar/internal/grammar"
)

// maxGoals bounds the goals of one schema.
const maxGoals = 100_000

// A goal is the set of values that satisfy all of its literals.
type goal struct {
	literals []literal
	path     string
	scalars  scalars
	some     bool // scalars is not empty
	arrays   []*arrayForm
	objects  []*objectForm

	// inhabited says whether a value is known to satisfy the goal. The least fixed point sets it.
	inhabited bool

	symbol grammar.Symbol
}

// normal returns the literals in order of first appearance, without duplicates and those that every
// value satisfies. It returns false if obviously no value satisfies all.
func normal(literals []literal) ([]literal, bool, error) {
	var out []literal
	for _, l := range literals {
		l, err := l.simple()
		if err != nil {
			return nil, false, err
		}
		if l.never() || slices.Contains(out, l.negated()) {
			return nil, false, nil
		}
		if !l.always() && !slices.Contains(out, l) {
			out = append(out, l)
		}
	}
	return out, true, nil
}

func keyOf(literals []literal) string {
	var key []byte
	for _, l := range literals {
		n := uint32(l.schema.id) << 1
		if l.not {
			n |= 1
		}
		key = binary.LittleEndian.AppendUint32(key, n)
	}
	return string(key)
}

// goal returns the goal of the literals, or nil if obviously no value satisfies them.
func (c *compiler) goal(literals []literal) (*goal, error) {
	literals, ok, err := normal(literals)
	if !ok || err != nil {
		return nil, err
	}
	key := keyOf(literals)
	g := c.goals[key]
	if g == nil {
		if len(c.order) == maxGoals {
			return nil, fmt.Errorf("%w: it has more than %d combinations of schemas", ErrTooLarge, maxGoals)
		}
		g = &goal{literals: literals, path: "#"}
		if len(literals) > 0 {
			g.path = literals[0].schema.path
		}
		c.goals[key] = g
		c.order = append(c.order, g)
	}
	return g, nil
}

// build computes the scalars and the forms of a goal.
func (c *compiler) build(g *goal) error {
	g.scalars = allScalars
	for _, l := range g.literals {
		one, err := c.scalarsOf(l)
		if err != nil {
			return err
		}
		g.scalars = c.and(g.scalars, one)
	}
	if err := c.numbers.err; err != nil {
		return &UnsupportedError{"multipleOf", g.path, err.Error()}
	}
	g.some = !c.isNothing(g.scalars)
	arrays, err := c.conjunction(g.literals, arrayType)
	if err != nil {
		return err
	}
	for _, alt := range arrays {
		form, err := c.arrayForm(alt, g.path)
		if err != nil {
			return err
		}
		if form != nil {
			g.arrays = append(g.arrays, form)
		}
	}
	objects, err := c.conjunction(g.literals, objectType)
	if err != nil {
		return err
	}
	for _, alt := range objects {
		form, err := c.objectForm(alt, g.path)
		if err != nil {
			return err
		}
		if form != nil {
			g.objects = append(g.objects, form)
		}
	}
	return c.space.Err()
}

// conjunction returns the alternatives of all literals together.
func (c *compiler) conjunction(literals []literal, of typeSet) ([]alternative, error) {
	out := everything
	for _, l := range literals {
		alts, err := c.expand(l, of, false)
		if err != nil {
			return nil, err
		}
		x := &expansion{c, l.schema, of, false}
		if out, err = x.both(out, alts); err != nil || len(out) == 0 {
			return nil, err
		}
	}
	return out, nil
}

// A variant is a goal for a member or an item. Such a value counts toward the demands in claims.
type variant struct {
	claims uint8
	goal   *goal
}

// maxDemands bounds the demands of the kinds someKey or countIs in one form.
const maxDemands = 4

// variants returns the goals of a position: for each subset of the demands that may be claimed
// there, base and the claimed demands. For an unclaimed demand i the goal excludes values that
// satisfy it if otherwise(i) is true.
func (c *compiler) variants(base []literal, may uint8, demands []literal, otherwise func(i int) bool) ([]variant, error) {
	var out []variant
	for claims := uint8(0); claims <= may; claims++ {
		if claims&^may != 0 {
			continue
		}
		literals := slices.Clone(base)
		for i, d := range demands {
			switch {
			case claims>>i&1 == 1:
				literals = append(literals, d)
			case may>>i&1 == 1 && otherwise(i):
				literals = append(literals, d.negated())
			}
		}
		g, err := c.goal(literals)
		if err != nil {
			return nil, err
		}
		if g != nil {
			out = append(out, variant{claims, g})
		}
	}
	return out, nil
}
