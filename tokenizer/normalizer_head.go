package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// A metaspace that is put only before the first word needs to know whether a piece begins where the
// text began. In Hugging Face tokenizers a normalizer may break that: a replacement is located at
// the last character that it replaces. The head of a text is the number of its bytes that stand for
// the first character of the original.

// withHead is [normalizer.apply] for a text with a known head. It also returns the head of the
// result.
func (n normalizer) withHead(w *work, text string, marks []bool, head int) (string, []bool, int) {
	for _, step := range n {
		normal, after := step.apply(w, text, marks)
		head = min(headAfter(w, step, text, normal, head), len(normal))
		text, marks = normal, after
	}
	return text, marks, head
}

// headAfter returns the head of the result of step.
func headAfter(w *work, step normalStep, before, after string, head int) int {
	if head == 0 || after == "" {
		return 0
	}
	switch step := step.(type) {
	case prepend:
		return len(step) + head
	case replace:
		return step.head(w, before, head)
	case strip:
		if step.left {
			head -= len(before) - len(strings.TrimLeftFunc(before, isSpace))
		}
		return max(head, 0)
	case eachCharacter, lowercase:
		first, _ := step.apply(nil, before[:head], nil)
		return len(first)
	}
	// A Unicode form or a charsmap: the first character stands for the first character.
	_, n := utf8.DecodeRuneInString(after)
	return n
}

// head returns the head of the result of r.
func (r replace) head(w *work, text string, head int) int {
	size, at := 0, 0
	r.from.each(w, text, func(start, end int) bool {
		size += min(start, head) - at
		at = min(start, head)
		if start >= head || end > head {
			at = head
			return false
		}
		size += len(r.to)
		at = end
		return at < head
	})
	size += max(0, head-at)
	return size
}
