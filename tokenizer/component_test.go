package tokenizer_test

import (
	"encoding/binary"
	"testing"

	"github.com/realizar/realizar/tokenizer"
)

// characters returns a tokenizer.json whose tokens are the characters of alphabet; a character's
// index is its id.
func characters(alphabet string) object {
	vocab := object{}
	for _, c := range alphabet {
		vocab[string(c)] = len(vocab)
	}
	return object{"model": object{"type": "BPE", "vocab": vocab, "merges": []string{}}}
}

// bertNormalizer returns a BertNormalizer with its options.
func bertNormalizer(clean, chinese, lower bool, accents any) object {
	return object{
		"type": "BertNormalizer", "clean_text": clean, "handle_chinese_chars": chinese, "lowercase": lower,
		"strip_accents": accents,
	}
}

// charsmap is a precompiled charsmap that replaces a by ce, and X by x.
var charsmap = func() []byte {
	units := make([]uint32, 512)
	const children = 256 // of the root, from here on combined by exclusive or
	units[0] = children << 10
	for place, value := range map[byte]uint32{'a': 0, 'X': 3} {
		at := uint32(children) ^ uint32(place)
		leaf := 1 + value
		units[at] = uint32(place) | 1<<8 | (at^leaf)<<10
		units[leaf] = 1<<31 | value
	}
	data := binary.LittleEndian.AppendUint32(nil, uint32(4*len(units)))
	for _, u := range units {
		data = binary.LittleEndian.AppendUint32(data, u)
	}
	return append(data, "ce\x00x\x00"...)
}()

func TestNormalizers(t *testing.T) {
	sequence := object{"type": "Sequence", "normalizers": []object{
		{"type": "Strip", "strip_left": true, "strip_right": true}, {"type": "Lowercase"},
		{"type": "Replace", "pattern": object{"Regex": "ab"}, "content": "c"},
	}}
	tests := []struct {
		name       string
		normalizer object
		text, want string
	}{
		{"NFC", object{"type": "NFC"}, "e\u0301ﬁ", "é|ﬁ"},
		{"NFD", object{"type": "NFD"}, "éﬁ", "e|\u0301|ﬁ"},
		{"NFKC", object{"type": "NFKC"}, "e\u0301ﬁ", "é|f|i"},
		{"NFKD", object{"type": "NFKD"}, "éﬁ", "e|\u0301|f|i"},
		{"left", object{"type": "Strip", "strip_left": true, "strip_right": false}, " a ", "a| "},
		{"right", object{"type": "Strip", "strip_left": false, "strip_right": true}, " a ", " |a"},
		{"in turn", sequence, " aBAb ", "c|c"},
		{"nothing left", sequence, "   ", ""},
		{"prepend", object{"type": "Prepend", "prepend": "x"}, "a", "x|a"},
		{"accents", object{"type": "Sequence", "normalizers": []object{{"type": "NFD"}, {"type": "StripAccents"}}}, "éﬁ", "e|ﬁ"},
		{"for machine translation", object{"type": "Nmt"}, "a\u0001\u200b\tb", "a| | |b"},
		{"BERT's", bertNormalizer(true, true, true, nil), "A\u0000\tÉ\u00adfx", "a| |e|f|x"},
		{"BERT's that keeps accents", bertNormalizer(false, false, false, nil), "é", "é"},
		{"BERT's that keeps case", bertNormalizer(true, true, false, true), "éA", "e"},
		{"Chinese", bertNormalizer(true, true, true, nil), "a世b", "a| | |b"},
		{"an expression", object{"type": "Replace", "pattern": object{"Regex": "a{2,}"}, "content": "b"}, "aaab aa", "b|b| |b"},
		{"an expression with Unicode's classes", object{"type": "Replace", "pattern": object{"Regex": `[\s\d]`}, "content": "b"}, "a\u3000٣", "a|b|b"},
		{"bytes", object{"type": "ByteLevel"}, "é b", "Ã|©|Ġ|b"},
		{"a charsmap", object{"type": "Precompiled", "precompiled_charsmap": charsmap}, "xa bXe", "x|c|e| |b|x|e"},
		{"a charsmap in a cluster", object{"type": "Precompiled", "precompiled_charsmap": charsmap}, "a\u0301a", "c|e|c|e"},
		{"prepend to nothing", object{"type": "Prepend", "prepend": "x"}, "", ""},
	}
	for _, test := range tests {
		file := characters("abcefix éﬁ\u0301Ã©Ġ")
		file["normalizer"] = test.normalizer
		tok := fromObject(t, file, nil)
		if got := spellings(tok, tok.Encode(test.text, false)); got != test.want {
			t.Errorf("%s: %q: got %q, want %q", test.name, test.text, got, test.want)
		}
	}
}

// TestPreTokenizerSteps makes pieces visible by merging all letters and digits within a piece: the
// vocabulary has merges for every run of the letter a, and of digits.
func TestPreTokenizerSteps(t *testing.T) {
	sequence := func(steps ...object) object { return object{"type": "Sequence", "pretokenizers": steps} }
	split := func(pattern object, behavior string) object {
		return object{"type": "Split", "pattern": pattern, "behavior": behavior, "invert": false}
	}
	tests := []struct {
		name       string
		step       object
		text, want string
	}{
		{"none", nil, "aa11 aa", "aa11|▁|aa"},
		{"digits together", object{"type": "Digits", "individual_digits": false}, "aa11", "aa|11"},
		{"digits alone", object{"type": "Digits", "individual_digits": true}, "aa11", "aa|1|1"},
		{"string", split(object{"String": "1"}, "Isolated"), "aa11", "aa|1|1"},
		{"expression", split(object{"Regex": `\p{N}{1,3}`}, "Isolated"), "aa11", "aa|11"},
		{"removed", split(object{"String": "1"}, "Removed"), "aa1aa", "aa|aa"},
		{"an expression that is a string", split(object{"Regex": " "}, "MergedWithPrevious"), "aa aa", "aa|▁|aa"},
		{"BERT's", object{"type": "BertPreTokenizer"}, "aa-11 aa", "aa|▁|11|aa"},
		{"words", object{"type": "Whitespace"}, "aa-11 aa", "aa|▁|11|aa"},
		{"at white space", object{"type": "WhitespaceSplit"}, "aa11\u3000aa", "aa11|aa"},
		{"at a character", object{"type": "CharDelimiterSplit", "delimiter": "-"}, "aa-aa", "aa|aa"},
		{"punctuation", object{"type": "Punctuation"}, "aa-11", "aa|▁|11"},
		{"punctuation with a behavior", object{"type": "Punctuation", "behavior": "Removed"}, "aa-11", "aa|11"},
		{"scripts", object{"type": "UnicodeScripts"}, " aa11", "aa|11"},
		{"a length", object{"type": "FixedLength", "length": 2}, "aa11a", "aa|11|a"},
		{"an expression with white space", split(object{"Regex": `a+|\s+(?!\S)|\s+`}, "Isolated"), "aa11", "aa|11"},
		{"in turn", sequence(split(object{"String": " "}, "Removed"), object{"type": "Digits", "individual_digits": true}), "aa 11", "aa|1|1"},
	}
	for _, test := range tests {
		file := object{
			"normalizer":    nil,
			"pre_tokenizer": test.step,
			"model": object{
				"type": "BPE", "vocab": object{"a": 0, "aa": 1, "1": 2, "11": 3, "aa11": 4, "▁": 5},
				"merges": []string{"a a", "1 1", "aa 11"}, "unk_token": "▁",
			},
		}
		tok := fromObject(t, file, nil)
		if got := spellings(tok, tok.Encode(test.text, false)); got != test.want {
			t.Errorf("%s: %q: got %q, want %q", test.name, test.text, got, test.want)
		}
	}

	file := byteLevel([]object{added("<s>", "special")}, [2]string{"Ġ", "a"})
	file["pre_tokenizer"] = sequence(object{"type": "Digits", "individual_digits": true},
		object{"type": "ByteLevel", "add_prefix_space": true})
	tok := fromObject(t, file, nil)
	if got, want := spellings(tok, tok.Encode("a1 a<s>a", false)), "Ġa|Ġ|1|Ġa|<s>|Ġa"; got != want {
		t.Errorf("prefix space: got %s, want %s", got, want)
	}
	if tok.Name() != "starcoder" {
		t.Errorf("name %q", tok.Name())
	}
}

// TestOldMetaspace checks a metaspace in the form that preceded prepend_scheme.
func TestOldMetaspace(t *testing.T) {
	for prefix, want := range map[bool]string{true: "_|a|_|a", false: "a|_|a"} {
		file := characters("_a")
		file["pre_tokenizer"] = object{"type": "Metaspace", "replacement": "_", "add_prefix_space": prefix}
		file["decoder"] = file["pre_tokenizer"]
		tok := fromObject(t, file, nil)
		ids := tok.Encode("a a", false)
		if got := spellings(tok, ids); got != want {
			t.Errorf("prefix %t: got %s, want %s", prefix, got, want)
		}
		if got := tok.Decode(ids, false); got != "a a" {
			t.Errorf("prefix %t: decoded %q", prefix, got)
		}
	}
}

func TestDecoders(t *testing.T) {
	sequence := func(steps ...object) object { return object{"type": "Sequence", "decoders": steps} }
	replace := object{"type": "Replace", "pattern": object{"String": "ab"}, "content": "-"}
	fuse := object{"type": "Fuse"}
	strip := func(start, stop int) object {
		return object{"type": "Strip", "content": "_", "start": start, "stop": stop}
	}
	tests := []struct {
		name    string
		decoder any
		want    string // of the tokens _ _ a ab b _
	}{
		{"none", nil, "_ _ a ab b _"},
		{"replace", replace, "__a-b_"},
		{"replace fused", sequence(fuse, replace), "__a-b_"},
		{"replace after replace", sequence(object{"type": "Replace", "pattern": object{"String": "b"}, "content": "ab"}, replace), "__aa--_"},
		{"strip each", strip(1, 0), "aabb"},
		{"strip the whole", sequence(fuse, strip(1, 0)), "_aabb_"},
		{"strip both ends", sequence(fuse, strip(5, 1)), "aabb"},
		{"strip the ends of each", strip(0, 2), "aabb"},
		{"metaspace", object{"type": "Metaspace", "replacement": "_", "prepend_scheme": "first"}, " aabb "},
		{"metaspace, never", object{"type": "Metaspace", "replacement": "_", "prepend_scheme": "never"}, "  aabb "},
		{"WordPiece", object{"type": "WordPiece", "prefix": "a", "cleanup": false}, "_ _b b _"},
		{"CTC", object{"type": "CTC", "pad_token": "a", "word_delimiter_token": "_", "cleanup": true}, " bb "},
		{"suffix", object{"type": "BPEDecoder", "suffix": "_"}, "  aabb"},
		{"an expression", object{"type": "Replace", "pattern": object{"Regex": "[ab]+"}, "content": "-"}, "__---_"},
		{"byte-level, not its characters", object{"type": "ByteLevel"}, "__aabb_"},
	}
	for _, test := range tests {
		file := characters("_ab")
		file["model"].(object)["vocab"].(object)["ab"] = 3
		file["decoder"] = test.decoder
		tok := fromObject(t, file, nil)
		if got := tok.Decode([]int32{0, 0, 1, 3, 2, 0}, false); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

// TestAddedTokensInHoles checks the ids of added tokens that the model lacks.
func TestAddedTokensInHoles(t *testing.T) {
	numbered := func(content string, id int) object {
		token := added(content, "special")
		token["id"] = id
		return token
	}
	file := object{
		"added_tokens": []object{numbered("<x>", 7), numbered("<x>", 7), numbered("b", 1), numbered("<y>", 9)},
		"model":        object{"type": "BPE", "vocab": object{"a": 0, "b": 5, "c": 4}, "merges": []string{}},
	}
	tok := fromObject(t, file, nil)
	for token, want := range map[string]int32{"a": 0, "b": 5, "c": 4, "<x>": 3, "<y>": 4} {
		if id, ok := tok.ID(token); id != want || !ok {
			t.Errorf("%s has id %d, want %d", token, id, want)
		}
	}
	if got := tok.Decode([]int32{0, 4}, false); got != "a <y>" {
		t.Errorf("decoded %q", got)
	}
	if ids := tok.EncodeSpans([]tokenizer.Span{{Text: "c<y>"}}, false); len(ids) > 0 {
		t.Errorf("typed text became %d", ids)
	}
}

// TestOldGGUF checks that a Llama vocabulary needs no keys for its BOS and EOS.
func TestOldGGUF(t *testing.T) {
	m := spmMetadata("▁", "a")
	delete(m, "tokenizer.ggml.bos_token_id")
	delete(m, "tokenizer.ggml.eos_token_id")
	tok := fromMetadata(t, m)
	if got := spellings(tok, tok.Encode("a", true)); got != "<s>|▁|a" {
		t.Errorf("got %s", got)
	}
	if eos, _ := tok.EOS(); eos != 2 {
		t.Errorf("EOS %d", eos)
	}
}
