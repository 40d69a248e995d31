package pattern

import "strconv"

// maxCount bounds the counts of {m,n}.
const maxCount = 1 << 24

// repeated parses the quantifier after n, if there is one.
func (p *parser) repeated(n *node) (*node, error) {
	p.skipSpace()
	at := p.pos
	var min, max int
	switch {
	case p.accept("*"):
		min, max = 0, -1
	case p.accept("+"):
		min, max = 1, -1
	case p.accept("?"):
		min, max = 0, 1
	default:
		var ok bool
		var err error
		if min, max, ok, err = p.counts(); !ok || err != nil {
			return n, err
		}
	}
	if n.bare() {
		return nil, p.errorf(at, "what stands before this quantifier matches no text and cannot be repeated")
	}
	p.accept("?") // lazy: matches the same texts
	if p.accept("+") {
		return nil, p.errorf(at, "a quantifier that gives nothing back (as in a*+) is not supported; leave the last + away if the texts are the same")
	}
	p.skipSpace()
	if p.ahead("*") || p.ahead("+") || p.ahead("?") {
		return nil, p.errorf(p.pos, "a quantifier follows another; put a group (?:...) around what the first repeats")
	}
	return repeatNode(n.at, n, min, max), nil
}

// counts parses {m}, {m,} or {m,n}; in Common also {,n}. Any other brace is a character.
func (p *parser) counts() (min, max int, ok bool, err error) {
	at := p.pos
	if !p.accept("{") {
		return 0, 0, false, nil
	}
	min, hasMin := p.count()
	max, hasMax := min, hasMin
	comma := p.accept(",")
	if comma {
		if max, hasMax = p.count(); !hasMax {
			max = -1
		}
	}
	if !p.accept("}") || !hasMin && (!comma || !hasMax) {
		p.pos = at
		return 0, 0, false, nil
	}
	if !hasMin {
		if p.o.Dialect == ECMA {
			return 0, 0, false, p.errorf(at, "ECMA-262 has no count without a minimum; write {0,%d}", max)
		}
		min = 0
	}
	if min > maxCount || max > maxCount {
		return 0, 0, false, p.errorf(at, "a count is above %d", maxCount)
	}
	if max >= 0 && min > max {
		return 0, 0, false, p.errorf(at, "the minimum %d is above the maximum %d", min, max)
	}
	return min, max, true, nil
}

// count parses digits. It returns maxCount+1 for a larger number.
func (p *parser) count() (int, bool) {
	begin := p.pos
	for p.more() && '0' <= p.text[p.pos] && p.text[p.pos] <= '9' {
		p.pos++
	}
	if p.pos == begin {
		return 0, false
	}
	n, err := strconv.Atoi(p.text[begin:p.pos])
	if err != nil || n > maxCount {
		n = maxCount + 1
	}
	return n, true
}
