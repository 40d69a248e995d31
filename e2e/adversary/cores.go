package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// cores divides the processor cores of the machine. Real attackers have machines of their
// own. Here they have at least a core of their own, so that their computing does not slow
// the server or the honest client.
type cores struct {
	server, attackers, honest []int
	all                       []int
}

// divide divides the cores that this process may use.
func divide() (c cores) {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return c
	}
	for i := range len(set) * 64 {
		if set.IsSet(i) {
			c.all = append(c.all, i)
		}
	}
	switch n := len(c.all); {
	case n >= 4:
		c.attackers, c.honest, c.server = c.all[n-1:], c.all[n-2:n-1], c.all[:n-2]
	case n >= 2:
		c.attackers = c.all[n-1:]
		c.honest, c.server = c.all[:n-1], c.all[:n-1]
	default:
		c.attackers, c.honest, c.server = c.all, c.all, c.all
	}
	return c
}

func (c *cores) String() string {
	switch n := len(c.all); {
	case n >= 4:
		return fmt.Sprintf("%d cores for the server, one for the attackers, one for the honest client", n-2)
	case n >= 2:
		return fmt.Sprintf("too few cores to give the honest client one: %d for it and the server, one for the attackers", n-1)
	}
	return "too few cores: the server, the attackers and the honest client share one"
}

// setOf returns the cores in the form that the system calls take.
func setOf(all []int) (set unix.CPUSet) {
	for _, i := range all {
		set.Set(i)
	}
	return set
}

// startOn starts a process that runs on the given cores only.
func startOn(all []int, cmd *exec.Cmd) error {
	if len(all) == 0 {
		return cmd.Start()
	}
	// A process inherits the cores of the thread that starts it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return err
	}
	set := setOf(all)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return err
	}
	defer func() { _ = unix.SchedSetaffinity(0, &before) }()
	return cmd.Start()
}

// stayOn makes this process run on the given cores only.
func stayOn(all []int) {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil || len(all) == 0 {
		return
	}
	set := setOf(all)
	for _, t := range threads {
		if id, err := strconv.Atoi(t.Name()); err == nil {
			_ = unix.SchedSetaffinity(id, &set) // it fails if the thread has ended, which does not matter
		}
	}
}
