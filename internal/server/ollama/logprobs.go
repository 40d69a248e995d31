package ollama

import (
	"strconv"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/jsontext"
)

// keep is for answers that do not spill.
func keep(b []byte) []byte { return b }

// appendScores appends tokens to a list of them, without its brackets. What is long goes
// through spill.
func appendScores(s *server.Server, b []byte, scores []realizar.TokenLogProb, spill func([]byte) []byte) []byte {
	for i := range scores {
		t := &scores[i]
		b = spill(b)
		if i > 0 {
			b = append(b, ',')
		}
		b = appendScore(s, append(b, '{'), t.Token, t.LogProb)
		if len(t.Top) > 0 {
			b = append(b, `,"top_logprobs":[`...)
			for j, top := range t.Top {
				if j > 0 {
					b = append(b, ',')
				}
				b = append(appendScore(s, append(b, '{'), top.Token, top.LogProb), '}')
			}
			b = append(b, ']')
		}
		b = append(b, '}')
	}
	return b
}

// appendScore appends the members of a token.
func appendScore(s *server.Server, b []byte, id int32, p float64) []byte {
	piece := s.Piece(id)
	b = jsontext.AppendString(append(b, `"token":`...), piece)
	b = strconv.AppendFloat(append(b, `,"logprob":`...), finite(p), 'g', -1, 64)
	b = append(b, `,"bytes":[`...)
	for i, c := range piece {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsontext.AppendInt(b, int(c))
	}
	return append(b, ']')
}

// leastLogProb stands for the logarithm of 0, which JSON cannot say.
const leastLogProb = -9999

// finite is the logarithm of a probability as JSON can say it.
func finite(p float64) float64 {
	switch {
	case !(p >= leastLogProb):
		return leastLogProb
	case p == 0:
		return 0 // not -0
	}
	return p
}
