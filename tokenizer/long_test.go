package tokenizer_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/realizar/realizar/tokenizer"
)

// scriptsOfText are characters for words. No normalizer composes any of them.
var scriptsOfText = [][]rune{
	[]rune("etaoinshrdlu"), []rune("ETAOIN"), []rune("приветмуж"), []rune("ελάδβγ"), []rune("世界你好中文天地人"),
	[]rune("ひらがなカタ"), []rune("한국어말"), []rune("ภาษไทย"), []rune("नमतहद"), []rune("العربي"), []rune("עבריתש"),
	[]rune("😀🎉🚀👍"), []rune("0123456789"), []rune("٣٤٥"), []rune(".,;:!?-_/()[]{}<>|\"'"), []rune("ßøæœñ"),
}

// longText returns a text of about size bytes with what is hard for tokenizers: scripts mixed by
// paragraph and within words; words without an end; runs of one character, of spaces, digits and
// punctuation; and text without spaces. Every part ends with a line of "a\nb".
func longText(size int) string {
	g := rand.New(rand.NewPCG(1, 2))
	script := func() []rune { return scriptsOfText[g.IntN(len(scriptsOfText))] }
	one := func(from []rune) rune { return from[g.IntN(len(from))] }
	word := func(b *strings.Builder, from []rune) {
		for range 1 + g.IntN(9) {
			b.WriteRune(one(from))
		}
	}
	endless := func(from []rune) func(*strings.Builder) {
		return func(b *strings.Builder) { word(b, from) }
	}
	repeated := func(text string) func(*strings.Builder) {
		return func(b *strings.Builder) { b.WriteString(text) }
	}
	paragraph := scriptsOfText[0]
	kinds := []func(*strings.Builder){
		func(b *strings.Builder) {
			word(b, paragraph)
			if b.WriteByte(' '); g.IntN(60) == 0 {
				b.WriteString("\n\n")
				paragraph = script()
			}
		},
		func(b *strings.Builder) {
			word(b, script())
			if g.IntN(3) == 0 {
				b.WriteByte(' ')
			}
		},
		func(b *strings.Builder) { word(b, script()) },
		endless(scriptsOfText[0]), endless(scriptsOfText[4]), endless(scriptsOfText[12]), endless(scriptsOfText[14]),
		repeated("a"), repeated(" "), repeated("7"), repeated("世"), repeated("👩\u200d💻"), repeated("="), repeated("\n"), repeated("ab"),
		repeated("'"), repeated("x "), repeated("<|im_start"), repeated("<|im_end|>"), repeated(" \n"),
	}
	part := max(size/len(kinds)/4, 1<<10)
	var b strings.Builder
	b.Grow(size + size/8)
	for i := 0; b.Len() < size; i++ {
		for end := b.Len() + part; b.Len() < end; {
			kinds[i%len(kinds)](&b)
		}
		b.WriteString(" a\nb ")
	}
	return b.String()
}

// TestLongText encodes and decodes a text of many scripts, whose length in bytes
// REALIZAR_TOKENIZER_LOAD gives. It logs the time per byte for the whole and for its parts.
func TestLongText(t *testing.T) {
	size := 2 << 20
	if s := os.Getenv("REALIZAR_TOKENIZER_LOAD"); s != "" {
		var err error
		if size, err = strconv.Atoi(s); err != nil {
			t.Fatalf("REALIZAR_TOKENIZER_LOAD: %v", err)
		}
	}
	text := longText(size)
	for name, tok := range allTokenizers(t) {
		t.Run(name, func(t *testing.T) { encodeLong(t, tok, text) })
	}
}

// allTokenizers returns the tokenizers of the tests, and those of the conformance data if there are
// any.
func allTokenizers(t *testing.T) map[string]*tokenizer.Tokenizer {
	t.Helper()
	kinds := tokenizers(t)
	if root := os.Getenv("REALIZAR_CONFORMANCE"); root != "" {
		for _, folder := range glob(t, filepath.Join(root, "tokenizers", "hf", "*")) {
			kinds["hf "+filepath.Base(folder)] = readHF(t, filepath.Base(folder))
		}
		for _, file := range glob(t, filepath.Join(root, "tokenizers", "gguf", "*.gguf")) {
			name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "ggml-vocab-"), ".gguf")
			kinds["gguf "+name] = readGGUF(t, name)
		}
	}
	return kinds
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// encodeLong checks that with a byte-level vocabulary the ids of a text are those of its parts and
// decode to the text, and with others that decoding and encoding again changes nothing.
func encodeLong(t *testing.T, tok *tokenizer.Tokenizer, text string) {
	const part = 1 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begun := time.Now()
	ids := tok.Encode(text, false)
	whole := time.Since(begun)
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 400*uint64(len(text)) {
		t.Errorf("%d bytes of memory for %d of text", used, len(text))
	}

	var parts []int32
	begun = time.Now()
	for rest := text; rest != ""; {
		end := len(rest)
		if len(rest) > part {
			if i := strings.Index(rest[part:], "a\nb"); i >= 0 {
				end = part + i + len("a\n") // no byte-level pre-tokenizer joins these
			}
		}
		parts = append(parts, tok.Encode(rest[:end], false)...)
		rest = rest[end:]
	}
	t.Logf("%d ids; %.1f ns a byte, in parts of a MiB %.1f; %d bytes allocated a byte", len(ids),
		float64(whole.Nanoseconds())/float64(len(text)), float64(time.Since(begun).Nanoseconds())/float64(len(text)),
		(after.TotalAlloc-before.TotalAlloc)/uint64(len(text)))

	if tok.Kind() == "byte-level BPE" {
		if !slices.Equal(ids, parts) {
			t.Errorf("the parts of the text have other ids than the text, %d and %d", len(parts), len(ids))
		}
		if decoded := tok.Decode(ids, false); decoded != text {
			t.Errorf("decoded %s", firstDifference(decoded, text))
		}
		return
	}
	settled := tok.Decode(ids, true) // without unknown tokens, between which spaces may meet
	settled = tok.Decode(tok.Encode(settled, false), true)
	if got := tok.Decode(tok.Encode(settled, false), true); got != settled {
		t.Errorf("decoded again %s", firstDifference(got, settled))
	}
}

// firstDifference shows where two texts differ first.
func firstDifference(got, want string) string {
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	around := func(s string) string { return s[max(i-20, 0):min(i+20, len(s))] }
	return strconv.Quote(around(got)) + ", want " + strconv.Quote(around(want)) + " at byte " + strconv.Itoa(i)
}
