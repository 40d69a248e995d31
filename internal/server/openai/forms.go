package openai

import (
	"encoding/json"

	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/fields"
)

// formFields are the fields that constrain an answer: OpenAI's, vLLM's present and former ones, and
// llama.cpp's. A request may have one of them.
var formFields = fields.List[settings]{
	fields.New("response_format", "an object", "free text", func(s *settings, v json.RawMessage) error {
		return readForm(s, v, "response_format", formatFields)
	}),
	fields.New("structured_outputs", "an object", "free text", func(s *settings, v json.RawMessage) error {
		from := len(s.forms)
		var o structuredOutputs
		if err := structuredFields.Decode(&o, v, "structured_outputs"); err != nil {
			return err
		}
		s.forms = append(s.forms, o.forms...)
		for i := range s.forms[from:] {
			s.forms[from+i].Compact = o.compact
		}
		return nil
	}),
	form("guided_json", schemaOrText, server.JSONSchema, readSchemaOrText),
	form("guided_regex", "a regular expression", server.Regexp, readTextForm),
	form("guided_choice", "a list of strings", server.Choice, readChoice),
	form("guided_grammar", grammarText, server.EBNF, readTextForm),
	fields.Refused[settings]("guided_whitespace_pattern", "realizar serve --json-whitespace says how JSON is written"),
	fields.Ignored[settings]("guided_decoding_backend"),
	form("structural_tag", "a structural tag, or one in a string", server.StructuralTag, readTagOrText),
	form("grammar", "a grammar in GBNF", server.GBNF, readTextForm),
	form("json_schema", "a JSON schema", server.JSONSchema, readSchema),
}

// What several fields take.
const (
	schemaOrText = "a JSON schema, or one in a string"
	grammarText  = "a grammar: in GBNF, where it has ::=, or in Lark's notation"
)

// structuredOutputs is vLLM's structured_outputs.
type structuredOutputs struct {
	settings
	compact bool
}

var structuredFields = fields.List[structuredOutputs]{
	inside(form("json", schemaOrText, server.JSONSchema, readSchemaOrText)),
	inside(form("regex", "a regular expression", server.Regexp, readTextForm)),
	inside(form("choice", "a list of strings", server.Choice, readChoice)),
	inside(form("grammar", grammarText, server.EBNF, readTextForm)),
	fields.New("json_object", "true or false", "false", func(o *structuredOutputs, v json.RawMessage) error {
		object := false
		if err := fields.ReadFlag(v, &object); err != nil || !object {
			return err
		}
		o.forms = append(o.forms, server.Grammar{Kind: server.JSONObject, Param: "structured_outputs.json_object"})
		return nil
	}),
	inside(form("structural_tag", "a structural tag, or one in a string", server.StructuralTag, readTagOrText)),
	fields.Flag("disable_any_whitespace", "false: JSON has the white space that the server is set to", func(o *structuredOutputs) *bool { return &o.compact }),
	fields.Only[structuredOutputs]("disable_additional_properties", "false", "a schema says itself which properties there are", "false"),
	fields.Refused[structuredOutputs]("whitespace_pattern", "realizar serve --json-whitespace says how JSON is written"),
	fields.Ignored[structuredOutputs]("disable_fallback"),
	fields.Ignored[structuredOutputs]("backend"),
	fields.Ignored[structuredOutputs]("_backend"),
}

// inside turns a field of settings into a field of structured_outputs.
func inside(f fields.Field[settings]) fields.Field[structuredOutputs] {
	name := "structured_outputs." + f.Name
	return fields.New(f.Name, f.Takes, f.Absent, func(o *structuredOutputs, v json.RawMessage) error {
		if err := f.Read(&o.settings, v); err != nil {
			return err
		}
		o.forms[len(o.forms)-1].Param = name
		return nil
	})
}

// form returns a field that holds a grammar; read extracts the grammar's text from the field's
// value.
func form(name, takes string, kind server.GrammarKind, read func(json.RawMessage) ([]byte, error)) fields.Field[settings] {
	return fields.New(name, takes, "free text", func(s *settings, v json.RawMessage) error {
		text, err := read(v)
		if err != nil {
			return err
		}
		s.forms = append(s.forms, server.Grammar{Kind: kind, Text: text, Param: name})
		return nil
	})
}

func readTextForm(v json.RawMessage) ([]byte, error) {
	var text string
	err := fields.ReadText(v, &text)
	return []byte(text), err
}

func readSchema(v json.RawMessage) ([]byte, error) {
	if s := string(v); v[0] != '{' && s != "true" && s != "false" {
		return nil, fields.ErrWrong
	}
	return v, nil
}

func readSchemaOrText(v json.RawMessage) ([]byte, error) {
	if v[0] == '"' {
		return readTextForm(v)
	}
	return readSchema(v)
}

func readTagOrText(v json.RawMessage) ([]byte, error) {
	switch v[0] {
	case '"':
		return readTextForm(v)
	case '{':
		return v, nil
	}
	return nil, fields.ErrWrong
}

// maxChoice bounds the texts of a choice.
const maxChoice = 1 << 14

func readChoice(v json.RawMessage) ([]byte, error) {
	list, err := fields.Elements(v)
	if err != nil {
		return nil, err
	}
	for _, v := range list {
		if v[0] != '"' {
			return nil, fields.ErrWrong
		}
	}
	if len(list) == 0 || len(list) > maxChoice {
		return nil, fields.Invalid("", "a choice of %d strings; want 1 to %d", len(list), maxChoice)
	}
	return v, nil
}

// A format is a response_format, or the text.format of a response.
type format struct {
	kind   string
	schema json.RawMessage
	strict bool
}

// formatFields are the fields of response_format by type. internal/grammar/tags reads structural
// tags.
var formatFields = map[string]fields.List[format]{
	"text":        {formatType},
	"json_object": {formatType, schemaField("schema", "a JSON schema", "any object")},
	"json_schema": {formatType, fields.New("json_schema", "an object", "", func(f *format, v json.RawMessage) error {
		return jsonSchemaFields.Decode(f, v, "json_schema")
	})},
	"structural_tag": nil,
}

var jsonSchemaFields = fields.List[format]{
	fields.Ignored[format]("name"),
	fields.Ignored[format]("description"),
	schemaField("schema", "a JSON schema", ""),
	fields.Flag("strict", "false: the schema need not be one of OpenAI's strict mode", func(f *format) *bool { return &f.strict }),
}

// responseFormatFields are the fields of a response's text.format by type.
var responseFormatFields = map[string]fields.List[format]{
	"text":        {formatType},
	"json_object": {formatType},
	"json_schema": append(fields.List[format]{formatType}, jsonSchemaFields...),
}

var formatType = fields.Text("type", "", func(f *format) *string { return &f.kind })

func schemaField(name, takes, absent string) fields.Field[format] {
	return fields.New(name, takes, absent, func(f *format, v json.RawMessage) (err error) {
		f.schema, err = readSchema(v)
		return err
	})
}

// readForm reads a format, the value of the field at.
func readForm(s *settings, v json.RawMessage, at string, lists map[string]fields.List[format]) error {
	var head struct{ Type *string }
	if err := json.Unmarshal(v, &head); err != nil || v[0] != '{' {
		return fields.ErrWrong
	}
	if head.Type == nil {
		return fields.Missing(at + ".type")
	}
	list, ok := lists[*head.Type]
	if !ok {
		e := fields.Unsupported("%s.type is %.50q; want text, json_object or json_schema", at, *head.Type)
		e.Param = at + ".type"
		return e
	}
	g := server.Grammar{Kind: server.JSONSchema, Param: at}
	if *head.Type == "structural_tag" {
		g.Kind, g.Text = server.StructuralTag, v
		s.forms = append(s.forms, g)
		return nil
	}
	var f format
	if err := list.Decode(&f, v, at); err != nil {
		return fields.Inside(err, at)
	}
	if *head.Type == "text" {
		return nil
	}
	if at == "response_format" && *head.Type == "json_schema" {
		at += ".json_schema"
	}
	switch {
	case f.schema != nil:
		g.Text, g.Strict, g.Param = f.schema, f.strict, at+".schema"
	case *head.Type == "json_schema":
		return fields.Missing(at + ".schema")
	default:
		g.Kind = server.JSONObject
	}
	s.forms = append(s.forms, g)
	return nil
}

// grammar returns the constraint on the answer, or nil.
func (s *settings) grammar() (*server.Grammar, error) {
	switch {
	case len(s.forms) == 0:
		return nil, nil
	case len(s.forms) > 1:
		a, b := s.forms[0].Param, s.forms[1].Param
		return nil, fields.Invalid(b, "%s and %s both say what the answer must be; leave one out", a, b)
	case s.generation.IgnoreEnd:
		return nil, fields.Invalid("ignore_eos", "ignore_eos has an answer go on past its end, and %s says what it must be as a whole; leave one out", s.forms[0].Param)
	}
	return &s.forms[0], nil
}
