// Package rx makes sets of byte strings: the regular ones, with intersection and
// complement. A set is an expression, and what may follow a byte of it is another, its
// derivative (Brzozowski 1964). An [Automaton] builds the derivatives that texts ask for,
// and no others: counted repetitions cost what is read of them.
//
// Expressions live in a [Space], which keeps one of each structure and simplifies as it
// makes them. A Space holds a bounded number of them.
package rx

import "errors"

// ErrTooLarge is returned where expressions or their derivatives would take more memory or
// work than the space or automaton may use.
var ErrTooLarge = errors.New("the expression is too large")
