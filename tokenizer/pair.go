package tokenizer

import (
	"context"
	"fmt"
)

// EncodePair returns the ids of two texts joined as for a model that compares texts, with special
// tokens, and the type of each id, which tells BERT which text the token is from. Without a
// post-processor the types are 0 for the first text and 1 for the second. Texts are as in
// [Tokenizer.EncodeSpans]. The error wraps [ErrUnsupported] if the tokenizer joins no pairs.
func (t *Tokenizer) EncodePair(first, then []Span) (ids, types []int32, err error) {
	return t.encodePair(nil, first, then)
}

// EncodePairWithin is [Tokenizer.EncodePair] within limits, which apply to each text separately. It
// returns soon after ctx ends, with the error of ctx and its cause.
func (t *Tokenizer) EncodePairWithin(ctx context.Context, l Limits, first, then []Span) (ids, types []int32, err error) {
	var failed error
	ids, err = within(ctx, l, func(w *work) (ids []int32) {
		ids, types, failed = t.encodePair(w, first, then)
		return ids
	})
	if err == nil {
		err = failed
	}
	return ids, types, err
}

func (t *Tokenizer) encodePair(w *work, first, then []Span) (ids, types []int32, err error) {
	if t.post.pairErr != nil {
		return nil, nil, fmt.Errorf("tokenizer: post_processor: %w", t.post.pairErr)
	}
	pair := t.post.pair
	if pair == nil {
		pair = template{}.pair(nil)
	}
	texts := [2][]int32{t.encode(w, first), t.encode(w, then)}
	for _, p := range pair {
		part := []int32{p.id}
		switch p.id {
		case sequence:
			part = texts[0]
		case second:
			part = texts[1]
		}
		for _, id := range part {
			ids, types = append(ids, id), append(types, p.kind)
		}
	}
	return ids, types, nil
}
