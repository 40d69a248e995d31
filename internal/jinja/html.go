package jinja

import "html"

// escape makes a string safe for HTML; markup is so already.
func (in *interp) escape(s *Str) *Str {
	if s.safe {
		return s
	}
	const special = `&<>'"`
	at := in.indexAny(s.s, special)
	if at < 0 {
		return asSafe(s)
	}
	b := in.builder()
	i := 0
	for ; at >= 0; at = in.indexAny(s.s[i:], special) {
		b.slice(s, i, i+at)
		i += at
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
		}
		b.write(to, s.origin(i))
		i++
	}
	b.slice(s, i, len(s.s))
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
	if in.index(s.s, "&") < 0 {
		return s
	}
	b := in.builder()
	for i := 0; i < len(s.s); {
		at := in.index(s.s[i:], "&")
		if at < 0 {
			b.slice(s, i, len(s.s))
			break
		}
		b.slice(s, i, i+at)
		i += at
		end := i + referenceLength(s.s[i:])
		in.step(8)
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
		i += in.skip(s.s[i:], isSpace)
		if i == len(s.s) {
			break
		}
		j := in.indexFunc(s.s[i:], isSpace)
		if j < 0 {
			j = len(s.s) - i
		}
		if b.buf.Len() > 0 {
			b.write(" ", s.origin(i-1))
		}
		b.slice(s, i, i+j)
		i += j
	}
	return in.unescape(b.done())
}

// cutBetween removes every stretch from open to the next end.
func (in *interp) cutBetween(s *Str, open, end string) *Str {
	if in.index(s.s, open) < 0 {
		return s
	}
	b := in.builder()
	i := 0
	for {
		from := in.index(s.s[i:], open)
		if from < 0 {
			break
		}
		to := in.index(s.s[i+from:], end)
		if to < 0 {
			break
		}
		b.slice(s, i, i+from)
		i += from + to + len(end)
	}
	b.slice(s, i, len(s.s))
	return b.done()
}
