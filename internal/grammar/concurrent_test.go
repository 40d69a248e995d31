package grammar_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/realizar/realizar/internal/grammar"
)

// Many goroutines may use a grammar, its states and a vocabulary at once, even while the caches of
// the grammar are dropped.
func TestManyGoroutines(t *testing.T) {
	var pieces [][]byte
	for b := byte(' '); b < 0x7f; b++ {
		pieces = append(pieces, []byte{b})
	}
	for _, text := range []string{`":`, `": "`, `",`, `", "`, "name", "ame", `e"`, "email", "12", "345", "}]", `"}`, `{"`, "  ", "nick"} {
		pieces = append(pieces, []byte(text))
	}
	end := int32(len(pieces))
	for _, limits := range []grammar.Limits{{}, {Sets: 200, Derivatives: 3000}} {
		v := grammar.NewVocabulary(pieces, nil, []int32{end})
		b := grammar.NewBuilder(limits)
		g := mustGrammar(t, b, samples[2].start(newJSON(b)))
		text := samples[2].text
		want := masksOf(t, g, v, text)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if got := masksOf(t, g, v, text); !slices.EqualFunc(got, want, slices.Equal) {
					t.Error("masks differ")
				}
			})
		}
		wg.Wait()
	}
}

// masksOf returns the masks before each byte of a text, and after the last.
func masksOf(t *testing.T, g *grammar.Grammar, v *grammar.Vocabulary, text string) [][]uint32 {
	var masks [][]uint32
	s := g.Start()
	for i := range len(text) + 1 {
		words := make([]uint32, v.Words())
		if err := s.Mask(v, words); err != nil {
			t.Error(err)
			return nil
		}
		masks = append(masks, words)
		if i < len(text) {
			var ok bool
			if s, ok = s.Bytes([]byte{text[i]}); !ok {
				t.Errorf("no more than %q: %v", text[:i], s.Err())
				return nil
			}
		}
	}
	if !s.Ends() || strings.TrimSpace(text) == "" {
		t.Error("the text has no end")
	}
	return masks
}
