package jsonschema

// Options say how valid values are written, and whether formats constrain them. The zero value
// suits answers of a model.
type Options struct {
	Whitespace Whitespace
	Order      Order
	Spelling   Spelling
	// FormatIsAnnotation lets format constrain nothing, as is the specification's default.
	// Otherwise the formats that the specification lists are enforced.
	FormatIsAnnotation bool
	// Strict refuses schemas that OpenAI's strict mode refuses.
	Strict bool
}

// Whitespace says which white space may be between JSON tokens.
type Whitespace int

const (
	// NaturalWhitespace is what people and models write: nothing, a space, or a line break and at
	// most 40 columns of spaces or tabs. Nothing comes before a comma or a colon.
	NaturalWhitespace Whitespace = iota
	// CompactWhitespace allows none.
	CompactWhitespace
	// AnyWhitespace allows up to 64 of JSON's four white space characters wherever JSON allows
	// them.
	AnyWhitespace
)

// Order says in which order the properties of an object come.
type Order int

const (
	// SchemaOrder is the order in which the schema first names them. Properties that it does not
	// name come last.
	SchemaOrder Order = iota
	// AnyOrder allows any order.
	AnyOrder
)

// Spelling says how equal strings and numbers may be written.
type Spelling int

const (
	// PlainSpelling writes the properties that a schema names and the strings of enum and const in
	// one way, and integers without a fraction if only integers are valid. The engine can then
	// write forced text without running the model. Other strings may have any spelling.
	PlainSpelling Spelling = iota
	// AnySpelling allows every spelling of JSON.
	AnySpelling
)
