package realizar_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// The README and the lines of the documentation have limited length, and links within the
// repository are not broken.
func TestDocumentation(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`\]\(([^)#\s]+)[^)]*\)`)
	for _, page := range append(pages, "README.md") {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		lines, fenced := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n"), false
		if page == "README.md" && len(lines) > 120 {
			t.Errorf("%s has %d lines, more than 120", page, len(lines))
		}
		for i, line := range lines {
			if strings.HasPrefix(line, "```") {
				fenced = !fenced
			}
			// Tables, programs and headings are not wrapped.
			row := strings.HasPrefix(strings.TrimSpace(line), "|") && !fenced
			whole := fenced || row || strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "#")
			if strings.Contains(line, "|---") && !fenced && strings.Trim(line, " |-:") != "" {
				t.Errorf("%s:%d: a table was wrapped like text: %.60s", page, i+1, line)
			}
			if n := utf8.RuneCountInString(line); n > 100 && !whole {
				t.Errorf("%s:%d: a line of %d columns, more than 100", page, i+1, n)
			}
			for _, m := range link.FindAllStringSubmatch(line, -1) {
				if strings.Contains(m[1], "://") || whole && !row {
					continue
				}
				if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
					t.Errorf("%s:%d: a link to %s, which is not there", page, i+1, m[1])
				}
			}
		}
	}
}

// The library's example in the README runs as it is there.
func TestREADMEExample(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, program, found := strings.Cut(string(page), "```go\n")
	program, _, ended := strings.Cut(program, "```\n")
	file := filepath.Join(t.TempDir(), "main.go")
	if !found || !ended {
		t.Fatal("the README has no program in Go")
	}
	if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "run", file).CombinedOutput()
	if err != nil || string(out) != "3 + 4 = 7. <nil>\n" {
		t.Errorf("%v: %q", err, out)
	}
}

// The errors that the page of troubleshooting quotes are those of the code.
func TestTroubleshooting(t *testing.T) {
	page, err := os.ReadFile("docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	err = filepath.WalkDir(".", func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		code.Write(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := map[string]bool{"unknown flag": true} // by the parser of flags
	quotes := 0
	for _, heading := range regexp.MustCompile(`(?m)^\*\*([^*]+)\*\*`).FindAllStringSubmatch(string(page), -1) {
		for _, quote := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(heading[1], -1) {
			quotes++
			for part := range strings.SplitSeq(quote[1], "...") {
				if !elsewhere[part] && !strings.Contains(code.String(), strings.TrimRight(part, " ")) {
					t.Errorf("no error says %q, of %q", part, quote[1])
				}
			}
		}
	}
	if quotes < 20 {
		t.Errorf("the page quotes %d errors, want 20 and more", quotes)
	}
}
