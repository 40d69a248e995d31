package openai

import (
	"bytes"
	"slices"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/jsontext"
)

// appendPromptScores appends the scores of a prompt as vLLM has them: an object by
// token id for each place, and null for the first. What is long goes through spill.
func appendPromptScores(x *server.Exchange, b []byte, scores []realizar.TokenLogProb, spill func([]byte) []byte) []byte {
	b = append(b, `[null`...)
	for i := range scores {
		t := &scores[i]
		b = spill(b)
		b = append(b, `,{`...)
		rank := slices.IndexFunc(t.Top, func(top realizar.TopLogProb) bool { return top.Token == t.Token }) + 1
		b = appendPromptScore(x, b, t.Token, t.LogProb, rank)
		for j, top := range t.Top {
			if top.Token != t.Token {
				b = appendPromptScore(x, append(b, ','), top.Token, top.LogProb, j+1)
			}
		}
		b = append(b, '}')
	}
	return append(b, ']')
}

// appendPromptScore appends a member; the rank is null for a token that is not among
// the likeliest.
func appendPromptScore(x *server.Exchange, b []byte, id int32, p float64, rank int) []byte {
	b = jsontext.AppendInt(append(b, '"'), int(id))
	b = append(jsontext.AppendLogProb(append(b, `":{"logprob":`...), p), `,"rank":`...)
	if rank > 0 {
		b = jsontext.AppendInt(b, rank)
	} else {
		b = append(b, "null"...)
	}
	return append(jsontext.AppendString(append(b, `,"decoded_token":`...), x.Piece(id)), '}')
}

// textLogProbs are the scores of a text as completions have them: four lists.
type textLogProbs struct {
	x                         *server.Exchange
	top                       int
	tokens, own, tops, places []byte
	at                        int // characters so far
}

// add appends a token. A score of nil is that of the first one of a prompt. Special
// tokens that are no part of the text take no place in it.
func (l *textLogProbs) add(id int32, score *realizar.TokenLogProb, inText bool) {
	piece := l.x.Piece(id)
	if len(l.tokens) > 0 {
		l.tokens, l.own, l.tops, l.places = append(l.tokens, ','), append(l.own, ','), append(l.tops, ','), append(l.places, ',')
	}
	l.tokens = jsontext.AppendString(l.tokens, piece)
	l.places = jsontext.AppendInt(l.places, l.at)
	if inText {
		l.at += characters(piece)
	}
	if score == nil {
		l.own, l.tops = append(l.own, "null"...), append(l.tops, "null"...)
		return
	}
	l.own = jsontext.AppendLogProb(l.own, score.LogProb)
	l.tops = append(l.tops, '{')
	begun := len(l.tops)
	var seen [][]byte // the likelier of two tokens of one text stands
	for _, top := range score.Top[:min(l.top, len(score.Top))] {
		piece := l.x.Piece(top.Token)
		if slices.ContainsFunc(seen, func(p []byte) bool { return bytes.Equal(p, piece) }) {
			continue
		}
		seen = append(seen, piece)
		if len(l.tops) > begun {
			l.tops = append(l.tops, ',')
		}
		l.tops = jsontext.AppendLogProb(append(jsontext.AppendString(l.tops, piece), ':'), top.LogProb)
	}
	l.tops = append(l.tops, '}')
}

// take appends the object and forgets the lists, as for the next chunk.
func (l *textLogProbs) take(b []byte) []byte {
	b = append(append(b, `{"tokens":[`...), l.tokens...)
	b = append(append(b, `],"token_logprobs":[`...), l.own...)
	b = append(b, `],"top_logprobs":`...)
	if l.top > 0 {
		b = append(append(append(b, '['), l.tops...), ']')
	} else {
		b = append(b, "null"...)
	}
	b = append(append(b, `,"text_offset":[`...), l.places...)
	l.tokens, l.own, l.tops, l.places = l.tokens[:0], l.own[:0], l.tops[:0], l.places[:0]
	return append(b, `]}`...)
}

// characters counts those that begin in p.
func characters[S ~string | ~[]byte](p S) (n int) {
	for i := range len(p) {
		if p[i]&0xC0 != 0x80 {
			n++
		}
	}
	return n
}
