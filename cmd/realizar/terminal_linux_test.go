package main_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/realizar/realizar/internal/modeltest"
)

// A terminal is a command that runs on a pseudoterminal.
type terminal struct {
	t      *testing.T
	cmd    *exec.Cmd
	device *os.File
	seen   chan string
	text   string // all output since the last match of until, with control sequences
}

func onTerminal(t *testing.T, args ...string) *terminal {
	t.Helper()
	device, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudoterminals: %v", err)
	}
	t.Cleanup(func() { device.Close() })
	fd := int(device.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Env = append(os.Environ(), "TERM=xterm-256color")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	x := &terminal{t: t, cmd: cmd, device: device, seen: make(chan string)}
	go func() {
		defer close(x.seen)
		for buf := make([]byte, 4096); ; {
			n, err := device.Read(buf)
			if err != nil { // the other end was closed
				return
			}
			select {
			case x.seen <- string(buf[:n]):
			case <-t.Context().Done():
				return
			}
		}
	}()
	return x
}

// until waits for a text in the output after the last text that was waited for.
func (x *terminal) until(text string) {
	x.t.Helper()
	deadline := time.After(time.Minute)
	for !strings.Contains(x.text, text) {
		select {
		case s, ok := <-x.seen:
			if !ok {
				x.t.Fatalf("%q was never shown, but %q", text, x.last())
			}
			x.text += s
		case <-deadline:
			x.t.Fatalf("%q is not shown, but %q", text, x.last())
		}
	}
	_, x.text, _ = strings.Cut(x.text, text)
}

// last returns the end of the output.
func (x *terminal) last() string { return x.text[max(0, len(x.text)-1000):] }

func (x *terminal) keys(s string) {
	x.t.Helper()
	if _, err := io.WriteString(x.device, s); err != nil {
		x.t.Fatal(err)
	}
}

// ends waits for the command to end with code.
func (x *terminal) ends(code int) {
	x.t.Helper()
	for s := range x.seen {
		x.text += s
	}
	_ = x.cmd.Wait()
	if got := x.cmd.ProcessState.ExitCode(); got != code {
		x.t.Errorf("exit code %d, want %d; it showed %q", got, code, x.last())
	}
}

func TestTerminalChat(t *testing.T) {
	model := longAnswer(t)
	begin := strings.TrimSpace(output(t, "", "run", model, "hi", "--max-tokens", "1"))
	x := onTerminal(t, "run", model)
	x.until("Ctrl-D leaves")
	x.keys("hi\r")
	x.until("> hi")
	x.until(begin)
	x.keys("\x03")
	x.until("[stopped]")
	x.keys("/clear\r")
	x.until("forgotten")
	x.keys("\x04")
	x.ends(0)
}

func TestTerminalPrompt(t *testing.T) {
	const erased = "\x1b[J"
	model := modeltest.Llama(t)
	want := output(t, "", "run", model, "hi", "--max-tokens", "30")
	x := onTerminal(t, "run", model, "hi", "--max-tokens", "30")
	x.ends(0)
	var plain strings.Builder // what a terminal may get of it
	for _, r := range want {
		if r == '\n' || r == '\t' || r >= ' ' && r < 0x7f || r >= 0xa0 {
			plain.WriteRune(r)
		}
	}
	got := strings.ReplaceAll(x.text, "\r\n", "\n")
	if i := strings.LastIndex(got, erased); i >= 0 { // a busy machine shows how far loading is
		got = got[i+len(erased):]
	}
	if got != plain.String() {
		t.Errorf("the terminal shows %q, want %q", got, plain.String())
	}
}

// TestTerminalWidth checks that errors and results fit a terminal.
func TestTerminalWidth(t *testing.T) {
	model := modeltest.Llama(t)
	wrong := []string{"bench", "serve", "localhost"}
	message := strings.Fields(realizarRun(t, wrong...).stderr)
	for _, width := range []int{60, 100, 200} {
		t.Setenv("COLUMNS", strconv.Itoa(width))
		x := onTerminal(t, wrong...)
		x.ends(2)
		if got := strings.Fields(x.text); !slices.Equal(got, message) {
			t.Errorf("in %d columns the error is %q, want the words %q", width, got, message)
		}
		x.fits(width)
		x = onTerminal(t, "bench", model, "-p", "4", "-n", "0", "-r", "1")
		x.ends(0)
		x.fits(width)
	}
}

// fits checks that what was shown has no line of more than width columns.
func (x *terminal) fits(width int) {
	x.t.Helper()
	for line := range strings.SplitSeq(x.text, "\r\n") {
		if n := utf8.RuneCountInString(line); n > width {
			x.t.Errorf("a line of %d columns, more than %d: %s", n, width, line)
		}
	}
}

func TestTerminalUsage(t *testing.T) {
	x := onTerminal(t, "run", modeltest.Llama(t), "--raw")
	x.ends(2)
	if !strings.Contains(x.text, "no prompt") {
		t.Errorf("it showed %q, want that there is no prompt", x.text)
	}
}
