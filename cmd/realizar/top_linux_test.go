package main_test

import (
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
