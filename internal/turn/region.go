package turn

import "strings"

// A region is the text or reasoning between two marks. White space at its ends may belong to the
// marks, or be stripped by the template, so it is held back until the following text is known.
type region struct {
	kind  Kind
	skip  string // white space of the preceding mark that may still follow
	left  Trim
	right Trim
	said  bool   // something other than white space has come
	space []byte // white space that is held back
}

// maxLeading bounds the white space held before the first word of a region, for
// a region of white space alone is nothing.
const maxLeading = 256

// enter begins a region after a mark with the white space skip behind it.
func (p *Parser) enter(kind Kind, skip string) {
	p.behind = false
	f := p.plan.form
	r := region{kind: kind, skip: skip, left: f.Content.TrimLeft, right: f.Content.TrimRight}
	if kind == Reasoning {
		r.left, r.right = f.Reasoning.TrimLeft, f.Reasoning.TrimRight
	}
	p.region = r
}

// put emits text of the region.
func (p *Parser) put(in []sym) {
	r := &p.region
	var out []byte
	for _, s := range in {
		c := byte(s)
		if !isSpace(s) {
			r.skip = ""
			out = append(out, r.space...)
			r.space = r.space[:0]
			r.said = true
			if r.kind == Text {
				p.spoken = true
			}
			if s&symPrompt == 0 {
				out = append(out, c)
			}
			continue
		}
		if r.skip != "" && r.skip[0] == c {
			r.skip = r.skip[1:]
			continue
		}
		r.skip = ""
		if s&symPrompt != 0 || !r.said && (r.left == TrimSpace || r.left == TrimNewlines && c == '\n' && len(r.space) == 0) {
			continue
		}
		r.space = append(r.space, c)
		if over := len(r.space) - p.hold(); over > 0 {
			out = append(out, r.space[:over]...)
			r.space = append(r.space[:0], r.space[over:]...)
			r.said = true
		}
	}
	p.emit(Event{Kind: r.kind, Text: string(out)})
}

// hold returns how much of the white space at the end must be held back.
func (p *Parser) hold() int {
	r := &p.region
	switch {
	case r.right != TrimNone:
		return p.o.Limit
	case !r.said:
		return maxLeading
	}
	longest := 0
	for _, lead := range p.plan.leads {
		for n := min(len(lead), len(r.space)); n > longest; n-- {
			if strings.Contains(lead, string(r.space[len(r.space)-n:])) {
				longest = n
				break
			}
		}
	}
	return longest
}

// putText emits bytes that turned out to be text.
func (p *Parser) putText(text []byte) {
	in := make([]sym, len(text))
	for i, c := range text {
		in[i] = sym(c)
	}
	p.put(in)
}

// leave ends the region before a mark with the white space lead in front of it.
// It returns the white space that it dropped.
func (p *Parser) leave(lead string, mark bool) []byte {
	r := &p.region
	if !mark && r.kind == Text {
		lead = p.plan.end.lead
	}
	held := string(r.space)
	rest := ""
	if r.said {
		rest = held
		for n := min(len(lead), len(held)); n > 0; n-- {
			if strings.HasSuffix(held, lead[len(lead)-n:]) {
				rest = held[:len(held)-n]
				break
			}
		}
		switch r.right {
		case TrimSpace:
			rest = strings.TrimRight(rest, spaces)
		case TrimNewlines:
			rest = strings.TrimRight(rest, "\n")
		}
	}
	p.emit(Event{Kind: r.kind, Text: rest})
	r.space = r.space[:0]
	return []byte(held[len(rest):])
}
