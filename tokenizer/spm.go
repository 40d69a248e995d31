package tokenizer

import (
	"cmp"
	"slices"
	"unicode/utf8"
)

// spm is the byte pair encoding of SentencePiece (Kudo and Richardson, 2018). A piece starts as its
// characters. Of all neighbors whose joined text is a token, those with the highest score merge
// first. Characters that are in no token become their bytes.
type spm struct {
	vocab    *vocabulary
	ranks    []int32 // rank of every token: 0 for the highest score, equal for equal scores
	longest  int     // length in bytes of the longest token
	fallback *byteFallback
	unknown  int32 // for a byte without a token, -1 for nothing
	fuse     bool  // adjacent unknown characters become one token
	joins    *joins

	// Only for a tokenizer.model.
	user  *trie   // user-defined pieces, which never merge; nil for none
	types []int64 // of the pieces

	mergers mergers
}

// newSPM returns a model for a vocabulary with a score for each id. Missing scores are 0. NaN is
// below all other scores.
func newSPM(v *vocabulary, scores []float64, unknown int32) *spm {
	s := &spm{
		vocab: v, ranks: make([]int32, len(v.tokens)), fallback: newByteFallback(v), unknown: unknown, joins: new(joins),
	}
	score := func(id int32) float64 {
		if int(id) < len(scores) {
			return scores[id]
		}
		return 0
	}
	order := make([]int32, len(v.tokens))
	for id := range order {
		order[id] = int32(id)
		s.longest = max(s.longest, len(v.tokens[id].text))
		s.joins.add(v.tokens[id].text)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(score(b), score(a)) })
	for i, id := range order {
		s.ranks[id] = int32(i)
		if i > 0 && cmp.Compare(score(id), score(order[i-1])) == 0 {
			s.ranks[id] = s.ranks[order[i-1]]
		}
	}
	return s
}

// spmText holds the merge rules of an spm for one text.
type spmText struct {
	*spm
	text   string
	halves map[string]int // for an unused piece, the length of the left half that last merged into it
}

// is reports whether token id has type kind.
func (s *spm) is(id int32, kind int64) bool {
	return id >= 0 && int(id) < len(s.types) && s.types[id] == kind
}

// merge implements mergeRules.
func (s *spmText) merge(left, right *part) (id, rank int32, ok bool) {
	if int(right.end-left.start) > s.longest || s.is(left.id, typeUserDefined) || s.is(right.id, typeUserDefined) {
		return 0, 0, false
	}
	whole := s.text[left.start:right.end]
	id, ok = s.vocab.textID(whole)
	if !ok {
		return 0, 0, false
	}
	if s.is(id, typeUnused) {
		if s.halves == nil {
			s.halves = make(map[string]int)
		}
		s.halves[whole] = int(left.end - left.start)
	}
	return id, s.ranks[id], true
}

// encode implements model.
func (s *spm) encode(w *work, dst []int32, text string) []int32 {
	unknown := false // the previous part ended with an unknown character
	for text != "" {
		n := s.joins.part(text)
		dst, unknown = s.encodePart(w, dst, text[:n], unknown)
		text = text[n:]
	}
	return dst
}

// encodePart appends the ids of a part of a piece. No token crosses the ends of the part. before
// says whether the text before it ends with an unknown character, and unknown whether the part
// does.
func (s *spm) encodePart(w *work, dst []int32, text string, before bool) (ids []int32, unknown bool) {
	m := s.mergers.get(w, len(text))
	defer s.mergers.put(w, len(text), m)
	for i := 0; i < len(text); {
		id, n := int32(-1), 0
		if s.user != nil {
			id, n = s.user.longest(0, text[i:], nil)
		}
		if n == 0 {
			_, n = utf8.DecodeRuneInString(text[i:])
			id, _ = s.vocab.textID(text[i : i+n])
		}
		m.add(id, int32(i), int32(i+n))
		i += n
		w.step(n)
	}
	rules := &spmText{spm: s, text: text}
	m.run(w, rules)
	for i := int32(0); i >= 0 && int(i) < len(m.parts); i = m.parts[i].next {
		w.step(1)
		p := &m.parts[i]
		dst, before = rules.write(dst, p.id, text[p.start:p.end], before)
	}
	return dst, before
}

// write appends the ids for a part of the text: its token, or those of the halves that merged into
// an unused piece. before says whether the previous part was unknown, and the result whether this
// one is.
func (s *spmText) write(dst []int32, id int32, text string, before bool) ([]int32, bool) {
	if n := s.halves[text]; n > 0 && s.is(id, typeUnused) {
		for _, half := range [...]string{text[:n], text[n:]} {
			id, _ := s.vocab.textID(half)
			dst, before = s.write(dst, id, half, before)
		}
		return dst, before
	}
	if id >= 0 {
		return append(dst, id), false
	}
	if s.fuse {
		if !before && s.unknown >= 0 {
			dst = append(dst, s.unknown)
		}
		return dst, true
	}
	for _, c := range []byte(text) {
		switch {
		case s.fallback[c] >= 0:
			dst = append(dst, s.fallback[c])
		case s.unknown >= 0:
			dst = append(dst, s.unknown)
		}
	}
	return dst, true
}
