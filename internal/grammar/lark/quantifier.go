package lark

import "strconv"

// repeated parses the quantifiers after n: * + ? {m,n} and ~ m..n.
func (p *parser) repeated(n *expr) (*expr, error) {
	for depth := 0; ; depth++ {
		p.space()
		at := p.pos
		low, high := 0, -1
		switch {
		case p.accept("*"):
		case p.accept("+"):
			low = 1
		case p.accept("?"):
			high = 1
		case p.ahead("{"), p.countFollows():
			var err error
			if low, high, err = p.counts(); err != nil {
				return nil, err
			}
		default:
			return n, nil
		}
		if depth == maxDepth {
			return nil, p.errorf(at, "quantifiers are nested deeper than %d", maxDepth)
		}
		n = &expr{kind: kindRepeat, at: at, subs: []*expr{n}, low: low, high: high}
	}
}

// countFollows reports whether a ~ begins a count rather than a complement.
func (p *parser) countFollows() bool {
	back := p.pos
	defer func() { p.pos = back }()
	if !p.accept("~") {
		return false
	}
	p.space()
	return p.more() && '0' <= p.text[p.pos] && p.text[p.pos] <= '9'
}

// counts parses {m}, {m,}, {m,n}, {,n}, ~m or ~m..n.
func (p *parser) counts() (low, high int, err error) {
	at := p.pos
	braces := p.accept("{")
	between := ","
	if !braces {
		p.accept("~")
		between = ".."
	}
	low, hasLow := p.count()
	high, hasHigh := low, hasLow
	if p.space(); p.accept(between) {
		if high, hasHigh = p.count(); !hasHigh {
			high = -1
		}
	}
	if p.space(); braces && !p.accept("}") || !hasLow && !hasHigh || !braces && !hasHigh {
		return 0, 0, p.errorf(at, "a count is written {m}, {m,}, {m,n}, {,n}, ~m or ~m..n; templates are not supported")
	}
	if low > maxCount || high > maxCount {
		return 0, 0, p.errorf(at, "a count is above %d", maxCount)
	}
	if high >= 0 && low > high {
		return 0, 0, p.errorf(at, "the minimum %d is above the maximum %d", low, high)
	}
	return low, high, nil
}

func (p *parser) count() (int, bool) {
	p.space()
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
