package tokenizer

import (
	"cmp"
	"slices"
	"unicode/utf8"
)

// spm is the byte pair encoding of SentencePiece (Kudo and Richardson, 2018): a piece starts as its
// characters, and of all neighbours whose text together is a token those of the highest score merge
// first. Characters that are in no token become their bytes.
type spm struct {
	vocab    *vocabulary
	ranks    []int32 // of every token: 0 for the highest score, equal for equal scores
	longest  int     // length in bytes of the longest token
	fallback *byteFallback
	unknown  int32 // for a byte without a token, -1 for nothing
	fuse     bool  // unknown characters in a row become one token
	joins    *joins

	mergers mergers
}

// newSPM returns a model for a vocabulary with a score for each id; missing ones are 0. A score that is
// not a number is below all others.
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

// spmText is the rules of an spm for one text.
type spmText struct {
	*spm
	text string
}

// merge implements mergeRules.
func (s spmText) merge(left, right *part) (id, rank int32, ok bool) {
	if int(right.end-left.start) > s.longest {
		return 0, 0, false
	}
	id, ok = s.vocab.textID(s.text[left.start:right.end])
	if !ok {
		return 0, 0, false
	}
	return id, s.ranks[id], true
}

// encode implements model.
func (s *spm) encode(dst []int32, text string) []int32 {
	unknown := false // the part before ended with an unknown character
	for text != "" {
		n := s.joins.part(text)
		dst, unknown = s.encodePart(dst, text[:n], unknown)
		text = text[n:]
	}
	return dst
}

// encodePart appends the ids of a part of a piece that no token leaves. before says whether what is before it ends
// with an unknown character, and is returned for what is after it.
func (s *spm) encodePart(dst []int32, text string, before bool) (ids []int32, unknown bool) {
	m := s.mergers.get(len(text))
	defer s.mergers.put(m)
	for i := 0; i < len(text); {
		_, n := utf8.DecodeRuneInString(text[i:])
		id, _ := s.vocab.textID(text[i : i+n])
		m.add(id, int32(i), int32(i+n))
		i += n
	}
	m.run(spmText{s, text})
	for i := int32(0); i >= 0 && int(i) < len(m.parts); i = m.parts[i].next {
		p := &m.parts[i]
		if p.id >= 0 {
			dst, before = append(dst, p.id), false
			continue
		}
		if s.fuse {
			if !before && s.unknown >= 0 {
				dst = append(dst, s.unknown)
			}
			before = true
			continue
		}
		for _, c := range []byte(text[p.start:p.end]) {
			switch {
			case s.fallback[c] >= 0:
				dst = append(dst, s.fallback[c])
			case s.unknown >= 0:
				dst = append(dst, s.unknown)
			}
		}
	}
	return dst, before
}
