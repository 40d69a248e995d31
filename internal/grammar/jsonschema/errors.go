package jsonschema

import (
	"errors"
	"fmt"
)

// ErrTooLarge is wrapped by errors about a well-formed schema whose rules would take too much time
// or memory.
var ErrTooLarge = errors.New("the schema is too large")

// ErrUnsatisfiable is returned if no value is valid under a schema.
var ErrUnsatisfiable = errors.New("no value satisfies the schema")

// A SchemaError reports a text that is not a valid schema.
type SchemaError struct {
	Path   string // JSON pointer, as a fragment: "#/properties/a"
	Reason string
}

func (e *SchemaError) Error() string { return fmt.Sprintf("schema at %s: %s", e.Path, e.Reason) }

// An UnsupportedError reports a keyword that cannot be enforced.
type UnsupportedError struct {
	Keyword string
	Path    string // JSON pointer of the keyword, as a fragment: "#/properties/a/format"
	Reason  string // why, and what to write instead
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("schema at %s: %s is not supported: %s", e.Path, e.Keyword, e.Reason)
}
