package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/realizar/realizar"
)

// grammarCommand is `realizar grammar`.
type grammarCommand struct {
	Check *string `placeholder:"TEXT" common:"" help:"Check whether TEXT fits; - is standard input."`
	JSON  bool    `name:"json" common:"" help:"Write a JSON object instead of a line of text."`
	Exact bool    `common:"" help:"Check JSON as answers are constrained: properties in the order of the schema, names in one spelling, white space as --json-whitespace says. Without it, all valid JSON fits."`

	grammarFlags
}

// Help is shown below the command's line.
func (*grammarCommand) Help() string {
	return `grammar checks whether a JSON Schema, a regular expression or a grammar can constrain answers, and
with --check whether a text fits: "fits", "may be continued" if the text is the beginning of one that
fits, or "fails at byte N". The exit code is 0 if the text fits, and 1 if it does not.

Examples:

    realizar grammar --json-schema schema.json
    realizar grammar --json-schema schema.json --check '{"name": "Ann"}'
    realizar grammar --regex '[0-9]{4}-[0-9]{2}' --check 2026-1
    realizar grammar --grammar list.gbnf --check - < answer.txt`
}

// Validate implements the parser's interface.
func (c *grammarCommand) Validate() error {
	if c.JSONSchema == "" && c.Regex == "" && c.GrammarFile == "" {
		return errors.New("no grammar; want --json-schema, --regex or --grammar")
	}
	return c.grammarFlags.Validate()
}

// A fitReport is what --json writes.
type fitReport struct {
	Result string `json:"result"` // "fits", "may be continued", "fails"
	Bytes  int    `json:"bytes"`  // of the text's longest prefix that can begin a fitting text
}

// Run checks the grammar, and the text if there is one.
func (c *grammarCommand) Run(a *app) error {
	o := c.jsonOptions()
	if c.Check != nil && !c.Exact {
		o = realizar.JSONOptions{Space: realizar.JSONSpaceAny, AnyOrder: true, AnySpelling: true}
	}
	g, err := c.compile(o)
	if err != nil {
		return err
	}
	if c.Check == nil {
		_, err := fmt.Fprintln(a.out, "can be enforced")
		return err
	}
	text := []byte(*c.Check)
	if *c.Check == "-" {
		if text, err = a.read("-"); err != nil {
			return err
		}
	}
	fit, err := g.Check(text)
	if err != nil {
		return err
	}
	r := fitReport{Result: "fits", Bytes: fit.Bytes}
	line := r.Result
	switch {
	case fit.Bytes < len(text):
		r.Result = "fails"
		line = fmt.Sprintf("fails at byte %d, %s, after %s", fit.Bytes, strconv.Quote(string(text[fit.Bytes:min(len(text), fit.Bytes+1)])), strconv.Quote(string(text[max(0, fit.Bytes-20):fit.Bytes])))
	case !fit.Whole:
		r.Result = "may be continued"
		line = r.Result
	}
	if c.JSON {
		data, err := json.Marshal(r)
		if err != nil {
			return err
		}
		line = string(data)
	}
	if _, err := fmt.Fprintln(a.out, line); err != nil {
		return err
	}
	if r.Result != "fits" {
		return errFails
	}
	return nil
}
