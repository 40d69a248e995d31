package tokenizer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// mergeSlowly merges the characters of text by definition: again and again the neighbors with the
// lowest rank, the leftmost of equals, until no pair has a rank.
func mergeSlowly(text string, rank func(left, right string) (int, bool)) []string {
	parts := strings.Split(text, "")
	for {
		best, at := 0, -1
		for i := range len(parts) - 1 {
			if r, ok := rank(parts[i], parts[i+1]); ok && (at < 0 || r < best) {
				best, at = r, i
			}
		}
		if at < 0 {
			return parts
		}
		parts = slices.Replace(parts, at, at+2, parts[at]+parts[at+1])
	}
}

// drawPieces draws distinct strings over a small alphabet, each the concatenation of two earlier
// ones.
func drawPieces(t *rapid.T) (pieces []string, pairs [][2]string) {
	pieces = []string{"a", "b", "c"}
	for range rapid.IntRange(0, 12).Draw(t, "merges") {
		pair := [2]string{
			rapid.SampledFrom(pieces).Draw(t, "left"), rapid.SampledFrom(pieces).Draw(t, "right"),
		}
		if !slices.Contains(pairs, pair) {
			pairs = append(pairs, pair)
		}
		if !slices.Contains(pieces, pair[0]+pair[1]) {
			pieces = append(pieces, pair[0]+pair[1])
		}
	}
	return pieces, pairs
}

func TestMergesInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces, pairs := drawPieces(t)
		vocab := object{}
		for i, p := range pieces {
			vocab[p] = i
		}
		tok := fromObject(t, object{"model": object{"type": "BPE", "vocab": vocab, "merges": pairs}}, nil)
		text := rapid.StringMatching("[abc]{0,40}").Draw(t, "text")
		want := mergeSlowly(text, func(left, right string) (int, bool) {
			i := slices.Index(pairs, [2]string{left, right})
			return i, i >= 0
		})
		if got := spellings(tok, tok.Encode(text, false)); got != strings.Join(want, "|") {
			t.Errorf("%q with merges %q: got %s, want %s", text, pairs, got, strings.Join(want, "|"))
		}
	})
}

func TestMergesByScore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces, _ := drawPieces(t)
		m := spmMetadata(pieces...)
		m["tokenizer.ggml.add_space_prefix"] = false
		scores := m["tokenizer.ggml.scores"].([]float64)
		own := scores[len(scores)-len(pieces):]
		for i := range own {
			own[i] = float64(rapid.IntRange(-4, 0).Draw(t, fmt.Sprintf("score of %s", pieces[i])))
		}
		tok := fromMetadata(t, m)
		text := rapid.StringMatching("[abc]{0,40}").Draw(t, "text")
		want := mergeSlowly(text, func(left, right string) (int, bool) {
			i := slices.Index(pieces, left+right)
			if i < 0 {
				return 0, false
			}
			return -int(own[i]), true
		})
		if got := spellings(tok, tok.Encode(text, false)); got != strings.Join(want, "|") {
			t.Errorf("%q with pieces %q and scores %v: got %s, want %s", text, pieces, own, got, strings.Join(want, "|"))
		}
	})
}
