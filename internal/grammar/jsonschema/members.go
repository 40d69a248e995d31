package jsonschema

import (
	"fmt"
	"slices"

	"github.com/realizar/realizar/internal/rx"
)

const (
	maxKeys    = 20_000 // that one object names
	maxClasses = 64     // of other keys that are told apart
	listedKeys = 64     // a class of no more keys is named one by one
)

// An objectForm is one alternative of objects.
type objectForm struct {
	keys     []keyRule
	open     []openKeys
	min, max int   // members; max < 0 is no bound
	wanted   uint8 // demands that some member must meet

	needs [][]int // see need
}

// A keyRule is a member that the schema names.
type keyRule struct {
	name     string
	required bool
	variants []variant
}

// openKeys are keys that the schema does not name one by one: so many that they
// never run out.
type openKeys struct {
	texts    stringSet
	variants []variant
	lexemes  [2]rx.Expr // with what stands before: not the first member, the first; rx.Nothing: not made
}

// literalsOfKey is what the member key satisfies, if there is one.
func (c *compiler) literalsOfKey(alt alternative, key string) ([]literal, error) {
	var out []literal
	for _, n := range alt.atoms {
		switch a := c.atoms[n]; a.kind {
		case keyIs:
			if a.key == key {
				out = append(out, a.lit)
			}
		case namesAre:
			fits, err := c.nameFits(a.lit, key)
			if err != nil {
				return nil, err
			}
			if !fits {
				return []literal{is(c.falsity)}, nil
			}
		case membersAre:
			hits, err := c.hits(a.names, key, a.path)
			if err != nil {
				return nil, err
			}
			out = append(out, hits...)
		}
	}
	return out, nil
}

// nameFits says whether a key, as a string, satisfies a literal.
func (c *compiler) nameFits(l literal, key string) (bool, error) {
	s, err := c.scalarsOf(l)
	return err == nil && s.strings.has(c.strings, key), err
}

// hits is what a rule demands of the member key.
func (c *compiler) hits(rule *propertyRule, key, path string) ([]literal, error) {
	var out []literal
	hit := false
	for _, p := range rule.named {
		if p.name == key {
			hit = true
			out = append(out, is(p.schema))
		}
	}
	for _, p := range rule.patterns {
		set, err := c.pattern(p.name, path+"/patternProperties")
		if err != nil {
			return nil, err
		}
		if set.has(c.strings, key) {
			hit = true
			out = append(out, is(p.schema))
		}
	}
	if !hit && rule.other != nil {
		out = append(out, is(rule.other))
	}
	return out, nil
}

// keyClass is keys for which the same is demanded.
type keyClass struct {
	texts    stringSet
	literals []literal
	may      uint8 // demands of the kind "some member" that such a member may meet
}

// objectForm makes an alternative ready; nil where it plainly has no object.
func (c *compiler) objectForm(alt alternative, path string) (*objectForm, error) {
	f := &objectForm{max: -1}
	var names []string
	named := map[string]bool{}
	name := func(key string) {
		if !named[key] {
			named[key] = true
			names = append(names, key)
		}
	}
	required, lacking := map[string]bool{}, map[string]bool{}
	texts := anyString
	var demands []atom
	for _, n := range alt.atoms {
		if a := c.atoms[n]; a.kind == membersAre {
			for _, p := range a.names.named {
				name(p.name)
			}
		}
	}
	for _, n := range alt.atoms {
		switch a := c.atoms[n]; a.kind {
		case hasKey:
			name(a.key)
			required[a.key] = true
		case lacksKey:
			name(a.key)
			lacking[a.key] = true
		case keyIs:
			name(a.key)
		case namesAre:
			s, err := c.scalarsOf(a.lit)
			if err != nil {
				return nil, err
			}
			texts = texts.and(c.strings, s.strings)
		case someKey:
			demands = append(demands, a)
		case atLeast:
			f.min = max(f.min, a.n)
		case atMost:
			if f.max < 0 || a.n < f.max {
				f.max = a.n
			}
		}
	}
	if len(demands) > maxDemands {
		return nil, &UnsupportedError{"not", path, "too many properties are excluded at once"}
	}
	if len(names) > maxKeys {
		return nil, fmt.Errorf("%w: an object at %s names more than %d properties", ErrTooLarge, path, maxKeys)
	}
	f.wanted = uint8(1<<len(demands) - 1)
	classes, more, err := c.classes(alt, texts, names, demands, path)
	if err != nil {
		return nil, err
	}
	for _, key := range more {
		name(key)
	}
	wanted := make([]literal, len(demands))
	for i, d := range demands {
		wanted[i] = d.lit
		if d.which == wrongNames {
			wanted[i] = is(c.truth)
		}
	}
	never := func(int) bool { return false }
	for _, key := range names {
		rule := keyRule{name: key, required: required[key]}
		literals, err := c.literalsOfKey(alt, key)
		if err != nil {
			return nil, err
		}
		if !lacking[key] {
			var may uint8
			for i, d := range demands {
				meets, err := c.isAbout(d, key)
				if err != nil {
					return nil, err
				}
				if meets {
					may |= 1 << i
				}
			}
			if rule.variants, err = c.variants(literals, may, wanted, never); err != nil {
				return nil, err
			}
		}
		if len(rule.variants) > 0 {
			f.keys = append(f.keys, rule)
		} else if rule.required {
			return nil, nil
		}
	}
	for _, class := range classes {
		variants, err := c.variants(class.literals, class.may, wanted, never)
		if err != nil {
			return nil, err
		}
		if len(variants) > 0 {
			f.open = append(f.open, openKeys{texts: class.texts, variants: variants})
		}
	}
	return f, nil
}

// isAbout says whether a member key is one that a demand is about.
func (c *compiler) isAbout(d atom, key string) (bool, error) {
	if d.which == wrongNames {
		return c.nameFits(d.lit, key)
	}
	if d.which >= 0 {
		set, err := c.pattern(d.names.patterns[d.which].name, d.path+"/patternProperties")
		return err == nil && set.has(c.strings, key), err
	}
	for _, p := range d.names.named {
		if p.name == key {
			return false, nil
		}
	}
	for _, p := range d.names.patterns {
		set, err := c.pattern(p.name, d.path+"/patternProperties")
		if err != nil || set.has(c.strings, key) {
			return false, err
		}
	}
	return true, nil
}

// classes divides the keys that are not named, of those in texts, by what is
// demanded of their members. Those of small classes are returned one by one.
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

// divide divides classes by the rule of a.
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

// demanded is the keys that a demand is about.
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

// few is the texts of a set, if they are few.
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
