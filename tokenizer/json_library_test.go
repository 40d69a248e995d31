package tokenizer_test

import (
	"strings"
	"testing"

	"github.com/realizar/realizar/tokenizer"
)

// These tests record where the tokenizers library computes something unexpected.

// TestPostProcessorsInTurn checks that each piece of a template is a sequence for the next
// post-processor.
func TestPostProcessorsInTurn(t *testing.T) {
	tokens := object{}
	for i, name := range []string{"<s>", "</s>", "[C]", "[S]"} {
		tokens[name] = object{"id": name, "ids": []int{256 + i}}
	}
	template := func(single, pair string) object {
		pieces := func(names string) []object {
			var all []object
			for name := range strings.FieldsSeq(names) {
				if name == "A" || name == "B" {
					all = append(all, object{"Sequence": object{"id": name, "type_id": 0}})
				} else {
					all = append(all, object{"SpecialToken": object{"id": name, "type_id": 0}})
				}
			}
			return all
		}
		return object{"type": "TemplateProcessing", "single": pieces(single), "pair": pieces(pair), "special_tokens": tokens}
	}
	bert := func(kind string) object {
		return object{"type": kind, "cls": []any{"[C]", 258}, "sep": []any{"[S]", 259}}
	}
	for _, test := range []struct {
		name        string
		first, next object
		with, plain string
	}{
		{"BERT's after a template", template("<s> A </s>", "A B"), bert("BertProcessing"), "[C]|<s>|[S]|a|[S]|</s>|[S]", "a"},
		{"RoBERTa's after a template", template("A </s>", "A B"), bert("RobertaProcessing"), "[C]|a|[S]|[S]|</s>|[S]", "a"},
		{"a template after BERT's", bert("BertProcessing"), template("<s> A", "A B"), "<s>|[C]|a|[S]", "a"},
		{"a template for two", template("A </s>", "A B"), template("A", "B <s> A"), "</s>|<s>|a", "a"},
		{"a text twice", template("A A", "A B"), template("A", "A </s> B"), "a|</s>|a", "a|a"},
	} {
		file := byteLevel([]object{
			added("<s>", "special"), added("</s>", "special"), added("[C]", "special"), added("[S]", "special"),
		})
		file["post_processor"] = object{"type": "Sequence", "processors": []object{test.first, test.next}}
		tok := fromObject(t, file, nil)
		if got := spellings(tok, tok.Encode("a", true)); got != test.with {
			t.Errorf("%s: got %s, want %s", test.name, got, test.with)
		}
		if got := spellings(tok, tok.Encode("a", false)); got != test.plain {
			t.Errorf("%s: without special tokens got %s, want %s", test.name, got, test.plain)
		}
	}
}

// TestModelMakesSpecialTokens checks that the model may make a special token that did not match as
// such, from a template's text and not from a user's.
func TestModelMakesSpecialTokens(t *testing.T) {
	lower := object{"type": "Lowercase"}
	bpe := characters("<s>a")
	bpe["model"].(object)["vocab"] = object{"<": 0, "s": 1, ">": 2, "<s": 3, "<s>": 4, "a": 5}
	bpe["model"].(object)["merges"] = []string{"< s", "<s >"}
	levels := object{"model": object{"type": "WordLevel", "unk_token": "?", "vocab": object{"?": 0, "<s>": 1}}}
	unigram := unigramFile(false, scoredTokens{{"?", 0.0}, {"<s>", -1.0}, {"<", -1.0}, {"s", -1.0}, {">", -1.0}})
	for name, test := range map[string]struct {
		file        object
		made, typed string
	}{
		"BPE":       {bpe, "<s>", "<s|>"},
		"Unigram":   {unigram, "<s>", "<|s|>"},
		"WordPiece": {wordPieceFile(9, "[UNK]", "<s>", "<", "##s", "##>"), "<s>", "<|##s|##>"},
		"WordLevel": {levels, "<s>", "?"},
	} {
		test.file["normalizer"] = lower
		test.file["added_tokens"] = []object{added("<s>", "special")}
		tok := fromObject(t, test.file, nil)
		if got := spellings(tok, tok.Encode("<S>", false)); got != test.made {
			t.Errorf("%s: got %s, want %s", name, got, test.made)
		}
		if got := spellings(tok, tok.EncodeSpans([]tokenizer.Span{{Text: "<S>"}}, false)); got != test.typed {
			t.Errorf("%s: typed text became %s, want %s", name, got, test.typed)
		}
	}
}

// TestWhiteSpaceTwice checks that a token with lstrip that is inside the white space that the token
// before it removed is dropped.
func TestWhiteSpaceTwice(t *testing.T) {
	file := byteLevel([]object{added("<r>", "rstrip"), added("\t", "lstrip"), added("\n")})
	tok := fromObject(t, file, nil)
	for text, want := range map[string]string{
		"<r>\ta": "<r>|a", "<r> \n": "<r>|\n", "a \ta": "a|\t|a", "<r>a\t": "<r>|a|\t",
	} {
		if got := spellings(tok, tok.Encode(text, false)); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestSkippedByText checks that every token that is spelled like a special one is skipped.
func TestSkippedByText(t *testing.T) {
	file := unigramFile(false, scoredTokens{{"<unk>", 0.0}, {"<s>", 0.0}, {"a", -1.0}, {"<s>", 0.0}})
	file["added_tokens"] = []object{added("<s>", "special"), added("<t>")}
	tok := fromObject(t, file, nil)
	if got := tok.Decode([]int32{1, 2, 3}, true); got != "a" {
		t.Errorf("decoded %q", got)
	}
	if id, _ := tok.ID("<t>"); id != 4 {
		t.Errorf("<t> has id %d", id)
	}
}

// TestFirstWord checks where the text begins for a metaspace that is put only before the first
// word.
func TestFirstWord(t *testing.T) {
	replace := func(from, to string) object {
		return object{"type": "Replace", "pattern": object{"String": from}, "content": to}
	}
	sequence := func(steps ...object) object { return object{"type": "Sequence", "normalizers": steps} }
	strip := object{"type": "Strip", "strip_left": true, "strip_right": true}
	for _, test := range []struct {
		name       string
		normalizer any
		text, want string
	}{
		{"as it came", nil, "a b", "_|a|_|b"},
		{"after a token", nil, "<t>a", "<t>|a"},
		{"white space removed", strip, " a b", "a|_|b"},
		{"none removed", strip, "a b ", "_|a|_|b"},
		{"two characters replaced by one", replace("aa", "b"), "aa a", "b|_|a"},
		{"one replaced by two", replace("a", "bb"), "a a", "_|b|b|_|b|b"},
		{"one further on", replace("b", "a"), "ab", "_|a|a"},
		{"one replaced by nothing", replace("b", ""), "ba", "a"},
		{"one put before", object{"type": "Prepend", "prepend": "b"}, "a", "_|b|a"},
		{"put before and replaced", sequence(object{"type": "Prepend", "prepend": "b"}, replace("ba", "a")), "aa", "_|a|a"},
		{"another case", object{"type": "Lowercase"}, "A", "_|a"},
		{"a form", object{"type": "NFKC"}, "ª", "_|a"},
		{"BERT's", bertNormalizer(true, true, true, nil), "\x00a", "a"},
	} {
		file := characters("_ab")
		file["normalizer"] = test.normalizer
		file["pre_tokenizer"] = object{"type": "Metaspace", "replacement": "_", "prepend_scheme": "first"}
		file["added_tokens"] = []object{added("<t>")}
		tok := fromObject(t, file, nil)
		if got := spellings(tok, tok.Encode(test.text, false)); got != test.want {
			t.Errorf("%s: %q: got %s, want %s", test.name, test.text, got, test.want)
		}
	}
}
