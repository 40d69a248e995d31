// Package fieldstest checks the tables of fields in docs/api.md and the pages of dialects against
// the lists in the code.
package fieldstest

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar/internal/server/fields"
)

var update = flag.Bool("update", false, "write the tables of docs/api.md anew")

// A Table is a list of fields as a Markdown table.
type Table string

// TableOf returns the table of a list.
func TableOf[R any](list fields.List[R]) Table {
	var b strings.Builder
	b.WriteString("| field | takes | left out |\n| --- | --- | --- |\n")
	for _, f := range list {
		takes, absent := f.Takes, f.Absent
		switch {
		case f.Read == nil:
			takes, absent = "anything: it changes nothing", ""
		case absent == "" && !strings.HasPrefix(takes, "nothing: "):
			absent = "an error"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Name, cell(takes), cell(absent))
	}
	return Table(b.String())
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// Check compares the tables of a dialect with those on the page, each of which follows "<!--
// fields: DIALECT NAME -->". The dialect's folder, in which the test runs, must declare lists lists
// with names that end in Fields.
func Check(t *testing.T, page, dialect string, lists int, tables map[string]Table) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	want := regexp.MustCompile(`(?s)<!-- fields: (\S+) ([^>]*) -->\n.*?<!-- end -->`).ReplaceAllStringFunc(string(text), func(block string) string {
		head, _, _ := strings.Cut(block, "\n")
		name, ok := strings.CutPrefix(strings.TrimSuffix(head, " -->"), "<!-- fields: "+dialect+" ")
		if !ok {
			return block
		}
		table, ok := tables[name]
		if !ok || seen[name] {
			t.Errorf("%s has a table of %q, which is unknown or there twice", page, name)
		}
		seen[name] = true
		return head + "\n" + string(table) + "<!-- end -->"
	})
	for name := range tables {
		if !seen[name] {
			t.Errorf("%s has no table of %q of %s", page, name, dialect)
		}
	}
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("%s (-want +got); go test ./internal/server/%s -run TestAPIFields -update writes it\n%s", page, dialect, diff)
	}
	declared := 0
	Inspect(t, ".", func(n ast.Node) {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 && strings.HasSuffix(spec.Names[0].Name, "Fields") {
			declared++
		}
	})
	if declared != lists {
		t.Errorf("the code has %d lists of fields, the test knows %d", declared, lists)
	}
}

// Inspect calls f for every node of the code in folder, without tests.
func Inspect(t *testing.T, folder string, f func(ast.Node)) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			f(n)
			return true
		})
	}
}
