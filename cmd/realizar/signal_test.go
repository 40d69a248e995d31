//go:build unix

package main_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/realizar/realizar/internal/modeltest"
)

// longAnswer is a model whose answer to "hi" takes longer than any test.
func longAnswer(t *testing.T) string {
	t.Helper()
	return modeltest.Hub(t, modeltest.Context(1<<16))
}

// start begins a command whose standard input stays open.
func start(t *testing.T, args ...string) (cmd *exec.Cmd, stdin io.WriteCloser, stdout *bufio.Reader, stderr *bytes.Buffer) {
	t.Helper()
	cmd = exec.CommandContext(t.Context(), binary, args...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr = new(bytes.Buffer)
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, stdin, bufio.NewReader(out), stderr
}

func TestInterrupted(t *testing.T) {
	model := longAnswer(t)
	for name, args := range map[string][]string{
		"answering":         {"run", model, "hi"},
		"waiting for input": {"tokenize", model, "--jsonl"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd, stdin, stdout, stderr := start(t, args...)
			if _, err := io.WriteString(stdin, "\"hi\"\n"); err != nil && !errors.Is(err, syscall.EPIPE) {
				t.Fatal(err)
			}
			if _, err := stdout.ReadByte(); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, stdout); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != 130 || stderr.Len() > 0 {
				t.Errorf("exit code %d, standard error %q, want 130 and none", code, stderr)
			}
		})
	}
}

// A reader that has enough, such as head, is no failure to speak of.
func TestReaderLeaves(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), binary, "run", longAnswer(t), "hi")
	cmd.Stdout, cmd.Stderr = w, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if stderr.Len() > 0 {
		t.Errorf("standard error %q, want none", &stderr)
	}
}
