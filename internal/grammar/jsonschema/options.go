package jsonschema

// Options say how valid values are written, and what formats mean. The zero
// value is what an answer of a model should be.
type Options struct {
	Whitespace Whitespace
	Order      Order
	Spelling   Spelling
	// FormatIsAnnotation lets format constrain nothing, as the specification has
	// it by default. Else the formats that the specification lists are enforced.
	FormatIsAnnotation bool
	// Strict refuses schemas that OpenAI's strict mode refuses.
	Strict bool
}

// Whitespace says what may stand between tokens.
type Whitespace int

const (
	// NaturalWhitespace is what people and models write: nothing, a space, or a
	// line break and at most 40 columns of spaces or tabs; nothing before a comma
	// or a colon.
	NaturalWhitespace Whitespace = iota
	// CompactWhitespace is none at all.
	CompactWhitespace
	// AnyWhitespace is up to 64 of the four characters that JSON allows, wherever
	// it allows them.
	AnyWhitespace
)

// Order says in which order the properties of an object come.
type Order int

const (
	// SchemaOrder is the order in which the schema first names them; those that it
	// does not name come last.
	SchemaOrder Order = iota
	// AnyOrder is any.
	AnyOrder
)

// Spelling says how strings and numbers may be written that are equal.
type Spelling int

const (
	// PlainSpelling writes the properties that a schema names and the strings of
	// enum and const in one way, and whole numbers without a fraction where only
	// whole numbers are valid: what is certain can then be written without asking
	// the model. Other strings have any spelling.
	PlainSpelling Spelling = iota
	// AnySpelling has every spelling of JSON.
	AnySpelling
)
