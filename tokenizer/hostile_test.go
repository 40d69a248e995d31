package tokenizer_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/realizar/realizar/tokenizer"
)

// TestRefusedJSON checks what a tokenizer.json is refused for, and that the error names it.
func TestRefusedJSON(t *testing.T) {
	bpe := func(change object) string {
		model := object{"type": "BPE", "vocab": object{"a": 0, "b": 1, "ab": 2}, "merges": []string{"a b"}}
		for k, v := range change {
			model[k] = v
		}
		return string(marshal(t, object{"model": model}))
	}
	with := func(field string, component any) string {
		return string(marshal(t, object{field: component, "model": object{
			"type": "BPE", "vocab": object{"a": 0}, "merges": []string{},
		}}))
	}
	sequence := func(kind, field string, steps ...object) object {
		return object{"type": kind, field: steps}
	}
	regex := func(expression string) object { return object{"Regex": expression} }
	double := object{"type": "Replace", "pattern": object{"String": "a"}, "content": "aaaa"}
	tests := []struct {
		name, file string
		want       error
		mentions   string
	}{
		{"nothing", "", tokenizer.ErrInvalid, ""},
		{"no object", "[]", tokenizer.ErrInvalid, ""},
		{"cut off", `{"model": {"type": "BPE", "vocab": {"a": 0`, tokenizer.ErrInvalid, ""},
		{"no model", "{}", tokenizer.ErrInvalid, "model"},
		{"another version", `{"version": "2.0"}`, tokenizer.ErrUnsupported, "2.0"},
		{"another model", `{"model": {"type": "Odd", "vocab": {}}}`, tokenizer.ErrUnsupported, "Odd"},
		{"Unigram with ids", `{"model": {"type": "Unigram", "vocab": {"a": 0}}}`, tokenizer.ErrInvalid, "scores"},
		{"Unigram without a score", `{"model": {"type": "Unigram", "vocab": [["a"]]}}`, tokenizer.ErrInvalid, "1 parts"},
		{"an unk_id beyond the tokens", `{"model": {"type": "Unigram", "unk_id": 1, "vocab": [["a", 0]]}}`, tokenizer.ErrInvalid, "unk_id 1"},
		{"WordPiece without an unknown token", `{"model": {"type": "WordPiece", "vocab": {}}}`, tokenizer.ErrInvalid, "unk_token"},
		{"WordPiece with another unknown token", `{"model": {"type": "WordPiece", "vocab": {}, "unk_token": "x"}}`, tokenizer.ErrInvalid, `"x"`},
		{"an unknown field of the model", bpe(object{"odd_option": true}), tokenizer.ErrUnsupported, "odd_option"},
		{"an unknown field of a component", with("normalizer", object{"type": "NFC", "odd_option": 1}), tokenizer.ErrUnsupported, "odd_option"},
		{"no vocabulary", bpe(object{"vocab": nil}), tokenizer.ErrInvalid, "vocab"},
		{"a negative id", bpe(object{"vocab": object{"a": -1}}), tokenizer.ErrInvalid, "-1"},
		{"an id in the billions", bpe(object{"vocab": object{"a": 2000000000}}), tokenizer.ErrInvalid, "2000000000"},
		{"an id beyond 32 bits", bpe(object{"vocab": object{"a": 1 << 40}}), tokenizer.ErrInvalid, ""},
		{"a merge of an unknown token", bpe(object{"merges": []string{"a x"}}), tokenizer.ErrInvalid, `"x"`},
		{"a merge into an unknown token", bpe(object{"merges": []string{"b a"}}), tokenizer.ErrInvalid, "merge 0"},
		{"a merge of three", bpe(object{"merges": [][]string{{"a", "b", "a"}}}), tokenizer.ErrInvalid, "3 parts"},
		{"a merge of one", bpe(object{"merges": []string{"ab"}}), tokenizer.ErrInvalid, "1 parts"},
		{"merges of another type", bpe(object{"merges": []int{1}}), tokenizer.ErrInvalid, ""},
		{"dropout", bpe(object{"dropout": 0.5}), tokenizer.ErrUnsupported, "dropout 0.5"},
		{"a merge without the prefix", bpe(object{"continuing_subword_prefix": "##"}), tokenizer.ErrInvalid, "##"},
		{"a normalizer", with("normalizer", object{"type": "Odd"}), tokenizer.ErrUnsupported, "Odd"},
		{"a charsmap", with("normalizer", object{"type": "Precompiled", "precompiled_charsmap": "AAAA"}), tokenizer.ErrInvalid, "3 bytes"},
		{"a charsmap that is cut off", with("normalizer", object{"type": "Precompiled", "precompiled_charsmap": "/////w=="}), tokenizer.ErrInvalid, "4294967295"},
		{"an expression", with("normalizer", object{"type": "Replace", "pattern": regex(`(a)\1`), "content": ""}), tokenizer.ErrUnsupported, `(a)\\1`},
		{"an expression for nothing", with("normalizer", object{"type": "Replace", "pattern": regex("(?=a)"), "content": "x"}), tokenizer.ErrUnsupported, "nothing at all"},
		{"an empty pattern", with("normalizer", object{"type": "Replace", "pattern": object{"String": ""}, "content": "x"}), tokenizer.ErrUnsupported, ""},
		{"no pattern", with("normalizer", object{"type": "Replace"}), tokenizer.ErrInvalid, "Replace"},
		{"growth", with("normalizer", sequence("Sequence", "normalizers", double, double, double, double)), tokenizer.ErrUnsupported, "64 times"},
		{"a pre-tokenizer", with("pre_tokenizer", object{"type": "Odd"}), tokenizer.ErrUnsupported, "Odd"},
		{"a pattern", with("pre_tokenizer", object{"type": "Split", "pattern": regex(`\p{Odd}+`), "behavior": "Isolated"}), tokenizer.ErrUnsupported, `\\p{Odd}+`},
		{"no length", with("pre_tokenizer", object{"type": "FixedLength", "length": 0}), tokenizer.ErrInvalid, "length 0"},
		{"a behavior", with("pre_tokenizer", object{"type": "Split", "pattern": object{"String": "a"}, "behavior": "Odd"}), tokenizer.ErrUnsupported, "Odd"},
		{"a metaspace", with("pre_tokenizer", object{"type": "Metaspace", "replacement": "ab"}), tokenizer.ErrInvalid, "ab"},
		{"a prepend scheme", with("pre_tokenizer", object{"type": "Metaspace", "replacement": "_", "prepend_scheme": "odd"}), tokenizer.ErrUnsupported, "odd"},
		{"a post-processor", with("post_processor", object{"type": "Odd"}), tokenizer.ErrUnsupported, "Odd"},
		{"a template without its text", with("post_processor", object{"type": "TemplateProcessing", "single": []object{}}), tokenizer.ErrUnsupported, "without its sequence"},
		{"a template with an unknown token", with("post_processor", object{"type": "TemplateProcessing", "single": []object{{"SpecialToken": object{"id": "x"}}}}), tokenizer.ErrInvalid, `"x"`},
		{"a template with an id in the billions", with("post_processor", object{"type": "BertProcessing", "sep": []any{"x", 1 << 31}, "cls": []any{"x", 0}}), tokenizer.ErrInvalid, "2147483648"},
		{"a decoder", with("decoder", object{"type": "Odd"}), tokenizer.ErrUnsupported, "Odd"},
		{"CTC without its tokens", with("decoder", object{"type": "CTC"}), tokenizer.ErrInvalid, "pad_token"},
		{"an empty suffix", with("decoder", object{"type": "BPEDecoder", "suffix": ""}), tokenizer.ErrUnsupported, "suffix"},
		{"a strip of two characters", with("decoder", object{"type": "Strip", "content": "ab", "start": 1}), tokenizer.ErrInvalid, "ab"},
		{"too many steps", with("normalizer", sequence("Sequence", "normalizers", many(100, object{"type": "NFC"})...)), tokenizer.ErrUnsupported, "64"},
	}
	for _, test := range tests {
		_, err := tokenizer.FromJSON([]byte(test.file), nil)
		if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.mentions) {
			t.Errorf("%s: got error %v, want %v that mentions %q", test.name, err, test.want, test.mentions)
		}
	}
}

func many(n int, o object) []object {
	all := make([]object, n)
	for i := range all {
		all[i] = o
	}
	return all
}

func TestRefusedGGUF(t *testing.T) {
	without := func(key string) metadata {
		m := byteMetadata("gpt-2")
		delete(m, key)
		return m
	}
	with := func(key string, value any) metadata {
		m := byteMetadata("gpt-2")
		m[key] = value
		return m
	}
	tests := []struct {
		name     string
		m        metadata
		want     error
		mentions string
	}{
		{"no model", without("tokenizer.ggml.model"), tokenizer.ErrInvalid, "tokenizer.ggml.model"},
		{"another model", with("tokenizer.ggml.model", "rwkv"), tokenizer.ErrUnsupported, "rwkv"},
		{"another pre-tokenizer", with("tokenizer.ggml.pre", "odd"), tokenizer.ErrUnsupported, "odd"},
		{"no tokens", without("tokenizer.ggml.tokens"), tokenizer.ErrInvalid, "tokenizer.ggml.tokens"},
		{"no merges", without("tokenizer.ggml.merges"), tokenizer.ErrInvalid, "tokenizer.ggml.merges"},
		{"a BOS that is not there", with("tokenizer.ggml.add_bos_token", true), tokenizer.ErrInvalid, "bos_token_id"},
		{"an EOS that is not there", with("tokenizer.ggml.add_eos_token", true), tokenizer.ErrInvalid, "eos_token_id"},
	}
	for _, test := range tests {
		_, err := tokenizer.FromGGUF(test.m)
		if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.mentions) {
			t.Errorf("%s: got error %v, want %v that mentions %q", test.name, err, test.want, test.mentions)
		}
	}
}

// TestOddGGUF checks that metadata with contradictions that llama.cpp tolerates gives a tokenizer.
func TestOddGGUF(t *testing.T) {
	bytes := byteMetadata("gpt-2", "<s>")
	bytes["tokenizer.ggml.tokens"] = append(bytes["tokenizer.ggml.tokens"].([]string), "", "a", "ab", "\xff")
	bytes["tokenizer.ggml.merges"] = []string{"", " ", "a", "a  ", "x y", "a b", "a b", "  a"}
	bytes["tokenizer.ggml.bos_token_id"] = int64(-7)
	scores := spmMetadata("a", "ab")
	scores["tokenizer.ggml.scores"] = []float64{1}
	bare := metadata{"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": []string{}}
	for name, m := range map[string]metadata{"bytes": bytes, "scores": scores, "bare": bare} {
		tok := fromMetadata(t, m)
		ids := tok.Encode("abx<s> \xff", true)
		if got := tok.Decode(ids, false); !utf8.ValidString(got) {
			t.Errorf("%s: decoded %q", name, got)
		}
	}
}

// TestSmallFilesStaySmall checks that a short file cannot make a large tokenizer.
func TestSmallFilesStaySmall(t *testing.T) {
	file := marshal(t, object{"model": object{"type": "BPE", "vocab": object{"a": 262144}, "merges": []string{}}})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := tokenizer.FromJSON(file, nil); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
		t.Errorf("%d bytes made %d", len(file), used)
	}
}

// FuzzFromJSON checks that no file and no text lead to a panic, text that is not UTF-8, or a
// special token in typed text.
func FuzzFromJSON(f *testing.F) {
	chat := []object{added("<s>", "special"), added("tool", "single_word", "lstrip", "rstrip", "normalized")}
	f.Add(marshal(f, byteLevel(chat, [2]string{"a", "b"})), "ab<s> tool \xff")
	f.Add(marshal(f, sentencePiece(llamaNormalizer, chat, "▁", "a", "b", "ab")), "ab <s>世界")
	scored := unigramFile(true, scoredTokens{{"<unk>", 0.0}, {"a", -1.0}, {"ab", -1.5}, {"▁", -2.0}})
	scored["normalizer"] = object{"type": "Sequence", "normalizers": []object{
		{"type": "Precompiled", "precompiled_charsmap": charsmap}, {"type": "Nmt"}, {"type": "StripAccents"},
		{"type": "Replace", "pattern": object{"Regex": `[\sx]+`}, "content": "▁"}, {"type": "ByteLevel"},
	}}
	scored["decoder"] = object{"type": "CTC", "pad_token": "a", "word_delimiter_token": "▁", "cleanup": true}
	f.Add(marshal(f, scored), "ab  xX\r\né")
	pieces := wordPieceFile(5, "[UNK]", "ab", "##c")
	pieces["normalizer"] = bertNormalizer(true, true, true, nil)
	pieces["pre_tokenizer"] = object{"type": "Sequence", "pretokenizers": []object{
		{"type": "BertPreTokenizer"}, {"type": "UnicodeScripts"}, {"type": "FixedLength", "length": 3},
		{"type": "Whitespace"}, {"type": "Punctuation", "behavior": "Contiguous"}, {"type": "CharDelimiterSplit", "delimiter": "-"},
		{"type": "Split", "pattern": object{"Regex": `[^\s\d]+|\s+(?!\S)|\s+`}, "behavior": "MergedWithNext", "invert": true},
	}}
	pieces["decoder"] = object{"type": "WordPiece", "prefix": "##", "cleanup": true}
	f.Add(marshal(f, pieces), "Abc, 世界-ab  c")
	ends := characters("ab")
	ends["model"].(object)["end_of_word_suffix"], ends["model"].(object)["continuing_subword_prefix"] = "b", "a"
	ends["decoder"] = object{"type": "BPEDecoder", "suffix": "b"}
	f.Add(marshal(f, ends), "abba")
	f.Add([]byte(`{"model":{"type":"BPE","vocab":{"a":0},"merges":[]},"decoder":{"type":"Metaspace","replacement":"_"},
		"pre_tokenizer":{"type":"Metaspace","replacement":"_"},"normalizer":{"type":"NFKC"}}`), "a a")
	if root := os.Getenv("REALIZAR_CONFORMANCE"); root != "" {
		// The components of real files, without their vocabularies.
		paths, err := filepath.Glob(filepath.Join(root, "tokenizers", "hf", "*", "tokenizer.json"))
		if err != nil {
			f.Fatal(err)
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			var file object
			if err := json.Unmarshal(data, &file); err != nil {
				f.Fatal(err)
			}
			model := file["model"].(object)
			model["vocab"], model["merges"] = object{"a": 0, "b": 1, "ab": 2}, []string{"a b"}
			delete(file, "added_tokens")
			f.Add(marshal(f, file), "ab c'est\n 12345")
		}
	}
	f.Fuzz(func(t *testing.T, file []byte, text string) {
		tok, err := tokenizer.FromJSON(file, nil)
		if err != nil {
			if !errors.Is(err, tokenizer.ErrInvalid) && !errors.Is(err, tokenizer.ErrUnsupported) {
				t.Errorf("error of no kind: %v", err)
			}
			return
		}
		ids := tok.Encode(text, true)
		for _, id := range ids {
			if id < 0 {
				t.Errorf("id %d", id)
			}
		}
		if got := tok.Decode(ids, false); !utf8.ValidString(got) {
			t.Errorf("decoded %q", got)
		}
		stream := tok.NewStream(true)
		var streamed strings.Builder
		for _, id := range ids {
			streamed.WriteString(stream.Push(id))
		}
		streamed.WriteString(stream.Flush())
		if want := tok.Decode(ids, true); streamed.String() != want {
			t.Errorf("stream gave %q, Decode %q", streamed.String(), want)
		}
		tok.EncodeSpans([]tokenizer.Span{{Text: text}, {Text: text, Special: true}}, false)
	})
}

// FuzzEncode checks the same for texts and ids of valid tokenizers.
func FuzzEncode(f *testing.F) {
	kinds := tokenizers(f)
	f.Add("<|im_start|>hello, it's 世界 e\u0301\xff", 3)
	f.Add("  </s>[L] [R] word", 9)
	for i, text := range []string{
		"we'LL 'ſ <sentinel:1> IMGIMGAZ", "1234567 ٣٤٥ ½12a", "ภาษาไทย नमस्ते مرحبا 한국어 カナ ㄅ", "\r\n \u2028\u3000 \t  x",
		"\u0378\ue000\ufffe\x00\u200d", "camelCaseПривет ~~!_/ \n/", "👩\u200d💻🇩🇪", "\xe4\xb8\xc0\x80\xed\xa0\x80", "aaaaaaaa        ========",
	} {
		f.Add(text, 3*i)
	}
	for _, pre := range tokenizer.PreTokenizers() {
		m := byteMetadata(pre, "<s>")
		kinds["GGUF "+pre] = fromMetadata(f, m)
	}
	kinds["GGUF Unigram"] = fromMetadata(f, t5Metadata([]string{"▁", "a", "▁a", "世", "x"}, []float64{-1, -2, -2.5, -3, 0}))
	f.Fuzz(func(t *testing.T, text string, cut int) {
		at := min(max(cut, 0), len(text))
		for name, tok := range kinds {
			spans := []tokenizer.Span{{Text: text[:at], Special: true}, {Text: text[at:]}}
			ids := tok.EncodeSpans(spans, true)
			for _, id := range ids {
				if _, ok := tok.Token(id); !ok {
					t.Errorf("%s: id %d is not in the vocabulary", name, id)
				}
			}
			if got := tok.Decode(ids, false); !utf8.ValidString(got) {
				t.Errorf("%s: decoded %q", name, got)
			}
		}
	})
}
