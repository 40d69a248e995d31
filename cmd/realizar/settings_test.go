package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
)

// serveSettings are those of serve.
func serveSettings(t *testing.T) []*setting {
	t.Helper()
	parser, err := newParser(&grammar{})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(parser.Model.Children, func(n *kong.Node) bool { return n.Name == "serve" })
	return settingsOf(parser.Model.Children[i])
}

// The table of docs/configuration.md has every setting, and what can change while the
// server runs.
func TestSettingsTable(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	const head = "| setting | variable | can change |\n|---|---|---|\n"
	_, rest, ok := strings.Cut(string(page), head)
	if !ok {
		t.Fatalf("there is no table that begins with %q", head)
	}
	got, _, _ := strings.Cut(rest, "\n\n")
	words := map[liveness]string{liveNot: "no", liveYes: "yes", liveFile: "another file"}
	var want strings.Builder
	for _, one := range serveSettings(t) {
		word, ok := words[one.live]
		if !ok {
			t.Errorf("--%s has live:%q", one.Name, one.live)
		}
		fmt.Fprintf(&want, "| `%s` | `%s` | %s |\n", one.Name, one.variable(), word)
	}
	if diff := cmp.Diff(strings.TrimSpace(want.String()), strings.TrimSpace(got)); diff != "" {
		t.Errorf("docs/configuration.md has another table (-want +got):\n%s", diff)
	}
}

// No setting has the name of a variable that means something else.
func TestSettingsVariables(t *testing.T) {
	taken := []string{kernelsVariable, configVariable, "REALIZAR_HOME", "REALIZAR_ALIASES", "REALIZAR_API_KEY", "REALIZAR_CONFORMANCE", "REALIZAR_HISTORY"}
	for _, one := range serveSettings(t) {
		if slices.Contains(taken, one.variable()) {
			t.Errorf("%s is taken", one.variable())
		}
	}
}
