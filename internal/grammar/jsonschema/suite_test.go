package jsonschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/grammar"
)

type suiteCase struct {
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
	Tests       []struct {
		Description string          `json:"description"`
		Data        json.RawMessage `json:"data"`
		Valid       bool            `json:"valid"`
	} `json:"tests"`
}

func TestSuiteTmp(t *testing.T) {
	draft := os.Getenv("DRAFT")
	if draft == "" {
		t.Skip()
	}
	total, compiled, wrong := 0, 0, 0
	refused := map[string]int{}
	files, _ := filepath.Glob("/tmp/jsuite/tests/" + draft + "/*.json")
	more, _ := filepath.Glob("/tmp/jsuite/tests/" + draft + "/optional/*.json")
	formats, _ := filepath.Glob("/tmp/jsuite/tests/" + draft + "/optional/format/*.json")
	for _, f := range append(append(files, more...), formats...) {
		data, _ := os.ReadFile(f)
		var cases []suiteCase
		if err := json.Unmarshal(data, &cases); err != nil {
			t.Fatal(err)
		}
		o := Options{Order: AnyOrder, Spelling: AnySpelling, Whitespace: CompactWhitespace, FormatIsAnnotation: !strings.Contains(f, "optional/format")}
		for _, c := range cases {
			schema := c.Schema
			if !bytes.Contains(schema, []byte(`"$schema"`)) && bytes.HasPrefix(schema, []byte("{")) && draft != "draft2020-12" {
				uri := map[string]string{"draft4": "http://json-schema.org/draft-04/schema#", "draft6": "http://json-schema.org/draft-06/schema#", "draft7": "http://json-schema.org/draft-07/schema#", "draft2019-09": "https://json-schema.org/draft/2019-09/schema"}[draft]
				comma := ","
				if len(bytes.TrimSpace(schema[1:])) == 1 {
					comma = ""
				}
				schema = []byte(fmt.Sprintf(`{"$schema": %q%s%s`, uri, comma, schema[1:]))
			}
			total += len(c.Tests)
			b := grammar.NewBuilder(grammar.Limits{})
			s, err := Compile(b, schema, o)
			unsat := errors.Is(err, ErrUnsatisfiable)
			if err != nil && !unsat {
				refused[filepath.Base(f)] += len(c.Tests)
				if os.Getenv("V") != "" {
					t.Logf("%s: %s: %v", filepath.Base(f), c.Description, err)
				}
				continue
			}
			var g *grammar.Grammar
			if !unsat {
				g, err = b.Grammar(s)
				if err != nil {
					t.Errorf("%s: %s: %v", filepath.Base(f), c.Description, err)
					continue
				}
			}
			compiled += len(c.Tests)
			for _, test := range c.Tests {
				var text bytes.Buffer
				json.Compact(&text, test.Data)
				got := false
				if !unsat {
					st, ok := g.Start().Bytes(text.Bytes())
					got = ok && st.Ends()
					if err := st.Err(); err != nil {
						t.Errorf("%s: %s: %v", filepath.Base(f), c.Description, err)
					}
				}
				if got != test.Valid {
					wrong++
					t.Errorf("%s: %s: %s: %s: accepted %v", filepath.Base(f), c.Description, test.Description, clip(text.String()), got)
				}
			}
		}
	}
	t.Logf("%s: %d cases, %d compiled, %d wrong", draft, total, compiled, wrong)
	var names []string
	for n := range refused {
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		t.Logf("refused %s: %d", n, refused[n])
	}
}
