package jinja

import "strings"

// Text is a rendered template: pieces from the template and pieces from its variables, in order.
// Joined, they are the whole text. No piece is empty, and neighbors differ in origin.
type Text []Span

// A Span is a piece of rendered text of one origin.
type Span struct {
	Text string
	// Template is true if every byte was written by the template itself or comes from a variable
	// passed as trusted. Text without a clear origin counts as the caller's.
	Template bool
}

// String returns the whole text.
func (t Text) String() string {
	if len(t) == 1 {
		return t[0].Text
	}
	var b strings.Builder
	for _, s := range t {
		b.WriteString(s.Text)
	}
	return b.String()
}

// A run is a stretch of a string with one origin, from the end of the previous run to this end, in
// bytes.
type run struct {
	end  int
	tmpl bool
}

// A Str is a string with the origins of its bytes.
type Str struct {
	s    string
	runs []run // nil when the origin is tmpl throughout
	base int   // where s begins in what the runs count; the last may reach behind its end
	tmpl bool
}

// String returns a string value. trusted says that its text counts as the template's, as that of
// special tokens does. Invalid UTF-8 becomes U+FFFD.
func String(text string, trusted bool) *Str {
	return &Str{s: strings.ToValidUTF8(text, "\uFFFD"), tmpl: trusted}
}

// Text returns the text of s without its origins.
func (s *Str) Text() string { return s.s }

func (*Str) typeName() string { return "str" }

// origin reports whether the byte at i is from the template.
func (s *Str) origin(i int) bool {
	if s.runs == nil {
		return s.tmpl
	}
	return s.runs[s.runAt(i)].tmpl
}

// trusted reports whether the whole string is from the template.
func (s *Str) trusted() bool { return s.runs == nil && s.tmpl }

// runAt returns the index of the run that holds the byte at i, or the last.
func (s *Str) runAt(i int) int {
	lo, hi := 0, len(s.runs)-1
	for lo < hi {
		mid := (lo + hi) / 2
		if s.runs[mid].end-s.base > i {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

// slice returns the bytes [i, j) of s, sharing its memory.
func (s *Str) slice(i, j int) *Str {
	if i == 0 && j == len(s.s) {
		return s
	}
	out := &Str{s: s.s[i:j], tmpl: s.tmpl}
	if s.runs == nil || i == j {
		return out
	}
	a, b := s.runAt(i), s.runAt(j-1)
	if a == b {
		out.tmpl = s.runs[a].tmpl
		return out
	}
	out.runs, out.base = s.runs[a:b+1], s.base+i
	return out
}

// text returns s as spans.
func (s *Str) text() Text {
	if s.s == "" {
		return nil
	}
	if s.runs == nil {
		return Text{{s.s, s.tmpl}}
	}
	out := make(Text, 0, len(s.runs))
	start := 0
	for _, r := range s.runs {
		end := min(r.end-s.base, len(s.s))
		out = append(out, Span{s.s[start:end], r.tmpl})
		start = end
	}
	return out
}

// A builder builds a string from pieces of others and keeps their origins.
type builder struct {
	in   *interp
	buf  strings.Builder
	runs []run
}

func (in *interp) builder() *builder { return &builder{in: in} }

// write appends text of the given origin.
func (b *builder) write(text string, tmpl bool) {
	if text == "" {
		return
	}
	b.room(len(text))
	b.in.scan(len(text))
	b.buf.WriteString(text)
	b.mark(tmpl)
}

// room makes room for n more bytes. It charges the whole new buffer, since the existing bytes are
// copied.
func (b *builder) room(n int) {
	if b.buf.Cap()-b.buf.Len() >= n {
		return
	}
	b.in.grow(2*b.buf.Cap() + n) // as strings.Builder grows
	b.buf.Grow(n)
}

// mark records the origin of the bytes appended since the last run.
func (b *builder) mark(tmpl bool) {
	if n := len(b.runs); n > 0 && b.runs[n-1].tmpl == tmpl {
		b.runs[n-1].end = b.buf.Len()
		return
	}
	if n := len(b.runs); n > 0 && n == cap(b.runs) {
		b.in.growTimes(2*n, valueSize)
		runs := make([]run, n, 2*n)
		copy(runs, b.runs)
		b.runs = runs
	}
	b.runs = append(b.runs, run{b.buf.Len(), tmpl})
}

// repeat appends text n times.
func (b *builder) repeat(text string, n int, tmpl bool) {
	if n <= 0 || text == "" {
		return
	}
	b.in.fits(n, len(text))
	times := min(n, max(1, stretch/len(text)))
	b.in.grow(times * len(text))
	for piece := strings.Repeat(text, times); n > 0; n -= times {
		b.write(piece[:min(n, times)*len(text)], tmpl)
	}
}

// str appends the whole of s.
func (b *builder) str(s *Str) { b.slice(s, 0, len(s.s)) }

// slice appends the bytes [i, j) of s.
func (b *builder) slice(s *Str, i, j int) {
	if s.runs == nil {
		b.write(s.s[i:j], s.tmpl)
		return
	}
	for k := s.runAt(i); i < j; k++ {
		end := min(s.runs[k].end-s.base, j)
		b.write(s.s[i:end], s.runs[k].tmpl)
		i = end
	}
}

// done returns the string.
func (b *builder) done() *Str {
	out := &Str{s: b.buf.String()}
	switch len(b.runs) {
	case 0:
		out.tmpl = true // empty: nobody's
	case 1:
		out.tmpl = b.runs[0].tmpl
	default:
		out.runs = b.runs
	}
	return out
}

// concat joins strings.
func (in *interp) concat(parts ...*Str) *Str {
	b := in.builder()
	n := 0
	for _, p := range parts {
		n += len(p.s)
	}
	b.room(n)
	for _, p := range parts {
		b.str(p)
	}
	return b.done()
}
