package server

import (
	flags "flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar"
)

var updateDocs = flags.Bool("update", false, "write the tables of docs/api.md anew")

const apiDocs = "../../docs/api.md"

// documented are the tables of fields by the names that docs/api.md has for them.
var documented = map[string]string{
	"chat":                       table(chatFields),
	"message":                    table(messageFields),
	"part":                       table(partFields),
	"tool call":                  table(callFields),
	"called function":            table(calledFields),
	"tool":                       table(toolFields),
	"function":                   table(functionFields),
	"stream options":             table(streamOptionsFields),
	"completions":                table(completionsFields),
	"responses":                  table(responsesFields),
	"responses message":          table(inputFields["message"]),
	"responses part":             table(inputPartFields),
	"responses call":             table(inputFields["function_call"]),
	"responses output of a call": table(inputFields["function_call_output"]),
	"responses tool":             table(responseToolFields),
	"responses text":             table(responseTextFields),
	"responses reasoning":        table(reasoningFields),
	"responses stream options":   table(responseStreamFields),
	"embeddings":                 table(embeddingsFields),
	"rerank":                     table(rerankFields),
	"document":                   table(rankedTextFields),
	"tokenize":                   table(tokenizeFields),
	"detokenize":                 table(detokenizeFields),
}

// table is a list of fields as the page has it.
func table[R any](list fields[R]) string {
	var b strings.Builder
	b.WriteString("| field | takes | left out |\n| --- | --- | --- |\n")
	for _, f := range list {
		takes, without := f.takes, f.without
		switch {
		case f.read == nil:
			takes, without = "anything: it changes nothing", ""
		case without == "" && !strings.HasPrefix(takes, "nothing: "):
			without = "an error"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.name, cell(takes), cell(without))
	}
	return b.String()
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// TestAPIFields: the page's tables of fields are those of the code.
func TestAPIFields(t *testing.T) {
	page, err := os.ReadFile(apiDocs)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	want := regexp.MustCompile(`(?s)(<!-- fields: ([^>]*) -->\n).*?(<!-- end -->)`).ReplaceAllStringFunc(string(page), func(block string) string {
		name, _, _ := strings.Cut(strings.TrimPrefix(block, "<!-- fields: "), " -->")
		rows, ok := documented[name]
		if !ok || seen[name] {
			t.Errorf("%s has a table of %q, which is unknown or there twice", apiDocs, name)
		}
		seen[name] = true
		return "<!-- fields: " + name + " -->\n" + rows + "<!-- end -->"
	})
	for name := range documented {
		if !seen[name] {
			t.Errorf("%s has no table of %q", apiDocs, name)
		}
	}
	if *updateDocs {
		if err := os.WriteFile(apiDocs, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(page)); diff != "" {
		t.Errorf("%s (-want +got); go test ./internal/server -run TestAPIFields -update writes it\n%s", apiDocs, diff)
	}
}

// TestAPITables: every list of fields in the code is documented.
func TestAPITables(t *testing.T) {
	declared := 0
	inspect(t, func(n ast.Node) {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
			name := spec.Names[0].Name
			if strings.HasSuffix(name, "Fields") && name != "settingsFields" { // it is part of others
				declared++
			}
		}
	})
	if want := len(documented) - len(inputFields) + 1; declared != want {
		t.Errorf("the code has %d lists of fields, the page knows %d", declared, want)
	}
}

// inspect calls f for every node of the package's code.
func inspect(t *testing.T, f func(ast.Node)) {
	t.Helper()
	names, err := filepath.Glob("*.go")
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

// documentedBy are what a pattern with one group matches in the page.
func documentedBy(t *testing.T, pattern string) []string {
	t.Helper()
	page, err := os.ReadFile(apiDocs)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(page), -1) {
		all = append(all, m[1])
	}
	slices.Sort(all)
	return all
}

// TestAPIErrors: every code of an error is on the page, and no other.
func TestAPIErrors(t *testing.T) {
	codes := map[string]bool{}
	literal := func(e ast.Expr) {
		if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
			if code, err := strconv.Unquote(l.Value); err == nil {
				codes[code] = true
			}
		}
	}
	inspect(t, func(n ast.Node) {
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
	for _, k := range kinds {
		codes[k.code] = true
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(codes)), documentedBy(t, "(?m)^\\| \\d{3} \\| `([a-z0-9_]+)` \\|")); diff != "" {
		t.Errorf("codes of errors (-code +page)\n%s", diff)
	}
}

// TestAPIRoutes: every endpoint has a heading, and nothing else has one.
func TestAPIRoutes(t *testing.T) {
	s, err := New(new(realizar.Model), Config{Names: []string{"a"}, Parallel: 1})
	if err != nil {
		t.Fatal(err)
	}
	var routes []string
	for path, methods := range s.methods {
		for _, method := range methods {
			routes = append(routes, method+" "+strings.ReplaceAll(path, "...", ""))
		}
	}
	slices.Sort(routes)
	if diff := cmp.Diff(routes, documentedBy(t, "(?m)^##+ `([A-Z]+ /[^`]*)`$")); diff != "" {
		t.Errorf("endpoints (-code +page)\n%s", diff)
	}
}

// TestAPIMetrics: every metric that is not the process' own is on the page, with its
// type.
func TestAPIMetrics(t *testing.T) {
	m := newMetrics("babble", madeUp, func() int { return 0 })
	m.answered(&exchange{Request: new(http.Request), status: http.StatusOK})
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "vllm:") || strings.HasPrefix(f.GetName(), "realizar_") {
			names = append(names, f.GetName()+" "+strings.ToLower(f.GetType().String()))
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
