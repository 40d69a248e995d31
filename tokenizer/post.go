package tokenizer

import "slices"

// postProcessor lists the ids of a processed sequence, with -1 in place of the sequence's own ids.
// special and plain are nil if nothing changes.
type postProcessor struct {
	special []int32 // with special tokens
	plain   []int32 // without

	pair    []slot // for two sequences, with special tokens
	pairErr error  // why pairs are not supported
}

// Placeholders for the ids of a sequence, and of the second sequence of a pair.
const (
	sequence = -1
	second   = -2
)

// A slot is a token or a sequence in a processed pair.
type slot struct {
	id   int32
	kind int32 // BERT's token type: which text of the pair the token is from
}

// template holds the ids before and after a sequence.
type template struct{ before, after []int32 }

// post returns the post-processor that puts t around a sequence.
func (t template) post() postProcessor {
	return postProcessor{special: append(append(append([]int32{}, t.before...), sequence), t.after...), pair: t.pair(nil)}
}

// pair puts t's tokens around two sequences, with between before the second.
func (t template) pair(between []int32) []slot {
	var all []slot
	add := func(kind int32, ids ...int32) {
		for _, id := range ids {
			all = append(all, slot{id, kind})
		}
	}
	add(0, t.before...)
	add(0, sequence)
	add(0, t.after...)
	add(0, between...)
	add(1, second)
	add(1, t.after...)
	return all
}

// first returns the special token that comes before a sequence, or -1.
func (p postProcessor) first() int32 {
	if len(p.special) == 0 || p.special[0] == sequence {
		return -1
	}
	return p.special[0]
}

// apply returns ids with the special tokens around them, or without addSpecial with the plain ones.
// It may reuse the memory of ids.
func (p postProcessor) apply(ids []int32, addSpecial bool) []int32 {
	parts := p.plain
	if addSpecial {
		parts = p.special
	}
	switch {
	case len(parts) == 0:
		return ids
	case parts[0] == sequence && !slices.Contains(parts[1:], sequence):
		return append(ids, parts[1:]...)
	}
	all := make([]int32, 0, len(parts)+len(ids))
	for _, id := range parts {
		if id == sequence {
			all = append(all, ids...)
		} else {
			all = append(all, id)
		}
	}
	return all
}
