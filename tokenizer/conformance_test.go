package tokenizer_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tokenizer"
)

// conformance returns a path in the conformance data.
func conformance(t testing.TB, elements ...string) string {
	t.Helper()
	root := os.Getenv("REALIZAR_CONFORMANCE")
	if root == "" {
		t.Skip("REALIZAR_CONFORMANCE is not set; it names the folder of conformance data")
	}
	return filepath.Join(append([]string{root, "tokenizers"}, elements...)...)
}

// readHF returns the tokenizer of a kind in the conformance data.
func readHF(t testing.TB, kind string) *tokenizer.Tokenizer {
	t.Helper()
	data, err := os.ReadFile(conformance(t, "hf", kind, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.FromJSON(data, nil)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// readGGUF returns the tokenizer of a vocabulary in the conformance data.
func readGGUF(t testing.TB, name string) *tokenizer.Tokenizer {
	t.Helper()
	f, err := modelfile.Open(conformance(t, "gguf", "ggml-vocab-"+name+".gguf"))
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
	return tok
}

func TestConformanceHF(t *testing.T) {
	kinds, err := os.ReadDir(conformance(t, "hf"))
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds {
		t.Run(kind.Name(), func(t *testing.T) {
			tok := readHF(t, kind.Name())
			data, err := os.ReadFile(conformance(t, "hf", kind.Name(), "expected.json"))
			if err != nil {
				t.Fatal(err)
			}
			var cases []struct {
				Text        string  `json:"text"`
				IDs         []int32 `json:"ids"`
				IDsSpecial  []int32 `json:"ids_special"`
				Decoded     string  `json:"decoded"`
				DecodedSkip string  `json:"decoded_skip"`
			}
			if err := json.Unmarshal(data, &cases); err != nil {
				t.Fatal(err)
			}
			if len(cases) == 0 {
				t.Fatal("no cases")
			}
			for _, c := range cases {
				if diff := cmp.Diff(c.IDs, tok.Encode(c.Text, false)); diff != "" {
					t.Errorf("ids of %q (-want +got):\n%s", c.Text, diff)
				}
				if diff := cmp.Diff(c.IDsSpecial, tok.Encode(c.Text, true)); diff != "" {
					t.Errorf("ids of %q with special tokens (-want +got):\n%s", c.Text, diff)
				}
				if got := tok.Decode(c.IDs, false); got != c.Decoded {
					t.Errorf("decoded %q, want %q", got, c.Decoded)
				}
				if got := tok.Decode(c.IDsSpecial, true); got != c.DecodedSkip {
					t.Errorf("decoded without special tokens %q, want %q", got, c.DecodedSkip)
				}
			}
		})
	}
}

func TestConformanceGGUF(t *testing.T) {
	names, err := filepath.Glob(conformance(t, "gguf", "*.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, path := range names {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), "ggml-vocab-"), ".gguf")
		ran++
		t.Run(name, func(t *testing.T) {
			tok := readGGUF(t, name)
			input, err := os.ReadFile(path + ".inp")
			if err != nil {
				t.Fatal(err)
			}
			output, err := os.ReadFile(path + ".out")
			if err != nil {
				t.Fatal(err)
			}
			const separator = "\n__ggml_vocab_test__\n"
			texts := strings.Split(strings.TrimSuffix(string(input), separator), separator)
			lines := strings.Split(strings.TrimSuffix(string(output), "\n"), "\n")
			if len(texts) != len(lines) {
				t.Fatalf("%d texts, %d lines of ids", len(texts), len(lines))
			}
			for i, text := range texts {
				want := []int32{}
				for field := range strings.FieldsSeq(lines[i]) {
					id, err := strconv.ParseInt(field, 10, 32)
					if err != nil {
						t.Fatal(err)
					}
					want = append(want, int32(id))
				}
				if diff := cmp.Diff(want, tok.Encode(text, false)); diff != "" {
					t.Errorf("ids of %q (-want +got):\n%s", text, diff)
				}
			}
		})
	}
	if ran == 0 {
		t.Fatal("no vocabularies")
	}
}
