package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// Decode returns the text of ids; with skipSpecial, without special tokens. Ids outside the vocabulary
// are skipped. Bytes that are no UTF-8 become U+FFFD as in Hugging Face tokenizers: one for each maximal
// part of a character in a byte-level vocabulary, and with byte fallback one for each byte of a run of
// byte tokens that is not valid as a whole.
func (t *Tokenizer) Decode(ids []int32, skipSpecial bool) string {
	s := t.NewStream(skipSpecial)
	for _, id := range ids {
		s.push(id)
	}
	return s.Flush()
}

// Stream decodes ids one by one. It is not safe for concurrent use.
type Stream struct {
	t           *Tokenizer
	skipSpecial bool
	first       decoding
	out         *strings.Builder
}

// NewStream returns a stream whose pushes and flush together give what Decode gives.
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

// Push adds id and returns the text that is complete with it: whole characters, which no later id
// changes, and often none. With byte fallback the text of byte tokens waits for the first other token,
// since until then a byte may still make all of them invalid.
func (s *Stream) Push(id int32) string {
	s.push(id)
	text := s.out.String()
	s.out.Reset()
	return text
}

// Flush returns what is left, with U+FFFD for what has not become a character, and makes s ready for
// another text.
func (s *Stream) Flush() string {
	s.first.end()
	text := s.out.String()
	s.reset()
	return text
}

// decodeStep is a part of a decoder: it returns its state for one text, which passes what it makes of
// tokens on to next.
type decodeStep func(next decoding) decoding

// decoding is a decoder's part at work on one text.
type decoding interface {
	// token takes a token, or after a step that fuses them a part of the one token. literal says that it
	// is plain text whatever its spelling.
	token(text string, literal bool)

	// end says that no more tokens come.
	end()
}

// textSink ends a chain: it collects text.
type textSink struct{ out *strings.Builder }

func (s textSink) token(text string, _ bool) { s.out.WriteString(text) }
func (textSink) end()                        {}

// perToken maps each token by itself.
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

// decodeReplace replaces what r does in each token.
func decodeReplace(r replace) decodeStep {
	return func(next decoding) decoding {
		return &perToken{func(text string) string {
			text, _ = r.apply(nil, text, nil)
			return text
		}, next}
	}
}

// decodeStrip removes up to start times char from the start of each token and up to stop times from
// its end.
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

// stripStart removes char up to left times from the start of the one token that the parts make up.
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

// metaspaceDecoding turns a replacement character into a space, or in the first token into nothing.
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

// joinSpace puts a space between tokens: what there is without a decoder.
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

// gather makes one token of all parts, for a step that has to see it whole.
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
