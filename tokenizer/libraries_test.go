package tokenizer_test

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/realizar/realizar/tokenizer"
)

// maxReports is how many differences of one tokenizer are reported.
const maxReports = 4

// libraryFiles returns the files of a kind among the results of other libraries, which the programs in
// testdata/libraries make if Python has these libraries:
//
//	python3 gen_tokenizers.py OUT; python3 gen_sentencepiece.py OUT
func libraryFiles(t *testing.T, kind string) []string {
	t.Helper()
	root := os.Getenv("REALIZAR_LIBRARIES")
	if root == "" {
		t.Skip("REALIZAR_LIBRARIES is not set; it names the folder of what other libraries compute")
	}
	files, err := filepath.Glob(filepath.Join(root, kind, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatalf("no %s in %s", kind, root)
	}
	return files
}

// readLibraryFile decodes a file of results.
func readLibraryFile(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

// result is what a library returned, or why it failed.
type result[T any] struct {
	value  T
	failed string // why
}

// UnmarshalJSON implements [json.Unmarshaler]: a failure is an object.
func (r *result[T]) UnmarshalJSON(data []byte) error {
	if data[0] == '{' {
		var failure struct {
			Error string `json:"error"`
		}
		err := json.Unmarshal(data, &failure)
		r.failed = cmp.Or(failure.Error, "a failure without a reason")
		return err
	}
	return json.Unmarshal(data, &r.value)
}

// libraryDecode is the text that a library decodes ids to.
type libraryDecode struct {
	IDs         result[[]int32] `json:"ids"`
	Decoded     result[string]  `json:"decoded"`
	DecodedSkip result[string]  `json:"decoded_skip"`
}

// libraryCase is a library's result for a text.
type libraryCase struct {
	Text       string          `json:"text"`
	IDsSpecial result[[]int32] `json:"ids_special"`
	libraryDecode
}

// libraryTokenizer is a tokenizer with the results of its own library.
type libraryTokenizer struct {
	Error     string          `json:"error"`
	Tokenizer string          `json:"tokenizer"` // tokenizer.json
	Model     string          `json:"model"`     // tokenizer.model in base64
	Cases     []libraryCase   `json:"cases"`
	Decodes   []libraryDecode `json:"decodes"`
}

// differences reports the first differences of a tokenizer and counts the others.
type differences struct {
	t *testing.T
	n int
}

// equal reports a difference if got is not want, unless the library failed.
func equal[T any](d *differences, want result[T], got T, same func(a, b T) bool, format string, args ...any) {
	if want.failed != "" || same(want.value, got) {
		return
	}
	d.t.Helper()
	if d.n++; d.n <= maxReports {
		d.t.Errorf(format+":\nwant %v\n got %v", append(args, quoted(want.value), quoted(got))...)
	}
}

// quoted returns a text as a literal, and other values unchanged.
func quoted(value any) any {
	if text, ok := value.(string); ok {
		return strconv.Quote(text)
	}
	return value
}

func (d *differences) end() {
	d.t.Helper()
	if d.n > maxReports {
		d.t.Errorf("and %d more differences", d.n-maxReports)
	}
}

func sameIDs(a, b []int32) bool { return slices.Equal(a, b) }
func sameText(a, b string) bool { return a == b }

// tokenTexts returns the tokens of ids for a report.
func tokenTexts(tok *tokenizer.Tokenizer, ids []int32) []string {
	spelled := make([]string, len(ids))
	for i, id := range ids {
		spelled[i], _ = tok.Token(id)
	}
	return spelled
}

// equalIDs reports a difference between ids, with their tokens.
func equalIDs(d *differences, tok *tokenizer.Tokenizer, want result[[]int32], got []int32, what, text string) {
	d.t.Helper()
	equal(d, want, got, sameIDs, "%s of %q, %q for %q", what, text, tokenTexts(tok, want.value), tokenTexts(tok, got))
}

// loadable skips the test if the library refused the tokenizer or this package does not support it.
func loadable(t *testing.T, library string, err error) {
	t.Helper()
	switch {
	case library != "":
		t.Skipf("the library: %s; here: %v", library, err)
	case errors.Is(err, tokenizer.ErrUnsupported):
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
}

// broken returns why a library's results with a tokenizer cannot be reproduced, or "".
func (l *libraryTokenizer) broken() string {
	for _, c := range l.Cases {
		if strings.Contains(c.IDs.failed, "AddedVocabulary bad split") {
			return "the normalizer makes nothing of an added token, which is then found between all bytes, also within characters"
		}
	}
	ids := make(map[float64]string)
	var file struct {
		Model struct {
			Vocab map[string]float64 `json:"vocab"`
		} `json:"model"`
	}
	if json.Unmarshal([]byte(l.Tokenizer), &file) != nil { // Unigram's vocabulary is a list
		return ""
	}
	for token, id := range file.Model.Vocab {
		if other, ok := ids[id]; ok {
			return fmt.Sprintf("%q and %q have the same id, and which of them it decodes to is left to chance", token, other)
		}
		ids[id] = token
	}
	return ""
}

func TestLibrariesJSON(t *testing.T) {
	for _, kind := range []string{"tokenizers", "converted"} {
		for _, path := range libraryFiles(t, kind) {
			t.Run(strings.TrimSuffix(filepath.Base(path), ".json"), func(t *testing.T) {
				var file libraryTokenizer
				readLibraryFile(t, path, &file)
				var tok *tokenizer.Tokenizer
				var err error
				if file.Error == "" {
					tok, err = tokenizer.FromJSON([]byte(file.Tokenizer), nil)
				}
				loadable(t, file.Error, err)
				if why := file.broken(); why != "" {
					t.Skip("the library: " + why)
				}
				if len(file.Cases) == 0 {
					t.Fatal("no cases")
				}
				d := &differences{t: t}
				for _, c := range file.Cases {
					equalIDs(d, tok, c.IDs, tok.Encode(c.Text, false), "ids", c.Text)
					equalIDs(d, tok, c.IDsSpecial, tok.Encode(c.Text, true), "ids with special tokens", c.Text)
					c.check(d, tok, c.IDsSpecial.value)
				}
				for _, c := range file.Decodes {
					c.check(d, tok, c.IDs.value)
				}
				d.end()
			})
		}
	}
}

// check compares the decoded texts of the ids, and of withSpecial without special tokens.
func (c *libraryDecode) check(d *differences, tok *tokenizer.Tokenizer, withSpecial []int32) {
	d.t.Helper()
	ids := c.IDs.value
	equal(d, c.Decoded, tok.Decode(ids, false), sameText, "decoded %q", tokenTexts(tok, ids))
	equal(d, c.DecodedSkip, tok.Decode(withSpecial, true), sameText, "decoded without special tokens %q",
		tokenTexts(tok, withSpecial))
}

// TestLibrariesSentencePiece compares with SentencePiece, which finds no control symbols in a text;
// so none may match here.
func TestLibrariesSentencePiece(t *testing.T) {
	for _, path := range libraryFiles(t, "sentencepiece") {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".json"), func(t *testing.T) {
			var file libraryTokenizer
			readLibraryFile(t, path, &file)
			data, err := base64.StdEncoding.DecodeString(file.Model)
			if err != nil {
				t.Fatal(err)
			}
			var tok *tokenizer.Tokenizer
			if file.Error == "" {
				tok, err = tokenizer.FromSentencePiece(data, nil)
			}
			loadable(t, file.Error, err)
			if len(file.Cases) == 0 {
				t.Fatal("no cases")
			}
			d := &differences{t: t}
			for _, c := range file.Cases {
				equalIDs(d, tok, c.IDs, tok.EncodeSpans([]tokenizer.Span{{Text: c.Text}}, false), "ids", c.Text)
				equal(d, c.Decoded, tok.Decode(c.IDs.value, true), sameText, "decoded %q", tokenTexts(tok, c.IDs.value))
			}
			for _, c := range file.Decodes {
				equal(d, c.Decoded, tok.Decode(c.IDs.value, true), sameText, "decoded %q", tokenTexts(tok, c.IDs.value))
			}
			d.end()
		})
	}
}
