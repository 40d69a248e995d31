package main_test

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSynthDiskFull(t *testing.T) {
	fails(t, realizarRun(t, "synth", "qwen2.5-0.5b", "Q4_0", "/dev/full"), 1, "MiB to /dev/full", "no space left on device")
}

// TestTerminalSynth checks that writing shows its progress, and leaves nothing behind if it is
// interrupted.
func TestTerminalSynth(t *testing.T) {
	dir := t.TempDir()
	x := onTerminal(t, "synth", "qwen3-8b", "F32", filepath.Join(dir, "synth.gguf"))
	x.until("writing synth.gguf")
	x.keys("\x03")
	x.ends(130)
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("after the interrupt there is %v (%v), want nothing", entries, err)
	}
}
