package lark

import (
	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/internal/grammar/ebnf"
	"github.com/realizar/realizar/internal/rx"
)

// A compiler turns definitions into rules of ebnf.
type compiler struct {
	*file
	b       *grammar.Builder
	s       *rx.Space
	o       Options
	options options
	terms   map[string]*term // terminals by name
	rules   map[string]int   // rules by name
	bodies  []*definition    // of the rules
	ignored rx.Expr          // text allowed after each lexeme; Empty if none
	leaves  []*leaf
	lazy    bool // whether any leaf is lazy
}

// A leaf is one use of a lexeme, or of another symbol, in a rule.
type leaf struct {
	at     int
	expr   rx.Expr
	size   int
	lazy   bool
	symbol grammar.Symbol // if not zero, used instead of expr
	token  bool           // whether symbol matches tokens
}

// A part is a piece of a rule's body.
type part struct {
	kind      kind // kindCat, kindAlt or kindRepeat; kindName for a rule; kindString for a leaf
	subs      []*part
	low, high int
	rule      int
	leaf      int
}

func (c *compiler) compile(definitions []*definition, ignored []*expr) ([]ebnf.Rule, error) {
	for _, d := range definitions {
		if isTerminal(d.name) {
			c.terms[d.name] = &term{body: d.body}
		} else {
			c.rules[d.name] = len(c.bodies)
			c.bodies = append(c.bodies, d)
		}
	}
	start, ok := c.rules["start"]
	if !ok {
		return nil, c.errorf(0, "there is no rule start; name the rule for the whole text start")
	}
	if err := c.ignore(ignored); err != nil {
		return nil, err
	}
	parts := make([]*part, len(c.bodies))
	for i, d := range c.bodies {
		var err error
		if parts[i], err = c.body(d); err != nil {
			return nil, err
		}
	}
	if c.lazy {
		if err := c.separate(parts, start); err != nil {
			return nil, err
		}
	}
	rules := make([]ebnf.Rule, len(parts))
	for i, p := range parts {
		rules[i] = ebnf.Rule{Name: c.bodies[i].name, Body: c.node(p)}
	}
	if c.options.initialSkip {
		c.rules["start"] = len(rules) // a new rule to which no other refers
		c.bodies = append(c.bodies, c.bodies[start])
		rules = append(rules, ebnf.Rule{Name: "start", Body: ebnf.Cat(ebnf.Lexeme(c.ignored, 1), ebnf.Ref(start))})
	}
	return rules, c.s.Err()
}

// ignore sets c.ignored, the text allowed after each lexeme.
func (c *compiler) ignore(list []*expr) error {
	var exprs []rx.Expr
	for _, n := range list {
		e, _, err := c.term(n, 0)
		if err != nil {
			return err
		}
		exprs = append(exprs, e)
	}
	high := -1
	if c.options.skipOnce {
		high = 1
	}
	c.ignored = c.s.Repeat(c.s.Or(exprs...), 0, high)
	return nil
}

// body turns the body of a rule into parts.
func (c *compiler) body(d *definition) (*part, error) {
	if !d.lazy && d.suffix == nil {
		return c.part(d.body)
	}
	e, size, err := c.term(d.body, 0)
	if err != nil {
		return nil, err
	}
	if d.suffix != nil {
		end, more, err := c.term(d.suffix, 0)
		if err != nil {
			return nil, err
		}
		e, size = c.s.Concat(e, end), size+more
	}
	// As few bytes as possible: exclude texts with a proper prefix in e.
	longer := c.s.Concat(e, c.s.Bytes(rx.AllBytes), rx.Anything)
	c.lazy = true
	return c.leaf(&leaf{at: d.at, expr: c.s.And(e, c.s.Not(longer)), size: 2 * size, lazy: true})
}

func (c *compiler) leaf(l *leaf) (*part, error) {
	if l.symbol.IsZero() && c.s.IsEmpty(l.expr) {
		if err := c.s.Err(); err != nil {
			return nil, err
		}
		return nil, c.errorf(l.at, "no text fits this")
	}
	c.leaves = append(c.leaves, l)
	return &part{kind: kindString, leaf: len(c.leaves) - 1}, nil
}

func (c *compiler) part(n *expr) (*part, error) {
	switch n.kind {
	case kindCat, kindAlt, kindRepeat:
		p := &part{kind: n.kind, low: n.low, high: n.high}
		for _, sub := range n.subs {
			x, err := c.part(sub)
			if err != nil {
				return nil, err
			}
			p.subs = append(p.subs, x)
		}
		return p, nil
	case kindAnd, kindNot:
		return nil, c.errorf(n.at, "& and ~ work in terminals; give this an upper-case name of its own")
	case kindName:
		if !isTerminal(n.text) {
			i, ok := c.rules[n.text]
			if !ok {
				return nil, c.errorf(n.at, "the rule %s is not defined", n.text)
			}
			return &part{kind: kindName, rule: i}, nil
		}
	case kindSpecial:
		return c.leaf(&leaf{at: n.at, symbol: c.b.Special(n.text), token: true})
	case kindTokens:
		return c.tokens(n)
	case kindJSON:
		if c.o.JSON == nil {
			return nil, c.errorf(n.at, "%%json is not supported here")
		}
		symbol, err := c.o.JSON([]byte(n.text))
		if err != nil {
			return nil, c.wrap(n.at, "%json", err)
		}
		return c.leaf(&leaf{at: n.at, symbol: symbol})
	}
	e, size, err := c.term(n, 0)
	if err != nil {
		return nil, err
	}
	return c.leaf(&leaf{at: n.at, expr: e, size: size})
}

func (c *compiler) tokens(n *expr) (*part, error) {
	if n.negate {
		return c.leaf(&leaf{at: n.at, symbol: c.b.NotTokens(n.ids, nil), token: true})
	}
	all := &part{kind: kindAlt}
	for _, id := range n.ids {
		p, err := c.leaf(&leaf{at: n.at, symbol: c.b.Token(id), token: true})
		if err != nil {
			return nil, err
		}
		all.subs = append(all.subs, p)
	}
	return all, nil
}

// node turns parts into a node of ebnf.
func (c *compiler) node(p *part) *ebnf.Node {
	subs := make([]*ebnf.Node, len(p.subs))
	for i, sub := range p.subs {
		subs[i] = c.node(sub)
	}
	switch p.kind {
	case kindCat:
		return ebnf.Cat(subs...)
	case kindAlt:
		return ebnf.Alt(subs...)
	case kindRepeat:
		return ebnf.Repeat(subs[0], p.low, p.high)
	case kindName:
		return ebnf.Ref(p.rule)
	}
	l := c.leaves[p.leaf]
	if l.symbol.IsZero() {
		return ebnf.Lexeme(c.s.Concat(l.expr, c.ignored), l.size+1)
	}
	if c.ignored == rx.Empty {
		return ebnf.Symbol(l.symbol)
	}
	return ebnf.Cat(ebnf.Symbol(l.symbol), ebnf.Lexeme(c.ignored, 1))
}
