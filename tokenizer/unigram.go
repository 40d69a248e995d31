package tokenizer

import (
	"math"
	"slices"
	"sync"
	"unicode/utf8"
)

// unknownPenalty is the distance of an unknown character's score below the lowest token score.
const unknownPenalty = 10

// unigram is the model of Kudo, "Subword Regularization" (2018). It splits a piece into the tokens
// with the highest sum of scores, found by Viterbi's algorithm.
type unigram struct {
	vocab        *vocabulary
	scores       []float64 // score of every token in find
	find         *trie
	unknownScore float64
	unknown      int32         // id for adjacent unknown characters, -1 to drop them
	fallback     *byteFallback // bytes instead of unknown; nil for none
	fuseOnly     bool          // adjacent unknown characters never become the token they spell, as in llama.cpp
	single       bool          // sums are kept in single precision, as in SentencePiece
	barred       []bool        // ids that text may not become; nil for none

	lattices *sync.Pool
}

// without returns u without the barred tokens.
func (u *unigram) without(barred []bool) model {
	if barred == nil {
		return u
	}
	other := *u
	other.barred = barred
	return &other
}

// init completes u from its vocabulary. keep reports which tokens text may become; nil keeps all.
func (u *unigram) init(keep func(id int32) bool) {
	u.find, u.lattices = u.vocab.visibleTokens(keep), new(sync.Pool)
}

// lowest returns the lowest of scores, 0 if there are none.
func lowest(scores []float64) float64 {
	low := math.Inf(1)
	for _, s := range scores {
		if s < low {
			low = s
		}
	}
	if math.IsInf(low, 1) {
		return 0
	}
	return low
}

// ending is the best segmentation of the text up to a position.
type ending struct {
	score float64
	last  int32 // length of the last token, 0 while the position is not reached
	id    int32
}

// lattice is the working memory for one piece.
type lattice struct {
	text   string
	base   int      // all segmentations meet here; the text before it is written
	ends   []ending // for the positions from base on
	back   []int32  // lengths of tokens, last token first
	single bool     // the unigram's
	unsure region   // adjacent unknown characters that are not written yet
}

// latticeBytes is the memory of a lattice in bytes per byte of a piece in which no segmentations
// meet.
const latticeBytes = 2 * (16 + 4)

// keptEndings is the largest capacity, in positions, of a lattice that is kept for reuse.
const keptEndings = 1 << 16

// encode implements model.
func (u *unigram) encode(w *work, dst []int32, text string) []int32 {
	w.holdLarge(len(text) * latticeBytes)
	defer w.releaseLarge(len(text) * latticeBytes)
	l, ok := u.lattices.Get().(*lattice)
	if !ok {
		l = new(lattice)
	}
	l.text, l.base, l.unsure, l.single = text, 0, region{}, u.single
	l.ends = append(l.ends[:0], ending{})
	for i := 0; i < len(text); {
		w.step(1)
		if i > l.base && len(l.ends) == i-l.base+1 {
			dst = u.write(dst, l, i) // no token crosses i
		}
		_, size := utf8.DecodeRuneInString(text[i:])
		score := l.ends[i-l.base].score
		known := false // a token is this character alone
		node := int32(0)
		for j := i; j < len(text); {
			if node = u.find.next(node, text[j]); node < 0 {
				break
			}
			j++
			if id := u.find.value[node]; id >= 0 && (u.barred == nil || !u.barred[id]) {
				l.reach(i, j, id, score+u.scores[id])
				known = known || j-i == size
			}
		}
		if !known {
			l.reach(i, i+size, u.unknown, score+u.unknownScore)
		}
		i += size
	}
	dst = u.write(dst, l, len(text))
	dst = u.writeUnknown(dst, l)
	if cap(l.ends) <= keptEndings {
		l.text = ""
		u.lattices.Put(l)
	}
	return dst
}

// reach offers a token from start to end. Of equal scores the first stays.
func (l *lattice) reach(start, end int, id int32, score float64) {
	at := end - l.base
	if missing := at + 1 - len(l.ends); missing > 0 {
		n := len(l.ends)
		l.ends = slices.Grow(l.ends, missing)[:at+1]
		clear(l.ends[n:])
	}
	if l.single {
		score = float64(float32(score))
	}
	if e := &l.ends[at]; e.last == 0 || score > e.score {
		*e = ending{score: score, last: int32(end - start), id: id}
	}
}

// write appends the tokens up to end, where all segmentations meet, and makes end the base.
func (u *unigram) write(dst []int32, l *lattice, end int) []int32 {
	l.back = l.back[:0]
	for at := end; at > l.base; {
		last := l.ends[at-l.base].last
		l.back = append(l.back, last)
		at -= int(last)
	}
	at := l.base
	for _, n := range slices.Backward(l.back) {
		start := at
		at += int(n)
		id := l.ends[at-l.base].id
		if id == u.unknown {
			if l.unsure.start == l.unsure.end {
				l.unsure.start = start
			}
			l.unsure.end = at
			continue
		}
		dst = append(u.writeUnknown(dst, l), id)
	}
	l.ends = append(l.ends[:0], ending{score: l.ends[end-l.base].score})
	l.base = end
	return dst
}

// writeUnknown appends the ids for adjacent unknown characters.
func (u *unigram) writeUnknown(dst []int32, l *lattice) []int32 {
	text := l.text[l.unsure.start:l.unsure.end]
	l.unsure = region{}
	if text == "" {
		return dst
	}
	if id, ok := u.vocab.textID(text); ok && !u.fuseOnly && (u.barred == nil || !u.barred[id]) {
		return append(dst, id) // the characters spell the unknown token, for example
	}
	if u.fallback.has(text) {
		for _, c := range []byte(text) {
			dst = append(dst, u.fallback[c])
		}
		return dst
	}
	if u.unknown >= 0 {
		dst = append(dst, u.unknown)
	}
	return dst
}
