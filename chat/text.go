package chat

import (
	"strings"

	"github.com/realizar/realizar/internal/jinja"
)

// Text is a rendered conversation: spans of the template's and the caller's text, in order. Joined,
// they are the whole prompt. No span is empty.
type Text []Span

// A Span is a piece of text with one author.
type Span struct {
	Text string
	// Caller is true for text from the request: contents, names, tool definitions, template
	// variables, and roles other than the well-known ones. Special tokens must not match in it or
	// across its ends.
	Caller bool
}

// String returns the whole prompt.
func (t Text) String() string {
	var b strings.Builder
	for _, s := range t {
		b.WriteString(s.Text)
	}
	return b.String()
}

func fromSpans(spans jinja.Text) Text {
	out := make(Text, len(spans))
	for i, s := range spans {
		out[i] = Span{Text: s.Text, Caller: !s.Template}
	}
	return out
}

// cut returns the first n bytes of t.
func (t Text) cut(n int) Text {
	for i, s := range t {
		if n <= len(s.Text) {
			out := append(Text(nil), t[:i]...)
			if n > 0 {
				out = append(out, Span{Text: s.Text[:n], Caller: s.Caller})
			}
			return out
		}
		n -= len(s.Text)
	}
	return t
}
