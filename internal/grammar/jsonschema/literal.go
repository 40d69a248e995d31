package jsonschema

// A literal is the set of values that are valid under a schema, or of those that are not.
type literal struct {
	schema *schema
	not    bool
}

func is(s *schema) literal    { return literal{schema: s} }
func isNot(s *schema) literal { return literal{s, true} }

func (l literal) negated() literal { return literal{l.schema, !l.not} }

// simple returns an equivalent literal without indirection: a schema with only $ref becomes its
// target, one with only not the negation, and one with only an allOf of one schema that schema.
func (l literal) simple() (literal, error) {
	seen := map[*schema]bool{}
	for {
		s := l.schema
		if seen[s] {
			return l, endless(s)
		}
		seen[s] = true
		switch rest := *s; {
		case s.ref != nil:
			rest.ref = nil
			if !rest.isTrue() {
				return l, nil
			}
			l.schema = s.ref
		case s.not != nil:
			rest.not = nil
			if !rest.isTrue() {
				return l, nil
			}
			l = literal{s.not, !l.not}
		case len(s.allOf) == 1:
			rest.allOf = nil
			if !rest.isTrue() {
				return l, nil
			}
			l.schema = s.allOf[0]
		default:
			return l, nil
		}
	}
}

// isTrue reports whether a schema has no keyword that constrains values.
func (s *schema) isTrue() bool {
	return !s.never && s.ref == nil && s.types == allTypes && !s.integer && s.enum == nil &&
		len(s.allOf) == 0 && len(s.anyOf) == 0 && len(s.oneOf) == 0 && s.not == nil && s.test == nil &&
		s.number == nil && s.minLength == nil && s.maxLength == nil && !s.hasPattern && s.format == "" &&
		s.items == nil && s.contains == nil && s.minItems == nil && s.maxItems == nil && !s.unique && s.unevaluatedItems == nil &&
		s.properties == nil && s.names == nil && len(s.required) == 0 && s.minProperties == nil && s.maxProperties == nil &&
		len(s.dependentRequired) == 0 && len(s.dependentSchemas) == 0 && s.unevaluatedProperties == nil
}

// always reports whether every value obviously satisfies l, and never whether no value does. Both
// are false if neither is obvious.
func (l literal) always() bool {
	if l.not {
		return l.schema.never
	}
	return l.schema.isTrue()
}

func (l literal) never() bool { return l.negated().always() }
