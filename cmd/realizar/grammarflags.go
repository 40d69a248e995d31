package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/realizar/realizar"
)

// grammarFlags say what form a text must have.
type grammarFlags struct {
	JSONSchema  string `name:"json-schema" placeholder:"FILE" group:"answer" common:"" help:"Constrain the text by the JSON Schema in FILE."`
	Regex       string `name:"regex" placeholder:"PATTERN" group:"answer" help:"Constrain the text to match the regular expression as a whole."`
	GrammarFile string `name:"grammar" placeholder:"FILE" group:"answer" help:"Constrain the text by the grammar in FILE, in the notation of llama.cpp (GBNF) or of Lark."`

	jsonFlags
}

// jsonFlags say how JSON is written.
type jsonFlags struct {
	JSONWhitespace string `name:"json-whitespace" enum:"natural,compact,any" default:"natural" placeholder:"KIND" group:"answer" help:"White space in JSON: natural (a space, or a line break with indentation), compact (none) or any. Default: ${default}."`
}

var jsonSpaces = map[string]realizar.JSONSpace{"natural": realizar.JSONSpaceNatural, "compact": realizar.JSONSpaceNone, "any": realizar.JSONSpaceAny}

// jsonOptions returns the options that the flags select.
func (f *jsonFlags) jsonOptions() realizar.JSONOptions {
	return realizar.JSONOptions{Space: jsonSpaces[f.JSONWhitespace]}
}

// Validate returns an error if there is more than one grammar.
func (f *grammarFlags) Validate() error {
	var given []string
	for _, flag := range []struct{ name, value string }{{"--json-schema", f.JSONSchema}, {"--regex", f.Regex}, {"--grammar", f.GrammarFile}} {
		if flag.value != "" {
			given = append(given, flag.name)
		}
	}
	if len(given) > 1 {
		return fmt.Errorf("%s: a text has one grammar; remove all but one", strings.Join(given, ", "))
	}
	return nil
}

// compile returns the grammar that the flags name, or nil.
func (f *grammarFlags) compile(o realizar.JSONOptions) (*realizar.Grammar, error) {
	var g *realizar.Grammar
	name := f.JSONSchema
	if name == "" {
		name = f.GrammarFile
	}
	var data []byte
	var err error
	if name != "" {
		if data, err = os.ReadFile(name); err != nil {
			return nil, err
		}
	}
	switch {
	case f.JSONSchema != "":
		g, err = realizar.JSONSchema(data, o)
	case f.Regex != "":
		name = "--regex"
		g, err = realizar.Regexp(f.Regex)
	case f.GrammarFile != "" && strings.Contains(string(data), "::="):
		g, err = realizar.GBNF(string(data))
	case f.GrammarFile != "":
		g, err = realizar.Lark(string(data))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return g, nil
}
