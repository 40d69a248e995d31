package tokenizer

import (
	"fmt"
	"strings"
)

// splitter is the pre-tokenizer. It splits text into the pieces that the model encodes separately.
// Each step splits every piece of the step before.
type splitter []splitStep

// splitStep splits a piece that is not empty and calls yield for its non-empty parts, in order.
// first says whether the piece begins the whole text.
type splitStep interface {
	cut(w *work, piece string, first bool, yield func(piece string, first bool))
}

// chain returns a function that calls yield for every piece of a text.
func (s splitter) chain(w *work, yield func(piece string, first bool)) func(text string, first bool) {
	for i := len(s) - 1; i >= 0; i-- {
		step, next := s[i], yield
		yield = func(piece string, first bool) { step.cut(w, piece, first, next) }
	}
	return yield
}

// behavior says how a split treats matches.
type behavior string

const (
	removed            behavior = "Removed"
	isolated           behavior = "Isolated"
	contiguous         behavior = "Contiguous"
	mergedWithPrevious behavior = "MergedWithPrevious"
	mergedWithNext     behavior = "MergedWithNext"
)

// check returns an error for an unknown behavior.
func (b behavior) check() error {
	switch b {
	case removed, isolated, contiguous, mergedWithPrevious, mergedWithNext:
		return nil
	}
	return fmt.Errorf("%w: behavior %s", ErrUnsupported, quoted(string(b)))
}

// split splits at the matches of a pattern, or with invert at the text between them.
type split struct {
	pattern  finder
	behavior behavior
	invert   bool
}

func (s split) cut(w *work, piece string, first bool, yield func(string, bool)) {
	// A part grows from start until the next section shows that it is complete.
	start, end := 0, 0
	previous := false // whether the previous section was a match
	section := func(to int, match bool) {
		if to == end {
			return
		}
		match = match != s.invert
		var joins bool
		switch s.behavior {
		case removed, isolated:
		case contiguous:
			joins = match == previous
		case mergedWithPrevious:
			joins = match && !previous
		case mergedWithNext:
			joins = !match && previous
		}
		if !joins && end > start {
			yield(piece[start:end], first && start == 0)
			start = end
		}
		if s.behavior == removed && match {
			start = to
		}
		end, previous = to, match
	}
	s.pattern.each(w, piece, func(lo, hi int) bool {
		section(lo, false)
		if lo < hi {
			section(hi, true)
			return true
		}
		// An empty match separates its neighbors.
		if end > start {
			yield(piece[start:end], first && start == 0)
			start = end
		}
		previous = !s.invert
		return true
	})
	section(len(piece), false)
	if end > start {
		yield(piece[start:end], first && start == 0)
	}
}

// spaceBefore puts a space before a piece that does not begin with one.
type spaceBefore struct{}

func (spaceBefore) cut(w *work, piece string, first bool, yield func(string, bool)) {
	if piece[0] != ' ' {
		piece = " " + piece
	}
	yield(piece, first)
}

// prependScheme says before which pieces a metaspace adds its replacement if they do not begin with
// a space.
type prependScheme string

const (
	prependAlways prependScheme = "always"
	prependFirst  prependScheme = "first"
	prependNever  prependScheme = "never"
)

// metaspace replaces spaces by a character, prepends one to the piece, and splits before each.
type metaspace struct {
	replacement string
	prepend     prependScheme
	split       bool
}

func (m metaspace) cut(w *work, piece string, first bool, yield func(string, bool)) {
	piece = strings.ReplaceAll(piece, " ", m.replacement)
	if m.prepend == prependAlways || m.prepend == prependFirst && first {
		if !strings.HasPrefix(piece, m.replacement) {
			piece = m.replacement + piece
		}
	}
	if !m.split {
		yield(piece, first)
		return
	}
	split{pattern: literal(m.replacement), behavior: mergedWithNext}.cut(w, piece, first, yield)
}
