package nearest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/nearest"
)

func TestNames(t *testing.T) {
	known := []string{"qwen3", "gemma2", "gemma", "qwen2", "gemma", "LLaMA"}
	for _, c := range []struct {
		name string
		few  int
		want []string
	}{
		{"gema", 2, []string{"gemma", "gemma2"}},
		{"qwen", 3, []string{"qwen2", "qwen3", "LLaMA"}},
		{"llama", 1, []string{"LLaMA"}},
		{"", 9, []string{"LLaMA", "gemma", "qwen2", "qwen3", "gemma2"}},
		{"gemma" + strings.Repeat("x", 1<<20), 2, []string{"gemma", "gemma2"}},
	} {
		if got := nearest.Names(c.name, known, c.few); !slices.Equal(got, c.want) {
			t.Errorf("%.20q: %q, want %q", c.name, got, c.want)
		}
	}
	if got := nearest.Names("x", nil, 3); len(got) != 0 {
		t.Errorf("of none: %q", got)
	}
	if known[0] != "qwen3" {
		t.Error("the list was changed")
	}
}
