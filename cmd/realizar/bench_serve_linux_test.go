package main_test

import (
	"strings"
	"testing"
)

// TestBenchServeProgress checks that the progress on a terminal is one line, which is erased at the
// end.
func TestBenchServeProgress(t *testing.T) {
	s := newOpenServer(t)
	s.held = make(chan struct{}, 1)
	x := onTerminal(t, "bench", "serve", s.url, "-n", "20", "-c", "1", "--ignore-eos")
	x.until("0 of 20 requests done, 1 running, 0 failed, ")
	x.until("\r\x1b[K")
	x.keys("\x03")
	x.until("1 running requests were abandoned")
	x.ends(130)
	if strings.Contains(x.text, "\x1b") {
		t.Errorf("after the results there is %q", x.text)
	}
}
