package tokenizer_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/realizar/realizar/tokenizer"
)

// typed returns the spellings of a pair's tokens, and their types.
func typed(t *testing.T, tok *tokenizer.Tokenizer, first, then string) string {
	t.Helper()
	ids, types, err := tok.EncodePair([]tokenizer.Span{{Text: first}}, []tokenizer.Span{{Text: then}})
	if err != nil {
		t.Fatal(err)
	}
	if len(ids) != len(types) {
		t.Fatalf("%d ids have %d types", len(ids), len(types))
	}
	return spellings(tok, ids) + fmt.Sprint(types)
}

// TestEncodePair checks how post-processors join pairs. The expected results are those of the
// tokenizers library.
func TestEncodePair(t *testing.T) {
	piece := func(kind, id string, typeID int) object {
		return object{kind: object{"id": id, "type_id": typeID}}
	}
	token, text := func(id string, typeID int) object { return piece("SpecialToken", id, typeID) }, func(id string, typeID int) object { return piece("Sequence", id, typeID) }
	special := object{"[C]": object{"id": "[C]", "ids": []int{256}}, "[S]": object{"id": "[S]", "ids": []int{257}}}
	template := func(pair ...object) object {
		return object{"type": "TemplateProcessing", "single": []object{token("[C]", 0), text("A", 0), token("[S]", 0)}, "pair": pair, "special_tokens": special}
	}
	surround := func(kind string) object {
		return object{"type": kind, "cls": []any{"[C]", 256}, "sep": []any{"[S]", 257}}
	}
	for name, test := range map[string]struct {
		post object
		want string
	}{
		"none":      {nil, "a|b[0 1]"},
		"bytes":     {object{"type": "ByteLevel"}, "a|b[0 1]"},
		"BERT's":    {surround("BertProcessing"), "[C]|a|[S]|b|[S][0 0 0 1 1]"},
		"RoBERTa's": {surround("RobertaProcessing"), "[C]|a|[S]|[S]|b|[S][0 0 0 0 0 0]"},
		"a template": {
			template(token("[C]", 0), text("A", 0), token("[S]", 0), text("B", 1), token("[S]", 1)), "[C]|a|[S]|b|[S][0 0 0 1 1]",
		},
		"a template of other types": {
			template(text("B", 3), token("[S]", 2), text("A", 0)), "b|[S]|a[3 2 0]",
		},
		"a template after bytes": {
			object{"type": "Sequence", "processors": []object{{"type": "ByteLevel"}, template(text("A", 0), text("B", 0))}}, "a|b[0 0]",
		},
	} {
		file := byteLevel([]object{added("[C]", "special"), added("[S]", "special")})
		if test.post != nil {
			file["post_processor"] = test.post
		}
		if got := typed(t, fromObject(t, file, nil), "a", "b"); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	for name, post := range map[string]object{
		"an empty one":             template(),
		"one without the second":   template(text("A", 0)),
		"one with an unknown text": template(text("A", 0), text("C", 0)),
	} {
		file := byteLevel([]object{added("[C]", "special"), added("[S]", "special")})
		file["post_processor"] = post
		tok := fromObject(t, file, nil)
		if got := spellings(tok, tok.Encode("a", true)); got != "[C]|a|[S]" {
			t.Errorf("a template with %s for pairs makes %s of one text", name, got)
		}
		if _, _, err := tok.EncodePair(nil, nil); !errors.Is(err, tokenizer.ErrUnsupported) && !errors.Is(err, tokenizer.ErrInvalid) {
			t.Errorf("a template of pairs with %s: %v", name, err)
		}
	}
}

// TestEncodePairMarks checks that what looks like a special token in typed text is plain text.
func TestEncodePairMarks(t *testing.T) {
	file := byteLevel([]object{added("[C]", "special"), added("[S]", "special")})
	file["post_processor"] = object{"type": "BertProcessing", "cls": []any{"[C]", 256}, "sep": []any{"[S]", 257}}
	tok := fromObject(t, file, nil)
	ids, _, err := tok.EncodePair([]tokenizer.Span{{Text: "[S]"}}, []tokenizer.Span{{Text: "[S]", Special: true}})
	if err != nil {
		t.Fatal(err)
	}
	if want := []int32{256, '[' - '!', 'S' - '!', ']' - '!', 257, 257, 257}; len(ids) != len(want) || !slices.Equal(ids[4:], want[4:]) || ids[0] != 256 || slices.Contains(ids[1:4], 257) {
		t.Errorf("%v, want a special token in the second text alone: %v", ids, want)
	}
}

// TestEncodePairGGUF checks the tokens between the texts of a pair, for which GGUF has no template.
func TestEncodePairGGUF(t *testing.T) {
	tokens := []string{"[C]", "[E]", "[S]", "a", "b"}
	base := func(change metadata) metadata {
		m := metadata{
			"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "default", "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": []int64{3, 3, 3, 1, 1},
			"tokenizer.ggml.merges": []string{}, "tokenizer.ggml.bos_token_id": int64(0), "tokenizer.ggml.eos_token_id": int64(1),
			"tokenizer.ggml.seperator_token_id": int64(2), "tokenizer.ggml.add_bos_token": true, "tokenizer.ggml.add_eos_token": true,
		}
		for key, value := range change {
			m[key] = value
		}
		return m
	}
	for name, test := range map[string]struct {
		change metadata
		want   string
	}{
		"as RoBERTa":     {nil, "[C]|a|[E]|[S]|b|[E][0 0 0 0 1 1]"},
		"said":           {metadata{"tokenizer.ggml.add_sep_token": true}, "[C]|a|[E]|[S]|b|[E][0 0 0 0 1 1]"},
		"denied":         {metadata{"tokenizer.ggml.add_sep_token": false}, "[C]|a|[E]|b|[E][0 0 0 1 1]"},
		"ModernBERT's":   {metadata{"general.architecture": "modern-bert", "tokenizer.ggml.add_sep_token": true}, "[C]|a|[E]|b|[E][0 0 0 1 1]"},
		"with no ending": {metadata{"tokenizer.ggml.add_eos_token": false}, "[C]|a|b[0 0 1]"},
	} {
		if got := typed(t, fromMetadata(t, base(test.change)), "a", "b"); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	words := slices.Repeat([]string{"[PAD]"}, 104)
	copy(words[100:], []string{"[UNK]", "[CLS]", "[SEP]", "[MASK]"})
	words = append(words, "▁a", "▁b")
	kinds := append(slices.Repeat([]int64{3}, 104), 1, 1)
	bert := fromMetadata(t, metadata{"tokenizer.ggml.model": "bert", "tokenizer.ggml.tokens": words, "tokenizer.ggml.token_type": kinds})
	if got, want := typed(t, bert, "a", "b"), "[CLS]|▁a|[SEP]|▁b|[SEP][0 0 0 1 1]"; got != want {
		t.Errorf("BERT's: %s, want %s", got, want)
	}
}
