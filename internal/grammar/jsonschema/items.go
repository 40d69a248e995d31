package jsonschema

import (
	"fmt"
	"slices"
)

const (
	maxPrefix     = 10_000 // positions of an array with schemas of their own
	maxItemStates = 50_000
)

// An arrayForm is one alternative of a goal's arrays, ready for rules.
type arrayForm struct {
	prefix   [][]variant
	tail     []variant // for the items after prefix
	counts   []countRule
	min, max int // number of items; max < 0 means no bound
	unique   bool

	uniquePath string
	places     []uniquePlace // if unique: one for each position of prefix, then one for all later items

	fates map[itemState]bool
}

type countRule struct {
	from, min, max int
}

// literalsOfItem returns the literals that item i, if present, must satisfy.
func (c *compiler) literalsOfItem(alt alternative, i int) []literal {
	var out []literal
	for _, n := range alt.atoms {
		switch a := c.atoms[n]; a.kind {
		case itemIs:
			if a.n == i {
				out = append(out, a.lit)
			}
		case itemsAre:
			if i < len(a.items.prefix) {
				out = append(out, is(a.items.prefix[i]))
			} else if a.items.rest != nil {
				out = append(out, is(a.items.rest))
			}
		}
	}
	return out
}

// arrayForm returns the form of an alternative.
func (c *compiler) arrayForm(alt alternative, path string) (*arrayForm, error) {
	f := &arrayForm{max: -1}
	var demands []literal
	places := 0
	for _, n := range alt.atoms {
		switch a := c.atoms[n]; a.kind {
		case itemIs:
			places = max(places, a.n+1)
		case itemsAre:
			places = max(places, len(a.items.prefix))
		case countIs:
			places = max(places, a.n)
			f.counts = append(f.counts, countRule{a.n, a.min, a.max})
			demands = append(demands, a.lit)
		case unique:
			f.unique, f.uniquePath = true, a.path
		case repeated:
			return nil, &UnsupportedError{"uniqueItems", a.path, "it is negated, and two equal items cannot be asked for"}
		case atLeast:
			f.min = max(f.min, a.n)
		case atMost:
			if f.max < 0 || a.n < f.max {
				f.max = a.n
			}
		}
	}
	if f.max >= 0 {
		places = min(places, f.max)
	}
	if len(demands) > maxDemands {
		return nil, &UnsupportedError{"contains", path, fmt.Sprintf("more than %d such demands on one array", maxDemands)}
	}
	if places > maxPrefix {
		return nil, fmt.Errorf("%w: an array at %s has more than %d places of its own", ErrTooLarge, path, maxPrefix)
	}
	bounded := func(i int) bool { return f.counts[i].max >= 0 }
	for i := range places + 1 {
		var may uint8
		for j, count := range f.counts {
			if i >= count.from {
				may |= 1 << j
			}
		}
		variants, err := c.variants(c.literalsOfItem(alt, i), may, demands, bounded)
		if err != nil {
			return nil, err
		}
		if i < places {
			f.prefix = append(f.prefix, variants)
		} else {
			f.tail = variants
		}
	}
	if f.unique && f.max >= 0 && f.max <= 1 {
		f.unique = false
	}
	if f.unique {
		return f, nil // checkUnique completes the form after the goals are built
	}
	items, states := max(f.min, len(f.prefix)), 1
	for _, count := range f.counts {
		items += count.min
		states *= max(count.min, count.max) + 2
		if states > maxItemStates {
			break
		}
	}
	if len(f.counts) > 1 && states*(items+1) > maxItemStates || len(f.counts) == 1 && states > 1<<24 {
		return nil, &UnsupportedError{"contains", path, "its counts are too large"}
	}
	return f, nil
}

// An itemState is the state after some items.
type itemState struct {
	n      int
	counts [maxDemands]int
}

// variantsAt returns the variants of item i.
func (f *arrayForm) variantsAt(i int) []variant {
	if i < len(f.prefix) {
		return f.prefix[i]
	}
	return f.tail
}

// after returns the state after an item that counts toward claims. It returns false if no such item
// may follow.
func (f *arrayForm) after(s itemState, claims uint8) (itemState, bool) {
	if f.max >= 0 && s.n >= f.max {
		return s, false
	}
	for i, count := range f.counts {
		if claims>>i&1 == 1 {
			s.counts[i]++
			if count.max >= 0 && s.counts[i] > count.max {
				return s, false
			}
			if count.max < 0 {
				s.counts[i] = min(s.counts[i], count.min)
			}
		}
	}
	s.n++
	if f.max < 0 {
		s.n = min(s.n, max(f.min, len(f.prefix)))
	}
	return s, true
}

// ends reports whether the array may end in state s.
func (f *arrayForm) ends(s itemState) bool {
	for i, count := range f.counts {
		if s.counts[i] < count.min {
			return false
		}
	}
	return s.n >= f.min
}

// alive reports whether an array can be completed from state s.
func (f *arrayForm) alive(s itemState) bool {
	if f.ends(s) {
		return true
	}
	if s.n >= len(f.prefix) && len(f.counts) <= 1 {
		return f.tailAlive(s)
	}
	if fate, ok := f.fates[s]; ok {
		return fate
	}
	if f.fates == nil {
		f.fates = map[itemState]bool{}
	}
	f.fates[s] = false
	fate := slices.ContainsFunc(f.variantsAt(s.n), func(v variant) bool {
		next, ok := f.after(s, v.claims)
		return ok && v.goal.inhabited && next != s && f.alive(next)
	})
	f.fates[s] = fate
	return fate
}

// tailAlive is alive for states after the prefix, with at most one count.
func (f *arrayForm) tailAlive(s itemState) bool {
	most := never
	if f.max >= 0 {
		most = f.max - s.n
	}
	need, left := 0, never
	var free, counted bool
	for _, v := range f.tail {
		if v.goal.inhabited && v.claims == 0 {
			free = true
		} else if v.goal.inhabited {
			counted = true
		}
	}
	if len(f.counts) == 1 {
		need = max(0, f.counts[0].min-s.counts[0])
		if f.counts[0].max >= 0 {
			left = f.counts[0].max - s.counts[0]
		}
	}
	more := max(need, f.min-s.n, 0)
	switch {
	case more > most || need > left || need > 0 && !counted:
		return false
	case free:
		return true
	case counted:
		return more <= left
	}
	return more == 0
}

// inhabited reports whether the form has an array, as far as goals are known to have values.
func (f *arrayForm) inhabited() bool {
	if f.unique {
		return f.uniqueAlive(uniqueState{})
	}
	f.fates = nil
	return f.alive(itemState{})
}
