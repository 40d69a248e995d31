package tokenizer

import (
	"slices"
	"strings"
)

// region is the bytes from start up to but not including end.
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

// markTyped returns, for every byte of text (which begins at offset in the whole text), whether
// special tokens may not match in it. A normalizer carries the marks along. It returns nil if
// nothing depends on them.
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

// unmarked returns the runs of bytes without a mark; all of the text if marks is nil.
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
