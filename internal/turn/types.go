package turn

import (
	"encoding/json"
	"strings"

	"github.com/realizar/realizar/chat"
)

// types is a set of JSON types.
type types uint8

const (
	stringType types = 1 << iota
	numberType
	booleanType
	nullType
	arrayType
	objectType
	allTypes = stringType | numberType | booleanType | nullType | arrayType | objectType
)

var typeNames = map[string]types{
	"string": stringType, "number": numberType, "integer": numberType, "boolean": booleanType,
	"null": nullType, "array": arrayType, "object": objectType,
}

// typeOf returns the type of a JSON text by its first byte.
func typeOf(text []byte) types {
	switch text[0] {
	case '"':
		return stringType
	case '{':
		return objectType
	case '[':
		return arrayType
	case 't', 'f':
		return booleanType
	case 'n':
		return nullType
	}
	return numberType
}

// argumentTypes returns the types that an argument of a tool may have.
func argumentTypes(tools []chat.Tool, tool, key string) types {
	for i := range tools {
		if tools[i].Name != tool {
			continue
		}
		schema, ok := propertySchema(tools[i].Parameters, key)
		if !ok {
			return allTypes
		}
		budget := maxSchemas
		return schemaTypes(tools[i].Parameters, schema, &budget)
	}
	return allTypes
}

// maxSchemas limits the schemas that are examined for one argument.
const maxSchemas = 100

// propertySchema returns the schema of a property of an object's schema.
func propertySchema(schema json.RawMessage, key string) (json.RawMessage, bool) {
	var object struct {
		Properties           map[string]json.RawMessage `json:"properties"`
		AdditionalProperties json.RawMessage            `json:"additionalProperties"`
	}
	if json.Unmarshal(schema, &object) != nil {
		return nil, false
	}
	if s, ok := object.Properties[key]; ok {
		return s, true
	}
	return object.AdditionalProperties, len(object.AdditionalProperties) > 0
}

// schemaTypes returns the types that a schema allows. For complex schemas it may return more types.
// References are resolved in root. budget is the number of schemas that may still be examined.
func schemaTypes(root, schema json.RawMessage, budget *int) types {
	var s struct {
		Type  json.RawMessage   `json:"type"`
		Enum  []json.RawMessage `json:"enum"`
		Const json.RawMessage   `json:"const"`
		AnyOf []json.RawMessage `json:"anyOf"`
		OneOf []json.RawMessage `json:"oneOf"`
		AllOf []json.RawMessage `json:"allOf"`
		Ref   string            `json:"$ref"`
	}
	*budget--
	if *budget < 0 || json.Unmarshal(schema, &s) != nil {
		return allTypes
	}
	set := allTypes
	var one string
	var many []string
	switch {
	case json.Unmarshal(s.Type, &one) == nil && typeNames[one] != 0:
		set = typeNames[one]
	case json.Unmarshal(s.Type, &many) == nil && len(many) > 0:
		set = 0
		for _, name := range many {
			set |= typeNames[name]
		}
	}
	if s.Enum != nil {
		var of types
		for _, v := range s.Enum {
			of |= typeOf(v)
		}
		set &= of
	}
	if len(s.Const) > 0 {
		set &= typeOf(s.Const)
	}
	for _, any := range [][]json.RawMessage{s.AnyOf, s.OneOf} {
		if any == nil {
			continue
		}
		var of types
		for _, b := range any {
			of |= schemaTypes(root, b, budget)
		}
		set &= of
	}
	for _, all := range s.AllOf {
		set &= schemaTypes(root, all, budget)
	}
	if s.Ref != "" {
		if target, ok := lookUp(root, s.Ref); ok {
			set &= schemaTypes(root, target, budget)
		}
	}
	if set == 0 {
		return allTypes
	}
	return set
}

// lookUp resolves a local reference such as #/$defs/Place.
func lookUp(root json.RawMessage, ref string) (json.RawMessage, bool) {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, false
	}
	at := root
	for _, step := range strings.Split(strings.TrimPrefix(path, "/"), "/") {
		if step == "" {
			continue
		}
		var object map[string]json.RawMessage
		if json.Unmarshal(at, &object) != nil {
			return nil, false
		}
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		if at, ok = object[step]; !ok {
			return nil, false
		}
	}
	return at, true
}
