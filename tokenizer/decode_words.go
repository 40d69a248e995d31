package tokenizer

import "strings"

// cleaner removes the spaces that splitting text into words has added.
var cleaner = [...][2]string{
	{" .", "."}, {" ?", "?"}, {" !", "!"}, {" ,", ","}, {" ' ", "'"}, {" n't", "n't"}, {" 'm", "'m"},
	{" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
}

func cleanUp(text string) string {
	for _, c := range cleaner {
		text = strings.ReplaceAll(text, c[0], c[1])
	}
	return text
}

// wordPieceDecoding puts a space before each token that does not continue a word.
type wordPieceDecoding struct {
	prefix  string
	cleanup bool
	later   bool
	next    decoding
}

func decodeWordPiece(prefix string, cleanup bool) decodeStep {
	return func(next decoding) decoding {
		return &wordPieceDecoding{prefix: prefix, cleanup: cleanup, next: next}
	}
}

func (w *wordPieceDecoding) token(text string, literal bool) {
	if w.later {
		if rest, ok := strings.CutPrefix(text, w.prefix); ok {
			text = rest
		} else {
			text = " " + text
		}
	}
	w.later = true
	if w.cleanup {
		text = cleanUp(text)
	}
	w.next.token(text, literal)
}

func (w *wordPieceDecoding) end() { w.next.end() }

// ctcDecoding decodes connectionist temporal classification (Graves et al., 2006): repeated tokens
// count once, and a pad separates two equal tokens.
type ctcDecoding struct {
	pad, delimiter string
	cleanup        bool
	last           string
	later          bool
	next           decoding
}

func decodeCTC(pad, delimiter string, cleanup bool) decodeStep {
	return func(next decoding) decoding {
		return &ctcDecoding{pad: pad, delimiter: delimiter, cleanup: cleanup, next: next}
	}
}

func (c *ctcDecoding) token(text string, literal bool) {
	if c.later && text == c.last {
		return
	}
	c.last, c.later = text, true
	if c.pad != "" {
		text = strings.ReplaceAll(text, c.pad, "")
	}
	if c.cleanup {
		text = strings.ReplaceAll(cleanUp(text), c.delimiter, " ")
	}
	if text != "" {
		c.next.token(text, literal)
	}
}

func (c *ctcDecoding) end() { c.next.end() }

// suffixDecoding replaces the suffix of tokens that end a word by a space, and removes it at the
// end of the text.
type suffixDecoding struct {
	suffix  string
	held    string // the token that may be the last one
	literal bool
	holds   bool
	next    decoding
}

func decodeSuffix(suffix string) decodeStep {
	return func(next decoding) decoding { return &suffixDecoding{suffix: suffix, next: next} }
}

func (s *suffixDecoding) token(text string, literal bool) {
	s.release(" ")
	s.held, s.literal, s.holds = text, literal, true
}

func (s *suffixDecoding) release(space string) {
	if s.holds {
		s.next.token(strings.ReplaceAll(s.held, s.suffix, space), s.literal)
		s.holds = false
	}
}

func (s *suffixDecoding) end() {
	s.release("")
	s.next.end()
}
