package jinja

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// conformanceTime is what strftime_now was fixed at when the expected texts
// were made.
var conformanceTime = time.Date(2025, 6, 15, 12, 34, 56, 0, time.UTC)

// TestConformance renders the chat templates of real models and compares the
// text with that of Python's jinja2.
func TestConformance(t *testing.T) {
	dir := os.Getenv("REALIZAR_CONFORMANCE")
	if dir == "" {
		t.Skip("REALIZAR_CONFORMANCE is not set; it names the folder of conformance data")
	}
	dir = filepath.Join(dir, "templates")
	var cases map[string]json.RawMessage
	readJSON(t, filepath.Join(dir, "cases.json"), &cases)
	type result struct {
		OK    bool
		Text  string
		Error string
	}
	var expected map[string]map[string]result
	readJSON(t, filepath.Join(dir, "expected.json"), &expected)
	files, err := filepath.Glob(filepath.Join(dir, "*.jinja"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no templates in %s: %v", dir, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".jinja")
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tmpl, parseErr := Parse(name, string(source))
		wants, ok := expected[name]
		if !ok {
			wants = expected[name+".jinja"]
		}
		if len(wants) != len(cases) {
			t.Errorf("%s: %d expected results for %d cases", name, len(wants), len(cases))
		}
		// transformers has no from_json. With it, arguments that are text
		// read as those that are objects.
		if strings.Contains(string(source), "from_json") {
			wants["tools_strargs"] = wants["tools_full"]
		}
		for c, want := range wants {
			t.Run(name+"/"+c, func(t *testing.T) {
				vars, err := FromJSON(cases[c], false)
				if err != nil {
					t.Fatal(err)
				}
				// A template that does not compile refuses every case.
				var got Text
				if err = parseErr; err == nil {
					got, err = tmpl.Render(t.Context(), vars.(*Dict), Options{Now: func() time.Time { return conformanceTime }})
				}
				if (err == nil) != want.OK {
					t.Fatalf("ok = %v, want %v (%s); error: %v", err == nil, want.OK, want.Error, err)
				}
				if want.OK {
					if diff := cmp.Diff(want.Text, got.String()); diff != "" {
						t.Errorf("text (-want +got):\n%s", diff)
					}
				}
			})
		}
	}
}

func readJSON(t testing.TB, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// BenchmarkConformance parses every chat template of the conformance data, and renders every
// case that it accepts.
func BenchmarkConformance(b *testing.B) {
	dir := os.Getenv("REALIZAR_CONFORMANCE")
	if dir == "" {
		b.Skip("REALIZAR_CONFORMANCE is not set; it names the folder of conformance data")
	}
	var cases map[string]json.RawMessage
	readJSON(b, filepath.Join(dir, "templates", "cases.json"), &cases)
	files, err := filepath.Glob(filepath.Join(dir, "templates", "*.jinja"))
	if err != nil {
		b.Fatal(err)
	}
	var sources []string
	var templates []*Template
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		sources = append(sources, string(source))
		if t, err := Parse(file, string(source)); err == nil {
			templates = append(templates, t)
		}
	}
	b.Run("parse", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for _, source := range sources {
				_, _ = Parse("bench", source)
			}
		}
	})
	b.Run("render", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for _, t := range templates {
				for _, data := range cases {
					_, _ = t.Render(b.Context(), mustJSON(b, string(data)), Options{})
				}
			}
		}
	})
}
