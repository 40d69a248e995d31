// Package draft proposes the next tokens of answers, for speculative decoding.
package draft

import (
	"math/bits"
	"sync"
)

// A chain finds where the last tokens of a text occurred before. It holds 4 bytes for each token of
// the text, and 8 to 16 for each that it has heads for.
type chain struct {
	before []int32 // [tokens] the position before with the same hash of two tokens, or -1
	heads  []int32 // by hash, the last such position, or -1; a power of two
}

// The work of a search is bounded.
const (
	fewest     = 2  // tokens that must be equal
	longest    = 32 // and that are compared
	candidates = 24 // positions that are compared
)

func (c *chain) slot(a, b int32) *int32 {
	h := (uint64(uint32(a))<<32 | uint64(uint32(b))) * 0x9e3779b97f4a7c15
	return &c.heads[h>>(64-bits.Len(uint(len(c.heads)-1)))]
}

// add adds the tokens of text from len(c.before) on.
func (c *chain) add(text []int32) {
	if 2*len(text) > len(c.heads) {
		n := 1 << max(8, bits.Len(uint(2*len(text))))
		c.heads = make([]int32, n)
		for i := range c.heads {
			c.heads[i] = -1
		}
		c.before = c.before[:0]
	}
	for i := len(c.before); i < len(text); i++ {
		at := int32(-1)
		if i > 0 {
			head := c.slot(text[i-1], text[i])
			at, *head = *head, int32(i)
		}
		c.before = append(c.before, at)
	}
}

// find returns the position after the longest part of text that equals the end of tokens, the last
// one of these, and its length, at most longest. It is 0 if fewer than two tokens are equal.
func (c *chain) find(text, tokens []int32) (after, length int) {
	n := len(tokens)
	if len(c.heads) == 0 || n < fewest {
		return 0, 0
	}
	length = fewest - 1
	at := *c.slot(tokens[n-2], tokens[n-1])
	for range candidates {
		if at < 0 {
			break
		}
		k, most := 0, min(longest, n, int(at)+1)
		for k < most && text[int(at)-k] == tokens[n-1-k] {
			k++
		}
		if k > length {
			if after, length = int(at)+1, k; k == longest {
				break
			}
		}
		at = c.before[at]
	}
	if after == 0 {
		return 0, 0
	}
	return after, length
}

// Recent holds the last answers of a model, from which those of later ones may be copied. Answers
// of different salts do not see each other.
type Recent struct {
	mu    sync.Mutex
	clock uint64
	texts map[string]*text
}

// A text is the last answers of a salt, each followed by end.
type text struct {
	tokens []int32
	chain  chain
	used   uint64
}

const (
	end       = -1
	textSize  = 16 << 10 // tokens of a text
	mostTexts = 16
)

// of returns the text of a salt, or nil. The caller holds r.mu.
func (r *Recent) of(salt string) *text {
	t := r.texts[salt]
	if t != nil {
		r.clock++
		t.used = r.clock
	}
	return t
}

// add adds an answer.
func (r *Recent) add(salt string, answer []int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.of(salt)
	if t == nil {
		if len(r.texts) == mostTexts {
			r.forget()
		}
		if r.texts == nil {
			r.texts = map[string]*text{}
		}
		t = &text{}
		r.texts[salt] = t
		r.of(salt)
	}
	answer = answer[max(0, len(answer)-textSize/4):]
	if len(t.tokens)+len(answer) >= textSize {
		half := t.tokens[len(t.tokens)/2:]
		t.tokens = append(t.tokens[:0], half...)
		t.chain = chain{before: t.chain.before[:0]}
	}
	t.tokens = append(append(t.tokens, answer...), end)
	t.chain.add(t.tokens)
}

// forget forgets the text that was unused for longest.
func (r *Recent) forget() {
	oldest, least := "", uint64(0)
	for salt, t := range r.texts {
		if least == 0 || t.used < least {
			oldest, least = salt, t.used
		}
	}
	delete(r.texts, oldest)
}

// Suffix proposes for one answer what followed its last tokens before: in its prompt, in itself, or
// in recent answers of the same salt (as Saxena, "Prompt Lookup Decoding", 2023, and Oliaro et al.,
// "SuffixDecoding", 2024). It implements [engine.Proposer].
type Suffix struct {
	recent *Recent
	salt   string
	prompt int
	chain  chain
	draft  []int32
}

// New returns the proposer of an answer to a prompt of that many tokens. r may be nil.
func (r *Recent) New(salt string, prompt int) *Suffix {
	return &Suffix{recent: r, salt: salt, prompt: prompt}
}

// Propose implements [engine.Proposer]. Evidence is how many tokens were equal, less two.
func (s *Suffix) Propose(tokens []int32, n int) (draft []int32, evidence int) {
	s.chain.add(tokens[:len(tokens)-1]) // not the last one, which would be found
	own, length := s.chain.find(tokens, tokens)
	s.draft = s.draft[:0]
	if s.recent != nil && length < longest {
		s.recent.mu.Lock()
		defer s.recent.mu.Unlock()
		if t := s.recent.of(s.salt); t != nil {
			if at, k := t.chain.find(t.tokens, tokens); k > length {
				for _, id := range t.tokens[at:min(at+n, len(t.tokens))] {
					if id == end {
						break
					}
					s.draft = append(s.draft, id)
				}
				if len(s.draft) > 0 {
					return s.draft, k - fewest
				}
			}
		}
	}
	if length == 0 {
		return nil, 0
	}
	for i := range n { // what repeats itself goes on
		if at := own + i; at < len(tokens) {
			s.draft = append(s.draft, tokens[at])
		} else {
			s.draft = append(s.draft, s.draft[at-len(tokens)])
		}
	}
	return s.draft, length - fewest
}

// End implements [engine.Proposer].
func (s *Suffix) End(tokens []int32) {
	if s.recent != nil && len(tokens)-s.prompt >= fewest {
		s.recent.add(s.salt, tokens[s.prompt:])
	}
}
