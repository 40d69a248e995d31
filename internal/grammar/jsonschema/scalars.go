package jsonschema

import (
	"fmt"

	"github.com/realizar/realizar/internal/rx/pattern"
)

// scalars is a set of nulls, booleans, numbers and strings.
type scalars struct {
	null, yes, no bool
	numbers       numberSet
	strings       stringSet
}

var (
	allScalars = scalars{true, true, true, anyNumber, anyString}
	noScalars  = scalars{numbers: noNumber, strings: noString}
)

func (c *compiler) and(a, b scalars) scalars {
	return scalars{a.null && b.null, a.yes && b.yes, a.no && b.no, c.numbers.and(a.numbers, b.numbers), a.strings.and(c.strings, b.strings)}
}

func (c *compiler) or(a, b scalars) scalars {
	return scalars{a.null || b.null, a.yes || b.yes, a.no || b.no, c.numbers.or(a.numbers, b.numbers), a.strings.or(c.strings, b.strings)}
}

func (c *compiler) not(a scalars) scalars {
	return scalars{!a.null, !a.yes, !a.no, c.numbers.not(a.numbers), a.strings.not(c.strings)}
}

func (c *compiler) isNothing(a scalars) bool {
	return !a.null && !a.yes && !a.no && c.numbers.isNothing(a.numbers) && a.strings.isNothing(c.strings)
}

// scalarsOf returns the scalars that satisfy a literal.
func (c *compiler) scalarsOf(l literal) (scalars, error) {
	out, err := c.scalarsOfSchema(l.schema)
	if l.not {
		out = c.not(out)
	}
	return out, err
}

func (c *compiler) scalarsOfSchema(s *schema) (scalars, error) {
	if out, ok := c.scalarMemo[s]; ok {
		return out, nil
	}
	if c.entered[s] {
		return noScalars, endless(s)
	}
	if len(c.entered) > maxNesting {
		return noScalars, tooDeep(s)
	}
	c.entered[s] = true
	defer delete(c.entered, s)
	out, err := c.scalarsOfKeywords(s)
	if err != nil {
		return noScalars, err
	}
	c.scalarMemo[s] = out
	return out, nil
}

// maxNesting bounds the chain of schemas that refer to each other for one value.
const maxNesting = 1000

func tooDeep(s *schema) error {
	return fmt.Errorf("%w: at %s more than %d schemas refer one to the next", ErrTooLarge, s.path, maxNesting)
}

func endless(s *schema) error {
	return &SchemaError{s.path, "it refers to itself without end"}
}

func (c *compiler) scalarsOfKeywords(s *schema) (scalars, error) {
	if s.never {
		return noScalars, nil
	}
	out, err := c.ownScalars(s)
	if err != nil {
		return out, err
	}
	all := s.allOf
	if s.ref != nil {
		all = append([]*schema{s.ref}, all...)
	}
	for _, sub := range all {
		one, err := c.scalarsOfSchema(sub)
		if err != nil {
			return out, err
		}
		out = c.and(out, one)
	}
	if s.anyOf != nil {
		some := noScalars
		for _, sub := range s.anyOf {
			branch, err := c.scalarsOfSchema(sub)
			if err != nil {
				return out, err
			}
			some = c.or(some, branch)
		}
		out = c.and(out, some)
	}
	if s.oneOf != nil {
		none, one := allScalars, noScalars
		for _, sub := range s.oneOf {
			branch, err := c.scalarsOfSchema(sub)
			if err != nil {
				return out, err
			}
			not := c.not(branch)
			one = c.or(c.and(one, not), c.and(none, branch))
			none = c.and(none, not)
		}
		out = c.and(out, one)
	}
	if s.not != nil {
		one, err := c.scalarsOfSchema(s.not)
		if err != nil {
			return out, err
		}
		out = c.and(out, c.not(one))
	}
	if s.test != nil {
		return c.conditionalScalars(s, out)
	}
	return out, nil
}

func (c *compiler) conditionalScalars(s *schema, out scalars) (scalars, error) {
	test, err := c.scalarsOfSchema(s.test)
	if err != nil {
		return out, err
	}
	then, orElse := test, c.not(test)
	if s.then != nil {
		one, err := c.scalarsOfSchema(s.then)
		if err != nil {
			return out, err
		}
		then = c.and(then, one)
	}
	if s.orElse != nil {
		one, err := c.scalarsOfSchema(s.orElse)
		if err != nil {
			return out, err
		}
		orElse = c.and(orElse, one)
	}
	return c.and(out, c.or(then, orElse)), nil
}

// ownScalars returns the scalars that a schema's own constraints allow.
func (c *compiler) ownScalars(s *schema) (scalars, error) {
	out := noScalars
	out.null = s.types&nullType != 0
	out.yes = s.types&booleanType != 0
	out.no = out.yes
	if s.types&numberType != 0 {
		out.numbers = anyNumber
		if s.number != nil || s.integer {
			rule := numberRule{}
			if s.number != nil {
				rule = *s.number
			}
			rule.integer = s.integer
			var err error
			if out.numbers, err = c.numbers.rule(rule); err != nil {
				return out, &UnsupportedError{"number", s.path, err.Error()}
			}
		}
	}
	if s.types&stringType != 0 {
		var err error
		if out.strings, err = c.ownStrings(s); err != nil {
			return out, err
		}
	}
	if e := s.enum; e != nil {
		out = c.and(out, scalars{e.null, e.yes, e.no, listedNumbers(e.numbers), listed(e.strings)})
	}
	if (s.format == "int32" || s.format == "int64") && !c.o.FormatIsAnnotation {
		rule := numberRule{integer: true}
		for i, text := range integerRanges[s.format] {
			d, _ := parseDecimal(text)
			if i == 0 {
				rule.min = &d
			} else {
				rule.max = &d
			}
		}
		set, err := c.numbers.rule(rule)
		if err != nil {
			return out, err
		}
		out.numbers = c.numbers.and(out.numbers, set)
	}
	return out, nil
}

var integerRanges = map[string][2]string{
	"int32": {"-2147483648", "2147483647"},
	"int64": {"-9223372036854775808", "9223372036854775807"},
}

func (c *compiler) ownStrings(s *schema) (stringSet, error) {
	out := anyString
	if s.minLength != nil {
		out.min = *s.minLength
	}
	if s.maxLength != nil {
		out.max = *s.maxLength
	}
	if out.max >= 0 && out.max < out.min {
		return noString, nil
	}
	if s.hasPattern {
		e, err := c.pattern(s.pattern, s.path+"/pattern")
		if err != nil {
			return out, err
		}
		out = out.and(c.strings, e)
	}
	if s.format != "" && !c.o.FormatIsAnnotation {
		format := s.format
		if s.oldHost && format == "hostname" {
			format = oldHost
		}
		e, err := c.format(format, s.path+"/format")
		if err != nil {
			return out, err
		}
		out = out.and(c.strings, e)
	}
	return out, nil
}

// pattern returns the texts that contain a match of a regular expression.
func (c *compiler) pattern(text, path string) (stringSet, error) {
	if e, ok := c.patterns[text]; ok {
		return e, nil
	}
	e, err := pattern.Parse(c.space, text, pattern.Options{Rune: c.strings.runes, Any: c.strings.all})
	if err != nil {
		return noString, &UnsupportedError{"pattern", path, fmt.Sprintf("%q: %v", clip(text), err)}
	}
	set := stringSet{form: formExpr, expr: e}
	if e == c.strings.all {
		set = anyString
	}
	c.patterns[text] = set
	return set, nil
}
