package tokenizer_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tokenizer"
)

// withUserDefined adds user-defined tokens to byteMetadata.
func withUserDefined(m metadata, tokens ...string) metadata {
	for _, text := range tokens {
		m["tokenizer.ggml.tokens"] = append(m["tokenizer.ggml.tokens"].([]string), text)
		m["tokenizer.ggml.token_type"] = append(m["tokenizer.ggml.token_type"].([]int64), 4)
	}
	return m
}

// TestLongestFirst checks the order in which llama.cpp finds the added tokens of a GGUF.
func TestLongestFirst(t *testing.T) {
	named := func(m metadata, key, value string) metadata {
		m[key] = value
		return m
	}
	for _, test := range []struct {
		name string
		m    metadata
		text string
		want string
	}{
		{"the longer one further right", withUserDefined(byteMetadata("gpt-2"), "ab", "bcd"), "abcd", "a|bcd"},
		{"equally long", withUserDefined(byteMetadata("gpt-2"), "bc", "ab"), "abc", "a|bc"},
		{"one from left to right", withUserDefined(byteMetadata("gpt-2"), "aa"), "aaaaa", "aa|aa|a"},
		{"what is left", withUserDefined(byteMetadata("gpt-2"), "abc", "cde", "a", "ef"), "abcdef", "abc|d|ef"},
		{"a prefix in what is left", withUserDefined(byteMetadata("gpt-2"), "ab", "abc", "cdef"), "abcdef", "ab|cdef"},
		{"control tokens too", withUserDefined(byteMetadata("gpt-2", "bcd"), "ab"), "abcd", "a|bcd"},
		{"white space after it", named(withUserDefined(byteMetadata("gpt-2"), "ab", " a"), "general.name", "Phi3"), "ab \n\u00a0ab a", "ab|Â|ł|ab|a"},
		{"white space before it", named(byteMetadata("jina-v2-code", "<mask>"), "general.name", "x"), "a \n<mask> a", "a|<mask>|Ġ|a"},
	} {
		tok := fromMetadata(t, test.m)
		got := spellings(tok, tok.Encode(test.text, false))
		if want := strings.ReplaceAll(test.want, "ł", byteSpelling(0xa0)); got != want {
			t.Errorf("%s: got %s, want %s", test.name, got, want)
		}
	}
	tok := fromMetadata(t, withUserDefined(byteMetadata("gpt-2", "bcd"), "ab"))
	for _, test := range []struct{ template, user, want string }{
		{"", "abcd", "ab|c|d"}, {"abc", "d", "ab|c|d"}, {"abcd", "bcd", "a|bcd|b|c|d"},
	} {
		ids := tok.EncodeSpans([]tokenizer.Span{{Text: test.template, Special: true}, {Text: test.user}}, false)
		if got := spellings(tok, ids); got != test.want {
			t.Errorf("%q and user's %q: got %s, want %s", test.template, test.user, got, test.want)
		}
	}
}

// partition finds added tokens by their definition: one token after another, the longest first, in
// every remaining fragment of raw text. The id of a raw byte is its value.
func partition(text string, allowed []bool, tokens []string, control int, rstrip bool) []int32 {
	type fragment struct {
		start, end int
		id         int32 // -1 for raw text
	}
	order := make([]int, len(tokens))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(len(tokens[j]), len(tokens[i])) })
	fragments := []fragment{{0, len(text), -1}}
	for _, i := range order {
		token := tokens[i]
		matches := func(at int) bool {
			return text[at:at+len(token)] == token && (i >= control || !slices.Contains(allowed[at:at+len(token)], false))
		}
		var next []fragment
		for _, f := range fragments {
			for at := f.start; f.id < 0 && at+len(token) <= f.end; {
				if !matches(at) {
					at++
					continue
				}
				next = append(next, fragment{f.start, at, -1}, fragment{at, at + len(token), int32(256 + i)})
				f.start = at + len(token)
				for rstrip && f.start < f.end && strings.ContainsRune(" \t\n\v\f\r", rune(text[f.start])) {
					f.start++
				}
				at = f.start
			}
			next = append(next, f)
		}
		fragments = next
	}
	ids := []int32{}
	for _, f := range fragments {
		if f.id >= 0 {
			ids = append(ids, f.id)
			continue
		}
		for _, b := range []byte(text[f.start:f.end]) {
			ids = append(ids, int32(b))
		}
	}
	return ids
}

// TestLongestFirstIsPartition compares the added tokens with those of the definition, for tokens
// and texts that overlap in every way.
func TestLongestFirstIsPartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringOfN(rapid.SampledFrom([]rune("aab ")), 1, 9, -1)
		control := rapid.SliceOfN(word, 0, 5).Draw(t, "control")
		user := rapid.SliceOfN(word, 0, 8).Draw(t, "user-defined")
		m := withUserDefined(byteMetadata("gpt-2", control...), user...)
		phi := rapid.Bool().Draw(t, "strips")
		if phi {
			m["general.name"] = "phi3"
		}
		tok := fromMetadata(t, m)
		var text string
		var allowed []bool
		var spans []tokenizer.Span
		for range rapid.IntRange(1, 4).Draw(t, "spans") {
			s := tokenizer.Span{
				Text:    rapid.StringOfN(rapid.SampledFrom([]rune("aaaab ")), 0, 40, -1).Draw(t, "text"),
				Special: rapid.Bool().Draw(t, "special"),
			}
			spans = append(spans, s)
			text += s.Text
			for range len(s.Text) {
				allowed = append(allowed, s.Special)
			}
		}
		want := partition(text, allowed, append(control, user...), len(control), phi)
		if diff := gocmp.Diff(want, append([]int32{}, tok.EncodeSpans(spans, false)...)); diff != "" {
			t.Errorf("%q with control %q and user-defined %q (-want +got):\n%s", text, control, user, diff)
		}
	})
}

// nestedTokens returns n tokens that are prefixes of each other or overlap.
func nestedTokens(n int) []string {
	var tokens []string
	for i := 1; i <= n/2; i++ {
		tokens = append(tokens, strings.Repeat("a", i), strings.Repeat("b", i)+strings.Repeat("a", n/2-i))
	}
	return tokens
}

// addedTexts returns texts of a megabyte in which nestedTokens occur in many ways.
func addedTexts() map[string]string {
	random := rand.New(rand.NewPCG(1, 2))
	var mixed strings.Builder
	for mixed.Len() < megabyte {
		mixed.WriteString(strings.Repeat("a", random.IntN(1500)) + strings.Repeat("b", random.IntN(3)))
	}
	return map[string]string{
		"letter": megabytes["letter"],
		"runs":   strings.Repeat(strings.Repeat("a", 1998)+"b", megabyte/2000),
		"pairs":  strings.Repeat("ab", megabyte/2),
		"mixed":  mixed.String(),
		"prose":  megabytes["prose"],
	}
}

// TestManyAddedTokens encodes texts that would take forever if every token were searched for in
// turn, or every token that begins at a position.
func TestManyAddedTokens(t *testing.T) {
	tok := fromMetadata(t, withUserDefined(byteMetadata("gpt-2"), nestedTokens(4000)...))
	for name, text := range addedTexts() {
		if got := tok.Decode(tok.Encode(text, false), false); got != text {
			t.Errorf("%s: decoded another text of %d bytes", name, len(got))
		}
	}
}

func BenchmarkAddedTokens(b *testing.B) {
	tok := fromMetadata(b, withUserDefined(byteMetadata("gpt-2"), nestedTokens(4000)...))
	for name, text := range addedTexts() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				tok.Encode(text, false)
			}
		})
	}
	spaces := make([]string, 31)
	for i := range spaces {
		spaces[i] = strings.Repeat(" ", i+2)
	}
	tok = fromMetadata(b, withUserDefined(byteMetadata("gpt-2"), spaces...))
	for _, name := range []string{"spaces", "prose"} {
		b.Run("spaces/"+name, func(b *testing.B) {
			b.SetBytes(megabyte)
			for b.Loop() {
				tok.Encode(megabytes[name], false)
			}
		})
	}
}

// TestOutlivesFile checks that a tokenizer keeps no reference to the mapped file that it was made
// from.
func TestOutlivesFile(t *testing.T) {
	for name, m := range map[string]metadata{
		"spm":   spmMetadata("▁", "a", "b", "ab"),
		"bytes": withUserDefined(byteMetadata("gpt-2", "<s>"), "abc"),
	} {
		var pairs []modelfile.KeyValue
		for key, value := range m {
			pairs = append(pairs, modelfile.KeyValue{Key: key, Value: value})
		}
		path := filepath.Join(t.TempDir(), fmt.Sprintf("%s.gguf", name))
		file, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := modelfile.WriteGGUF(file, pairs, nil); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		f, err := modelfile.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		tok, err := tokenizer.FromGGUF(f.Meta())
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		want := fromMetadata(t, m)
		const text = "ab abc<s> x"
		if diff := gocmp.Diff(want.Encode(text, true), tok.Encode(text, true)); diff != "" {
			t.Errorf("%s: ids (-metadata +file):\n%s", name, diff)
		}
		for id := range int32(want.VocabSize()) {
			a, _ := want.Token(id)
			if b, ok := tok.Token(id); !ok || a != b {
				t.Errorf("%s: token %d is %q, want %q", name, id, b, a)
			}
		}
	}
}
