package jsonschema_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/internal/grammar/jsonschema"
)

var update = flag.Bool("update", false, "write testdata/compiled.txt")

type suiteCase struct {
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
	Tests       []struct {
		Description string          `json:"description"`
		Data        json.RawMessage `json:"data"`
		Valid       bool            `json:"valid"`
	} `json:"tests"`
}

type suiteFile struct {
	draft, name string
	cases       []suiteCase
}

func readSuite(t testing.TB) []suiteFile {
	t.Helper()
	f, err := os.Open("testdata/suite.txt.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<24)
	var out []suiteFile
	for lines.Scan() {
		parts := strings.SplitN(lines.Text(), "\t", 3)
		file := suiteFile{draft: parts[0], name: parts[1]}
		if err := json.Unmarshal([]byte(parts[2]), &file.cases); err != nil {
			t.Fatal(err)
		}
		out = append(out, file)
	}
	if err := lines.Err(); err != nil || len(out) == 0 {
		t.Fatal("no tests", err)
	}
	return out
}

// notAsked are the optional tests beyond the scope of the package: contentEncoding and
// contentMediaType are annotations, and an integer in draft 4 may be written with a fraction of
// zeros, as in later drafts.
var notAsked = map[string]bool{"draft7 optional/content": true, "draft4 optional/zeroTerminatedFloats": true}

// unwritten reports whether a valid value has a spelling that, by the package's doc, is never
// written.
func unwritten(file suiteFile, data string) bool {
	return strings.HasPrefix(file.name, "optional/format/") && strings.Contains(data, "xn--") ||
		file.name == "optional/float-overflow" && data == "1e308"
}

// Every instance of the suite is judged correctly under every schema that compiles.
func TestSuite(t *testing.T) {
	var report strings.Builder
	totals := map[string][2]int{}
	for _, file := range readSuite(t) {
		key := file.draft + " " + file.name
		if notAsked[key] {
			continue
		}
		all, compiled := 0, 0
		o := jsonschema.Options{
			Order: jsonschema.AnyOrder, Spelling: jsonschema.AnySpelling, Whitespace: jsonschema.CompactWhitespace,
			FormatIsAnnotation: !strings.HasPrefix(file.name, "optional/format/"),
		}
		for _, c := range file.cases {
			all += len(c.Tests)
			g, err := compile(withDraft(c.Schema, file.draft), o)
			if err != nil && !errors.Is(err, jsonschema.ErrUnsatisfiable) {
				if !named(err) {
					t.Errorf("%s: %s: the error is of no known kind: %v", key, c.Description, err)
				}
				continue
			}
			compiled += len(c.Tests)
			for _, test := range c.Tests {
				var text bytes.Buffer
				if err := json.Compact(&text, test.Data); err != nil {
					t.Fatal(err)
				}
				got := g != nil && accepts(t, g, text.Bytes())
				if got != test.Valid && (!test.Valid || !unwritten(file, text.String())) {
					t.Errorf("%s: %s: %s: %s is accepted: %v", key, c.Description, test.Description, text.String(), got)
				}
			}
		}
		fmt.Fprintf(&report, "%-60s %4d of %4d\n", key, compiled, all)
		sum := totals[file.draft]
		totals[file.draft] = [2]int{sum[0] + compiled, sum[1] + all}
	}
	for _, draft := range []string{"draft4", "draft6", "draft7", "draft2019-09", "draft2020-12"} {
		fmt.Fprintf(&report, "%-60s %4d of %4d\n", draft, totals[draft][0], totals[draft][1])
	}
	if n := totals["draft2020-12"]; n[0]*100 < n[1]*85 {
		t.Errorf("%d of %d cases of draft 2020-12 compile, want 85%%", n[0], n[1])
	}
	const golden = "testdata/compiled.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(report.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), report.String()); diff != "" {
		t.Errorf("what compiles is not what %s says (go test -run TestSuite -update writes it):\n%s", golden, diff)
	}
}

func compile(schema []byte, o jsonschema.Options) (*grammar.Grammar, error) {
	b := grammar.NewBuilder(grammar.Limits{})
	s, err := jsonschema.Compile(b, schema, o)
	if err != nil {
		return nil, err
	}
	return b.Grammar(s)
}

func accepts(t testing.TB, g *grammar.Grammar, text []byte) bool {
	t.Helper()
	s, ok := g.Start().Bytes(text)
	if err := s.Err(); err != nil {
		t.Errorf("%s: %v", text, err)
	}
	return ok && s.Ends()
}

// named reports whether an error is one of the package's kinds.
func named(err error) bool {
	var unsupported *jsonschema.UnsupportedError
	var schema *jsonschema.SchemaError
	return errors.As(err, &unsupported) || errors.As(err, &schema) || errors.Is(err, jsonschema.ErrTooLarge) || errors.Is(err, jsonschema.ErrUnsatisfiable) ||
		errors.Is(err, grammar.ErrLimit)
}

// withDraft adds $schema to a schema that lacks it.
func withDraft(schema []byte, draft string) []byte {
	uri := map[string]string{
		"draft4": "http://json-schema.org/draft-04/schema#", "draft6": "http://json-schema.org/draft-06/schema#",
		"draft7": "http://json-schema.org/draft-07/schema#", "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
	}[draft]
	rest, ok := bytes.CutPrefix(schema, []byte("{"))
	if uri == "" || !ok || bytes.Contains(schema, []byte(`"$schema"`)) {
		return schema
	}
	comma := ","
	if string(rest) == "}" {
		comma = ""
	}
	return []byte(fmt.Sprintf(`{"$schema": %q%s%s`, uri, comma, rest))
}
