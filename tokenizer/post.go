package tokenizer

import "slices"

// postProcessor says what a sequence becomes: ids, and -1 where its own stand. Without a change it is nil.
type postProcessor struct {
	special []int32 // with special tokens
	plain   []int32 // without
}

// sequence stands for the ids of the sequence.
const sequence = -1

// template is the ids before and after a sequence.
type template struct{ before, after []int32 }

// post returns the post-processor that puts t around a sequence.
func (t template) post() postProcessor {
	return postProcessor{special: append(append(append([]int32{}, t.before...), sequence), t.after...)}
}

// first returns the special token that comes before a sequence, or -1.
func (p postProcessor) first() int32 {
	if len(p.special) == 0 || p.special[0] == sequence {
		return -1
	}
	return p.special[0]
}

// apply returns ids with the special tokens around them, or without addSpecial the ids alone. It may use the
// memory of ids.
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
