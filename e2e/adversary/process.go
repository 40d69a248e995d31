package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A process is the server that is attacked.
type process struct {
	cmd    *exec.Cmd
	url    string
	limit  string // what limits its memory
	group  string // the folder of its control group; empty if there is none
	log    *logTail
	ended  chan struct{}
	client *http.Client
	cores  cores
}

// groupName begins the name of the control group.
const groupName = "realizar-adversary"

// group makes a control group that is limited to the given bytes, and returns its folder. It
// returns "" if it cannot make one.
func group(bytes int64) string {
	for _, g := range []struct{ folder, file string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, // version 1
		{"/sys/fs/cgroup", "memory.max"},
	} {
		dir := filepath.Join(g.folder, fmt.Sprintf("%s-%d", groupName, os.Getpid()))
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		if os.WriteFile(filepath.Join(dir, g.file), []byte(strconv.FormatInt(bytes, 10)), 0o644) == nil {
			return dir
		}
		_ = os.Remove(dir)
	}
	return ""
}

// start starts the server and waits until it answers.
func start(ctx context.Context, o *options, c *cores) (*process, error) {
	p := &process{cores: *c, ended: make(chan struct{}), limit: "no control group could be made", group: group(o.memory << 20), client: &http.Client{Timeout: 10 * time.Second}}
	// The shell joins the group and sets the limits before the program starts.
	script := "ulimit -n " + strconv.Itoa(o.files) + "\n"
	if p.group != "" {
		p.limit = p.group
		script += "echo $$ > " + p.group + "/cgroup.procs || exit 1\n"
	}
	script += `exec "$@"`
	args := []string{"-c", script, "sh", o.binary, "serve", o.model, "--device", "cpu", "--port", "0", "--log", "json", "--threads", strconv.Itoa(min(2, max(1, len(c.server))))}
	if p.group == "" {
		args = append(args, "--memory", fmt.Sprintf("%dMiB", o.memory/4), "--request-memory", fmt.Sprintf("%dMiB", o.memory/8))
	}
	p.cmd = exec.CommandContext(ctx, "/bin/sh", args...)
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
	p.cmd.WaitDelay = 5 * time.Second
	p.cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GOM") }) // GOMAXPROCS, GOMEMLIMIT
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.log, err = keepLog(c, p.cmd); err != nil {
		return nil, err
	}
	err = startOn(c.server, p.cmd)
	p.log.begun()
	if err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	_, url, found := strings.Cut(strings.TrimSpace(line), " at ")
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	if err != nil || !found {
		p.stop()
		return nil, fmt.Errorf("the server does not begin: %q, %w\n%s", line, err, p.log.end())
	}
	p.url = url
	return p, nil
}

// stop ends the server.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
	if p.group != "" {
		_ = os.Remove(p.group)
	}
}

// dumpLog prints the end of the log of a server that has ended.
func (p *process) dumpLog() {
	fmt.Fprintf(os.Stderr, "\nthe end of the server's log:\n%s\n", p.log.end())
}

func (p *process) dead() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// A usage is what the process uses at one moment.
type usage struct {
	rss, held         int64
	goroutines, files int
}

// resident returns the memory of the process.
func (p *process) resident() int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if kib, found := strings.CutPrefix(line, "VmRSS:"); found {
			n, _ := strconv.ParseInt(strings.Fields(kib)[0], 10, 64)
			return n << 10
		}
	}
	return 0
}

// processorTime returns how much processor time the process has used.
func (p *process) processorTime() time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	user, _ := strconv.ParseInt(f[11], 10, 64)
	system, _ := strconv.ParseInt(f[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond // the unit is a hundredth of a second
}

// read returns what the process uses now.
func (p *process) read(ctx context.Context) (u usage, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/metrics", nil)
	if err != nil {
		return u, err
	}
	resp, err := p.client.Do(r)
	if err != nil {
		return u, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	data, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return u, err
	}
	number := func(name string) float64 {
		for line := range strings.Lines(string(data)) {
			if v, found := strings.CutPrefix(line, name+" "); found {
				f, _ := strconv.ParseFloat(strings.TrimSpace(v), 64)
				return f
			}
		}
		err = errors.Join(err, fmt.Errorf("there is no metric %s", name))
		return 0
	}
	u = usage{held: int64(number("realizar_request_memory_bytes")), goroutines: int(number("go_goroutines")), files: int(number("process_open_fds"))}
	u.rss = p.resident()
	return u, err
}

// settled waits, for a limited time, until the process uses no more than before. It returns
// what the process then uses.
func (p *process) settled(ctx context.Context, before *usage) (u usage) {
	p.client.CloseIdleConnections()
	for range 120 {
		var err error
		if u, err = p.read(ctx); err == nil && before != nil {
			r := row{before: *before, after: u, usual: time.Hour, limit: 1 << 50}
			if r.verdict() == "held" {
				return u
			}
		}
		if before == nil && err == nil || ctx.Err() != nil || p.dead() {
			return u
		}
		time.Sleep(250 * time.Millisecond)
	}
	return u
}

// attack lets the given number of clients repeat a while beside runs. It returns how they
// were answered and the most memory that the process had.
func (p *process) attack(a *attack, clients int, beside func()) (o outcome, peak int64, err error) {
	all, err := startAttackers(&p.cores, a, clients, p.url)
	if err != nil {
		return outcome{}, 0, err
	}
	ended := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			peak = max(peak, p.resident())
			select {
			case <-ended:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
	beside()
	o, err = all.stop()
	close(ended)
	watching.Wait()
	return o, peak, err
}
