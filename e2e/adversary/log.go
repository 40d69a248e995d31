package main

import (
	"bytes"
	"os"
	"os/exec"
	"sync"
)

// A logTail keeps the end of a server's log. It is a process of its own, as thousands of
// requests a second write many lines.
type logTail struct {
	cmd    *exec.Cmd
	into   *os.File // the server writes here
	text   bytes.Buffer
	waited sync.Once
}

// keepLog starts a process that keeps the end of cmd's standard error.
func keepLog(c *cores, cmd *exec.Cmd) (*logTail, error) {
	from, into, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer from.Close() //nolint:errcheck // the other process has its own copy
	l := &logTail{cmd: exec.Command("tail", "-c", "20000"), into: into}
	l.cmd.Stdin, l.cmd.Stdout = from, &l.text
	cmd.Stderr = into
	return l, startOn(c.attackers, l.cmd)
}

// begun closes this process's end of the pipe, after the server has started.
func (l *logTail) begun() { _ = l.into.Close() }

// end returns the end of the log of a server that has ended.
func (l *logTail) end() string {
	l.waited.Do(func() { _ = l.cmd.Wait() })
	return l.text.String()
}
