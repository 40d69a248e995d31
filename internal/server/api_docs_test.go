package server_test

import (
	"go/ast"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/dialects"
	"github.com/realizar/realizar/internal/server/fields/fieldstest"
	"github.com/realizar/realizar/internal/server/page"
	"github.com/realizar/realizar/internal/server/servertest"
)

const apiDocs = "../../docs/api.md"

// pages are docs/api.md and those of dialects that have one of their own, docs/DIALECT.md.
func pages(t *testing.T) []string {
	t.Helper()
	folders, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	all := []string{apiDocs}
	for _, f := range folders {
		page := filepath.Join(filepath.Dir(apiDocs), f.Name()+".md")
		if _, err := os.Stat(page); err == nil && f.IsDir() {
			all = append(all, page)
		}
	}
	return all
}

// documentedBy are what a pattern with one group matches in the pages, once each.
func documentedBy(t *testing.T, pattern string) []string {
	t.Helper()
	var all []string
	for _, name := range pages(t) {
		page, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(page), -1) {
			all = append(all, m[1])
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// TestAPITables: every table of fields is of a dialect, whose test compares it.
func TestAPITables(t *testing.T) {
	for _, name := range documentedBy(t, "<!-- fields: (\\S*)") {
		if _, err := os.Stat(filepath.Join(name, "fields_test.go")); err != nil {
			t.Errorf("%s has tables of %q, which nothing checks: %v", apiDocs, name, err)
		}
	}
}

// TestAPIErrors: every code of an error is on a page, and no other.
func TestAPIErrors(t *testing.T) {
	codes := map[string]bool{}
	literal := func(e ast.Expr) {
		if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
			if code, err := strconv.Unquote(l.Value); err == nil {
				codes[code] = true
			}
		}
	}
	err := filepath.WalkDir(".", func(folder string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		fieldstest.Inspect(t, folder, func(n ast.Node) {
			l, ok := n.(*ast.CompositeLit)
			if !ok {
				return
			}
			for _, e := range l.Elts {
				if pair, ok := e.(*ast.KeyValueExpr); ok {
					if key, ok := pair.Key.(*ast.Ident); ok && key.Name == "Code" {
						literal(pair.Value)
					}
				}
			}
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range server.Codes() {
		codes[code] = true
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(codes)), documentedBy(t, "(?m)^\\| \\d{3} \\| `([a-z0-9_]+)` \\|")); diff != "" {
		t.Errorf("codes of errors (-code +page)\n%s", diff)
	}
}

// TestAPIRoutes: every endpoint has a heading, and nothing else has one.
func TestAPIRoutes(t *testing.T) {
	s, err := server.New(servertest.One(t, new(realizar.Model), "a"), server.Config{Dialects: dialects.All, Parallel: 1, Page: page.New()})
	if err != nil {
		t.Fatal(err)
	}
	routes := s.Routes()
	for i := range routes {
		routes[i] = strings.ReplaceAll(routes[i], "...", "")
	}
	if diff := cmp.Diff(routes, documentedBy(t, "(?m)^##+ `([A-Z]+ /[^`]*)`$")); diff != "" {
		t.Errorf("endpoints (-code +page)\n%s", diff)
	}
}

// TestAPIMetrics: every metric that is not the process' own is on the page, with its
// type.
func TestAPIMetrics(t *testing.T) {
	all, err := server.NewMetrics("babble", server.MadeUp, func() server.State { return server.State{} }).Names()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, name := range all {
		if strings.HasPrefix(name, "vllm:") || strings.HasPrefix(name, "realizar_") {
			names = append(names, strings.ToLower(name))
		}
	}
	slices.Sort(names)
	page := documentedBy(t, "(?m)^\\| (`(?:vllm:|realizar_)[a-z0-9_]+` \\| [a-z]+) \\|")
	for i := range page {
		page[i] = strings.NewReplacer("`", "", "| ", "").Replace(page[i])
	}
	if diff := cmp.Diff(names, page); diff != "" {
		t.Errorf("metrics (-code +page)\n%s", diff)
	}
}
