package tokenizer_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/realizar/realizar/tokenizer"
)

// scoredTokens is a vocabulary of Unigram.
type scoredTokens [][2]any

// unigramFile returns a tokenizer.json of Unigram. Its unknown token is the first of vocab.
func unigramFile(fallback bool, vocab scoredTokens) object {
	return object{"model": object{"type": "Unigram", "unk_id": 0, "byte_fallback": fallback, "vocab": vocab}}
}

func TestUnigram(t *testing.T) {
	vocab := scoredTokens{{"<unk>", 0.0}, {"a", -1.0}, {"b", -1.0}, {"ab", -1.5}, {"abc", -9.0}, {"bc", -2.0}, {"é", -1.0}}
	for _, test := range []struct{ name, text, want string }{
		{"one token for two", "ab", "ab"},
		{"the best sum and not the longest", "abc", "a|bc"},
		{"the longest where it is the best", "abab", "ab|ab"},
		{"an unknown character", "axb", "a|<unk>|b"},
		{"unknown characters in a row", "axyzb", "a|<unk>|b"},
		{"a known character that many bytes spell", "aéb", "a|é|b"},
		{"an unknown one that many bytes spell", "a世b", "a|<unk>|b"},
		{"a byte of no character", "a\xc3b", "a|<unk>|b"},
		{"nothing", "", ""},
	} {
		tok := fromObject(t, unigramFile(false, vocab), nil)
		if got := spellings(tok, tok.Encode(test.text, false)); got != test.want {
			t.Errorf("%s: %q: got %s, want %s", test.name, test.text, got, test.want)
		}
	}
	for _, c := range []byte("x\xe4\xb8") {
		vocab = append(vocab, [2]any{fmt.Sprintf("<0x%02X>", c), 0.0})
	}
	tok := fromObject(t, unigramFile(true, vocab), nil)
	for text, want := range map[string]string{
		"axb": "a|<0x78>|b", "axxb": "a|<0x78>|<0x78>|b", "a世b": "a|<unk>|b", "ax世": "a|<unk>",
	} {
		if got := spellings(tok, tok.Encode(text, false)); got != want {
			t.Errorf("byte fallback: %q: got %s, want %s", text, got, want)
		}
	}
	if tok.Kind() != "Unigram" {
		t.Errorf("kind %q", tok.Kind())
	}
}

// TestUnigramIsBest compares with the best of all ways to cut a text.
func TestUnigramIsBest(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		vocab := scoredTokens{{"<unk>", 0.0}, {"a", -1 - random.Float64()}, {"b", -1 - random.Float64()}}
		scores := map[string]float64{"a": vocab[1][1].(float64), "b": vocab[2][1].(float64)}
		letters := func(n int) string {
			var text strings.Builder
			for range n {
				text.WriteByte("ab"[random.IntN(2)])
			}
			return text.String()
		}
		for range 6 {
			token := letters(2 + random.IntN(3))
			if _, ok := scores[token]; !ok {
				scores[token] = -3 * random.Float64() * float64(len(token))
				vocab = append(vocab, [2]any{token, scores[token]})
			}
		}
		text := letters(30)
		best := make([]float64, len(text)+1)
		for end := 1; end <= len(text); end++ {
			best[end] = math.Inf(-1)
			for token, score := range scores {
				if start := end - len(token); start >= 0 && text[start:end] == token {
					best[end] = max(best[end], best[start]+score)
				}
			}
		}
		tok := fromObject(t, unigramFile(false, vocab), nil)
		sum := 0.0
		for _, id := range tok.Encode(text, false) {
			sum += vocab[id][1].(float64)
		}
		if math.Abs(sum-best[len(text)]) > 1e-9 {
			t.Fatalf("%q with %v: sum %g, best %g", text, scores, sum, best[len(text)])
		}
	}
}

// wordPieceFile returns a tokenizer.json of WordPiece with a vocabulary in the order of its ids.
func wordPieceFile(maxChars int, vocab ...string) object {
	ids := object{}
	for i, token := range vocab {
		ids[token] = i
	}
	return object{
		"pre_tokenizer": object{"type": "WhitespaceSplit"},
		"model": object{
			"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
			"max_input_chars_per_word": maxChars, "vocab": ids,
		},
	}
}

func TestWordPiece(t *testing.T) {
	tok := fromObject(t, wordPieceFile(5, "[UNK]", "un", "##aff", "##able", "una", "##ff", "é", "##é", "##"), nil)
	for text, want := range map[string]string{
		"unaff":     "una|##ff",
		"un":        "un",
		"un aff":    "un|[UNK]", // no token begins a word with aff
		"unaf":      "[UNK]",    // one part has no token
		"ééééé":     "é|##é|##é|##é|##é",
		"éééééé":    "[UNK]", // longer than the limit for a word
		"unaffable": "[UNK]",
		"##":        "##",
		"":          "",
		"un\xff un": "[UNK]|un",
	} {
		if got := spellings(tok, tok.Encode(text, false)); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

// TestTypedSpecialTokens checks that the model makes no special token from typed text.
func TestTypedSpecialTokens(t *testing.T) {
	special := []object{added("<s>", "special")}
	scored := unigramFile(false, scoredTokens{{"<unk>", 0.0}, {"<s>", -1.0}, {"<", -2.0}, {"s", -2.0}, {">", -2.0}})
	scored["added_tokens"] = special
	words := wordPieceFile(100, "[UNK]", "<s>", "<", "##s", "##>")
	words["added_tokens"] = special
	level := object{"added_tokens": special, "model": object{
		"type": "WordLevel", "unk_token": "[UNK]", "vocab": object{"[UNK]": 0, "<s>": 1, "word": 2},
	}}
	for name, test := range map[string]struct {
		file object
		want string
	}{"Unigram": {scored, "<|s|>"}, "WordPiece": {words, "<|##s|##>"}, "WordLevel": {level, "[UNK]"}} {
		tok := fromObject(t, test.file, nil)
		if got := spellings(tok, tok.EncodeSpans([]tokenizer.Span{{Text: "<s>"}}, false)); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
		if got := spellings(tok, tok.Encode("<s>", false)); got != "<s>" {
			t.Errorf("%s: got %s in a template", name, got)
		}
	}
}

// TestWordEnds checks BPE with affixes for characters inside and at the end of a word.
func TestWordEnds(t *testing.T) {
	tok := fromObject(t, object{
		"pre_tokenizer": object{"type": "WhitespaceSplit"},
		"decoder":       object{"type": "BPEDecoder", "suffix": "</w>"},
		"model": object{
			"type": "BPE", "end_of_word_suffix": "</w>", "continuing_subword_prefix": "_",
			"vocab":  object{"a": 0, "_b": 1, "_c</w>": 2, "a</w>": 3, "ab": 4, "abc</w>": 5},
			"merges": []string{"a _b", "ab _c</w>"},
		},
	}, nil)
	ids := tok.Encode("abc a ab", false)
	if got, want := spellings(tok, ids), "abc</w>|a</w>|a"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := tok.Decode(ids, false), "abc a a"; got != want {
		t.Errorf("decoded %q, want %q", got, want)
	}
	if got, want := tok.Decode(ids[:2], false), "abc a"; got != want {
		t.Errorf("decoded %q, want %q", got, want)
	}
}
