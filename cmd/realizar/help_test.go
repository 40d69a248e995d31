package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

func commandLine(t *testing.T) *kong.Kong {
	t.Helper()
	parser, err := newParser(&grammar{})
	if err != nil {
		t.Fatal(err)
	}
	return parser
}

// TestHelpFitsAScreen checks that --help of every command and of the program fits a screen, has two
// examples, and shows the common flags, or all of them, or says that --help-all does.
func TestHelpFitsAScreen(t *testing.T) {
	app := commandLine(t).Model.Node
	for _, c := range append(commands(app), app) {
		t.Run(c.FullPath(), func(t *testing.T) {
			text, whole := helpOf(c, 80), wholeHelp(c, 80)
			if n := strings.Count(text, "\n"); n > screenLines {
				t.Errorf("%d lines, want %d at most:\n%s", n, screenLines, text)
			}
			_, examples, _ := splitDetail(c.Detail)
			for _, e := range examples[:min(2, len(examples))] {
				if !strings.Contains(text, "\n    "+strings.ReplaceAll(e, "\n", "\n    ")+"\n") {
					t.Errorf("the example %q is missing:\n%s", e, text)
				}
			}
			if text == whole {
				return
			}
			if !strings.Contains(text, "--help-all shows all flags") {
				t.Errorf("no word of --help-all:\n%s", text)
			}
			shown := common(c)
			if len(shown) == 0 {
				t.Error("no flag has the tag common")
			}
			for _, f := range shown {
				if !strings.Contains(text, "--"+f.Name) {
					t.Errorf("--%s is missing:\n%s", f.Name, text)
				}
			}
		})
	}
}

// TestWholeHelp checks that --help-all has all flags, arguments, examples and notes.
func TestWholeHelp(t *testing.T) {
	for _, c := range commands(commandLine(t).Model.Node) {
		text := wholeHelp(c, 80)
		flat := strings.Join(strings.Fields(text), " ")
		intro, examples, rest := splitDetail(c.Detail)
		for _, f := range flagsOf(c) {
			if !strings.Contains(text, "--"+f.Name) && !strings.Contains(text, "-"+f.Name+"=") || !strings.Contains(flat, f.Help) {
				t.Errorf("%s --help-all lacks --%s: %s", c.FullPath(), f.Name, f.Help)
			}
		}
		for _, part := range append(append(strings.Split(intro, "\n\n"), strings.Split(rest, "\n\n")...), examples...) {
			if !strings.Contains(flat, strings.Join(strings.Fields(part), " ")) {
				t.Errorf("%s --help-all lacks %q", c.FullPath(), part)
			}
		}
	}
}

// TestHelpWidths checks that help fits 60 columns and uses 200, and that examples are not wrapped.
func TestHelpWidths(t *testing.T) {
	app := commandLine(t).Model.Node
	for _, width := range []int{60, 79, 100, 200} {
		for _, node := range append(commands(app), app) {
			_, examples, _ := splitDetail(node.Detail)
			for line := range strings.Lines(wholeHelp(node, width) + helpOf(node, width)) {
				line = strings.TrimRight(line, "\n")
				if strings.HasPrefix(line, "    realizar ") || strings.HasPrefix(line, "    curl ") {
					continue // examples are not wrapped
				}
				if len(line) > width && !strings.Contains(strings.Join(examples, "\n"), strings.TrimSpace(line)) && strings.Contains(strings.TrimSpace(line), " ") {
					t.Errorf("%s at %d columns has a line of %d: %s", node.FullPath(), width, len(line), line)
				}
			}
		}
	}
	for columns, want := range map[string]int{"60": 60, "1": 60, "123": 123, "1000": 200, "": 80, "x": 80} {
		t.Setenv("COLUMNS", columns)
		if got := textWidth(nil); got != want {
			t.Errorf("COLUMNS=%s: %d columns, want %d", columns, got, want)
		}
	}
}

// TestShortFlags checks that a short flag means the same in all commands but bench serve, which
// produces no answer of its own.
func TestShortFlags(t *testing.T) {
	meaning := map[rune]string{'n': "max-tokens", 't': "threads", 's': "seed", 'c': "context"}
	for _, c := range commands(commandLine(t).Model.Node) {
		if c.FullPath() == "realizar bench serve" {
			continue
		}
		for _, group := range c.AllFlags(false) {
			for _, f := range group {
				want, common := meaning[f.Short]
				if !common && f.Short != 0 {
					meaning[f.Short] = f.Name
				}
				if f.Name == "tokens" {
					continue // bench's flag, which is also -n
				}
				if common && f.Name != want {
					t.Errorf("%s: -%c is --%s, and --%s elsewhere", c.FullPath(), f.Short, f.Name, want)
				}
			}
		}
	}
}

func TestSplitDetail(t *testing.T) {
	intro, examples, rest := splitDetail("About it.\n\nExamples:\n\n    one\n    two \\\n        more\n    three\n\nThe rest.")
	if got := fmt.Sprintf("%q %q %q", intro, examples, rest); got != `"About it." ["one" "two \\\n    more" "three"] "The rest."` {
		t.Error(got)
	}
}
