package jsonschema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The limits of OpenAI's strict mode.
const (
	strictProperties = 5000
	strictLevels     = 10
	strictNames      = 120_000 // characters of names, enum and const together
	strictEnums      = 1000    // values of all enums
	strictLongEnum   = 250     // an enum with more values than this
	strictEnumText   = 15_000  // may have at most this many characters
)

// A StrictError says how a schema violates OpenAI's strict mode, in the words of its API.
type StrictError struct {
	Context []string // path to the schema
	Reason  string
}

func (e *StrictError) Error() string {
	quoted := make([]string, len(e.Context))
	for i, step := range e.Context {
		quoted[i] = "'" + step + "'"
	}
	context := strings.Join(quoted, ", ")
	if len(quoted) == 1 {
		context += ","
	}
	return fmt.Sprintf("In context=(%s), %s", context, e.Reason)
}

// strictUnknown are the keywords that strict mode does not permit.
var strictUnknown = []string{
	"allOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies", "patternProperties", "propertyNames",
	"minProperties", "maxProperties", "unevaluatedProperties", "unevaluatedItems", "contains", "minContains", "maxContains", "uniqueItems", "prefixItems",
}

// CheckStrict checks a schema against the rules of OpenAI's strict mode: the root is an object,
// every object requires all its properties and permits no others, and the limits hold. The error is
// a *StrictError, or a *SchemaError if the text is not JSON.
func CheckStrict(schema []byte) error {
	v, err := parseJSON(schema)
	if err != nil {
		return err
	}
	s := &strictCheck{}
	if t := v.get("type"); v.kind != objectKind || t == nil || t.text != "object" || v.get("anyOf") != nil {
		got := "None"
		if t != nil {
			got = t.text
		}
		return &StrictError{nil, fmt.Sprintf(`schema must be a JSON Schema of 'type: "object"', got 'type: "%s"'.`, got)}
	}
	return s.schema(v, 0)
}

type strictCheck struct {
	context                   []string
	properties, names, values int
}

func (s *strictCheck) fail(format string, args ...any) error {
	return &StrictError{slices.Clone(s.context), fmt.Sprintf(format, args...)}
}

// within checks the schema at these steps below the current one.
func (s *strictCheck) within(v *value, level int, steps ...string) error {
	s.context = append(s.context, steps...)
	err := s.schema(v, level)
	s.context = s.context[:len(s.context)-len(steps)]
	return err
}

func (s *strictCheck) schema(v *value, level int) error {
	if v.kind != objectKind {
		return s.fail("schema must be an object.")
	}
	if level > strictLevels {
		return s.fail("the schema has more than %d levels of nesting.", strictLevels)
	}
	for _, word := range strictUnknown {
		if v.get(word) != nil {
			return s.fail("'%s' is not permitted.", word)
		}
	}
	for _, defs := range []string{"$defs", "definitions"} {
		if err := s.each(v.get(defs), defs, 0); err != nil {
			return err
		}
	}
	if v.get("type") == nil && v.get("$ref") == nil && v.get("anyOf") == nil && v.get("enum") == nil && v.get("const") == nil {
		return s.fail("schema must have a 'type' key.")
	}
	if err := s.enum(v); err != nil {
		return err
	}
	if isObject(v) {
		if err := s.object(v); err != nil {
			return err
		}
	}
	if err := s.each(v.get("properties"), "properties", level+1); err != nil {
		return err
	}
	if items := v.get("items"); items != nil {
		if err := s.within(items, level+1, "items"); err != nil {
			return err
		}
	}
	if any := v.get("anyOf"); any != nil {
		for i, branch := range any.items {
			if err := s.within(branch, level, "anyOf", strconv.Itoa(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// each checks the schemas of an object and counts their names.
func (s *strictCheck) each(v *value, keyword string, level int) error {
	if v == nil {
		return nil
	}
	for _, m := range v.members {
		if s.names += utf8.RuneCountInString(m.name); s.names > strictNames {
			return s.fail("the names and constants of the schema have more than %d characters.", strictNames)
		}
		if err := s.within(m.value, level, keyword, m.name); err != nil {
			return err
		}
	}
	return nil
}

func isObject(v *value) bool {
	t := v.get("type")
	return v.get("properties") != nil || t != nil && (t.text == "object" || slices.ContainsFunc(t.items, func(i *value) bool { return i.text == "object" }))
}

func (s *strictCheck) object(v *value) error {
	if more := v.get("additionalProperties"); more == nil || more.kind != boolKind || more.truth {
		return s.fail("'additionalProperties' is required to be supplied and to be false.")
	}
	properties := v.get("properties")
	if properties == nil {
		return nil
	}
	if s.properties += len(properties.members); s.properties > strictProperties {
		return s.fail("the schema has more than %d properties.", strictProperties)
	}
	required := map[string]bool{}
	if list := v.get("required"); list != nil {
		for _, name := range list.items {
			required[name.text] = true
			if properties.get(name.text) == nil {
				return s.fail("'required' is required to be supplied and to be an array including every key in properties. Extra required key '%s' supplied.", name.text)
			}
		}
	}
	for _, m := range properties.members {
		if !required[m.name] {
			return s.fail("'required' is required to be supplied and to be an array including every key in properties. Missing '%s'.", m.name)
		}
	}
	return nil
}

func (s *strictCheck) enum(v *value) error {
	length := 0
	values := v.get("enum")
	if values != nil {
		for _, item := range values.items {
			length += utf8.RuneCountInString(item.text)
		}
		if s.values += len(values.items); s.values > strictEnums {
			return s.fail("the schema has more than %d enum values.", strictEnums)
		}
		if len(values.items) > strictLongEnum && length > strictEnumText {
			return s.fail("an enum of more than %d values has more than %d characters.", strictLongEnum, strictEnumText)
		}
	}
	if one := v.get("const"); one != nil {
		length += utf8.RuneCountInString(one.text)
	}
	if s.names += length; s.names > strictNames {
		return s.fail("the names and constants of the schema have more than %d characters.", strictNames)
	}
	return nil
}
