package main

import (
	"fmt"
	"slices"
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

// Help begins with two examples, and with the flags or the common ones, on one screen.
func TestHelpFitsAScreen(t *testing.T) {
	var seen []string
	for _, c := range commands(commandLine(t).Model.Node) {
		t.Run(c.FullPath(), func(t *testing.T) {
			text := helpOf(c, 80)
			lines := strings.Split(text, "\n")
			_, examples, _ := splitDetail(c.Detail)
			if len(examples) > 0 {
				at := slices.Index(lines, "    "+strings.Split(examples[0], "\n")[0])
				if at < 0 || at > 7 {
					t.Errorf("the first example is on line %d:\n%s", at+1, text)
				}
			}
			for _, heading := range []string{"Other flags:", "The answer:", "How the model runs:", "More examples:"} {
				if at := slices.Index(lines, heading); at >= 0 {
					if at > screenLines+1 && !slices.Contains(lines[:screenLines+2], "Other flags:") && !slices.Contains(lines[:screenLines+2], "The answer:") && !slices.Contains(lines[:screenLines+2], "The requests:") {
						t.Errorf("the first screen ends on line %d, at %q:\n%s", at, heading, text)
					}
					break
				}
			}
			for _, group := range c.AllFlags(true) {
				for _, f := range group {
					if strings.Count(text, "--"+f.Name) < 1 && strings.Count(text, "-"+f.Name) < 1 {
						t.Errorf("--%s is missing", f.Name)
					}
					seen = append(seen, f.Name)
				}
			}
		})
	}
	for _, name := range commonFlags {
		if !slices.Contains(seen, name) {
			t.Errorf("no command has --%s, which is named as common", name)
		}
	}
}

// Help fits terminals of 60 columns and uses those of 200. Examples are not broken.
func TestHelpWidths(t *testing.T) {
	app := commandLine(t).Model.Node
	for _, width := range []int{60, 79, 100, 200} {
		for _, node := range append(commands(app), app) {
			_, examples, _ := splitDetail(node.Detail)
			for line := range strings.Lines(helpOf(node, width)) {
				line = strings.TrimRight(line, "\n")
				if strings.HasPrefix(line, "    realizar ") || strings.HasPrefix(line, "    curl ") {
					continue // an example, which is not broken
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

// A short flag means the same in all commands but bench serve, which has no answer of its own.
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
					continue // those of bench, which is -n too
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
