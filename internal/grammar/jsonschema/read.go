package jsonschema

import (
	"fmt"
	"strconv"
)

// maxCount replaces larger lengths and counts: no text is that long.
const maxCount = 1 << 30

// A reader reads the keywords of one schema.
type reader struct {
	*loader
	r *resource
	v *value
	s *schema
}

// read reads the keywords of v.
func (l *loader) read(v *value) error {
	s := l.schemas[v]
	if v.kind == boolKind {
		s.never = !v.truth
		return nil
	}
	rd := &reader{l, l.places[v].resource, v, s}
	if ref := v.get("$ref"); ref != nil && rd.r.draft.refAlone() {
		return rd.keyword("$ref", ref)
	}
	for _, m := range v.members {
		if err := rd.keyword(m.name, m.value); err != nil {
			return err
		}
	}
	return rd.check()
}

func (rd *reader) at(name string) string { return rd.s.path + "/" + escapePointer(name) }

func (rd *reader) wrong(name, format string, args ...any) error {
	return &SchemaError{rd.at(name), fmt.Sprintf(format, args...)}
}

func (rd *reader) refuse(name, format string, args ...any) error {
	return &UnsupportedError{name, rd.at(name), fmt.Sprintf(format, args...)}
}

// keyword reads one keyword.
func (rd *reader) keyword(name string, v *value) (err error) {
	s := rd.s
	switch name {
	case "$ref", "$dynamicRef", "$recursiveRef":
		return rd.reference(name, v)
	case "type":
		return rd.types(v)
	case "enum", "const":
		return rd.enumeration(name, v)
	case "allOf":
		s.allOf, err = rd.list(name, v)
	case "anyOf":
		s.anyOf, err = rd.list(name, v)
	case "oneOf":
		s.oneOf, err = rd.list(name, v)
	case "not":
		s.not, err = rd.sub(name, v)
	case "if":
		s.test, err = rd.sub(name, v)
	case "then":
		s.then, err = rd.sub(name, v)
	case "else":
		s.orElse, err = rd.sub(name, v)
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
		return rd.number(name, v)
	case "minLength":
		s.minLength, err = rd.countOf(name, v)
	case "maxLength":
		s.maxLength, err = rd.countOf(name, v)
	case "pattern":
		s.pattern, err = rd.text(name, v)
		s.hasPattern = true
	case "format":
		s.format, err = rd.text(name, v)
		s.oldHost = rd.r.draft <= draft6
	case "items", "prefixItems", "additionalItems":
		return rd.items(name, v)
	case "unevaluatedItems":
		s.unevaluatedItems, err = rd.sub(name, v)
	case "contains":
		s.contains, err = rd.sub(name, v)
	case "minContains":
		s.minContains, err = rd.countOf(name, v)
	case "maxContains":
		s.maxContains, err = rd.countOf(name, v)
	case "minItems":
		s.minItems, err = rd.countOf(name, v)
	case "maxItems":
		s.maxItems, err = rd.countOf(name, v)
	case "uniqueItems":
		s.unique = v.truth
		return rd.want(name, v, boolKind)
	case "properties", "patternProperties", "additionalProperties":
		return rd.propertyRule(name, v)
	case "unevaluatedProperties":
		s.unevaluatedProperties, err = rd.sub(name, v)
	case "propertyNames":
		s.names, err = rd.sub(name, v)
	case "required":
		s.required, err = rd.names(name, v)
	case "minProperties":
		s.minProperties, err = rd.countOf(name, v)
	case "maxProperties":
		s.maxProperties, err = rd.countOf(name, v)
	case "dependentRequired", "dependentSchemas", "dependencies":
		return rd.dependencies(name, v)
	case "$defs", "definitions":
	default:
		if annotations[name] {
			return nil
		}
		if way, ok := forgotten[name]; ok {
			return rd.refuse(name, "it is a keyword of draft 3: %s", way)
		}
		if word := misspelled(name); word != "" {
			return rd.refuse(name, "it is no keyword, and looks like %s; an annotation with this name begins with x- or _", word)
		}
	}
	return err
}

// check handles interactions between keywords.
func (rd *reader) check() error {
	s := rd.s
	s.draftContains = rd.r.draft >= draft2020
	for _, m := range rd.v.members {
		if m.name == "properties" {
			break
		}
		s.rulesLast = s.rulesLast || m.name == "$ref" || m.name == "allOf" || m.name == "anyOf" || m.name == "oneOf"
	}
	if s.test == nil {
		s.then, s.orElse = nil, nil // then and else mean nothing without if
	}
	return nil
}

func (rd *reader) want(name string, v *value, k kind) error {
	if v.kind != k {
		return rd.wrong(name, "it is a %s, and should be a %s", v.kind, k)
	}
	return nil
}

func (rd *reader) text(name string, v *value) (string, error) {
	return v.text, rd.want(name, v, stringKind)
}

func (rd *reader) sub(name string, v *value) (*schema, error) {
	if _, ok := rd.places[v]; !ok {
		rd.places[v] = place{rd.r, rd.at(name)}
	}
	return rd.schema(v)
}

func (rd *reader) list(name string, v *value) ([]*schema, error) {
	if err := rd.want(name, v, arrayKind); err != nil {
		return nil, err
	}
	if len(v.items) == 0 && name != "prefixItems" && name != "items" {
		return nil, rd.wrong(name, "it is empty")
	}
	var out []*schema
	for i, item := range v.items {
		s, err := rd.sub(name+"/"+strconv.Itoa(i), item)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

func (rd *reader) mapOf(name string, v *value) ([]property, error) {
	if err := rd.want(name, v, objectKind); err != nil {
		return nil, err
	}
	var out []property
	for _, m := range v.members {
		s, err := rd.sub(name, m.value)
		if err != nil {
			return nil, err
		}
		out = append(out, property{m.name, s})
	}
	return out, nil
}

func (rd *reader) names(name string, v *value) ([]string, error) {
	if err := rd.want(name, v, arrayKind); err != nil {
		return nil, err
	}
	var out []string
	for _, item := range v.items {
		if item.kind != stringKind {
			return nil, rd.wrong(name, "it holds a %s, and should hold names", item.kind)
		}
		out = append(out, item.text)
	}
	return out, nil
}

// countOf reads a nonnegative integer.
func (rd *reader) countOf(name string, v *value) (*int, error) {
	if err := rd.want(name, v, numberKind); err != nil {
		return nil, err
	}
	d, err := parseDecimal(v.text)
	if err != nil || !d.isInteger() || d.negative {
		return nil, rd.wrong(name, "%s is not a count", clip(v.text))
	}
	n, err := strconv.Atoi(d.String())
	if err != nil || n > maxCount {
		n = maxCount
	}
	return &n, nil
}

func (rd *reader) types(v *value) error {
	items := []*value{v}
	if v.kind == arrayKind {
		items = v.items
	}
	rd.s.types = 0
	rd.s.integer = true
	for _, item := range items {
		t, ok := typeNames[item.text]
		if item.kind != stringKind || !ok {
			return rd.wrong("type", "%q is none of null, boolean, integer, number, string, array, object", clip(item.text))
		}
		rd.s.types |= t
		if item.text == "number" {
			rd.s.integer = false
		}
	}
	rd.s.integer = rd.s.integer && rd.s.types&numberType != 0
	return nil
}

func (rd *reader) number(name string, v *value) error {
	s := rd.s
	if s.number == nil {
		s.number = &numberRule{}
	}
	n := s.number
	exclusive := name == "exclusiveMinimum" || name == "exclusiveMaximum"
	if exclusive && v.kind == boolKind && (rd.r.draft == draft4 || rd.r.guessed) {
		// Draft 4: a flag for minimum or maximum, which may come later in the text.
		if bound := rd.v.get(map[bool]string{true: "minimum", false: "maximum"}[name == "exclusiveMinimum"]); bound == nil || !v.truth {
			return nil
		}
		if name == "exclusiveMinimum" {
			n.exclusiveMin = true
		} else {
			n.exclusiveMax = true
		}
		return nil
	}
	if err := rd.want(name, v, numberKind); err != nil {
		return err
	}
	d, err := parseDecimal(v.text)
	if err != nil {
		return rd.refuse(name, "%v", err)
	}
	switch name {
	case "multipleOf":
		if d.negative || d.digits == "" {
			return rd.wrong(name, "%s is not greater than 0", d)
		}
		n.multipleOf = &d
	case "minimum", "exclusiveMinimum":
		if n.min == nil || d.compare(*n.min) > 0 || exclusive && d.compare(*n.min) == 0 {
			n.min = &d
			n.exclusiveMin = exclusive || n.exclusiveMin && rd.exclusiveFlag("exclusiveMinimum")
		}
	default:
		if n.max == nil || d.compare(*n.max) < 0 || exclusive && d.compare(*n.max) == 0 {
			n.max = &d
			n.exclusiveMax = exclusive || n.exclusiveMax && rd.exclusiveFlag("exclusiveMaximum")
		}
	}
	return nil
}

// exclusiveFlag reports whether the keyword is draft 4's boolean form and true.
func (rd *reader) exclusiveFlag(name string) bool {
	v := rd.v.get(name)
	return v != nil && v.kind == boolKind && v.truth
}

func (rd *reader) items(name string, v *value) (err error) {
	s := rd.s
	old := rd.r.draft <= draft2019 || rd.r.guessed
	if s.items == nil {
		s.items = &itemRule{}
	}
	list := rd.v.get("items") != nil && rd.v.get("items").kind == arrayKind
	switch {
	case name == "prefixItems":
		if list {
			return rd.wrong(name, "items is an array too, which was the older name of prefixItems")
		}
		s.items.prefix, err = rd.list(name, v)
	case name == "additionalItems":
		if list {
			s.items.rest, err = rd.sub(name, v)
		} else if rd.v.get("prefixItems") != nil {
			return rd.refuse(name, "beside prefixItems it means nothing: write items")
		}
	case v.kind == arrayKind:
		if !old {
			return rd.wrong(name, "an array of schemas is written prefixItems since draft 2020-12")
		}
		s.items.prefix, err = rd.list(name, v)
	default:
		s.items.rest, err = rd.sub(name, v)
	}
	return err
}

func (rd *reader) propertyRule(name string, v *value) (err error) {
	s := rd.s
	if s.properties == nil {
		s.properties = &propertyRule{}
	}
	switch name {
	case "properties":
		s.properties.named, err = rd.mapOf(name, v)
	case "patternProperties":
		s.properties.patterns, err = rd.mapOf(name, v)
	default:
		s.properties.other, err = rd.sub(name, v)
	}
	return err
}

func (rd *reader) dependencies(name string, v *value) error {
	if err := rd.want(name, v, objectKind); err != nil {
		return err
	}
	for _, m := range v.members {
		at := name + "/" + escapePointer(m.name)
		if name == "dependentRequired" || name == "dependencies" && m.value.kind == arrayKind {
			names, err := rd.names(at, m.value)
			if err != nil {
				return err
			}
			rd.s.dependentRequired = append(rd.s.dependentRequired, dependency{m.name, names})
			continue
		}
		if name == "dependencies" && m.value.kind == stringKind {
			return rd.wrong(at, "it is a string, and should be an array of names")
		}
		sub, err := rd.sub(at, m.value)
		if err != nil {
			return err
		}
		rd.s.dependentSchemas = append(rd.s.dependentSchemas, property{m.name, sub})
	}
	return nil
}
