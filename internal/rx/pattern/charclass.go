package pattern

import (
	"sync"
	"unicode"
)

// The sets of \d, \w and \s.
var (
	asciiDigit = setOf('0', '9')
	asciiWord  = setOf('0', '9', 'A', 'Z', '_', '_', 'a', 'z')
	asciiSpace = setOf('\t', '\r', ' ', ' ')

	// ECMA-262's WhiteSpace and LineTerminator.
	ecmaSpace = sync.OnceValue(func() set {
		return tables(unicode.Zs).union(setOf('\t', '\r', 0xFEFF, 0xFEFF, 0x2028, 0x2029))
	})

	// As UTS 18 defines them and Rust implements them.
	unicodeDigit = sync.OnceValue(func() set { return tables(unicode.Nd) })
	unicodeSpace = sync.OnceValue(func() set { return tables(unicode.White_Space) })
	unicodeWord  = sync.OnceValue(func() set {
		return tables(unicode.L, unicode.Nl, unicode.Other_Alphabetic, unicode.M, unicode.Nd, unicode.Pc, unicode.Join_Control)
	})
)

// perl returns the set of \d, \w or \s.
func (p *parser) perl(letter byte) set {
	ecma, ascii := p.o.Dialect == ECMA, p.flags.ascii
	switch {
	case letter == 'd' && (ecma || ascii):
		return asciiDigit
	case letter == 'd':
		return unicodeDigit()
	case letter == 'w' && (ecma || ascii):
		return asciiWord
	case letter == 'w':
		return unicodeWord()
	case ecma:
		return ecmaSpace()
	case ascii:
		return asciiSpace
	}
	return unicodeSpace()
}

// lineEnds returns the characters that end lines. A dot does not match them.
func (p *parser) lineEnds() set {
	if p.o.Dialect == ECMA {
		return setOf('\n', '\n', '\r', '\r', 0x2028, 0x2029)
	}
	return single('\n')
}

// posix are the classes that a class may contain as [:name:].
var posix = map[string]set{
	"alnum":  setOf('0', '9', 'A', 'Z', 'a', 'z'),
	"alpha":  setOf('A', 'Z', 'a', 'z'),
	"ascii":  setOf(0, 0x7F),
	"blank":  setOf('\t', '\t', ' ', ' '),
	"cntrl":  setOf(0, 0x1F, 0x7F, 0x7F),
	"digit":  asciiDigit,
	"graph":  setOf('!', '~'),
	"lower":  setOf('a', 'z'),
	"print":  setOf(' ', '~'),
	"punct":  setOf('!', '/', ':', '@', '[', '`', '{', '~'),
	"space":  asciiSpace,
	"upper":  setOf('A', 'Z'),
	"word":   asciiWord,
	"xdigit": setOf('0', '9', 'A', 'F', 'a', 'f'),
}
