//go:build unix

package main_test

import (
	"io"
	"os"
	"strings"
	"testing"
)

// TestBenchServeInterrupted checks that an interrupt shows what was measured until then.
func TestBenchServeInterrupted(t *testing.T) {
	s := newOpenServer(t)
	s.held = make(chan struct{}, 2)
	cmd, _, stdout, stderr := start(t, "bench", "serve", s.url, "-c", "2", "--ignore-eos")
	<-s.held
	<-s.held
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(stdout)
	if err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 || stderr.Len() > 0 || !strings.Contains(string(out), "2 running requests were abandoned") {
		t.Errorf("exit code %d, standard error %q, standard output:\n%s", code, stderr, out)
	}
}
