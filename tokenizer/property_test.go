package tokenizer_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/realizar/realizar/tokenizer"
)

// texts returns a generator of texts. They consist of arbitrary fragments and of fragments that some
// part of a tokenizer treats specially.
func texts() *rapid.Generator[string] {
	fragment := rapid.OneOf(
		rapid.SampledFrom([]string{
			"<|im_start|>", "<|im_end|>", "<tool>", "[L]", "[R]", "word", "<s>", "</s>", "<unk>", "<0x41>",
			"hello", " hell", "  ", "\n", " \r\n", "'s", "12345", "é", "e\u0301", "世界", "👩\u200d💻", "▁",
			"<|", "im", "|>", "\xff", "\xe4\xb8", "\u0301\u0323", "\U0001E6C0",
		}),
		rapid.String(),
	)
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(fragment, 0, 8).Draw(t, "fragments"), "")
	})
}

// cutText cuts a text at random positions.
func cutText(t *rapid.T, text string) []string {
	cuts := rapid.SliceOfN(rapid.IntRange(0, len(text)), 0, 5).Draw(t, "cuts")
	slices.Sort(cuts)
	var parts []string
	done := 0
	for _, at := range append(cuts, len(text)) {
		parts, done = append(parts, text[done:at]), at
	}
	return parts
}

func spansOf(parts []string, special bool) []tokenizer.Span {
	var spans []tokenizer.Span
	for _, p := range parts {
		spans = append(spans, tokenizer.Span{Text: p, Special: special})
	}
	return spans
}

// TestSpansDoNotSplitText checks that text of one origin is tokenized as if it were one span.
func TestSpansDoNotSplitText(t *testing.T) {
	for name, tok := range tokenizers(t) {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			text := texts().Draw(t, "text")
			parts := cutText(t, text)
			for _, special := range []bool{false, true} {
				want := tok.EncodeSpans(spansOf([]string{text}, special), true)
				got := tok.EncodeSpans(spansOf(parts, special), true)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("special %t: cut into %q (-whole +cut):\n%s", special, parts, diff)
				}
			}
			if diff := cmp.Diff(tok.Encode(text, true), tok.EncodeSpans(spansOf(parts, true), true)); diff != "" {
				t.Errorf("Encode and EncodeSpans differ (-Encode +EncodeSpans):\n%s", diff)
			}
		}))
	}
}

// TestTypedTextIsNeverSpecial checks that typed text never becomes a special token.
func TestTypedTextIsNeverSpecial(t *testing.T) {
	for name, tok := range tokenizers(t) {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			text := texts().Draw(t, "text")
			spans := []tokenizer.Span{{Text: "hello ", Special: true}}
			spans = append(spans, spansOf(cutText(t, text), false)...)
			spans = append(spans, tokenizer.Span{Text: " hello", Special: true})
			unknown, _ := tok.SpecialText("unk_token")
			for _, id := range tok.EncodeSpans(spans, false) {
				if spelling, _ := tok.Token(id); tok.IsSpecial(id) && spelling != unknown {
					t.Errorf("%q became %q", text, spelling)
				}
			}
		}))
	}
}

// TestByteLevelRoundTrip checks that a byte-level tokenizer decodes the ids of a text to the text.
func TestByteLevelRoundTrip(t *testing.T) {
	tok := fromObject(t, byteLevel(
		[]object{added("<|im_start|>", "special"), added("<tool>")},
		[2]string{"h", "e"}, [2]string{"l", "l"}, [2]string{"Ġ", "he"}), nil)
	rapid.Check(t, func(t *rapid.T) {
		text := strings.ToValidUTF8(texts().Draw(t, "text"), "")
		for _, special := range []bool{false, true} {
			ids := tok.EncodeSpans([]tokenizer.Span{{Text: text, Special: special}}, false)
			if got := tok.Decode(ids, false); got != text {
				t.Errorf("decoded %q, want %q", got, text)
			}
		}
	})
}

// TestStreamIsDecode checks that a stream returns whole characters, and in total what Decode
// returns.
func TestStreamIsDecode(t *testing.T) {
	for name, tok := range tokenizers(t) {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			id := rapid.Int32Range(-2, int32(tok.VocabSize())+2)
			ids := rapid.OneOf(rapid.SliceOf(id), rapid.Custom(func(t *rapid.T) []int32 {
				return tok.Encode(texts().Draw(t, "text"), false)
			})).Draw(t, "ids")
			for _, skip := range []bool{false, true} {
				stream := tok.NewStream(skip)
				for range 2 { // a flushed stream starts anew
					var got strings.Builder
					for _, id := range ids {
						part := stream.Push(id)
						if !utf8.ValidString(part) {
							t.Fatalf("Push(%d) returned %q", id, part)
						}
						got.WriteString(part)
					}
					got.WriteString(stream.Flush())
					if want := tok.Decode(ids, skip); got.String() != want {
						t.Errorf("skip %t: stream gave %q, Decode %q", skip, got.String(), want)
					}
				}
			}
		}))
	}
}

// TestConcurrentUse runs one tokenizer in many goroutines, for the race detector.
func TestConcurrentUse(t *testing.T) {
	for name, tok := range tokenizers(t) {
		t.Run(name, func(t *testing.T) {
			const text = "<|im_start|>hello, e\u0301 世界 </s><|im_end|>"
			want := tok.Encode(text, true)
			var wait sync.WaitGroup
			for range 8 {
				wait.Go(func() {
					for range 50 {
						if got := tok.Encode(text, true); !slices.Equal(got, want) {
							t.Errorf("got %v, want %v", got, want)
						}
						tok.Decode(want, true)
					}
				})
			}
			wait.Wait()
		})
	}
}
