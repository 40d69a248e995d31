package tokenizer_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar/tokenizer"
)

// TestAddedTokens checks the options of added tokens against Hugging Face tokenizers. The
// vocabulary has no merges, so other text is one token per byte; the tests join these.
func TestAddedTokens(t *testing.T) {
	tests := []struct {
		name   string
		tokens []object
		text   string
		want   string
	}{
		{"the longest", []object{added("ab"), added("abc")}, "xabcd", "x|abc|d"},
		{"the leftmost", []object{added("ab"), added("bcd")}, "abcd", "ab|c|d"},
		{"no overlap", []object{added("aa")}, "aaaaa", "aa|aa|a"},
		{"lstrip", []object{added("L", "lstrip")}, "x \t\u00a0Ly", "x|L|y"},
		{"rstrip", []object{added("R", "rstrip")}, "xR \n y", "x|R|y"},
		{"both", []object{added("B", "lstrip", "rstrip")}, " B  B x", "B|B|x"},
		{"a single word", []object{added("wd", "single_word")}, "wd wda -wd- _wd éwd", "wd|Ġ|w|d|a|Ġ|-|wd|-|Ġ|_|w|d|Ġ|Ã|©|w|d"},
		{"a word that is not single uses up its text", []object{added("ab", "single_word"), added("b")}, "xab b", "x|a|b|Ġ|b"},
		{"white space", []object{added("  ")}, "a    b", "a|  |  |b"},
		{"special", []object{added("<s>", "special")}, "<s><s", "<s>|<|s"},
	}
	for _, test := range tests {
		tok := fromObject(t, byteLevel(test.tokens), nil)
		if got := spellings(tok, tok.Encode(test.text, false)); got != test.want {
			t.Errorf("%s: %q\n got %s\nwant %s", test.name, test.text, got, test.want)
		}
	}
}

// TestNormalizedAddedTokens checks that a normalized token is searched for in its normalized
// spelling in normalized text, and that Decode passes that spelling to the decoder.
func TestNormalizedAddedTokens(t *testing.T) {
	tokens := []object{
		added("<s>", "special", "normalized"), added("</s>", "special"), added("tool", "normalized"),
	}
	tok := fromObject(t, sentencePiece(llamaNormalizer, tokens, "▁", "a"), nil)
	tests := []struct{ text, want string }{
		{"<s>a", "<s>|a"},
		{"a<s>", "▁|a|<0x3C>|<0x73>|<0x3E>"},
		{"a <s>", "▁|a|<s>"},
		{"a</s>a", "▁|a|</s>|▁|a"},
		{"tool tool", "tool|tool"},
	}
	for _, test := range tests {
		if got := spellings(tok, tok.Encode(test.text, false)); got != test.want {
			t.Errorf("%q: got %s, want %s", test.text, got, test.want)
		}
	}
	id, _ := tok.ID("tool")
	if got := tok.Decode([]int32{id, id}, true); got != "tool tool" {
		t.Errorf("decoded %q", got)
	}
}

// TestTypedSpecials checks that a special token matches only in a template's text, however the text
// is cut.
func TestTypedSpecials(t *testing.T) {
	template := func(text string) tokenizer.Span { return tokenizer.Span{Text: text, Special: true} }
	user := func(text string) tokenizer.Span { return tokenizer.Span{Text: text} }
	plain := fromObject(t, byteLevel([]object{added("<e>", "special"), added("<t>")}), nil)
	folded := fromObject(t, sentencePiece(llamaNormalizer,
		[]object{added("<e>", "special", "normalized")}, "▁", "<", "e", ">", "<e", "x"), nil)
	tests := []struct {
		name  string
		tok   *tokenizer.Tokenizer
		spans []tokenizer.Span
		want  string
	}{
		{"template", plain, []tokenizer.Span{template("<e>")}, "<e>"},
		{"user", plain, []tokenizer.Span{user("<e>")}, "<|e|>"},
		{"over two template spans", plain, []tokenizer.Span{template("<"), template(""), template("e>")}, "<e>"},
		{"an empty user span between", plain, []tokenizer.Span{template("<"), user(""), template("e>")}, "<e>"},
		{"begun by the template", plain, []tokenizer.Span{template("<e"), user(">")}, "<|e|>"},
		{"ended by the template", plain, []tokenizer.Span{user("<"), template("e>")}, "<|e|>"},
		{"user between", plain, []tokenizer.Span{template("<e>"), user("<e>x"), template("<e>")}, "<e>|<|e|>|x|<e>"},
		{"not special", plain, []tokenizer.Span{user("a<t>b")}, "a|<t>|b"},
		{"not special, over spans", plain, []tokenizer.Span{template("<"), user("t>")}, "<t>"},
		{"normalized, template", folded, []tokenizer.Span{template("<e>")}, "<e>"},
		{"normalized, user", folded, []tokenizer.Span{user("<e>")}, "▁|<e|>"},
		{"normalized, both", folded, []tokenizer.Span{template("<e> "), user("<e>"), template(" <e>")}, "<e>|▁|<e|>|<e>"},
		{"normalized, cut", folded, []tokenizer.Span{template("<"), user("e"), template(">")}, "▁|<e|>"},
	}
	for _, test := range tests {
		if got := spellings(test.tok, test.tok.EncodeSpans(test.spans, false)); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}

// TestNoMergeMakesASpecialToken checks that typed text cannot become a special token by merges, by
// scores or as a whole piece.
func TestNoMergeMakesASpecialToken(t *testing.T) {
	user := []tokenizer.Span{{Text: "</s>"}}

	merged := sentencePiece(nil, []object{added("</s>", "special")}, "<", "/", "s", ">", "</", "s>")
	model := merged["model"].(object)
	model["merges"] = append(model["merges"].([][2]string), [2]string{"</", "s>"})
	if tok := fromObject(t, merged, nil); spellings(tok, tok.EncodeSpans(user, false)) != "</|s>" {
		t.Errorf("merges: got %s", spellings(tok, tok.EncodeSpans(user, false)))
	}

	whole := byteLevel([]object{added("abc", "special")}, [2]string{"a", "b"}, [2]string{"ab", "c"})
	whole["model"].(object)["ignore_merges"] = true
	tok := fromObject(t, whole, nil)
	if got := spellings(tok, tok.EncodeSpans([]tokenizer.Span{{Text: "abc"}}, false)); got != "ab|c" {
		t.Errorf("ignore_merges: got %s", got)
	}

	m := spmMetadata("▁", "<", "/", "s", ">", "</", "s>")
	m["tokenizer.ggml.scores"].([]float64)[2] = 100
	tok = fromMetadata(t, m)
	if got := spellings(tok, tok.EncodeSpans(user, false)); got != "▁|</|s>" {
		t.Errorf("scores: got %s", got)
	}
}

func TestSpacePrefix(t *testing.T) {
	metaspace := func(scheme string, split bool) object {
		return object{
			"added_tokens":  []object{added("<s>", "special")},
			"pre_tokenizer": object{"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": split},
			"model": object{
				"type": "BPE", "vocab": object{"▁": 0, "a": 1, "<s>": 2, "▁a": 3, "a▁": 4},
				"merges": []string{"a ▁", "▁ a"},
			},
		}
	}
	tests := []struct {
		scheme, text string
		split        bool
		want         string
	}{
		{"always", "a a<s>a", true, "▁a|▁a|<s>|▁a"},
		{"first", "a a<s>a", true, "▁a|▁a|<s>|a"},
		{"first", "<s>a", true, "<s>|a"},
		{"never", "a a<s>a", true, "a|▁a|<s>|a"},
		{"always", " a", true, "▁a"},
		{"always", "a a", false, "▁|a▁|a"},
	}
	for _, test := range tests {
		tok := fromObject(t, metaspace(test.scheme, test.split), nil)
		if got := spellings(tok, tok.Encode(test.text, false)); got != test.want {
			t.Errorf("%s, split %t: %q: got %s, want %s", test.scheme, test.split, test.text, got, test.want)
		}
	}

	m := spmMetadata("▁", "a")
	m["tokenizer.ggml.token_type"].([]int64)[len(m["tokenizer.ggml.token_type"].([]int64))-1] = 1
	for prefix, want := range map[bool]string{true: "▁|a|▁|a", false: "a|▁|a"} {
		m["tokenizer.ggml.add_space_prefix"] = prefix
		tok := fromMetadata(t, m)
		ids := tok.Encode("a a", false)
		if got := spellings(tok, ids); got != want {
			t.Errorf("GGUF, prefix %t: got %s, want %s", prefix, got, want)
		}
		if got := tok.Decode(ids, false); got != "a a" {
			t.Errorf("GGUF, prefix %t: decoded %q", prefix, got)
		}
	}
}

func TestUnknownCharacters(t *testing.T) {
	model := func(options object) object {
		m := object{"type": "BPE", "vocab": object{"a": 0, "?": 1, "<0xC3>": 2}, "merges": []string{}}
		for k, v := range options {
			m[k] = v
		}
		return object{"model": m}
	}
	tests := []struct {
		name    string
		options object
		text    string
		want    string
	}{
		{"dropped", nil, "aéèa", "a|a"},
		{"each unknown", object{"unk_token": "?"}, "aéèa", "a|?|?|a"},
		{"fused", object{"unk_token": "?", "fuse_unk": true}, "aéèa", "a|?|a"},
		{"no token for a byte", object{"unk_token": "?", "byte_fallback": true}, "aé\xc3a", "a|<0xC3>|?|a"},
	}
	for _, test := range tests {
		tok := fromObject(t, model(test.options), nil)
		if got := spellings(tok, tok.Encode(test.text, false)); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}

// TestDecodeBytes checks which bytes become U+FFFD: those that do with Rust's from_utf8_lossy and
// with the byte fallback of Hugging Face tokenizers.
func TestDecodeBytes(t *testing.T) {
	levels := fromObject(t, byteLevel([]object{added("é")}), nil)
	fallback := fromObject(t, sentencePiece(nil, nil, "x"), nil)
	tests := []struct{ bytes, level, run string }{
		{"caf\xc3\xa9", "café", "café"},
		{"\xe4\xbd", "\uFFFD", "\uFFFD\uFFFD"},
		{"\xe4\xbda", "\uFFFDa", "\uFFFD\uFFFD\uFFFD"},
		{"\xe4\xbd\xe4\xbd\xa0", "\uFFFD你", "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD"},
		{"\xff\x80", "\uFFFD\uFFFD", "\uFFFD\uFFFD"},
		{"\xf0\x9f\x98\x80\xc3", "😀\uFFFD", "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD"},
		{"\xed\xa0\x80", "\uFFFD\uFFFD\uFFFD", "\uFFFD\uFFFD\uFFFD"},
		{"\xf4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD", "\uFFFD\uFFFD\uFFFD\uFFFD"},
		{"\xe0\x80a", "\uFFFD\uFFFDa", "\uFFFD\uFFFD\uFFFD"},
	}
	x, _ := fallback.ID("x")
	for _, test := range tests {
		var level, run []int32
		for _, b := range []byte(test.bytes) {
			level = append(level, int32(b))
			run = append(run, int32(b)+3)
		}
		if got := levels.Decode(level, false); got != test.level {
			t.Errorf("byte-level %q: got %q, want %q", test.bytes, got, test.level)
		}
		if got := fallback.Decode(append(run, x), false); got != test.run+"x" {
			t.Errorf("byte fallback %q: got %q, want %q", test.bytes, got, test.run+"x")
		}
	}
}

// TestStreamHoldsBack checks when a stream returns its text.
func TestStreamHoldsBack(t *testing.T) {
	levels := fromObject(t, byteLevel(nil), nil)
	stream := levels.NewStream(false)
	var got []string
	for _, b := range []byte("a你\xe4") {
		got = append(got, stream.Push(int32(b)))
	}
	got = append(got, stream.Flush())
	if diff := cmp.Diff([]string{"a", "", "", "你", "", "\uFFFD"}, got); diff != "" {
		t.Errorf("byte-level (-want +got):\n%s", diff)
	}

	fallback := fromObject(t, sentencePiece(llamaNormalizer, nil, "▁", "x"), nil)
	space, _ := fallback.ID("▁")
	x, _ := fallback.ID("x")
	stream = fallback.NewStream(false)
	got = nil
	for _, id := range []int32{space, x, 3 + 0xE4, 3 + 0xBD, 3 + 0xA0, x, space} {
		got = append(got, stream.Push(id))
	}
	got = append(got, stream.Flush())
	if diff := cmp.Diff([]string{"", "x", "", "", "", "你x", " ", ""}, got); diff != "" {
		t.Errorf("byte fallback (-want +got):\n%s", diff)
	}
}

func TestDecodeSkips(t *testing.T) {
	tok := fromObject(t, byteLevel([]object{added("<s>", "special"), added("<t>")}), nil)
	ids := []int32{-1, 256, 'a', 257, 258, 1 << 30, 'b'}
	if got := tok.Decode(ids, false); got != "<s>a<t>b" {
		t.Errorf("kept: got %q", got)
	}
	if got := tok.Decode(ids, true); got != "a<t>b" {
		t.Errorf("skipped: got %q", got)
	}
}

func TestPostProcessors(t *testing.T) {
	template := object{
		"type": "TemplateProcessing",
		"single": []object{
			{"SpecialToken": object{"id": "<s>", "type_id": 0}},
			{"Sequence": object{"id": "A", "type_id": 0}},
			{"SpecialToken": object{"id": "</s>", "type_id": 0}},
		},
		"special_tokens": object{
			"<s>": object{"id": "<s>", "ids": []int{256}}, "</s>": object{"id": "</s>", "ids": []int{257}},
		},
	}
	tests := []struct {
		name string
		post any
		want string
		bos  bool
	}{
		{"none", nil, "a", false},
		{"byte-level", object{"type": "ByteLevel", "trim_offsets": false}, "a", false},
		{"template", template, "<s>|a|</s>", true},
		{"sequence", object{"type": "Sequence", "processors": []object{{"type": "ByteLevel"}, template}}, "<s>|a|</s>", true},
		{"bert", object{"type": "BertProcessing", "sep": []any{"</s>", 257}, "cls": []any{"<s>", 256}}, "<s>|a|</s>", true},
	}
	for _, test := range tests {
		file := byteLevel([]object{added("<s>", "special"), added("</s>", "special")})
		file["post_processor"] = test.post
		tok := fromObject(t, file, nil)
		if got := spellings(tok, tok.Encode("a", true)); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
		if got := spellings(tok, tok.Encode("a", false)); got != "a" {
			t.Errorf("%s: without special tokens got %s", test.name, got)
		}
		if tok.AddsBOS() != test.bos {
			t.Errorf("%s: AddsBOS is %t", test.name, tok.AddsBOS())
		}
	}
}

func TestConfig(t *testing.T) {
	file := byteLevel([]object{added("<s>", "special")}, [2]string{"Ã", "©"})
	tok := fromObject(t, file, object{
		"bos_token": object{"content": "<s>", "lstrip": false}, "eos_token": "Ã©", "pad_token": nil,
		"unk_token": "<none>", "add_bos_token": true, "add_eos_token": false,
	})
	eos, ok := tok.EOS()
	if bos, _ := tok.BOS(); bos != 257 || eos != 256 || !ok {
		t.Errorf("BOS %d, EOS %d", bos, eos)
	}
	if diff := cmp.Diff([]int32{256}, tok.EndTokens()); diff != "" {
		t.Errorf("end tokens (-want +got):\n%s", diff)
	}
	if !tok.IsSpecial(eos) {
		t.Error("the EOS that the config names is not special")
	}
	if got := spellings(tok, tok.Encode("a", true)); got != "<s>|a" {
		t.Errorf("with special tokens: %s", got)
	}
	for name, want := range map[string]string{"bos_token": "<s>", "eos_token": "Ã©", "unk_token": "<none>"} {
		if got, ok := tok.SpecialText(name); got != want || !ok {
			t.Errorf("%s: got %q", name, got)
		}
	}
	if text, ok := tok.SpecialText("pad_token"); ok {
		t.Errorf("pad_token: got %q", text)
	}
	if _, err := tokenizer.FromJSON(marshal(t, file), []byte("[")); !errors.Is(err, tokenizer.ErrInvalid) {
		t.Errorf("a broken config: %v", err)
	}
}

func TestVocabulary(t *testing.T) {
	tok := fromObject(t, byteLevel([]object{added("<s>", "special")}), nil)
	if tok.VocabSize() != 257 || tok.Kind() != "byte-level BPE" || tok.Name() != "gpt-2" {
		t.Errorf("size %d, kind %q, name %q", tok.VocabSize(), tok.Kind(), tok.Name())
	}
	if id, ok := tok.ID("Ġ"); id != ' ' || !ok {
		t.Errorf("ID of Ġ is %d", id)
	}
	if _, ok := tok.ID("absent"); ok {
		t.Error("there is an ID of a token that is not there")
	}
	for _, id := range []int32{-1, 257, 1 << 30} {
		if _, ok := tok.Token(id); ok || tok.IsSpecial(id) {
			t.Errorf("there is a token %d", id)
		}
	}
}

// TestOldMerges checks merges that are one string each.
func TestOldMerges(t *testing.T) {
	file := object{"model": object{
		"vocab": object{"a": 0, "b": 1, "ab": 2}, "merges": []string{"#version: 0.2", "a b"},
	}}
	tok := fromObject(t, file, nil)
	if got := spellings(tok, tok.Encode("aab", false)); got != "a|ab" {
		t.Errorf("got %s", got)
	}
}

func TestGGUF(t *testing.T) {
	m := byteMetadata("llama-bpe", "<s>", "</s>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<|call|>", "<|return|>")
	m["tokenizer.ggml.bos_token_id"] = int64(256)
	m["tokenizer.ggml.eos_token_id"] = int64(257)
	m["tokenizer.ggml.eot_token_id"] = int64(1 << 40)
	tok := fromMetadata(t, m)
	if got := spellings(tok, tok.Encode("<s>a", true)); got != "<s>|<s>|a" {
		t.Errorf("got %s", got)
	}
	if diff := cmp.Diff([]int32{257, 258, 259, 261, 262}, tok.EndTokens()); diff != "" {
		t.Errorf("end tokens (-want +got):\n%s", diff)
	}
	if text, _ := tok.SpecialText("eos_token"); text != "</s>" {
		t.Errorf("eos_token is %q", text)
	}
	m["tokenizer.ggml.add_bos_token"], m["tokenizer.ggml.add_eos_token"] = false, true
	tok = fromMetadata(t, m)
	if got := spellings(tok, tok.Encode("a", true)); got != "a|</s>" || tok.AddsBOS() {
		t.Errorf("without BOS, with EOS: got %s", got)
	}
	if got := tok.Decode([]int32{'h', 'i', 257}, true); got != "hi" {
		t.Errorf("decoded %q", got)
	}
}

// TestPhi3 checks that the special tokens of Phi 3 remove the white space after them.
func TestPhi3(t *testing.T) {
	m := spmMetadata("▁", "a", "<|end|>")
	types := m["tokenizer.ggml.token_type"].([]int64)
	types[len(types)-1] = 3
	m["general.name"] = "Phi-3 Mini"
	tok := fromMetadata(t, m)
	if got := spellings(tok, tok.Encode("a<|end|>\n a<s> a", false)); got != "▁|a|<|end|>|▁|a|<s>|▁|▁|a" {
		t.Errorf("got %s", got)
	}
}

// TestUserDefined checks that user-defined tokens match in any text and decode unchanged.
func TestUserDefined(t *testing.T) {
	m := spmMetadata("▁", "a", "  ")
	types := m["tokenizer.ggml.token_type"].([]int64)
	types[len(types)-1] = 4
	m["tokenizer.ggml.add_space_prefix"] = false
	tok := fromMetadata(t, m)
	ids := tok.EncodeSpans([]tokenizer.Span{{Text: "a  a a"}}, false)
	if got := spellings(tok, ids); got != "a|  |a|▁|a" {
		t.Errorf("got %s", got)
	}
	if got := tok.Decode(ids, true); got != "a  a a" {
		t.Errorf("decoded %q", got)
	}
}

// TestLargeTexts encodes texts that would take forever if anything were quadratic.
func TestLargeTexts(t *testing.T) {
	tokens := []object{
		added("<|im_start|>", "special"), added(strings.Repeat("<", 2000) + "!"), added(" [R]", "rstrip"),
		added("[L] ", "lstrip"), added(" ", "single_word", "lstrip", "rstrip"),
	}
	pairs := [][2]string{{"a", "a"}, {"aa", "aa"}, {"Ġ", "Ġ"}, {"ĠĠ", "ĠĠ"}, {"7", "7"}, {"'", "'"}, {"<", "<"}}
	composed := byteLevel(tokens, pairs...)
	composed["normalizer"] = object{"type": "NFC"}
	kinds := map[string]*tokenizer.Tokenizer{
		"byte-level": fromObject(t, composed, nil),
		"llama":      fromObject(t, sentencePiece(llamaNormalizer, tokens, "▁", "▁▁", "▁▁▁▁", "a", "aa", "aaaa"), nil),
		"GGUF llama": fromMetadata(t, spmMetadata("▁", "▁▁", "▁▁▁▁", "a", "aa", "aaaa")),
		"Unigram": fromObject(t, object{
			"normalizer": object{"type": "Sequence", "normalizers": []object{
				{"type": "Precompiled", "precompiled_charsmap": charsmap},
				{"type": "Replace", "pattern": object{"Regex": " {2,}"}, "content": " "},
			}},
			"added_tokens": tokens,
			"model":        unigramFile(false, scoredTokens{{"<unk>", 0.0}, {"a", -1.0}, {"aa", -1.5}, {"aaaa", -2.0}, {strings.Repeat("7", 16), -3.0}})["model"],
		}, nil),
		"WordPiece": fromObject(t, object{
			"normalizer": bertNormalizer(true, true, true, nil), "pre_tokenizer": object{"type": "Whitespace"}, "added_tokens": tokens,
			"model": wordPieceFile(1<<30, "[UNK]", "a", "##a", "##aa", "7", "##7", "世")["model"],
		}, nil),
		"GGUF Unigram":  fromMetadata(t, t5Metadata([]string{"▁", "a", "aa", "<|im_start|>"}, []float64{-2, -3, -3, -4})),
		"SentencePiece": fromSPM(t, spmFile(2, nil, nil, piece{"▁", -1, 1}, piece{"a", -2, 1}, piece{"aa", -1, 1}), nil),
		"GGUF DeepSeek": fromMetadata(t, byteMetadata("deepseek-llm", "<|im_start|>")),
		"GGUF o200k":    fromMetadata(t, byteMetadata("gpt-4o", "<|im_start|>")),
	}
	for name, tok := range kinds {
		for text, s := range megabytes {
			typed := tok.EncodeSpans([]tokenizer.Span{{Text: s[:len(s)/4]}}, false)
			if len(typed) == 0 && text != "spaces" && text != "lines" && text != "invalid" {
				t.Errorf("%s: no ids for %s", name, text)
			}
			tok.Decode(typed, false)
		}
	}
}
