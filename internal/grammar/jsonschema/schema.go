package jsonschema

// A typeSet is a set of JSON types.
type typeSet uint8

const (
	nullType typeSet = 1 << iota
	booleanType
	numberType
	stringType
	arrayType
	objectType
	allTypes = 1<<iota - 1
)

var typeNames = map[string]typeSet{
	"null": nullType, "boolean": booleanType, "number": numberType, "integer": numberType,
	"string": stringType, "array": arrayType, "object": objectType,
}

// A schema is a parsed schema. Absent bounds are nil.
type schema struct {
	id    int // numbers schemas in the order of reading
	path  string
	never bool // the schema false; true has no keywords
	// rulesLast says that $ref, allOf, anyOf or oneOf comes before properties in the text.
	rulesLast bool
	// draftContains says that contains evaluates the items that satisfy it.
	draftContains bool

	ref *schema // also $dynamicRef and $recursiveRef

	types   typeSet // allTypes if the keyword is absent
	integer bool    // numbers must be integers
	enum    *enumeration

	allOf, anyOf, oneOf []*schema
	not                 *schema
	test, then, orElse  *schema // if, then, else

	number *numberRule

	minLength, maxLength *int
	pattern, format      string // "" if absent; see hasPattern
	hasPattern           bool
	oldHost              bool // hostname has the meaning of drafts 4 and 6

	items              *itemRule
	contains           *schema
	minContains        *int
	maxContains        *int
	minItems, maxItems *int
	unique             bool
	unevaluatedItems   *schema

	properties                   *propertyRule
	names                        *schema
	required                     []string
	minProperties, maxProperties *int
	dependentRequired            []dependency
	dependentSchemas             []property
	unevaluatedProperties        *schema
}

// An enumeration is the values of enum or const. Each array or object is a schema that only it
// satisfies.
type enumeration struct {
	null, yes, no bool
	numbers       []decimal
	strings       []string
	arrays        []*schema
	objects       []*schema
}

// A numberRule holds the constraints on numbers.
type numberRule struct {
	min, max     *decimal
	exclusiveMin bool
	exclusiveMax bool
	multipleOf   *decimal
	integer      bool
}

// An itemRule is prefixItems and items. A nil rest allows anything.
type itemRule struct {
	prefix []*schema
	rest   *schema
}

type property struct {
	name   string
	schema *schema
}

// A propertyRule is properties, patternProperties and additionalProperties. A nil other allows
// anything.
type propertyRule struct {
	named    []property
	patterns []property // name is the pattern
	other    *schema

	index map[string]*schema // of named, built on first use
}

// find returns the schema of a named member, or nil.
func (r *propertyRule) find(name string) *schema {
	if r.index == nil {
		r.index = make(map[string]*schema, len(r.named))
		for _, p := range r.named {
			r.index[p.name] = p.schema
		}
	}
	return r.index[name]
}

type dependency struct {
	name string
	then []string
}
