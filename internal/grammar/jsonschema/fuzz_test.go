package jsonschema_test

import (
	"testing"

	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/internal/grammar/jsonschema"
)

func FuzzCompile(f *testing.F) {
	for i, file := range readSuite(f) {
		for j, c := range file.cases {
			if (i+j)%7 == 0 {
				f.Add([]byte(c.Schema), []byte(c.Tests[0].Data), uint8(i))
			}
		}
	}
	f.Fuzz(func(t *testing.T, schema, text []byte, options uint8) {
		if len(schema) > 4096 {
			return
		}
		b := grammar.NewBuilder(grammar.Limits{Rules: 1 << 14, Expressions: 1 << 14, Derivatives: 1 << 14})
		symbol, err := jsonschema.Compile(b, schema, jsonschema.Options{
			Order: jsonschema.Order(options & 1), Spelling: jsonschema.Spelling(options >> 1 & 1), Whitespace: jsonschema.Whitespace(options >> 2 & 3 % 3),
			FormatIsAnnotation: options>>4&1 == 1,
		})
		if err != nil {
			if !named(err) {
				t.Fatalf("an error of no known kind: %v", err)
			}
			return
		}
		g, err := b.Grammar(symbol)
		if err != nil {
			t.Skip(err)
		}
		g.Start().Bytes(text)
	})
}
