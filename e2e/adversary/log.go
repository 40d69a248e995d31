package main

import (
	"bytes"
	"os"
	"os/exec"
	"sync"
)

// A logTail is the end of a server's log. Another process keeps it, as it is work to read a
// line for each of thousands of requests a second.
type logTail struct {
	cmd    *exec.Cmd
	into   *os.File // that the server writes to
	text   bytes.Buffer
	waited sync.Once
}

// keepLog has the end of cmd's standard error kept.
func keepLog(c *cores, cmd *exec.Cmd) (*logTail, error) {
	from, into, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer from.Close() //nolint:errcheck // the other process has it
	l := &logTail{cmd: exec.Command("tail", "-c", "20000"), into: into}
	l.cmd.Stdin, l.cmd.Stdout = from, &l.text
	cmd.Stderr = into
	return l, startOn(c.attackers, l.cmd)
}

// begun leaves the log to the server that writes it.
func (l *logTail) begun() { _ = l.into.Close() }

// end is the end of the log of a server that has ended.
func (l *logTail) end() string {
	l.waited.Do(func() { _ = l.cmd.Wait() })
	return l.text.String()
}
