package tokenizer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestJoins checks that a long piece that is split where no token crosses has the same ids as the
// whole piece.
func TestJoins(t *testing.T) {
	cut := 0
	for seed := range uint64(20) {
		g := rand.New(rand.NewPCG(seed, 1))
		letters := []rune("abcdeé世\xff")[:3+g.IntN(6)]
		var v vocabulary
		v.ids = map[string]int32{}
		add := func(text string) int32 {
			if id, ok := v.ids[text]; ok {
				return id
			}
			id := int32(len(v.tokens))
			v.set(id, text)
			v.ids[text] = id
			return id
		}
		unknown := add("<unk>")
		for b := range 256 {
			add(fmt.Sprintf("<0x%02X>", b))
		}
		for _, r := range letters[1:] {
			add(string(r))
		}
		merging := &bpe{vocab: &v, rules: map[[2]int32]mergeRule{}, fallback: newByteFallback(&v), unknown: unknown}
		var scores []float64
		for rank := range int32(30) {
			left, right := 257+g.Int32N(int32(len(v.tokens))-257), 257+g.Int32N(int32(len(v.tokens))-257)
			id := add(v.tokens[left].text + v.tokens[right].text)
			merging.rules[[2]int32{left, right}] = mergeRule{id, rank}
		}
		for range v.tokens {
			scores = append(scores, float64(g.IntN(9)))
		}
		merging.init(false)
		if merging.joins == nil {
			t.Fatal("a vocabulary with all bytes has no joins")
		}
		scored := newSPM(&v, scores, unknown)
		scored.fuse = seed%2 == 0
		runes := make([]rune, 6*joinedPart)
		for i := range runes {
			runes[i] = letters[g.IntN(len(letters))]
		}
		text := string(runes)
		if merging.joins.part(text) == len(text) || scored.joins.part(text) == len(text) {
			continue // every pair is in a token
		}
		cut++
		if got, want := merging.encode(nil, nil, text), merging.encodePart(nil, nil, text); !slices.Equal(got, want) {
			t.Errorf("seed %d: BPE: %d ids, want %d", seed, len(got), len(want))
		}
		want, _ := scored.encodePart(nil, nil, text, false)
		if got := scored.encode(nil, nil, text); !slices.Equal(got, want) {
			t.Errorf("seed %d: SentencePiece: %d ids, want %d", seed, len(got), len(want))
		}
	}
	if cut < 5 {
		t.Errorf("only %d texts were cut", cut)
	}
}
