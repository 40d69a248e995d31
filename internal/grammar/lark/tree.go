package lark

// A kind is what an expression of the notation is.
type kind byte

const (
	kindCat     kind = iota // subs, one after another
	kindAlt                 // one of subs
	kindAnd                 // all of subs: terminals only
	kindNot                 // not subs[0]: terminals only
	kindRepeat              // subs[0], low to high times
	kindString              // text, with flags "i" in any case
	kindRange               // one of lo to hi
	kindRegex               // text with flags
	kindName                // a rule or a terminal
	kindSpecial             // a special token by its text
	kindTokens              // one of ids, or with negate any other
	kindJSON                // text is a schema
	kindSubs                // text is the JSON behind %regex
)

// An expr is an expression.
type expr struct {
	kind      kind
	at        int // byte offset
	subs      []*expr
	low, high int // high < 0: without bound
	text      string
	flags     string
	lo, hi    rune
	ids       []int32
	negate    bool
}

// A definition is that of a rule or a terminal.
type definition struct {
	name   string
	at     int
	body   *expr
	lazy   bool
	suffix *expr // nil: none
}

// options are those of %llguidance that change the language.
type options struct {
	initialSkip bool // what is ignored may begin the text
	skipOnce    bool // it is not repeated
}

// isTerminal reports whether a name is that of a terminal.
func isTerminal(name string) bool {
	for i := range len(name) {
		if name[i] != '_' {
			return 'A' <= name[i] && name[i] <= 'Z'
		}
	}
	return false
}
