package lark

// A kind is the kind of an expression.
type kind byte

const (
	kindCat     kind = iota // subs in sequence
	kindAlt                 // one of subs
	kindAnd                 // all of subs; in terminals only
	kindNot                 // not subs[0]; in terminals only
	kindRepeat              // subs[0], low to high times
	kindString              // text; flags "i" ignores case
	kindRange               // a character from lo to hi
	kindRegex               // text with flags
	kindName                // a rule or a terminal
	kindSpecial             // a special token by its text
	kindTokens              // one of ids, or any other token if negate
	kindJSON                // text is a JSON schema
	kindSubs                // text is the JSON after %regex
)

// An expr is an expression.
type expr struct {
	kind      kind
	at        int // byte offset
	subs      []*expr
	low, high int // high < 0 means no bound
	text      string
	flags     string
	lo, hi    rune
	ids       []int32
	negate    bool
}

// A definition defines a rule or a terminal.
type definition struct {
	name   string
	at     int
	body   *expr
	lazy   bool
	suffix *expr // nil if there is none
}

// options are the options of %llguidance that change the language.
type options struct {
	initialSkip bool // ignored text may begin the text
	skipOnce    bool // ignored text occurs at most once after a lexeme
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
