package tokenizer_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/realizar/realizar/tokenizer"
)

// message is a protocol buffers message that is being built.
type message []byte

func (m message) number(field protowire.Number, v int64) message {
	return protowire.AppendVarint(protowire.AppendTag(m, field, protowire.VarintType), uint64(v))
}

func (m message) bytes(field protowire.Number, data []byte) message {
	return protowire.AppendBytes(protowire.AppendTag(m, field, protowire.BytesType), data)
}

// piece is a piece of a tokenizer.model.
type piece struct {
	text  string
	score float32
	kind  int64
}

// spmFile returns a tokenizer.model of a model_type with <unk>, <s>, </s> and pieces.
func spmFile(kind int64, trainer, normalizer message, pieces ...piece) []byte {
	var file message
	for _, p := range append([]piece{{"<unk>", 0, 2}, {"<s>", 0, 3}, {"</s>", 0, 3}}, pieces...) {
		one := message{}.bytes(1, []byte(p.text))
		one = protowire.AppendFixed32(protowire.AppendTag(one, 2, protowire.Fixed32Type), math.Float32bits(p.score))
		file = file.bytes(1, one.number(3, p.kind))
	}
	return file.bytes(2, append(message{}.number(3, kind), trainer...)).bytes(3, normalizer)
}

// asLlama are Llama's normalizer options: a space before the text, and no spaces removed.
var asLlama = message{}.number(3, 1).number(4, 0)

func fromSPM(t testing.TB, file []byte, config object) *tokenizer.Tokenizer {
	t.Helper()
	tok, err := tokenizer.FromSentencePiece(file, marshal(t, config))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func byteFallbackPieces() []piece {
	var all []piece
	for b := range 256 {
		all = append(all, piece{fmt.Sprintf("<0x%02X>", b), 0, 6})
	}
	return all
}

func TestSentencePieceBPE(t *testing.T) {
	words := []piece{{"▁a", -1, 1}, {"ab", -2, 1}, {"▁", -3, 1}, {"a", -4, 1}, {"b", -5, 1}, {"[u]", 0, 4}}
	tok := fromSPM(t, spmFile(2, message{}.number(35, 1), asLlama, append(byteFallbackPieces(), words...)...), nil)
	for _, test := range []struct{ text, want string }{
		{"ab", "▁a|b"},
		{"bab  a", "▁|b|ab|▁|▁a"},
		{"aé", "▁a|<0xC3>|<0xA9>"},
		{"a[u]a", "▁a|[u]|a"},
		{"", ""},
	} {
		ids := tok.Encode(test.text, false)
		if got := spellings(tok, ids); got != test.want {
			t.Errorf("%q: got %s, want %s", test.text, got, test.want)
		}
	}
	if got, want := spellings(tok, tok.Encode("<s>a", true)), "<s>|<s>|▁a"; got != want {
		t.Errorf("with BOS: got %s, want %s", got, want)
	}
	for _, id := range tok.EncodeSpans([]tokenizer.Span{{Text: "<s></s>"}}, false) {
		if tok.IsSpecial(id) {
			t.Errorf("typed text became special token %d", id)
		}
	}
	if got := tok.Decode(tok.Encode("ab é", true), true); got != "ab é" {
		t.Errorf("decoded %q", got)
	}
	if eos := tok.EndTokens(); len(eos) != 1 || eos[0] != 2 {
		t.Errorf("end tokens %v", eos)
	}

	bare := fromSPM(t, spmFile(2, nil, asLlama, words...), nil)
	if got, want := spellings(bare, bare.Encode("axyb", false)), "▁a|<unk>|b"; got != want {
		t.Errorf("without bytes: got %s, want %s", got, want)
	}
}

func TestSentencePieceUnigram(t *testing.T) {
	chars := message{}.bytes(2, charsmap)
	words := []piece{
		{"▁", -2, 1}, {"a", -3, 1}, {"b", -3, 1}, {"▁ab", -4, 1}, {"▁c", -3, 1}, {"c", -3, 1}, {"e", -3, 1}, {"X", -9, 5},
	}
	for _, test := range []struct {
		name       string
		normalizer message
		text, want string
	}{
		{"a space before each word", nil, "  ab  ab ", "▁ab|▁ab|</s>"},
		{"before all but the first", message{}.number(3, 0), " ab ab", "a|b|▁ab|</s>"},
		{"all spaces", message{}.number(4, 0), "ab  b", "▁ab|▁|▁|b|</s>"},
		{"a charsmap", chars, "ab", "▁c|e|b|</s>"},
		{"unknown characters", nil, "abxyab", "▁ab|<unk>|a|b|</s>"},
		{"an unused piece", nil, "X", "▁|<unk>|</s>"},
		{"nothing", nil, " ", "</s>"},
	} {
		tok := fromSPM(t, spmFile(1, nil, test.normalizer, words...), nil)
		if got := spellings(tok, tok.Encode(test.text, true)); got != test.want {
			t.Errorf("%s: %q: got %s, want %s", test.name, test.text, got, test.want)
		}
	}
}

// TestSentencePieceOptions checks models and options that few files have.
func TestSentencePieceOptions(t *testing.T) {
	letters := []piece{{"▁", -1, 1}, {"a", -2, 1}, {"b", -2, 1}, {"aa", 0, 4}, {"▁x▁", 0, 4}, {" ", -2, 1}}
	words := []piece{{"▁a", -1, 1}, {"▁ab", -2, 1}, {"a▁", -3, 1}}
	unused := []piece{{"a", -1, 1}, {"b", -2, 1}, {"ab", -3, 5}, {"abb", -4, 1}, {"aabb", -5, 5}}
	ties := []piece{{"▁", -2, 1}, {".", -4.1, 1}, {"..", -6.3, 1}, {"a", -7.220941543579102, 1}, {"aa", 0, 4}}
	plain := message{}.number(3, 0).number(4, 0)
	for _, test := range []struct {
		name                string
		kind                int64
		trainer, normalizer message
		pieces              []piece
		text, want          string
	}{
		{"characters", 4, nil, nil, letters, "ab  aaaxyb", "▁|a|b|▁|aa|a|<unk>|b"},
		{"characters, a piece with spaces", 4, nil, plain, letters, "b▁x▁a", "b|▁x▁|a"},
		{"characters as bytes", 4, message{}.number(35, 1), plain, append(byteFallbackPieces(), letters...), "aé", "a|<0xC3>|<0xA9>"},
		{"words", 3, nil, nil, words, "a ab aab b ab", "▁a|▁ab|<unk>|▁ab"},
		{"words as bytes", 3, message{}.number(35, 1), plain, append(byteFallbackPieces(), words...), "b▁a", "<0x62>|▁a"},
		{"spaces after words", 4, message{}.number(24, 1), nil, letters, " a b", "a|▁|b|▁"},
		{"spaces as they are", 4, nil, message{}.number(5, 0), letters, "a  b", " |a| |b"},
		{"spaces at the ends", 4, nil, nil, letters, "  a▁ ▁ ", "▁|a"},
		{"spaces after what is written as one", 4, nil, nil, letters, "▁ a", "▁|▁|▁|a"},
		{"unused pieces", 2, nil, plain, unused, "abab aabb", "a|b|a|b|<unk>|a|abb"},
		{"a user-defined piece in a text", 1, nil, plain, letters, "baab", "b|aa|b"},
		{"a user-defined piece with spaces", 1, nil, plain, letters, "a▁x▁b", "a|▁x▁|b"},
		{"a piece is left when it is as good", 1, nil, nil, ties, "aaa", "▁|a|aa"},
	} {
		tok := fromSPM(t, spmFile(test.kind, test.trainer, test.normalizer, test.pieces...), nil)
		if got := spellings(tok, tok.Encode(test.text, false)); got != test.want {
			t.Errorf("%s: %q: got %s, want %s", test.name, test.text, got, test.want)
		}
	}
}

// TestSentencePieceDecode checks the decoding of bytes, of spaces at the start, and of what is not
// text.
func TestSentencePieceDecode(t *testing.T) {
	pieces := append(byteFallbackPieces(), piece{"▁", -1, 1}, piece{"▁a", -1, 1}, piece{"b", -1, 1}, piece{"▁x▁", 0, 4})
	for _, test := range []struct {
		name                string
		trainer, normalizer message
		pieces, want        string
	}{
		{"all spaces at the start", nil, nil, "▁|▁|▁a|▁a", "a a"},
		{"one space at the start", nil, message{}.number(4, 0), "▁|▁|▁a|▁a", "  a a"},
		{"every space", nil, message{}.number(3, 0).number(4, 0), "▁|▁a", "  a"},
		{"a control symbol at the start", nil, nil, "<s>|▁a", "a"},
		{"spaces after bytes", nil, nil, "<0x61>|▁a", "a a"},
		{"bytes of no character", nil, nil, "<0xE4>|<0x2C>|<0xE3>|<0x80>|b", "\uFFFD,\uFFFD\uFFFDb"},
		{"a character in bytes", nil, nil, "b|<0xE4>|<0xB8>|<0x96>|<0xC3>", "b世\uFFFD"},
		{"bytes around a control symbol", nil, nil, "<0xC3>|</s>|<0xA9>", "\uFFFD\uFFFD"},
		{"an unknown character", nil, nil, "▁|<unk>|b", " \u2047 b"},
		{"an unknown character, by another name", message{}.bytes(44, []byte("?")), nil, "<unk>|▁a", "? a"},
		{"a user-defined piece", nil, nil, "b|▁x▁|b", "b x b"},
	} {
		tok := fromSPM(t, spmFile(1, test.trainer.number(35, 1), test.normalizer, pieces...), nil)
		stream := tok.NewStream(true)
		var ids []int32
		streamed := ""
		for spelled := range strings.SplitSeq(test.pieces, "|") {
			id, ok := tok.ID(spelled)
			if !ok {
				t.Fatalf("%s: no piece %s", test.name, spelled)
			}
			ids = append(ids, id)
			streamed += stream.Push(id)
		}
		if got := tok.Decode(ids, true); got != test.want || streamed+stream.Flush() != test.want {
			t.Errorf("%s: got %q, want %q; streamed %q", test.name, got, test.want, streamed)
		}
	}
}

func TestSentencePieceConfig(t *testing.T) {
	config := object{
		"add_bos_token": true, "add_eos_token": true, "pad_token": "<pad>",
		"added_tokens_decoder": object{
			"1": added("<s>", "special"), "4": added("<|im_start|>", "special"), "5": added("<pad>"),
		},
	}
	file := spmFile(2, nil, asLlama, piece{"a", -1, 1})
	tok := fromSPM(t, file, config)
	if got, want := spellings(tok, tok.Encode("<|im_start|>a", true)), "<s>|<|im_start|>|<unk>|a|</s>"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if id, _ := tok.ID("<|im_start|>"); !tok.IsSpecial(id) || tok.VocabSize() != 6 {
		t.Errorf("id %d of %d", id, tok.VocabSize())
	}
	for number, content := range map[string]string{"1": "<t>", "x": "<t>", "-1": "<t>", "2000000000": "<t>", "7": "a"} {
		config["added_tokens_decoder"] = object{number: added(content)}
		if _, err := tokenizer.FromSentencePiece(file, marshal(t, config)); !errors.Is(err, tokenizer.ErrInvalid) {
			t.Errorf("id %s for %s: error %v", number, content, err)
		}
	}
}

func TestRefusedSentencePiece(t *testing.T) {
	a := piece{"a", -1, 1}
	for _, test := range []struct {
		name     string
		file     []byte
		want     error
		mentions string
	}{
		{"nothing", nil, tokenizer.ErrInvalid, "no pieces"},
		{"no message", []byte("{}"), tokenizer.ErrInvalid, ""},
		{"cut off", spmFile(1, nil, nil, a)[:20], tokenizer.ErrInvalid, ""},
		{"another model", spmFile(5, nil, nil, a), tokenizer.ErrUnsupported, "model_type 5"},
		{"a denormalizer", message(spmFile(1, nil, nil, a)).bytes(5, message{}.bytes(2, charsmap)), tokenizer.ErrUnsupported, "denormalizer"},
		{"an empty piece", spmFile(1, nil, nil, piece{}), tokenizer.ErrInvalid, "piece 3"},
		{"no UTF-8", spmFile(1, nil, nil, piece{"\xff", 0, 1}), tokenizer.ErrInvalid, "piece 3"},
		{"no score", spmFile(1, nil, nil, piece{"a", float32(math.NaN()), 1}), tokenizer.ErrInvalid, "NaN"},
		{"a charsmap", spmFile(1, nil, message{}.bytes(2, binary.LittleEndian.AppendUint32(nil, 99)), a), tokenizer.ErrInvalid, "precompiled_charsmap"},
	} {
		_, err := tokenizer.FromSentencePiece(test.file, nil)
		if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.mentions) {
			t.Errorf("%s: got error %v, want %v that mentions %q", test.name, err, test.want, test.mentions)
		}
	}
}

// FuzzFromSentencePiece checks that no file and no text lead to a panic, or to text that is not
// UTF-8.
func FuzzFromSentencePiece(f *testing.F) {
	words := []piece{{"▁a", -1, 1}, {"▁", -3, 1}, {"a", -4, 1}, {"b", -5, 1}, {"[u]", 0, 4}}
	f.Add(spmFile(2, message{}.number(35, 1), asLlama, append(byteFallbackPieces(), words...)...), "ab [u]é\xff")
	f.Add(spmFile(2, nil, asLlama, words...), "abxy <s>")
	f.Add(spmFile(1, nil, message{}.bytes(2, charsmap), words...), " a  bX世")
	f.Add(spmFile(1, message{}.number(40, -1), message{}.number(3, 0).number(4, 0), words...), "a  xb")
	f.Fuzz(func(t *testing.T, file []byte, text string) {
		tok, err := tokenizer.FromSentencePiece(file, nil)
		if err != nil {
			if !errors.Is(err, tokenizer.ErrInvalid) && !errors.Is(err, tokenizer.ErrUnsupported) {
				t.Errorf("error of no kind: %v", err)
			}
			return
		}
		ids := tok.Encode(text, true)
		for _, id := range ids {
			if _, ok := tok.Token(id); !ok {
				t.Errorf("id %d is not in the vocabulary", id)
			}
		}
		if got := tok.Decode(ids, false); !utf8.ValidString(got) {
			t.Errorf("decoded %q", got)
		}
	})
}
