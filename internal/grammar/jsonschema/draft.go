package jsonschema

import "strings"

// A draft is a version of the specification.
type draft int

const (
	draft4    draft = 4
	draft6    draft = 6
	draft7    draft = 7
	draft2019 draft = 2019
	draft2020 draft = 2020
)

var metaschemas = map[string]draft{
	"json-schema.org/schema":               draft2020,
	"json-schema.org/draft-04/schema":      draft4,
	"json-schema.org/draft-06/schema":      draft6,
	"json-schema.org/draft-07/schema":      draft7,
	"json-schema.org/draft/2019-09/schema": draft2019,
	"json-schema.org/draft/2020-12/schema": draft2020,
}

// draftOf returns the draft that a value of $schema names.
func draftOf(uri string) (draft, bool) {
	_, rest, ok := strings.Cut(strings.TrimSuffix(uri, "#"), "://")
	if !ok {
		return 0, false
	}
	d, ok := metaschemas[strings.TrimSuffix(rest, "/")]
	return d, ok
}

// refAlone reports whether $ref hides all other keywords of its schema.
func (d draft) refAlone() bool { return d <= draft7 }

// idKey returns the keyword that gives a schema its URI.
func (d draft) idKey() string {
	if d == draft4 {
		return "id"
	}
	return "$id"
}
