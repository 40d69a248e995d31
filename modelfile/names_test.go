package modelfile_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/realizar/realizar/modelfile"
)

// steering are names that no model has, by the reason: they are not text, or they control the
// terminal that shows them.
var steering = map[string]string{
	"not UTF-8":            "w\xff",
	"cut off within UTF-8": "w\xe2\x82",
	"surrogate":            "w\xed\xa0\x80",
	"NUL":                  "w\x00",
	"escape":               "\x1b[2J\x1b]0;title\a",
	"C1 control":           "w\u009b2J",
	"line feed":            "a\nb",
	"carriage return":      "a\rb",
	"tab":                  "a\tb",
	"delete":               "w\x7f",
	"right to left":        "a\u202eb",
	"byte order mark":      "\ufeffw",
	"long":                 strings.Repeat("\x1b[2J", 1000),
}

// checkPrintable checks that a message contains no control sequences.
func checkPrintable(t testing.TB, err error) {
	t.Helper()
	for _, r := range err.Error() {
		if !unicode.IsGraphic(r) {
			t.Fatalf("error %q holds %q", err, r)
		}
	}
	if !utf8.ValidString(err.Error()) {
		t.Fatalf("error %q is not UTF-8", err)
	}
	if len(err.Error()) > 2000 {
		t.Fatalf("error of %d bytes", len(err.Error()))
	}
}

func TestGGUFNames(t *testing.T) {
	for what, name := range steering {
		t.Run(what, func(t *testing.T) {
			for _, test := range []struct {
				data []byte
				want []string
			}{
				{newRawGGUF(0, 1).string(name).u32(7).bytes(1).data(0), []string{"key", "at byte 24", "not printable UTF-8"}},
				{newRawGGUF(1, 0).tensor(name, 24, 0, 1).data(32), []string{"tensor", "at byte 24", "not printable UTF-8"}},
				{newRawGGUF(1, 0).tensor(name, 999, 0, 1).data(32), []string{"tensor", "at byte 24", "not printable UTF-8"}},
			} {
				path := write(t, "model.gguf", test.data)
				err := openHostile(t, path)
				wantError(t, err, modelfile.ErrFormat, append(test.want, path)...)
			}
			// A value may be any bytes.
			f := open(t, write(t, "model.gguf", newRawGGUF(0, 1).string("k").u32(8).string(name).data(0)))
			if got, ok := f.Meta().String("k"); !ok || got != name {
				t.Errorf("the value is %q, want %q", got, name)
			}
		})
	}
}

func TestSafetensorsNames(t *testing.T) {
	const entry = `{"dtype":"U8","shape":[1],"data_offsets":[0,1]}`
	for what, name := range steering {
		t.Run(what, func(t *testing.T) {
			escaped, err := json.Marshal(name) // replaces bytes that are not UTF-8
			if err != nil {
				t.Fatal(err)
			}
			texts := []string{`"` + name + `"`}
			if !strings.Contains(string(escaped), `\ufffd`) {
				texts = append(texts, string(escaped))
			}
			for _, text := range texts {
				for _, header := range []string{
					`{` + text + `:` + entry + `}`,
					`{` + text + `:{"dtype":"U9","shape":[1],"data_offsets":[0,1]}}`,
				} {
					path := write(t, "model.safetensors", rawSafetensors(header, 1))
					err := openHostile(t, path)
					wantError(t, err, modelfile.ErrFormat, path, "at byte")
				}
				path := write(t, "model.safetensors", rawSafetensors(`{"w":{"dtype":`+text+`,"shape":[1],"data_offsets":[0,1]}}`, 1))
				if err := openHostile(t, path); err == nil {
					t.Error("no error for the dtype")
				}
			}
		})
	}
	// Names that only look strange are allowed.
	for _, name := range []string{"", " ", "bé😀", "../w", `a"b\c`, "\ufffd", "a\u00a0b"} {
		escaped, err := json.Marshal(name)
		if err != nil {
			t.Fatal(err)
		}
		f := open(t, write(t, "model.safetensors", rawSafetensors(`{`+string(escaped)+`:`+entry+`}`, 1)))
		if _, ok := f.Tensor(name); !ok {
			t.Errorf("no tensor %q", name)
		}
	}
}

func TestShardNames(t *testing.T) {
	s1 := shard(t, map[string]byte{"a": 1})
	names := []string{
		"", ".", "..", "../x", "/etc/passwd", "sub/s1.safetensors", "./s1.safetensors", `..\s1.safetensors`, "c:s1.safetensors",
		"https://host/s1.safetensors", "file:s1.safetensors", "s1.safetensors/", "s1.safetensors\x00",
	}
	for what, name := range steering {
		if !strings.HasSuffix(what, "UTF-8") && what != "surrogate" {
			names = append(names, name)
		}
	}
	for _, name := range names {
		t.Run(fmt.Sprintf("%.40q", name), func(t *testing.T) {
			escaped, err := json.Marshal(name)
			if err != nil {
				t.Fatal(err)
			}
			dir := folder(t, map[string]string{
				"model.safetensors.index.json": `{"weight_map":{"a":` + string(escaped) + `}}`,
				"s1.safetensors":               s1,
				"sub/s1.safetensors":           s1,
			})
			err = openHostile(t, dir)
			wantError(t, err, modelfile.ErrFormat, dir, "model.safetensors.index.json", `"a"`, "at byte 15", "not the plain name")
		})
	}
}

// Error messages show names of a folder too.
func TestNamesInFolder(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"\x1b[2J.gguf", "b.gguf"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Skipf("this system has no such names: %v", err)
		}
	}
	err := openHostile(t, dir)
	wantError(t, err, modelfile.ErrNotModel, dir, `"\x1b[2J.gguf", b.gguf`)
}
