package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/longtest"
)

// TestSynth checks that a file in the shape of a real model has that shape, and that the model
// answers.
func TestSynth(t *testing.T) {
	if !longtest.Wanted() {
		t.Skip("it writes 350 MB")
	}
	path := writeFile(t, "synth.gguf", "old")
	if got := output(t, "", "synth", "qwen2.5-0.5b", "q4_0", path, "--force"); got != "" {
		t.Errorf("standard output is %q, want none", got)
	}
	d, err := realizar.Describe(path)
	if err != nil {
		t.Fatal(err)
	}
	if d.Architecture != "qwen2" || d.Parameters != 494_032_768 || d.Tokenizer == nil || d.Tokenizer.Vocab != 151936 {
		t.Errorf("the file is described as %+v", d)
	}
	text := output(t, "", "run", path, "hi", "--max-tokens", "8")
	if words := strings.Fields(text); len(words) < 4 || strings.ContainsFunc(text, func(r rune) bool { return r > 'z' }) {
		t.Errorf("it says %q, want words", text)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("beside the file there is something else: %v (%v)", entries, err)
	}
}

// TestSynthKeepsTheOld checks that an existing file is kept without --force.
func TestSynthKeepsTheOld(t *testing.T) {
	path := writeFile(t, "synth.gguf", "old")
	fails(t, realizarRun(t, "synth", "qwen2.5-0.5b", "Q4_0", path), 1, path, "--force")
	if data, err := os.ReadFile(path); err != nil || string(data) != "old" {
		t.Errorf("the file holds %q (%v), want what was there", data, err)
	}
	fails(t, realizarRun(t, "synth", "qwen2.5-0.5b", "Q4_0", filepath.Join(t.TempDir(), "no", "o")), 1, "no")
	fails(t, realizarRun(t, "synth", "qwen2.5-0.5b", "Q4_0", t.TempDir()), 1, "folder")
}

func TestSynthHelp(t *testing.T) {
	help := output(t, "", "synth", "--help-all")
	for _, line := range []string{"llama-3.2-1b       1.24 billion weights", "qwen3-8b           8.19 billion weights", "Q4_K_M   4.89", "BF16    16.00"} {
		if !strings.Contains(help, "\n    "+line+"\n") {
			t.Errorf("synth --help-all has no line %q:\n%s", line, help)
		}
	}
}
