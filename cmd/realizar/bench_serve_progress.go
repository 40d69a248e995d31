package main

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/realizar/realizar/internal/load"
)

// How often the progress of a measurement is shown: on a terminal in one line that changes,
// elsewhere in new lines.
const (
	terminalInterval = 200 * time.Millisecond
	lineInterval     = 10 * time.Second
)

// A loadProgress shows the progress of a measurement until its end.
type loadProgress struct {
	done    chan struct{}
	stopped sync.WaitGroup
}

// showLoad shows the progress of g, which sends that many requests; 0 if not known.
func (a *app) showLoad(g *load.Generator, requests int) *loadProgress {
	p := &loadProgress{done: make(chan struct{})}
	terminal := term.IsTerminal(int(a.stderr.Fd()))
	interval := lineInterval
	if terminal {
		interval = terminalInterval
	}
	p.stopped.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		var before load.Progress
		for {
			select {
			case <-tick.C:
			case <-p.done:
				if terminal {
					_, _ = a.stderr.WriteString(eraseLine)
				}
				return
			}
			now := g.Progress()
			line := progressLine(before, now, requests)
			before = now
			if !terminal {
				a.notef("%s", line)
				continue
			}
			if width, _, err := term.GetSize(int(a.stderr.Fd())); err == nil && width > 0 && len(line) >= width {
				line = line[:width-1] // a second line could not be erased
			}
			_, _ = a.stderr.WriteString(eraseLine + line)
		}
	})
	return p
}

// eraseLine moves the cursor to the beginning of its line and clears the line.
const eraseLine = "\r\x1b[K"

// end stops the progress and waits until nothing more is shown.
func (p *loadProgress) end() {
	close(p.done)
	p.stopped.Wait()
}

// progressLine formats the progress now, with the rates since before.
func progressLine(before, now load.Progress, requests int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%.0f s: %d", now.Elapsed.Seconds(), now.Done)
	if requests > 0 {
		fmt.Fprintf(&b, " of %d", requests)
	}
	fmt.Fprintf(&b, " requests done, %d running, %d failed", now.Sent-now.Done, now.Failed)
	if span := (now.Elapsed - before.Elapsed).Seconds(); span > 0 {
		fmt.Fprintf(&b, ", %.0f tok/s", float64(now.Chunks-before.Chunks)/span)
	}
	return b.String()
}
