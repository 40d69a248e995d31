package gbnf

import (
	"testing"

	"github.com/realizar/realizar/internal/grammar"
)

func TestTokens(t *testing.T) {
	v := grammar.NewVocabulary([][]byte{[]byte("a"), []byte("b"), nil, nil, nil}, map[string]int32{"<x>": 2, "<y>": 3, "<end>": 4}, []int32{4})
	for _, test := range []struct {
		grammar string
		fits    []int32
	}{
		{`root ::= <x>`, []int32{2}},
		{`root ::= <[1]>`, []int32{1}},
		{`root ::= !<x>`, []int32{0, 1, 3}},
		{`root ::= !<[1]>`, []int32{0, 2, 3}},
		{`root ::= !<x>*`, []int32{0, 1, 3, 4}},
		{`root ::= (!<x> | <x>)`, []int32{0, 1, 2, 3}},
	} {
		g, err := compile(t, test.grammar)
		if err != nil {
			t.Fatal(test.grammar, err)
		}
		words := make([]uint32, 1)
		if err := g.Start().Mask(v, words); err != nil {
			t.Fatal(err)
		}
		var want uint32
		for _, id := range test.fits {
			want |= 1 << id
		}
		if words[0] != want {
			t.Errorf("%s: mask %05b, want %05b", test.grammar, words[0], want)
		}
	}
}
