package main

import (
	"strings"
	"testing"
)

func TestPrintable(t *testing.T) {
	const in, want = "a\x1b[2J\r\x07b\n\tü\u009b31m\u202ec\x7f", "a[2Jb\n\tü31mc"
	if got := printable(in); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPrintableWriter(t *testing.T) {
	const in = "a\x1b[2Jüb\u009b日本\r\n👩"
	for size := 1; size < len(in); size++ {
		var out strings.Builder
		w := &printableWriter{w: &out}
		for rest := in; rest != ""; {
			n := min(size, len(rest))
			if got, err := w.Write([]byte(rest[:n])); got != n || err != nil {
				t.Fatalf("wrote %d of %d bytes: %v", got, n, err)
			}
			rest = rest[n:]
		}
		if got := out.String(); got != printable(in) {
			t.Errorf("in pieces of %d: %q, want %q", size, got, printable(in))
		}
	}
}
