package gbnf

import (
	"strconv"
	"strings"

	"github.com/realizar/realizar/internal/grammar/ebnf"
)

// token parses a terminal for one token: <[123]> by id or <text> by text. A leading ! matches any
// other token.
func (p *parser) token() (*ebnf.Node, error) {
	at := p.pos
	negate := p.accept("!")
	if !p.accept("<") {
		return nil, p.errorf(at, "a token follows !, as in !<[123]> or !<text>")
	}
	end := strings.IndexAny(p.text[p.pos:], ">\n")
	if end <= 0 || p.text[p.pos+end] != '>' {
		return nil, p.errorf(at, "a token is written <[123]> or <text>, on one line")
	}
	text := p.text[p.pos : p.pos+end]
	p.pos += end + 1
	if number, ok := strings.CutPrefix(text, "["); ok {
		if number, ok = strings.CutSuffix(number, "]"); ok {
			id, err := strconv.ParseInt(number, 10, 32)
			if err != nil || id < 0 {
				return nil, p.errorf(at, "<[%s]> is not the number of a token", number)
			}
			if negate {
				return ebnf.Symbol(p.b.NotTokens([]int32{int32(id)}, nil)), nil
			}
			return ebnf.Symbol(p.b.Token(int32(id))), nil
		}
	}
	text = "<" + text + ">"
	if negate {
		return ebnf.Symbol(p.b.NotTokens(nil, []string{text})), nil
	}
	return ebnf.Symbol(p.b.Special(text)), nil
}
