package tokenizer

import (
	"cmp"
	"container/heap"
	"math/bits"
	"slices"
)

// longestFirst is the order in which llama.cpp finds added tokens: the longest spelling first and,
// among equally long ones, the lowest id. Each token is matched from left to right in the text that
// the earlier tokens have left.
type longestFirst struct {
	tokens            []rankedToken // in this order; the index is the rank
	special, ordinary []int32       // ranks by pattern number
}

// rankedToken is an added token and the automaton that finds it.
type rankedToken struct {
	*addedToken
	find    *automaton
	ranks   []int32 // of all patterns of find
	pattern int32   // the token's pattern number in find
}

// newLongestFirst returns tokens, in ascending order of their ids, to be matched longest first. It
// ignores singleWord.
func newLongestFirst(tokens []addedToken) *addedTokens {
	a := newAddedTokens(tokens)
	l := &longestFirst{special: make([]int32, len(a.special)), ordinary: make([]int32, len(a.ordinary))}
	for i := range a.special {
		l.tokens = append(l.tokens, rankedToken{&a.special[i], a.findSpecial, l.special, int32(i)})
	}
	for i := range a.ordinary {
		l.tokens = append(l.tokens, rankedToken{&a.ordinary[i], a.findOrdinary, l.ordinary, int32(i)})
	}
	slices.SortFunc(l.tokens, func(a, b rankedToken) int {
		return cmp.Or(cmp.Compare(len(b.addedToken.pattern), len(a.addedToken.pattern)), cmp.Compare(a.id, b.id))
	})
	for rank, t := range l.tokens {
		t.ranks[t.pattern] = int32(rank)
	}
	a.order = l
	return a
}

// claim is the longest token that may still begin at a position.
type claim struct {
	rank  int32
	start int
}

func compareClaims(a, b claim) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.start, b.start))
}

// claims is a heap with the first claim in order on top.
type claims []claim

func (c claims) Len() int           { return len(c) }
func (c claims) Less(i, j int) bool { return compareClaims(c[i], c[j]) < 0 }
func (c claims) Swap(i, j int)      { c[i], c[j] = c[j], c[i] }

// Push and Pop complete heap.Interface. Only heap.Fix is used, which calls neither.
func (c *claims) Push(x any) { *c = append(*c, x.(claim)) }
func (c *claims) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

// foundToken is a part of the text that is a token.
type foundToken struct {
	region
	id int32
}

// split is [addedTokens.split] in this order.
//
// Every position of the text has one claim at a time. A claim is blocked by a token found earlier
// that begins after it and is no shorter. It is replaced by the longest token that ends before the
// blocking one, which is less than half as long as the room the claim had. A position therefore has
// no more claims than the logarithm of the longest token's length, even if many tokens are prefixes
// of each other.
func (l *longestFirst) split(a *addedTokens, w *work, text string, allowed *regions, part func(start, end int, id int32)) {
	found := l.find(a, w, text, allowed)
	done := 0
	for _, f := range found {
		if done < f.start {
			part(done, f.start, -1)
		}
		part(f.start, f.end, f.id)
		done = f.end
	}
	if done < len(text) {
		part(done, len(text), -1)
	}
}

// find returns the tokens of a text in the order of the text.
func (l *longestFirst) find(a *addedTokens, w *work, text string, allowed *regions) []foundToken {
	first := l.first(a, w, text, allowed)
	if len(first) == 0 {
		return nil
	}
	var found []foundToken
	var again claims // claims that replace blocked ones
	taken := newByteSet(len(text))
	for len(first) > 0 || len(again) > 0 {
		w.step(1)
		var c claim
		if len(again) == 0 || len(first) > 0 && compareClaims(first[0], again[0]) < 0 {
			c, first = first[0], first[1:]
		} else {
			last := len(again) - 1
			c, again[0] = again[0], again[last]
			if again = again[:last]; last > 0 {
				heap.Fix(&again, 0)
			}
		}
		room := taken.next(c.start) - c.start
		if room == 0 {
			continue
		}
		t := &l.tokens[c.rank]
		if n := len(t.addedToken.pattern); n <= room {
			f := foundToken{region{c.start, c.start + n}, t.id}
			if t.lstrip {
				for f.start > 0 && isASCIISpace(text[f.start-1]) && !taken.has(f.start-1) {
					f.start--
				}
			}
			if t.rstrip {
				for end := c.start + room; f.end < end && isASCIISpace(text[f.end]); {
					f.end++
				}
			}
			for i := f.start; i < f.end; i++ {
				taken.add(i)
			}
			found = append(found, f)
		} else if p := t.find.fit(t.pattern, room); p >= 0 {
			again = append(again, claim{t.ranks[p], c.start})
			heap.Fix(&again, len(again)-1)
		}
	}
	slices.SortFunc(found, func(a, b foundToken) int { return cmp.Compare(a.start, b.start) })
	return found
}

// first returns the first claims of all positions, in order.
func (l *longestFirst) first(a *addedTokens, w *work, text string, allowed *regions) []claim {
	var first []claim
	if a.findSpecial != nil {
		runs := []region{{0, len(text)}}
		if allowed != nil {
			runs = allowed.runs
		}
		for _, run := range runs {
			a.findSpecial.scan(w, text, run, func(m match) {
				first = append(first, claim{l.special[m.pattern], m.start})
				w.found(len(first))
			})
		}
	}
	if a.findOrdinary != nil {
		a.findOrdinary.scan(w, text, region{0, len(text)}, func(m match) {
			first = append(first, claim{l.ordinary[m.pattern], m.start})
			w.found(len(first))
		})
	}
	slices.SortFunc(first, compareClaims)
	return first
}

// isASCIISpace reports whether c is white space as C's isspace defines it.
func isASCIISpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// byteSet is a set of positions in a text. The lowest level is the set itself. Each bit of a higher
// level says whether a word of the level below is not zero, so that the next member is found in a
// few steps.
type byteSet struct {
	size   int
	levels [][]uint64
}

func newByteSet(size int) *byteSet {
	s := &byteSet{size: size}
	for n := size; n > 1 || len(s.levels) == 0; {
		n = (n + 63) / 64
		s.levels = append(s.levels, make([]uint64, n))
	}
	return s
}

func (s *byteSet) has(i int) bool { return s.levels[0][i/64]>>(i%64)&1 != 0 }

func (s *byteSet) add(i int) {
	for _, level := range s.levels {
		word := &level[i/64]
		filled := *word != 0
		*word |= 1 << (i % 64)
		if filled {
			return
		}
		i /= 64
	}
}

// next returns the first member that is not less than i, or the size of the text.
func (s *byteSet) next(i int) int {
	for at, level := range s.levels {
		word := i / 64
		if word >= len(level) {
			break
		}
		if rest := level[word] >> (i % 64); rest != 0 {
			i += bits.TrailingZeros64(rest)
			for at--; at >= 0; at-- {
				i = i*64 + bits.TrailingZeros64(s.levels[at][i])
			}
			return i
		}
		i = word + 1
	}
	return s.size
}
