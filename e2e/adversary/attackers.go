package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"
)

// The attackers run in a process of their own, so that they have a core of their own. This
// program starts itself again with -attack for that. The process ends when its standard
// input is closed, and writes its outcome to standard output.

// An outcome counts the answers that the attackers got.
type outcome struct {
	Answers tally
	Wrong   string // an answer that the attack must not get
}

// attackers is a process that repeats an attack until its standard input is closed.
type attackers struct {
	cmd  *exec.Cmd
	end  io.Closer
	said chan saying
}

type saying struct {
	outcome outcome
	err     error
}

// slowEnd is how long the attackers may take to end: the longest time that they wait for.
const slowEnd = 2 * time.Minute

// startAttackers starts the given number of clients of an attack on url.
func startAttackers(c *cores, a *attack, clients int, url string) (*attackers, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	all := &attackers{cmd: exec.Command(self, "-attack", a.name, "-url", url, "-clients", strconv.Itoa(clients)), said: make(chan saying, 1)}
	all.cmd.Stderr = os.Stderr
	if all.end, err = all.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := all.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := startOn(c.attackers, all.cmd); err != nil {
		return nil, err
	}
	go func() {
		var s saying
		s.err = json.NewDecoder(out).Decode(&s.outcome)
		s.err = errors.Join(s.err, all.cmd.Wait())
		all.said <- s
	}()
	return all, nil
}

// stop ends the attackers and returns their outcome.
func (a *attackers) stop() (outcome, error) {
	_ = a.end.Close()
	select {
	case s := <-a.said:
		return s.outcome, s.err
	case <-time.After(slowEnd):
		_ = a.cmd.Process.Kill()
		<-a.said
		return outcome{}, fmt.Errorf("the attackers do not end in %v", slowEnd)
	}
}

// beAttackers runs in the attackers' process.
func beAttackers(name, url string, clients int) error {
	for i := range attacks {
		if a := &attacks[i]; a.name == name {
			ctx, cancel := context.WithCancel(context.Background())
			go func() {
				_, _ = io.Copy(io.Discard, os.Stdin)
				cancel()
			}()
			return json.NewEncoder(os.Stdout).Encode(besiege(ctx, a, url, clients))
		}
	}
	return fmt.Errorf("there is no attack %q", name)
}

// besiege lets the given number of clients repeat a until ctx ends.
func besiege(ctx context.Context, a *attack, url string, clients int) outcome {
	o := outcome{Answers: tally{}}
	var mu sync.Mutex
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for ctx.Err() == nil {
				begun := time.Now()
				got := a.do(ctx, url)
				mu.Lock()
				o.Answers.add(got)
				for _, status := range got {
					if status != cut && !a.may(status) && ctx.Err() == nil {
						o.Wrong = fmt.Sprintf("an answer of %d", status)
					}
				}
				mu.Unlock()
				if pause := 5*time.Millisecond - time.Since(begun); pause > 0 {
					time.Sleep(pause)
				}
			}
		})
	}
	all.Wait()
	return o
}
