package settings_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar/internal/settings"
)

func TestParse(t *testing.T) {
	for _, test := range []struct {
		text string
		want []settings.Setting
	}{
		{"", nil},
		{"# port: 1\n\n", nil},
		{"---\n", nil},
		{"port: 9000\n# a comment\nmax-body: 32MiB # another\n", []settings.Setting{
			{Key: "port", Line: 1, Texts: []string{"9000"}}, {Key: "max-body", Line: 3, Texts: []string{"32MiB"}}}},
		// A value stays text, whatever other YAML parsers make of it.
		{"a: no\nb: 0o17\nc: 1:30\nd: 1e3\ne: 2026-11-23\nf: \"null\"\ng: ''\n", []settings.Setting{
			{Key: "a", Line: 1, Texts: []string{"no"}}, {Key: "b", Line: 2, Texts: []string{"0o17"}}, {Key: "c", Line: 3, Texts: []string{"1:30"}},
			{Key: "d", Line: 4, Texts: []string{"1e3"}}, {Key: "e", Line: 5, Texts: []string{"2026-11-23"}}, {Key: "f", Line: 6, Texts: []string{"null"}},
			{Key: "g", Line: 7, Texts: []string{""}}}},
		{"cors:\n- https://a.example\n- '*'\nport: 1", []settings.Setting{
			{Key: "cors", Line: 1, Texts: []string{"https://a.example", "*"}, List: true}, {Key: "port", Line: 4, Texts: []string{"1"}}}},
		{`{"port": 9000, "cors": ["*"]}`, []settings.Setting{
			{Key: "port", Line: 1, Texts: []string{"9000"}}, {Key: "cors", Line: 1, Texts: []string{"*"}, List: true}}},
	} {
		got, err := settings.Parse("f", []byte(test.text))
		if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
			t.Errorf("%q: %v %s", test.text, err, diff)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"port\n":                       "f:1: want a key with its value in each line, such as port: 9000",
		"\n- port\n":                   "f:2: want a key",
		"a: 1\na: 2\n":                 `f:2: "a" appears twice, first in line 1; remove one`,
		"a: 1\nb:\n":                   `f:2: "b" has no value; give it one, or leave it out`,
		"a: ~\n":                       `f:1: "a" has no value`,
		"a: []\n":                      `f:1: "a" is an empty list; leave it out`,
		"a: [1, ~]\n":                  `f:1: "a" has no value`,
		"a: {b: 1}\n":                  `f:1: "a" is neither a value nor a list of values`,
		"a: [[1]]\n":                   `f:1: "a" is neither`,
		"a: !!int 1\n":                 `f:1: "a" is neither`,
		"a: &x 1\nb: *x\n":             `f:1: "a" is neither`,
		"a: &x [*x]\n":                 `f:1: "a" is neither`,
		"? [a]\n: 1\n":                 "f:1: a key is not text",
		"a: 1\n---\nb: 2\n":            "f:2: a second document begins here; want one",
		"a: 1\ncors: *\n":              "f:2: not valid YAML",
		"a: 1\nb: \"\n":                "f:",
		"\ta: 1\n":                     "f:1: not valid YAML",
		"a: 1\n b: 2\n":                "f:2: not valid YAML",
		"a: b: 1\n":                    "f:1: not valid YAML",
		"a: 1\n\xff\n":                 "f:2: the byte 0xff is not UTF-8; want text",
		"a: \x00\n":                    `f:1: the character U+0000 is not text; write it as "\u0000" if it is meant`,
		"a: *x\n":                      "f: not valid YAML: unknown anchor 'x' referenced; quote a value that begins",
		strings.Repeat("[", 30000):     "f",
		"a: " + strings.Repeat("{", 9): "f",
	} {
		if got, err := settings.Parse("f", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) || got != nil {
			t.Errorf("%.40q: %v, %v, want %q", text, got, err, want)
		}
	}
}

func TestRead(t *testing.T) {
	folder := t.TempDir()
	write := func(name string, size int) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(strings.Repeat("#", size)), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if data, err := settings.Read(write("full", settings.MaxFile)); err != nil || len(data) != settings.MaxFile {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	for path, want := range map[string]string{
		write("large", settings.MaxFile+1): "large is too large; want 65536 bytes at most",
		folder:                             "is not a regular file",
		filepath.Join(folder, "absent"):    "no such file",
	} {
		if _, err := settings.Read(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

// Whatever a file holds, Parse returns settings with texts, or an error that begins with the file's
// name.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"a: 1\nb: [x, 'y']\n", "a: &x 1\nb: *x\n", "? a\n: |\n  text\n", "{a: [", "%YAML 1.1\n---\na: !!binary aGk=\n...\n", "a: \"\\x00\\u2028\"", "<<: {a: 1}"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := settings.Parse("name", data)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "name") {
				t.Errorf("%v", err)
			}
			return
		}
		seen := map[string]bool{}
		for _, s := range all {
			if len(s.Texts) == 0 || !s.List && len(s.Texts) != 1 || s.Line < 1 || seen[s.Key] {
				t.Errorf("%+v", s)
			}
			seen[s.Key] = true
		}
	})
}

func TestParseTables(t *testing.T) {
	got, err := settings.ParseTables("f", []byte("# models\nsmall:\n  source: hf:org/repo\n  aliases: [a, b]\n\ndemo:\n\"big:8b\": {ttl: 5m}\n"))
	want := []settings.Table{
		{Key: "small", Line: 2, Settings: []settings.Setting{
			{Key: "source", Line: 3, Texts: []string{"hf:org/repo"}}, {Key: "aliases", Line: 4, Texts: []string{"a", "b"}, List: true}}},
		{Key: "demo", Line: 6},
		{Key: "big:8b", Line: 7, Settings: []settings.Setting{{Key: "ttl", Line: 7, Texts: []string{"5m"}}}},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	for text, want := range map[string]string{
		"a: 1\n":               `f:1: "a" is not a table; want keys with their values below it, indented`,
		"a: [1]\n":             `f:1: "a" is not a table`,
		"a: &x {b: 1}\n":       `f:1: "a" is not a table`,
		"a:\n  b: {c: 1}\n":    `f:2: "b" is neither`,
		"a:\n  b: 1\n  b: 2\n": `f:3: "b" appears twice, first in line 2`,
		"a: {}\na: {}\n":       `f:2: "a" appears twice`,
	} {
		if _, err := settings.ParseTables("f", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
