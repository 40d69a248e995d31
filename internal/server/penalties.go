package server

import (
	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server/fields"
)

// Penalizes reports whether g makes tokens that occurred before less likely.
func Penalizes(g *realizar.Generation) bool {
	return g.PresencePenalty != 0 || g.FrequencyPenalty != 0 || g.RepetitionPenalty != 0 && g.RepetitionPenalty != 1
}

// Unpenalize removes the penalties from g.
func Unpenalize(g *realizar.Generation) {
	g.RepetitionPenalty, g.PresencePenalty, g.FrequencyPenalty = 1, 0, 0
}

// LookBack applies repeat_last_n, the number of tokens that the penalties of g look back at, from
// the field param. nil and -1 mean all tokens; 0 removes the penalties from g. Another number with
// a penalty is an error.
func (x *Exchange) LookBack(g *realizar.Generation, lastN *int, param string) error {
	if lastN != nil && *lastN == 0 {
		Unpenalize(g)
	}
	if lastN != nil && *lastN > 0 && *lastN < x.Model().Context() && Penalizes(g) {
		e := fields.Unsupported("repeat_last_n %d is not supported with a penalty, which looks at all tokens; send -1, or leave it out", *lastN)
		e.Param = param
		return e
	}
	return nil
}
