package tokenizer

import (
	"slices"
	"strings"
)

// region is a run of bytes, from start to before end.
type region struct{ start, end int }

// regions are runs in ascending order, none touching another. A nil *regions means everything.
type regions struct{ runs []region }

// joinSpans returns the text of all spans and where special tokens may match in it.
func joinSpans(spans []Span) (string, *regions) {
	typed, size := false, 0
	for _, s := range spans {
		typed = typed || !s.Special && s.Text != ""
		size += len(s.Text)
	}
	if len(spans) == 1 {
		if typed {
			return spans[0].Text, &regions{}
		}
		return spans[0].Text, nil
	}
	var text strings.Builder
	text.Grow(size)
	allowed := &regions{}
	for _, s := range spans {
		start := text.Len()
		text.WriteString(s.Text)
		if !s.Special || s.Text == "" {
			continue
		}
		if n := len(allowed.runs); n > 0 && allowed.runs[n-1].end == start {
			allowed.runs[n-1].end = text.Len()
		} else {
			allowed.runs = append(allowed.runs, region{start, text.Len()})
		}
	}
	if !typed {
		return text.String(), nil
	}
	return text.String(), allowed
}

// markTyped returns, for every byte of text (which begins at offset of the whole text), whether
// special tokens may not match in it, to be carried through a normalizer. It is nil when nothing
// depends on it.
func markTyped(text string, offset int, allowed *regions, tokens *addedTokens) []bool {
	if allowed == nil || !tokens.hasSpecial() {
		return nil
	}
	marks := make([]bool, len(text))
	for i := range marks {
		marks[i] = true
	}
	first, _ := slices.BinarySearchFunc(allowed.runs, offset, func(r region, at int) int {
		if r.end <= at {
			return -1
		}
		return 1
	})
	for _, r := range allowed.runs[first:] {
		start, end := max(r.start-offset, 0), min(r.end-offset, len(text))
		if start >= end {
			break
		}
		clear(marks[start:end])
	}
	return marks
}

// unmarked returns the runs of bytes that are not marked; everything when marks is nil.
func unmarked(marks []bool) *regions {
	if marks == nil {
		return nil
	}
	free := &regions{}
	for i := 0; i < len(marks); {
		if marks[i] {
			i++
			continue
		}
		start := i
		for i < len(marks) && !marks[i] {
			i++
		}
		free.runs = append(free.runs, region{start, i})
	}
	return free
}
