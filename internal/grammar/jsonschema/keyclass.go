package jsonschema

import (
	"fmt"
	"slices"
)

// A keyClass is a set of keys whose members have the same constraints.
type keyClass struct {
	texts    stringSet
	literals []literal
	may      uint8 // someKey demands that a member with such a key may meet
}

// isAbout reports whether demand d covers the member key.
func (c *compiler) isAbout(d atom, key string) (bool, error) {
	if d.which == wrongNames {
		return c.nameFits(d.lit, key)
	}
	if d.which >= 0 {
		set, err := c.pattern(d.names.patterns[d.which].name, d.path+"/patternProperties")
		return err == nil && set.has(c.strings, key), err
	}
	if d.names.find(key) != nil {
		return false, nil
	}
	for _, p := range d.names.patterns {
		set, err := c.pattern(p.name, d.path+"/patternProperties")
		if err != nil || set.has(c.strings, key) {
			return false, err
		}
	}
	return true, nil
}

// classes divides the keys in texts that are not in names by the constraints on their members. The
// keys of small classes are returned one by one.
func (c *compiler) classes(alt alternative, texts stringSet, names []string, demands []atom, path string) ([]keyClass, []string, error) {
	classes := []keyClass{{texts: texts.and(c.strings, listed(names).not(c.strings))}}
	if len(names) == 0 {
		classes[0].texts = texts
	}
	var err error
	for _, n := range alt.atoms {
		if a := c.atoms[n]; a.kind == membersAre {
			if classes, err = c.divide(classes, a); err != nil {
				return nil, nil, err
			}
			if len(classes) > maxClasses {
				return nil, nil, fmt.Errorf("%w: the patterns for properties at %s overlap in more than %d ways", ErrTooLarge, path, maxClasses)
			}
		}
	}
	for i, d := range demands {
		set, err := c.demanded(d)
		if err != nil {
			return nil, nil, err
		}
		classes = c.split(classes, set, func(k keyClass) keyClass {
			k.may |= 1 << i
			return k
		}, func(k keyClass) keyClass { return k })
	}
	var merged []keyClass
	var few []string
	for _, k := range classes {
		list, ok := c.few(k.texts, listedKeys)
		if ok {
			few = append(few, list...)
			continue
		}
		same := slices.IndexFunc(merged, func(o keyClass) bool { return o.may == k.may && slices.Equal(o.literals, k.literals) })
		if same >= 0 {
			merged[same].texts = merged[same].texts.or(c.strings, k.texts)
			continue
		}
		merged = append(merged, k)
	}
	return merged, few, nil
}

// divide splits classes by the rule of a.
func (c *compiler) divide(classes []keyClass, a atom) ([]keyClass, error) {
	type marked struct {
		keyClass
		hit bool
	}
	work := make([]marked, len(classes))
	for i, k := range classes {
		work[i] = marked{k, false}
	}
	for _, p := range a.names.patterns {
		set, err := c.pattern(p.name, a.path+"/patternProperties")
		if err != nil {
			return nil, err
		}
		var next []marked
		for _, k := range work {
			in, out := k.texts.and(c.strings, set), k.texts.and(c.strings, set.not(c.strings))
			if !in.isNothing(c.strings) && !is(p.schema).never() {
				next = append(next, marked{keyClass{in, append(slices.Clone(k.literals), is(p.schema)), k.may}, true})
			}
			if !out.isNothing(c.strings) {
				next = append(next, marked{keyClass{out, k.literals, k.may}, k.hit})
			}
		}
		if work = next; len(work) > 4*maxClasses {
			break
		}
	}
	var out []keyClass
	for _, k := range work {
		if !k.hit && a.names.other != nil {
			if is(a.names.other).never() {
				continue
			}
			k.literals = append(slices.Clone(k.literals), is(a.names.other))
		}
		out = append(out, k.keyClass)
	}
	return out, nil
}

// demanded returns the keys that a demand covers.
func (c *compiler) demanded(d atom) (stringSet, error) {
	if d.which == wrongNames {
		s, err := c.scalarsOf(d.lit)
		return s.strings, err
	}
	if d.which >= 0 {
		return c.pattern(d.names.patterns[d.which].name, d.path+"/patternProperties")
	}
	var names []string
	for _, p := range d.names.named {
		names = append(names, p.name)
	}
	out := listed(names).not(c.strings)
	for _, p := range d.names.patterns {
		set, err := c.pattern(p.name, d.path+"/patternProperties")
		if err != nil {
			return out, err
		}
		out = out.and(c.strings, set.not(c.strings))
	}
	return out, nil
}

func (c *compiler) split(classes []keyClass, set stringSet, in, out func(keyClass) keyClass) []keyClass {
	var all []keyClass
	for _, k := range classes {
		a, b := k, k
		a.texts = k.texts.and(c.strings, set)
		b.texts = k.texts.and(c.strings, set.not(c.strings))
		if !a.texts.isNothing(c.strings) {
			all = append(all, in(a))
		}
		if !b.texts.isNothing(c.strings) {
			all = append(all, out(b))
		}
	}
	return all
}

// few returns the texts of a set, or false if there are more than limit.
func (c *compiler) few(set stringSet, limit int) ([]string, bool) {
	switch set.form {
	case formList:
		return set.list, len(set.list) <= limit || limit == listedKeys
	case formRange:
		if set.max < 0 || set.max > 0 {
			return nil, false
		}
		return []string{""}, true
	}
	if set.form == formExcept {
		return nil, false
	}
	e := set.expr
	if !c.strings.plain {
		e = c.space.And(e, c.plain.all)
	}
	spelled, ok := c.space.List(e, limit)
	if !ok {
		return nil, false
	}
	var out []string
	for _, s := range spelled {
		v, err := parseJSON([]byte(`"` + s + `"`))
		if err != nil {
			return nil, false
		}
		out = append(out, v.text)
	}
	return out, true
}
