package jinja

import (
	"html"
	"strings"
)

// escape makes a string safe for HTML; markup is so already.
func (in *interp) escape(s *Str) *Str {
	if s.safe {
		return s
	}
	in.scan(len(s.s))
	if !strings.ContainsAny(s.s, `&<>'"`) {
		return asSafe(s)
	}
	b := in.builder()
	from := 0
	for i := range len(s.s) {
		var to string
		switch s.s[i] {
		case '&':
			to = "&amp;"
		case '<':
			to = "&lt;"
		case '>':
			to = "&gt;"
		case '\'':
			to = "&#39;"
		case '"':
			to = "&#34;"
		default:
			continue
		}
		b.slice(s, from, i)
		b.write(to, s.origin(i))
		from = i + 1
	}
	b.slice(s, from, len(s.s))
	out := b.done()
	out.safe = true
	return out
}

// escapeValue is markupsafe's escape of any value.
func (in *interp) escapeValue(v Value) (*Str, error) {
	s, err := in.softStr(v)
	if err != nil {
		return nil, err
	}
	return in.escape(s), nil
}

// unescape replaces the character references of HTML by what they stand for.
func (in *interp) unescape(s *Str) *Str {
	in.scan(len(s.s))
	if strings.IndexByte(s.s, '&') < 0 {
		return s
	}
	b := in.builder()
	for i := 0; i < len(s.s); {
		at := strings.IndexByte(s.s[i:], '&')
		if at < 0 {
			b.slice(s, i, len(s.s))
			break
		}
		b.slice(s, i, i+at)
		i += at
		end := i + referenceLength(s.s[i:])
		text := html.UnescapeString(s.s[i:end])
		if text == s.s[i:end] {
			b.slice(s, i, end)
		} else {
			b.write(text, s.origin(i) && s.origin(end-1))
		}
		i = end
	}
	return b.done()
}

// referenceLength returns how far the character reference that may start at
// the & before s reaches. The longest name has 32 letters.
func referenceLength(s string) int {
	for i := 1; i < len(s) && i < 34; i++ {
		c := s[i]
		if c == ';' {
			return i + 1
		}
		if !isDigitByte(c) && c != '#' && (c|0x20 < 'a' || c|0x20 > 'z') {
			return i
		}
	}
	return min(len(s), 34)
}

// striptags removes comments and tags, collapses white space and resolves
// character references.
func (in *interp) striptags(s *Str) *Str {
	s = in.cutBetween(s, "<!--", "-->")
	s = in.cutBetween(s, "<", ">")
	b := in.builder()
	for i := 0; i < len(s.s); {
		i = len(s.s) - len(strings.TrimLeftFunc(s.s[i:], isSpace))
		if i == len(s.s) {
			break
		}
		j := strings.IndexFunc(s.s[i:], isSpace)
		if j < 0 {
			j = len(s.s) - i
		}
		if len(b.buf) > 0 {
			b.write(" ", s.origin(i-1))
		}
		b.slice(s, i, i+j)
		i += j
	}
	return in.unescape(b.done())
}

// cutBetween removes every stretch from open to the next end.
func (in *interp) cutBetween(s *Str, open, end string) *Str {
	in.scan(len(s.s))
	if !strings.Contains(s.s, open) {
		return s
	}
	b := in.builder()
	i := 0
	for {
		from := strings.Index(s.s[i:], open)
		if from < 0 {
			break
		}
		to := strings.Index(s.s[i+from:], end)
		if to < 0 {
			break
		}
		b.slice(s, i, i+from)
		i += from + to + len(end)
	}
	b.slice(s, i, len(s.s))
	return b.done()
}
