package tokenizer_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/realizar/realizar/tokenizer"
)

// TestTokenLimit checks that a text has the same ids within a limit of as many tokens as without
// one, and that a lower limit is an error that names it.
func TestTokenLimit(t *testing.T) {
	for name, tok := range allTokenizers(t) {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				piece := rapid.OneOf(rapid.String(), rapid.StringMatching(`[ \t\n]{0,40}`), rapid.SampledFrom([]string{
					"aaaaaaaa", "    ", "K\u212a", "e\u0301", "\u1100\u1161\u11a8", "ﷺ", "𝟙", "<|im_end|>", "[MASK]", "世界", "\xff\xfe",
				}))
				text := strings.Join(rapid.SliceOfN(piece, 0, 20).Draw(t, "text"), "")
				spans := []tokenizer.Span{{Text: text, Special: rapid.Bool().Draw(t, "special")}}
				want := tok.EncodeSpans(spans, false)
				got, err := tok.EncodeWithin(context.Background(), tokenizer.Limits{Tokens: len(want)}, spans, false)
				if err != nil || !slices.Equal(got, want) {
					t.Fatalf("%q within %d tokens: %d ids, %v", text, len(want), len(got), err)
				}
				if len(want) < 2 {
					return
				}
				var long *tokenizer.LengthError
				_, err = tok.EncodeWithin(context.Background(), tokenizer.Limits{Tokens: len(want) - 1}, spans, false)
				if !errors.As(err, &long) || long.Tokens != len(want)-1 || long.Least > len(want) || long.Least <= long.Tokens {
					t.Fatalf("%q within %d tokens: %v", text, len(want)-1, err)
				}
			})
		})
	}
}

// TestReserve checks that encoding reserves memory in proportion to the text, ends if there is
// none, and releases all but that of the ids.
func TestReserve(t *testing.T) {
	text := strings.Repeat("a", 1<<20)
	for name, tok := range tokenizers(t) {
		t.Run(name, func(t *testing.T) {
			held, most := 0, 0
			reserve := func(n int) error {
				held += n
				most = max(most, held)
				return nil
			}
			ids, err := tok.EncodeWithin(t.Context(), tokenizer.Limits{Reserve: reserve}, []tokenizer.Span{{Text: text}}, false)
			if err != nil {
				t.Fatal(err)
			}
			if want := 4 * cap(ids); held != want || most < want {
				t.Errorf("%d bytes are held for %d ids and %d were at most", held, cap(ids), most)
			}
			none := errors.New("no memory")
			held = 0
			_, err = tok.EncodeWithin(t.Context(), tokenizer.Limits{Reserve: func(n int) error {
				if n > 0 && held+n >= most {
					return none
				}
				held += n
				return nil
			}}, []tokenizer.Span{{Text: text}}, false)
			if !errors.Is(err, none) || held != 0 {
				t.Errorf("%v, and %d bytes are held", err, held)
			}
		})
	}
}

// TestEncodeStops checks that encoding a long text ends with the error of its context.
func TestEncodeStops(t *testing.T) {
	text := strings.Repeat("a", 1<<20)
	ended, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the client has left")
	cancel(gone)
	for name, tok := range tokenizers(t) {
		t.Run(name, func(t *testing.T) {
			ids, err := tok.EncodeWithin(ended, tokenizer.Limits{}, []tokenizer.Span{{Text: text}}, true)
			if !errors.Is(err, gone) || !errors.Is(err, context.Canceled) || ids != nil {
				t.Errorf("%d ids, %v", len(ids), err)
			}
			if _, _, err := tok.EncodePairWithin(ended, tokenizer.Limits{}, []tokenizer.Span{{Text: text}}, nil); !errors.Is(err, gone) && !errors.Is(err, tokenizer.ErrUnsupported) {
				t.Error(err)
			}
		})
	}
}

// TestLongTextIsRefusedAtOnce checks that a text that is too long for its limit is refused before
// any memory is reserved.
func TestLongTextIsRefusedAtOnce(t *testing.T) {
	text := strings.Repeat("ab c", 1<<20)
	bounded := 0
	for name, tok := range tokenizers(t) {
		if tok.Kind() != "byte-level BPE" {
			continue
		}
		bounded++
		var long *tokenizer.LengthError
		_, err := tok.EncodeWithin(t.Context(), tokenizer.Limits{Tokens: 16, Reserve: func(int) error {
			t.Errorf("%s: memory is asked for", name)
			return nil
		}}, []tokenizer.Span{{Text: text}}, false)
		if !errors.As(err, &long) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if bounded == 0 {
		t.Error("no tokenizer has a bound")
	}
}

// TestBlankOfOthers checks that a text that a normalizer turns into white space and then removes is
// not too long.
func TestBlankOfOthers(t *testing.T) {
	file := byteLevel(nil)
	file["normalizer"] = object{"type": "Sequence", "normalizers": []object{
		{"type": "Replace", "pattern": object{"String": "_"}, "content": " "}, {"type": "Strip", "strip_left": true, "strip_right": true},
	}}
	limits := tokenizer.Limits{Tokens: 4}
	ids, err := fromObject(t, file, nil).EncodeWithin(t.Context(), limits, []tokenizer.Span{{Text: "a" + strings.Repeat("_", 1<<16)}}, false)
	if err != nil || len(ids) != 1 {
		t.Errorf("%d ids, %v", len(ids), err)
	}
}
