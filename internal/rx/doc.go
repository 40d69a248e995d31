// Package rx implements regular sets of byte strings, with intersection and complement. A
// set is an expression. The strings that may follow a byte form another expression, the
// derivative by that byte (Brzozowski 1964). An [Automaton] builds derivatives lazily, so a
// counted repetition costs only as much as texts read of it.
//
// Expressions belong to a [Space], which interns them by structure and simplifies them as
// it makes them. A Space holds a bounded number of expressions.
package rx

import "errors"

// ErrTooLarge is returned if expressions or their derivatives would take more memory or
// work than the limit of the space or automaton.
var ErrTooLarge = errors.New("the expression is too large")
