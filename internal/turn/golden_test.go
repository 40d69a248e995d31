package turn

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestForms compares the forms of templates with golden files. Templates of real models are not
// part of the project; the golden file names them.
func TestForms(t *testing.T) {
	for file, pattern := range map[string]string{
		"testdata/forms.json":             "testdata/templates/*.jinja",
		"testdata/forms_conformance.json": conformance(),
	} {
		t.Run(filepath.Base(file), func(t *testing.T) {
			files, _ := filepath.Glob(pattern)
			if len(files) == 0 {
				t.Skip("no templates at " + pattern)
			}
			forms := map[string]*Form{}
			for _, tm := range templatesOf(t, pattern) {
				forms[tm.name] = testForm(t, tm)
			}
			var got bytes.Buffer
			e := json.NewEncoder(&got)
			e.SetEscapeHTML(false)
			e.SetIndent("", "\t")
			if err := e.Encode(forms); err != nil {
				t.Fatal(err)
			}
			if *update {
				if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("forms differ from %s (go test -update writes it): %s", file, got.Bytes())
			}
		})
	}
}
