// Package grammar keeps a text to a language: rules over lexemes, read byte by byte, and
// masks of the tokens that may come next.
//
// A lexeme is a set of byte strings, made in a [rx.Space]; a rule is a choice of sequences of
// lexemes and rules. The language is exactly that of the rules over bytes: no lexeme wins
// over another, none is taken as long as it can be, and all ways to read a text are followed
// at once. A text that is let through can always be completed.
//
// # How it works
//
// A [State] is a few threads, each a set of Earley items (what rules have come to where a
// lexeme begins) and a state of the automaton that reads the lexemes the set waits for. Where
// lexemes end, those of all threads together make one new set. Sets are immutable, refer to
// the sets where their rules began, and are kept once by content: a loop comes back to the
// set it was in before. A rule that another ends with returns to where that one returns, so
// that recursion at the right end comes back as well.
//
// Memory: what a grammar has built of sets, masks and automaton states is bounded and begins
// anew when full; a state holds its own sets alone, one for each open bracket or so.
package grammar

import "errors"

var (
	// ErrLimit is returned where a grammar or a text would take more memory or work than
	// [Limits] allow.
	ErrLimit = errors.New("the grammar is too large")
	// ErrGrammar is returned for rules that make no language: undefined or without an end.
	ErrGrammar = errors.New("the grammar has no language")
)
