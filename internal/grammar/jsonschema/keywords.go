package jsonschema

import "strings"

// A shape says how the value of a keyword holds schemas.
type shape uint8

const (
	plainShape  shape = iota // no schema
	schemaShape              // a schema
	listShape                // an array of schemas
	mapShape                 // an object of schemas
	eitherShape              // a schema or an array of them
	mixedShape               // an object of schemas or other values
)

// keywords are the keywords that constrain values or hold schemas.
var keywords = map[string]shape{
	"$ref": plainShape, "$dynamicRef": plainShape, "$recursiveRef": plainShape,
	"$defs": mapShape, "definitions": mapShape,
	"type": plainShape, "enum": plainShape, "const": plainShape,
	"allOf": listShape, "anyOf": listShape, "oneOf": listShape, "not": schemaShape,
	"if": schemaShape, "then": schemaShape, "else": schemaShape,
	"minimum": plainShape, "maximum": plainShape, "exclusiveMinimum": plainShape, "exclusiveMaximum": plainShape, "multipleOf": plainShape,
	"minLength": plainShape, "maxLength": plainShape, "pattern": plainShape, "format": plainShape,
	"items": eitherShape, "prefixItems": listShape, "additionalItems": schemaShape, "unevaluatedItems": schemaShape,
	"contains": schemaShape, "minContains": plainShape, "maxContains": plainShape,
	"minItems": plainShape, "maxItems": plainShape, "uniqueItems": plainShape,
	"properties": mapShape, "patternProperties": mapShape, "additionalProperties": schemaShape,
	"unevaluatedProperties": schemaShape, "propertyNames": schemaShape,
	"required": plainShape, "minProperties": plainShape, "maxProperties": plainShape,
	"dependentRequired": plainShape, "dependentSchemas": mapShape, "dependencies": mixedShape,
}

// forgotten are the keywords that draft 3 had and later drafts removed, with their replacements.
var forgotten = map[string]string{
	"divisibleBy": "write multipleOf", "disallow": "write not", "extends": "write allOf",
}

// annotations are the keywords of the specification that do not constrain values.
var annotations = map[string]bool{
	"$schema": true, "$id": true, "id": true, "$anchor": true, "$dynamicAnchor": true, "$recursiveAnchor": true,
	"$comment": true, "$vocabulary": true, "title": true, "description": true, "default": true, "examples": true,
	"deprecated": true, "readOnly": true, "writeOnly": true,
	"contentEncoding": true, "contentMediaType": true, "contentSchema": true,
}

// misspelled returns the keyword that an unknown name probably means, or "". The two differ only in
// case, dashes, underscores or spaces, or, for keywords of at least five letters, in one letter
// that is wrong, missing, added or swapped with the next. Names that begin with x- or _ are never
// misspelled.
func misspelled(name string) string {
	if strings.HasPrefix(strings.ToLower(name), "x-") || strings.HasPrefix(name, "_") {
		return ""
	}
	folded := fold(name)
	for word, shape := range keywords {
		if shape == mapShape && (word == "definitions" || word == "$defs") {
			continue // only holds schemas and does not constrain values
		}
		if strings.EqualFold(folded, word) || len(word) >= 5 && nearly(name, word) {
			return word
		}
	}
	return ""
}

var folder = strings.NewReplacer("-", "", "_", "", " ", "")

func fold(name string) string { return folder.Replace(name) }

// nearly reports whether a and b differ in at most one letter, or in two swapped neighbors.
func nearly(a, b string) bool {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for a != "" && b != "" && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if len(a) == 2 && len(b) == 2 {
		return a[0] == b[1] && a[1] == b[0]
	}
	return len(a) <= 1 && len(b) <= 1
}
