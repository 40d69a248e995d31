package server

import (
	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server/jsontext"
)

// A ScoreForm is how a dialect writes tokens and the logarithms of their probabilities.
type ScoreForm struct {
	IDs    bool // tokens have their ids
	Sparse bool // a token beside which no others are wanted has no list of them
}

// Keep is what long lists go through in a stream, whose pieces are sent as they come; others
// go through [Exchange.Spill].
func Keep(b []byte) []byte { return b }

// AppendScores appends tokens to a list of them, without its brackets. What is long goes
// through spill.
func (x *Exchange) AppendScores(b []byte, f ScoreForm, scores []realizar.TokenLogProb, spill func([]byte) []byte) []byte {
	for i := range scores {
		t := &scores[i]
		b = spill(b)
		if i > 0 {
			b = append(b, ',')
		}
		b = x.appendScore(append(b, '{'), f, t.Token, t.LogProb)
		if len(t.Top) > 0 || !f.Sparse {
			b = append(b, `,"top_logprobs":[`...)
			for j, top := range t.Top {
				if j > 0 {
					b = append(b, ',')
				}
				b = append(x.appendScore(append(b, '{'), f, top.Token, top.LogProb), '}')
			}
			b = append(b, ']')
		}
		b = append(b, '}')
	}
	return b
}

// appendScore appends the members of a token.
func (x *Exchange) appendScore(b []byte, f ScoreForm, id int32, p float64) []byte {
	piece := x.Piece(id)
	if f.IDs {
		b = append(jsontext.AppendInt(append(b, `"id":`...), int(id)), ',')
	}
	b = jsontext.AppendString(append(b, `"token":`...), piece)
	b = jsontext.AppendLogProb(append(b, `,"logprob":`...), p)
	return jsontext.AppendBytes(append(b, `,"bytes":`...), piece)
}
