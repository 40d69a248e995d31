package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// Decode returns the text of ids; with skipSpecial, without special tokens. It skips ids outside
// the vocabulary. Bytes that are not UTF-8 become U+FFFD as in Hugging Face tokenizers. A
// byte-level vocabulary writes one for each maximal part of a character. Byte fallback writes one
// for each byte of a run of byte tokens that is not valid as a whole.
func (t *Tokenizer) Decode(ids []int32, skipSpecial bool) string {
	s := t.NewStream(skipSpecial)
	for _, id := range ids {
		s.push(id)
	}
	return s.Flush()
}

// Stream decodes ids one at a time. It is not safe for concurrent use.
type Stream struct {
	t           *Tokenizer
	skipSpecial bool
	first       decoding
	out         *strings.Builder
}

// NewStream returns a stream whose Push and Flush together return the text that Decode returns.
func (t *Tokenizer) NewStream(skipSpecial bool) *Stream {
	s := &Stream{t: t, skipSpecial: skipSpecial, out: new(strings.Builder)}
	s.reset()
	return s
}

func (s *Stream) reset() {
	s.out.Reset()
	s.first = textSink{s.out}
	for i := len(s.t.decoder) - 1; i >= 0; i-- {
		s.first = s.t.decoder[i](s.first)
	}
}

func (s *Stream) push(id int32) {
	if !s.t.vocab.has(id) {
		return
	}
	token := &s.t.vocab.tokens[id]
	if s.skipSpecial && token.special {
		if s.t.between {
			s.first.token("", true)
		}
		return
	}
	s.first.token(token.decoded, token.literal)
}

// Push adds id and returns the text that it completes: whole characters, which no later id changes,
// and often none. With byte fallback the text of byte tokens waits for the next other token, since
// until then another byte may make the whole run invalid.
func (s *Stream) Push(id int32) string {
	s.push(id)
	text := s.out.String()
	s.out.Reset()
	return text
}

// Flush returns the remaining text, with U+FFFD for incomplete characters, and resets s for another
// text.
func (s *Stream) Flush() string {
	s.first.end()
	text := s.out.String()
	s.reset()
	return text
}

// decodeStep is one step of a decoder. It returns the step's state for one text. The state passes
// its output on to next.
type decodeStep func(next decoding) decoding

// decoding is a decoder step's state for one text.
type decoding interface {
	// token takes a token or, after a step that fuses tokens, a part of the fused one. literal says
	// that text is plain text whatever its spelling.
	token(text string, literal bool)

	// end says that no more tokens follow.
	end()
}

// textSink ends a chain. It collects text.
type textSink struct{ out *strings.Builder }

func (s textSink) token(text string, _ bool) { s.out.WriteString(text) }
func (textSink) end()                        {}

// perToken maps each token on its own.
type perToken struct {
	decode func(text string) string
	next   decoding
}

func (p *perToken) token(text string, literal bool) {
	if !literal {
		text = p.decode(text)
	}
	p.next.token(text, literal)
}

func (p *perToken) end() { p.next.end() }

// decodeReplace applies r to each token.
func decodeReplace(r replace) decodeStep {
	return func(next decoding) decoding {
		return &perToken{func(text string) string {
			text, _ = r.apply(nil, text, nil)
			return text
		}, next}
	}
}

// decodeStrip removes up to start copies of char from the start of each token and up to stop copies
// from its end.
func decodeStrip(char rune, start, stop int) decodeStep {
	return func(next decoding) decoding {
		return &perToken{func(text string) string {
			for n := 0; n < start && text != ""; n++ {
				r, size := utf8.DecodeRuneInString(text)
				if r != char {
					break
				}
				text = text[size:]
			}
			for n := 0; n < stop && text != ""; n++ {
				r, size := utf8.DecodeLastRuneInString(text)
				if r != char {
					break
				}
				text = text[:len(text)-size]
			}
			return text
		}, next}
	}
}

// stripStart removes up to left copies of char from the start of the one token that the parts form.
type stripStart struct {
	char string
	left int
	next decoding
}

func decodeStripStart(char rune, n int) decodeStep {
	return func(next decoding) decoding { return &stripStart{string(char), n, next} }
}

func (s *stripStart) token(text string, literal bool) {
	for s.left > 0 && text != "" {
		rest, ok := strings.CutPrefix(text, s.char)
		if !ok {
			s.left = 0
			break
		}
		text = rest
		s.left--
	}
	s.next.token(text, literal)
}

func (s *stripStart) end() { s.next.end() }

// metaspaceDecoding replaces the metaspace character by a space; in the first token it removes it.
type metaspaceDecoding struct {
	replacement, space string
	next               decoding
}

func decodeMetaspace(replacement string, dropFirst bool) decodeStep {
	return func(next decoding) decoding {
		m := &metaspaceDecoding{replacement, " ", next}
		if dropFirst {
			m.space = ""
		}
		return m
	}
}

func (m *metaspaceDecoding) token(text string, literal bool) {
	if !literal {
		text = strings.ReplaceAll(text, m.replacement, m.space)
	}
	m.space = " "
	m.next.token(text, literal)
}

func (m *metaspaceDecoding) end() { m.next.end() }

// joinSpace puts a space between tokens. It is used if a file has no decoder.
type joinSpace struct {
	later bool
	next  decoding
}

func decodeJoinSpace(next decoding) decoding { return &joinSpace{next: next} }

func (j *joinSpace) token(text string, literal bool) {
	if j.later {
		text = " " + text
	}
	j.later = true
	j.next.token(text, literal)
}

func (j *joinSpace) end() { j.next.end() }

// gather fuses all parts into one token, for a step that needs the whole.
type gather struct {
	text strings.Builder
	next decoding
}

func decodeGather(next decoding) decoding { return &gather{next: next} }

func (g *gather) token(text string, _ bool) { g.text.WriteString(text) }

func (g *gather) end() {
	g.next.token(g.text.String(), false)
	g.next.end()
}
