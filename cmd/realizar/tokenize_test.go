package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
)

// jsonLine is a value as one line of JSON.
func jsonLine(t *testing.T, v any) string {
	t.Helper()
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// texts are what tokenizers stumble over.
var texts = []string{
	"hello world", "hello\n", "", " ", "\n\n", "größer als 日本語 👩‍👩‍👧", "<b>&amp;</b>\u2028", "<|im_start|>user\nhi<|im_end|>",
	"a\x00b", strings.Repeat("x", 10000),
}

func TestTokenize(t *testing.T) {
	hub := modeltest.Hub(t, modeltest.AddBOS())
	for name, path := range map[string]string{
		"model":           modeltest.Llama(t, modeltest.AddBOS()),
		"vocabulary":      modeltest.Llama(t, modeltest.AddBOS(), modeltest.VocabularyOnly()),
		"folder":          hub,
		"tokenizer.json":  filepath.Join(hub, "tokenizer.json"),
		"without weights": modeltest.Hub(t, modeltest.AddBOS(), modeltest.VocabularyOnly()),
	} {
		t.Run(name, func(t *testing.T) {
			tok, err := realizar.OpenTokenizer(path)
			if err != nil {
				t.Fatal(err)
			}
			var lines, arrays, special strings.Builder
			for _, text := range texts {
				ids := tok.Encode(text, false)
				if ids == nil {
					ids = []int32{}
				}
				want := jsonLine(t, ids)
				if got := output(t, text, "tokenize", path); got != want {
					t.Errorf("%.40q is %.80s, want %.80s", text, got, want)
				}
				if got := output(t, want, "tokenize", path, "--decode"); got != tok.Decode(ids, false) || got != text {
					t.Errorf("%.40s decodes to %.40q, want %.40q", want, got, text)
				}
				lines.WriteString(jsonLine(t, text))
				arrays.WriteString(want)
				special.WriteString(jsonLine(t, tok.Encode(text, true)))
			}
			if got := output(t, lines.String(), "tokenize", path, "--jsonl"); got != arrays.String() {
				t.Errorf("--jsonl wrote %.200s, want %.200s", got, arrays.String())
			}
			if got := output(t, arrays.String(), "tokenize", path, "--jsonl", "--decode"); got != lines.String() {
				t.Errorf("--jsonl --decode wrote %.200s, want %.200s", got, lines.String())
			}
			if got := output(t, lines.String(), "tokenize", path, "--jsonl", "--special"); got != special.String() || got == arrays.String() {
				t.Errorf("--jsonl --special wrote %.200s, want %.200s", got, special.String())
			}
			// The last line need not end, and a carriage return may precede its end.
			if got, want := output(t, "\"hello\"\r\n\"hello\"", "tokenize", path, "--jsonl"), jsonLine(t, tok.Encode("hello", false)); got != want+want {
				t.Errorf("lines of another system are %s, want %s twice", got, want)
			}
		})
	}
}

// Whatever way JSON has of writing a character, it is the character.
func TestTokenizeEscapes(t *testing.T) {
	model := modeltest.Llama(t)
	for escaped, text := range map[string]string{
		`"\ud83d\ude00"`:              "😀",
		`"\uD83D\uDE00\ud83d\ude00x"`: "😀😀x",
		`"\\ud83d"`:                   `\ud83d`,
		`"\\\ud83d\uDE00\\ude00"`:     `\😀\ude00`,
		`"\ufffd\u0000\"\n"`:          "\ufffd\x00\"\n",
		"\"\ufffd\"":                  "\ufffd",
	} {
		if got, want := output(t, escaped, "tokenize", model, "--jsonl"), output(t, text, "tokenize", model); got != want {
			t.Errorf("%s is %s, want %s", escaped, got, want)
		}
	}
}

func TestTokenizeErrors(t *testing.T) {
	model := modeltest.Llama(t)
	for _, test := range []struct {
		stdin string
		args  []string
		says  []string
	}{
		{"\"a\"\n\n\"b\"\n", []string{"--jsonl"}, []string{"line 2"}},
		{"\"a\"\n17\n", []string{"--jsonl"}, []string{"line 2", "JSON string"}},
		{"null\n", []string{"--jsonl"}, []string{"line 1"}},
		{"\"a\" \"b\"\n", []string{"--jsonl"}, []string{"line 1"}},
		{"", []string{"--decode"}, []string{"JSON array"}},
		{"[1, 2", []string{"--decode"}, []string{"JSON array"}},
		{"[1, -2]", []string{"--decode"}, []string{`"-2"`, "index 1"}},
		{"[1, 2.5]", []string{"--decode"}, []string{`"2.5"`, "index 1"}},
		{"[4294967296]", []string{"--decode"}, []string{"4294967296", "index 0"}},
		{"[1]\n[2,x]\n", []string{"--decode", "--jsonl"}, []string{"line 2"}},
		{"\"a\"\n\"b\xff\"\n", []string{"--jsonl"}, []string{"line 2", "0xff", "byte 2", "UTF-8"}},
		{"\"\xed\xa0\x80\"\n", []string{"--jsonl"}, []string{"line 1", "0xed", "byte 1", "UTF-8"}},
		{"\"\xe2\x82\"\n", []string{"--jsonl"}, []string{"line 1", "0xe2", "byte 1", "UTF-8"}},
		{`"\u00e9 \ud83d"`, []string{"--jsonl"}, []string{"line 1", `\ud83d`, "byte 8", "surrogate"}},
		{`"\uDE00\uD83D"`, []string{"--jsonl"}, []string{"line 1", `\uDE00`, "byte 1", "surrogate"}},
		{"\"\"\n\"\\ud83d\\ud83d\\ude00\"", []string{"--jsonl"}, []string{"line 2", `\ud83d`, "byte 1", "surrogate"}},
		{`"\ud83d\n"`, []string{"--jsonl"}, []string{"line 1", `\ud83d`, "surrogate"}},
		{`["1"]`, []string{"--decode"}, []string{`"\"1\""`, "index 0"}},
		{"[1]\n[2, \"1\"]\n", []string{"--decode", "--jsonl"}, []string{"line 2", `"\"1\""`, "index 1"}},
		{"[1, null]", []string{"--decode"}, []string{"null", "index 1"}},
		{"[1, [2]]", []string{"--decode"}, []string{"[2]", "index 1"}},
		{"[1, 1e1]", []string{"--decode"}, []string{"1e1", "index 1"}},
		{"[1, 272]", []string{"--decode"}, []string{"272 at index 1", "vocabulary of 272 tokens"}},
		{"[1]\n[2, 99999]\n", []string{"--decode", "--jsonl"}, []string{"line 2", "99999 at index 1", "vocabulary of 272 tokens"}},
		{"[99999999999999999999999]", []string{"--decode"}, []string{"99999999999999999999999 at index 0", "vocabulary of 272 tokens"}},
	} {
		t.Run(fmt.Sprintf("%q %q", test.stdin, test.args), func(t *testing.T) {
			r := realizarIn(t, test.stdin, append([]string{"tokenize", model}, test.args...)...)
			r.stdout = "" // the lines before are there
			fails(t, r, 1, test.says...)
		})
	}
}

func TestTokenizeWithoutTokenizer(t *testing.T) {
	dir := modeltest.Hub(t)
	if err := os.Remove(filepath.Join(dir, "tokenizer.json")); err != nil {
		t.Fatal(err)
	}
	fails(t, realizarRun(t, "tokenize", dir), 1, "no usable tokenizer", "tokenizer.json")
	fails(t, realizarRun(t, "tokenize", writeFile(t, "tokenizer.json", `{"model": {"type": "Abacus"}}`)), 1, "Abacus")
	fails(t, realizarRun(t, "tokenize", filepath.Join(dir, "tokenizer.json")), 1, "tokenizer.json")
}

func TestTokenizePreTokenizer(t *testing.T) {
	const text = "it's 12"
	pre := func(name string) string { return modeltest.Llama(t, modeltest.Metadata("tokenizer.ggml.pre", name)) }
	want := realizarIn(t, text, "tokenize", pre("starcoder"))
	unknown := pre("star-coder")
	fails(t, realizarIn(t, text, "tokenize", unknown), 1, `"star-coder"`, "starcoder", "--pre-tokenizer")
	if r := realizarIn(t, text, "tokenize", unknown, "--pre-tokenizer", "starcoder"); r != want || r.code != 0 {
		t.Errorf("got %+v, want %+v", r, want)
	}
	fails(t, realizarIn(t, text, "tokenize", unknown, "--pre-tokenizer", "starcode"), 2, `"starcode"`, "starcoder")
	fails(t, realizarRun(t, "run", unknown, "x", "--pre-tokenizer", "starcode"), 2, `"starcode"`, "starcoder")
	fails(t, realizarIn(t, text, "tokenize", modeltest.Hub(t), "--pre-tokenizer", "starcoder"), 2, "only GGUF files let you choose one")
	r := realizarIn(t, text, "tokenize", pre(""))
	if r.code != 0 || !strings.Contains(r.stderr, "names no pre-tokenizer") {
		t.Errorf("without a name got %+v", r)
	}
	for _, name := range []string{"", "star-coder"} {
		if r := realizarRun(t, "inspect", pre(name), "--pre-tokenizer", "starcoder"); !strings.Contains(r.stdout, ", starcoder, ") {
			t.Errorf("inspect: %q", r.stdout)
		}
	}
	if r := realizarRun(t, "inspect", pre("")); !strings.Contains(r.stdout, "default (the file names none)") {
		t.Errorf("inspect: %q", r.stdout)
	}
}

func TestTokenizeSpecialTokensMatch(t *testing.T) {
	model := modeltest.Llama(t)
	var ids []int32
	if err := json.Unmarshal([]byte(output(t, "<|im_end|>", "tokenize", model)), &ids); err != nil {
		t.Fatal(err)
	}
	if len(ids) != 1 {
		t.Errorf("a special token is %v, want one id", ids)
	}
	if !slices.Equal(ids, []int32{271}) {
		t.Errorf("<|im_end|> is %v, want the last id of the vocabulary, 271", ids)
	}
}
