package tokenizer

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// libraryComponent is a normalizer or pre-tokenizer, with the tokenizers library's results for
// texts and for every character.
type libraryComponent struct {
	Error        string `json:"error"`
	Normalizer   string `json:"normalizer"`    // as in tokenizer.json
	PreTokenizer string `json:"pre_tokenizer"` // as in tokenizer.json

	Texts []struct {
		Text       string          `json:"text"`
		Normalized json.RawMessage `json:"normalized"` // an object if the library failed, as in all fields below
		Pieces     json.RawMessage `json:"pieces"`
	} `json:"texts"`

	// Changed are the normalized texts that differ from their originals, which are a character
	// between a and b, by the character in hexadecimal. Characters after Last were not tried.
	Changed map[string]json.RawMessage `json:"changed"`
	Last    rune                       `json:"last"`

	// Sweeps are the pieces of every character between two texts: the first and the last character
	// of a run with the same pieces, and the index in Shapes of these pieces, in which □ stands for
	// the character.
	Shapes []json.RawMessage `json:"shapes"`
	Sweeps []struct {
		Before string    `json:"before"`
		After  string    `json:"after"`
		Runs   [][3]rune `json:"runs"`
	} `json:"sweeps"`
}

// libraryComponents calls use for the results whose names begin with prefix.
func libraryComponents(t *testing.T, prefix string, use func(t *testing.T, c *libraryComponent)) {
	root := os.Getenv("REALIZAR_LIBRARIES")
	if root == "" {
		t.Skip("REALIZAR_LIBRARIES is not set; it names the folder of what other libraries compute")
	}
	files, err := filepath.Glob(filepath.Join(root, "components", prefix+"-*.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatalf("no %s in %s", prefix, root)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".json"), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var c libraryComponent
			if err := json.Unmarshal(data, &c); err != nil {
				t.Fatal(err)
			}
			if c.Error != "" {
				t.Skipf("the library: %s", c.Error)
			}
			use(t, &c)
		})
	}
}

// built skips the test if the component is not supported.
func built(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// told limits how many differences of a component are reported.
type told struct {
	t *testing.T
	n int
}

func (r *told) differ(format string, args ...any) {
	r.t.Helper()
	if r.n++; r.n <= 10 {
		r.t.Errorf(format, args...)
	}
}

func (r *told) end() {
	r.t.Helper()
	if r.n > 10 {
		r.t.Errorf("and %d more differences", r.n-10)
	}
}

func TestLibraryNormalizers(t *testing.T) {
	libraryComponents(t, "normalizer", func(t *testing.T, c *libraryComponent) {
		var j jsonNormalizer
		if err := decodeStrict([]byte(c.Normalizer), &j); err != nil {
			t.Fatal(err)
		}
		n, err := j.build()
		built(t, err)
		r := &told{t: t}
		check := func(text string, raw json.RawMessage) {
			var want string
			if json.Unmarshal(raw, &want) != nil { // the library failed
				return
			}
			if got, _ := n.apply(nil, text, nil); got != want {
				r.differ("%+q becomes %+q, want %+q", text, got, want)
			}
		}
		for _, text := range c.Texts {
			check(text.Text, text.Normalized)
		}
		changed := make(map[rune]bool, len(c.Changed))
		for number, raw := range c.Changed {
			char, err := strconv.ParseInt(number, 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			changed[rune(char)] = true
			check("a"+string(rune(char))+"b", raw)
		}
		for char := range c.Last + 1 {
			if text := "a" + string(char) + "b"; swept(char) && !changed[char] {
				if got, _ := n.apply(nil, text, nil); got != text {
					r.differ("%+q becomes %+q, want it as it is", text, got)
				}
			}
		}
		r.end()
	})
}

// swept reports whether the generator tries a character.
func swept(r rune) bool {
	for _, s := range [...][2]rune{
		{0, 0xD7FF}, {0xE000, 0xE00F}, {0xF900, 0x200FF}, {0x2F7F0, 0x2FA2F}, {0xE0000, 0xE01FF}, {0x10FFF0, 0x10FFFF},
	} {
		if s[0] <= r && r <= s[1] {
			return true
		}
	}
	return false
}

func TestLibrarySplitters(t *testing.T) {
	libraryComponents(t, "splitter", func(t *testing.T, c *libraryComponent) {
		var j jsonSplitter
		if err := decodeStrict([]byte(c.PreTokenizer), &j); err != nil {
			t.Fatal(err)
		}
		b, err := j.build()
		built(t, err)
		b.spell()
		var pieces []string
		cut := b.steps.chain(nil, func(piece string, _ bool) { pieces = append(pieces, piece) })
		apply := func(text string) []string {
			pieces = []string{}
			if text != "" {
				cut(text, true)
			}
			return pieces
		}
		r := &told{t: t}
		for _, text := range c.Texts {
			var want []string
			if json.Unmarshal(text.Pieces, &want) != nil { // the library failed
				continue
			}
			if got := apply(text.Text); !slices.Equal(got, want) {
				r.differ("pieces of %+q:\n got %+q\nwant %+q", text.Text, got, want)
			}
		}
		shapes := make([][]string, len(c.Shapes))
		for i, raw := range c.Shapes {
			if json.Unmarshal(raw, &shapes[i]) != nil {
				shapes[i] = nil // the library failed
			}
		}
		for _, sweep := range c.Sweeps {
			for _, run := range sweep.Runs {
				want := shapes[run[2]]
				if want == nil {
					continue
				}
				for char := run[0]; char <= run[1]; char++ {
					got := apply(sweep.Before + string(char) + sweep.After)
					bytes, _ := eachCharacter(spellBytes).apply(nil, string(char), nil)
					for i := range got {
						got[i] = strings.ReplaceAll(strings.ReplaceAll(got[i], bytes, "□"), string(char), "□")
					}
					if !slices.Equal(got, want) {
						r.differ("pieces of %+q:\n got %+q\nwant %+q", sweep.Before+string(char)+sweep.After, got, want)
					}
				}
			}
		}
		r.end()
	})
}
