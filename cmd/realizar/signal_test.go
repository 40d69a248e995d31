//go:build unix

package main_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/pull/hubtest"
)

// longAnswer returns a model whose answer to "hi" takes longer than any test.
func longAnswer(t *testing.T) string {
	t.Helper()
	return modeltest.Hub(t, modeltest.Context(1<<16))
}

// start starts a command whose standard input stays open.
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
			if args[0] == "run" { // it reads all of standard input before it answers
				if err := stdin.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
					t.Fatal(err)
				}
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

// TestPullInterrupted checks that an interrupted pull says that it can be continued, and that it
// can.
func TestPullInterrupted(t *testing.T) {
	s, babble := babbleHub(t)
	s.Set(hubtest.Behavior{Token: "hf_secret", Fault: func(path string, _ int64) (hubtest.Fault, int64) {
		if hubtest.Large(path) {
			return hubtest.Stall, int64(len(babble) / 2)
		}
		return hubtest.None, 0
	}})
	u := newUser(t, s.URL)
	cmd := exec.CommandContext(t.Context(), binary, "pull", "hf:org/babble", "--json")
	cmd.Env = u.env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || !strings.Contains(line, `"event":"plan"`) {
		t.Errorf("the first line is %q, %v", line, err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if want := "realizar: interrupted; realizar pull hf:org/babble resumes the download\n"; cmd.ProcessState.ExitCode() != 130 || stderr.String() != want {
		t.Errorf("exit code %d, standard error %q, want 130 and %q", cmd.ProcessState.ExitCode(), &stderr, want)
	}
	s.Set(hubtest.Behavior{Token: "hf_secret"})
	path := strings.TrimSpace(u.does("pull", "hf:org/babble", "--quiet"))
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, babble) {
		t.Errorf("%s: %v", path, err)
	}
}

// TestReaderLeaves checks that a closed standard output, as by head, is not reported as an error.
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
