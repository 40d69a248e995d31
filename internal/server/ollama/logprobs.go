package ollama

import (
	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
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
		b = s.AppendScore(append(b, '{'), t.Token, t.LogProb)
		if len(t.Top) > 0 {
			b = append(b, `,"top_logprobs":[`...)
			for j, top := range t.Top {
				if j > 0 {
					b = append(b, ',')
				}
				b = append(s.AppendScore(append(b, '{'), top.Token, top.LogProb), '}')
			}
			b = append(b, ']')
		}
		b = append(b, '}')
	}
	return b
}
