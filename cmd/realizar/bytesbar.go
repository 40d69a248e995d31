package main

import (
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/realizar/realizar"
)

// A bytesBar shows on a terminal how many of a number of bytes are done.
type bytesBar struct {
	mu   sync.Mutex
	bar  progressBar
	done int64
	of   int64
}

func newBytesBar(a *app, label string, of int64) *bytesBar {
	b := &bytesBar{of: of}
	if term.IsTerminal(int(a.stderr.Fd())) {
		b.bar = progressBar{a: a, label: printable(label), begun: time.Now()}
	}
	return b
}

// came adds n bytes.
func (b *bytesBar) came(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done += n
	b.bar.show(realizar.Progress{Done: b.done, Total: b.of})
}

func (b *bytesBar) end() { b.bar.end() }
