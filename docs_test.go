package realizar_test

import (
	"os"
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
			whole := fenced || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "#")
			if n := utf8.RuneCountInString(line); n > 100 && !whole {
				t.Errorf("%s:%d: a line of %d columns, more than 100", page, i+1, n)
			}
			for _, m := range link.FindAllStringSubmatch(line, -1) {
				if strings.Contains(m[1], "://") || whole && !strings.HasPrefix(line, "|") {
					continue
				}
				if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
					t.Errorf("%s:%d: a link to %s, which is not there", page, i+1, m[1])
				}
			}
		}
	}
}
