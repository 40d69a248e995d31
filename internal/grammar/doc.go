// Package grammar constrains a text to a language: rules over lexemes, read byte by byte. It
// computes masks of the tokens that may come next.
//
// A lexeme is a set of byte strings, made in a [rx.Space]; a rule is a choice of sequences of
// lexemes and rules. The language is exactly that of the rules over bytes: no lexeme has
// priority, none must be as long as possible, and all ways to read a text are followed at
// once. Every accepted prefix can be completed.
//
// # How it works
//
// A [State] is a few threads. Each thread is a set of Earley items (the progress of the rules
// at the beginning of a lexeme) and a state of the automaton that reads the lexemes which the
// set expects. The lexemes of all threads that end at a byte lead to one new set. Sets are
// immutable, refer to the sets where their rules began, and are interned by content, so that
// a loop comes back to an earlier set. A rule at the end of another returns to where that one
// returns, so that right recursion comes back to an earlier set as well.
//
// Memory: the sets, masks and automaton states of a grammar are bounded caches, dropped when
// full. A state keeps its own sets alive, about one for each open bracket.
package grammar

import "errors"

var (
	// ErrLimit is returned if a grammar or a text would take more memory or work than
	// [Limits] allow.
	ErrLimit = errors.New("the grammar is too large")
	// ErrGrammar is returned for rules that define no language: undefined or without an end.
	ErrGrammar = errors.New("the grammar has no language")
)
