package jsonschema

// A typeSet is a set of the types of values.
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

// A schema is one, read. Absent bounds are nil.
type schema struct {
	id    int // counts schemas in the order in which they are read
	path  string
	never bool // the schema false; true has no keywords
	// rulesLast says that keywords such as allOf stand before properties.
	rulesLast bool
	// draftContains says that contains evaluates the items that satisfy it.
	draftContains bool

	ref *schema // also $dynamicRef and $recursiveRef

	types   typeSet // allTypes without the keyword
	integer bool    // numbers only where whole
	enum    *enumeration

	allOf, anyOf, oneOf []*schema
	not                 *schema
	test, then, orElse  *schema // if, then, else

	number *numberRule

	minLength, maxLength *int
	pattern, format      string // "" without the keyword; pattern with patternPath
	hasPattern           bool
	oldHost              bool // hostname is that of drafts 4 and 6

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

// An enumeration is the values of enum or const. Those that are arrays or
// objects are schemas that only they satisfy.
type enumeration struct {
	null, yes, no bool
	numbers       []decimal
	strings       []string
	arrays        []*schema
	objects       []*schema
}

// A numberRule is what bounds numbers.
type numberRule struct {
	min, max     *decimal
	exclusiveMin bool
	exclusiveMax bool
	multipleOf   *decimal
	integer      bool
}

// An itemRule is prefixItems and items: the goal of each item. A nil rest is
// any.
type itemRule struct {
	prefix []*schema
	rest   *schema
}

type property struct {
	name   string
	schema *schema
}

// A propertyRule is properties, patternProperties and additionalProperties. A
// nil other is any.
type propertyRule struct {
	named    []property
	patterns []property // name is the pattern
	other    *schema

	index map[string]*schema // of named, made when first asked for
}

// find is the schema of a named member, or nil.
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
