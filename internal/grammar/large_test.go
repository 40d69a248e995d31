package grammar_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/internal/rx"
)

// A large grammar ends in a grammar or in an error within reasonable time. The test logs the time.
func TestLargeGrammars(t *testing.T) {
	m := &model{}
	for b := range 256 {
		m.pieces = append(m.pieces, []byte{byte(b)})
	}
	v := m.vocabulary()
	for _, test := range []struct {
		name  string
		build func(b *grammar.Builder) grammar.Symbol
	}{
		{"enum", func(b *grammar.Builder) grammar.Symbol {
			var all []rx.Expr
			for i := range 20_000 {
				all = append(all, b.Space().Literal(fmt.Sprintf(`"value number %d of many"`, i*7919)))
			}
			return b.Lexeme(b.Space().Or(all...))
		}},
		{"lexemes", func(b *grammar.Builder) grammar.Symbol {
			top := b.Rule("top")
			var all [][]grammar.Symbol
			for i := range 10_000 {
				all = append(all, []grammar.Symbol{b.Lexeme(b.Space().Literal(fmt.Sprintf(`"value %d"`, i*7919)))})
			}
			b.Define(top, all...)
			return top
		}},
		{"nested counts", func(b *grammar.Builder) grammar.Symbol {
			s := b.Space()
			e := s.Bytes(rx.ByteRange('a', 'z'))
			for range 10 {
				e = s.Repeat(s.Concat(s.Repeat(e, 0, 1000), s.Literal("-")), 1, 1000)
			}
			return b.Lexeme(e)
		}},
		{"optional in a row", func(b *grammar.Builder) grammar.Symbol {
			top := b.Rule("top")
			var row []grammar.Symbol
			for i := range 3000 {
				row = append(row, b.Lexeme(b.Space().Repeat(b.Space().Literal(fmt.Sprint(i)), 0, 1)))
			}
			b.Define(top, row)
			return top
		}},
		{"doubling", func(b *grammar.Builder) grammar.Symbol {
			at := b.Lexeme(b.Space().Literal("a"))
			for range 60 {
				next := b.Rule("double")
				b.Define(next, []grammar.Symbol{at, at}, []grammar.Symbol{at})
				at = next
			}
			return at
		}},
		{"overlapping", func(b *grammar.Builder) grammar.Symbol {
			s := b.Space()
			e := rx.Anything
			for i := range 60 {
				e = s.And(e, s.Not(s.Concat(rx.Anything, s.Literal(fmt.Sprint(i)), s.Repeat(s.Bytes(rx.AllBytes), i, i), s.Literal("x"), rx.Anything)))
			}
			return b.Lexeme(e)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			begin := time.Now()
			b := grammar.NewBuilder(grammar.Limits{})
			g, err := b.Grammar(test.build(b))
			built := time.Since(begin)
			if err == nil {
				s := g.Start()
				for range 20 {
					words := make([]uint32, v.Words())
					if err = s.Mask(v, words); err != nil {
						break
					}
					for id := range int32(256) {
						if words[id/32]>>(id%32)&1 != 0 {
							s, _ = s.Token(v, id)
							break
						}
					}
				}
			}
			if err != nil && !errors.Is(err, grammar.ErrLimit) {
				t.Error(err)
			}
			t.Logf("built in %v, in all %v: %v", built, time.Since(begin), err)
		})
	}
}
