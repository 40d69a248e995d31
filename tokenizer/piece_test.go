package tokenizer_test

import (
	"bytes"
	"testing"

	"github.com/realizar/realizar/tokenizer"
)

// TestPiece checks that the pieces of a text's tokens together are the text, even if tokens split
// characters, and with a vocabulary that puts a space before every text.
func TestPiece(t *testing.T) {
	fromGGUF := func(m metadata) *tokenizer.Tokenizer {
		t.Helper()
		tok, err := tokenizer.FromGGUF(m)
		if err != nil {
			t.Fatal(err)
		}
		return tok
	}
	added := []object{{"id": 0, "content": "<unk>", "special": true}, {"id": 1, "content": "<s>", "special": true}, {"id": 2, "content": "</s>", "special": true}}
	for name, test := range map[string]struct {
		tok   *tokenizer.Tokenizer
		begin string
	}{
		"byte level":                    {fromGGUF(byteMetadata("gpt-2", "<|end|>")), ""},
		"SentencePiece":                 {fromGGUF(spmMetadata("▁", "▁a", "a", "b", "▁b")), " "},
		"SentencePiece, tokenizer.json": {fromObject(t, sentencePiece(llamaNormalizer, added, "▁", "▁a", "a", "b", "▁b"), nil), " "},
	} {
		for _, text := range []string{"a", "a b a", "aä€😀b", "\uFFFD", "\x00\n\t"} {
			var got []byte
			for _, id := range test.tok.Encode(text, false) {
				got = append(got, test.tok.Piece(id)...)
			}
			if want := test.begin + text; string(got) != want {
				t.Errorf("%s: the pieces of %q are %q", name, text, got)
			}
		}
		if p := test.tok.Piece(-1); p != nil {
			t.Errorf("%s: token -1 is %q", name, p)
		}
		if p := test.tok.Piece(1 << 20); p != nil {
			t.Errorf("%s: token %d is %q", name, 1<<20, p)
		}
	}
	tok := fromGGUF(byteMetadata("gpt-2", "<|end|>"))
	if p := tok.Piece(256); !bytes.Equal(p, []byte("<|end|>")) {
		t.Errorf("the special token is %q", p)
	}
}
