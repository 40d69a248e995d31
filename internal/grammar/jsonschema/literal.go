package jsonschema

// A literal is the values that are valid under a schema, or those that are not.
type literal struct {
	schema *schema
	not    bool
}

func is(s *schema) literal    { return literal{schema: s} }
func isNot(s *schema) literal { return literal{s, true} }

func (l literal) negated() literal { return literal{l.schema, !l.not} }

// simple is the literal without what changes nothing: a schema that only refers
// is what it refers to, one that only has not is the negation.
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

// isTrue says whether a schema has no keyword that constrains.
func (s *schema) isTrue() bool {
	return !s.never && s.ref == nil && s.types == allTypes && !s.integer && s.enum == nil &&
		len(s.allOf) == 0 && len(s.anyOf) == 0 && len(s.oneOf) == 0 && s.not == nil && s.test == nil &&
		s.number == nil && s.minLength == nil && s.maxLength == nil && !s.hasPattern && s.format == "" &&
		s.items == nil && s.contains == nil && s.minItems == nil && s.maxItems == nil && !s.unique && s.unevaluatedItems == nil &&
		s.properties == nil && s.names == nil && len(s.required) == 0 && s.minProperties == nil && s.maxProperties == nil &&
		len(s.dependentRequired) == 0 && len(s.dependentSchemas) == 0 && s.unevaluatedProperties == nil
}

// always says that every value satisfies l, never that none does; where neither
// is plain to see, both are false.
func (l literal) always() bool {
	if l.not {
		return l.schema.never
	}
	return l.schema.isTrue()
}

func (l literal) never() bool { return l.negated().always() }
