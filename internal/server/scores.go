package server

import "github.com/realizar/realizar/internal/server/jsontext"

// AppendScore appends the members of a token and the logarithm of its probability, as
// OpenAI's and Ollama's answers have them.
func (s *Server) AppendScore(b []byte, id int32, p float64) []byte {
	piece := s.Piece(id)
	b = jsontext.AppendString(append(b, `"token":`...), piece)
	b = jsontext.AppendLogProb(append(b, `,"logprob":`...), p)
	b = append(b, `,"bytes":[`...)
	for i, c := range piece {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsontext.AppendInt(b, int(c))
	}
	return append(b, ']')
}
