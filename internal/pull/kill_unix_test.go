//go:build unix

package pull_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/realizar/realizar/internal/fetch"
	"github.com/realizar/realizar/internal/names"
	"github.com/realizar/realizar/internal/pull"
	"github.com/realizar/realizar/internal/pull/hubtest"
	"github.com/realizar/realizar/internal/store"
)

// childVariable is set for a child process of the tests. Its value is a [childPull] in JSON.
const childVariable = "REALIZAR_PULL_CHILD"

// A childPull is a pull in a child process.
type childPull struct {
	Endpoint, Token, Folder, Name string

	KillAt int64 // the process kills itself at this event; 0 means never
}

func TestMain(m *testing.M) {
	if text := os.Getenv(childVariable); text != "" {
		if err := runChild(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	// The tests must not use credentials of the user who runs them.
	if err := os.Setenv("DOCKER_CONFIG", os.DevNull); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// A doom kills the process at the n-th event, as kill -9 does. Events are arrivals of bytes, and
// files and folders about to be synced, so that there is an event before and after every step of a
// pull.
type doom struct{ left atomic.Int64 }

func (d *doom) event() {
	if d.left.Add(-1) == 0 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

func (d *doom) Plan([]store.File) {}
func (d *doom) Waits(int)         {}
func (d *doom) Came(int, int64)   { d.event() }

func runChild(text string) error {
	var c childPull
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	n, err := names.Parse(c.Name)
	if err != nil {
		return err
	}
	d := new(doom)
	d.left.Store(c.KillAt)
	o := quick()
	o.Sync = func(interface{ Sync() error }) error {
		d.event()
		return nil
	}
	p := &pull.Puller{Store: &store.Store{Hub: filepath.Join(c.Folder, "hub"), Own: filepath.Join(c.Folder, "own"), Sync: o.Sync}, Client: fetch.NewClient(o), Watcher: d, Endpoint: c.Endpoint, Token: c.Token}
	_, err = p.Pull(context.Background(), n)
	return err
}

// start starts a pull in a child process.
func (c childPull) start(t *testing.T) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// TestKilled checks that a process that is killed at any moment leaves nothing that is wrongly
// taken for a model, and that the next pull ends with the right bytes.
func TestKilled(t *testing.T) {
	var started, killed atomic.Int64
	t.Cleanup(func() { t.Logf("%d processes, of which %d were killed", started.Load(), killed.Load()) })
	schedules(t, 40, func(t *testing.T, s *hubtest.Server, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 5))
		m := sampleOf(t, s, r, seed)
		s.Set(m.withFaults(&schedule{r: rand.New(rand.NewPCG(seed, 6)), left: r.IntN(6)}))
		p := puller(t, s, quick())
		p.Token = m.behavior.Token
		child := childPull{s.URL, p.Token, filepath.Dir(p.Store.Hub), m.name.String(), 0}
		for range 4 {
			child.KillAt = 1 + r.Int64N(40)
			cmd := child.start(t)
			_ = cmd.Wait()
			started.Add(1)
			wantWhole(t, p.Store, m)
			if cmd.ProcessState.Exited() {
				break // it had finished, or it failed
			}
			killed.Add(1)
		}
		wantPulled(t, p, s, m)
	})
}

// TestTogether checks that processes that pull the same model at the same time download each byte
// once, and that all of them get the model.
func TestTogether(t *testing.T) {
	s := hubtest.New(t)
	data := content(1, 300_000)
	s.AddRepo("org/x", map[string][]byte{"x.gguf": data})
	p := puller(t, s, quick())
	var all []*exec.Cmd
	for range 4 {
		all = append(all, childPull{s.URL, "", filepath.Dir(p.Store.Hub), "hf:org/x", 0}.start(t))
	}
	for _, cmd := range all {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	wantWhole(t, p.Store, sample{name: name(t, "hf:org/x"), files: map[string][]byte{"x.gguf": data}})
	if sent := s.Sent("x.gguf"); sent != int64(len(data)) {
		t.Errorf("%d bytes were sent of a file of %d", sent, len(data))
	}
	// Waiting for another process can be interrupted.
	hold, err := p.Store.PullHub(t.Context(), name(t, "hf:org/y"), hubtest.Commit)
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Release()
	d := fetch.SHA256(hubtest.SHA256(data))
	lock, err := hold.Lock(t.Context(), d, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := hold.Lock(ctx, d, cancel); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting ends with %v", err)
	}
}
