package main_test

import (
	"regexp"
	"testing"

	"golang.org/x/sys/unix"
)

// The terminal is as it was when top has left it, whatever the server did and however
// wide it became.
func TestTerminalTop(t *testing.T) {
	first, second := recordedPage(t, "first.txt"), recordedPage(t, "second.txt")
	for _, key := range []string{"q", "\x03"} {
		url, _ := metricsServer(t, first, second, "", second)
		x := onTerminal(t, "top", url, "--interval", "100ms")
		x.until("\x1b[?1049h") // the other screen
		x.until("16 running")
		x.until("status 503: the model is being loaded")
		if err := unix.IoctlSetWinsize(int(x.device.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: 132}); err != nil {
			t.Fatal(err)
		}
		if err := unix.Kill(x.cmd.Process.Pid, unix.SIGWINCH); err != nil {
			t.Fatal(err)
		}
		x.until("in the queue") // all is drawn anew
		x.keys(key)
		x.until("\x1b[?1049l")
		x.ends(0)
	}
}

// NO_COLOR leaves what top shows without colours, and with them where it is not set.
func TestTerminalNoColor(t *testing.T) {
	coloured := regexp.MustCompile(`\x1b\[[0-9;]*\b(3[0-7]|38|9[0-7])[;m]`)
	for value, want := range map[string]bool{"1": false, "": true} {
		t.Setenv("NO_COLOR", value)
		first, second := recordedPage(t, "first.txt"), recordedPage(t, "second.txt")
		url, _ := metricsServer(t, first, second)
		x := onTerminal(t, "top", url, "--interval", "100ms")
		x.until("16 running")
		x.keys("q")
		x.ends(0)
		if got := coloured.MatchString(x.text); got != want {
			t.Errorf("NO_COLOR=%s: colours %v, want %v, in %q", value, got, want, x.text)
		}
	}
}
