package main_test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestHelpDiskFull checks that help that cannot be written is a failure and not a usage error.
func TestHelpDiskFull(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"help"}, {"bench", "--help"}, {"help", "bench"}, {"version"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
			if err != nil {
				t.Skip(err)
			}
			defer func() { _ = full.Close() }()
			cmd := exec.CommandContext(t.Context(), binary, args...)
			var stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = full, &stderr
			_ = cmd.Run() // the exit code says more
			r := result{stderr: stderr.String(), code: cmd.ProcessState.ExitCode()}
			fails(t, r, 1, "no space left on device")
			if strings.Contains(r.stderr, "--help") {
				t.Errorf("standard error %q speaks of usage", r.stderr)
			}
		})
	}
}
