package server

import (
	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server/fields"
)

// Penalizes reports whether tokens that were there before are less likely by g.
func Penalizes(g *realizar.Generation) bool {
	return g.PresencePenalty != 0 || g.FrequencyPenalty != 0 || g.RepetitionPenalty != 0 && g.RepetitionPenalty != 1
}

// Unpenalize takes the penalties out of g.
func Unpenalize(g *realizar.Generation) {
	g.RepetitionPenalty, g.PresencePenalty, g.FrequencyPenalty = 1, 0, 0
}

// LookBack settles repeat_last_n, how many tokens the penalties of g look back at, which is
// the field param: all, where it is nil or -1; 0 takes the penalties out of g. Another number
// beside a penalty is an error.
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
