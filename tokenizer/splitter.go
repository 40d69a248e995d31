package tokenizer

import (
	"fmt"
	"strings"
)

// splitter cuts text into the pieces that the model sees one by one: the pre-tokenizer, as steps that
// each cut every piece of the one before.
type splitter []splitStep

// splitStep cuts a piece, which is not empty, and calls yield for its parts that are not empty, in
// order. first says that the piece begins where the whole text begins.
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

// behavior says what becomes of the matches of a split.
type behavior string

const (
	removed            behavior = "Removed"
	isolated           behavior = "Isolated"
	contiguous         behavior = "Contiguous"
	mergedWithPrevious behavior = "MergedWithPrevious"
	mergedWithNext     behavior = "MergedWithNext"
)

// check returns an error for a behavior that there is not.
func (b behavior) check() error {
	switch b {
	case removed, isolated, contiguous, mergedWithPrevious, mergedWithNext:
		return nil
	}
	return fmt.Errorf("%w: behavior %s", ErrUnsupported, quoted(string(b)))
}

// split cuts at the matches of a pattern, or with invert at what lies between them.
type split struct {
	pattern  finder
	behavior behavior
	invert   bool
}

func (s split) cut(w *work, piece string, first bool, yield func(string, bool)) {
	// A part is collected from start on, until the next section shows that it is complete.
	start, end := 0, 0
	previous := false // whether the section before was a match
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
		// An empty match parts what is beside it.
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

// prependScheme says where a metaspace puts its replacement for a space that is not there.
type prependScheme string

const (
	prependAlways prependScheme = "always"
	prependFirst  prependScheme = "first"
	prependNever  prependScheme = "never"
)

// metaspace replaces spaces by a character, puts one more before the piece, and cuts before each.
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
