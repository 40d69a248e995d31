package pull_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/realizar/realizar/internal/pull/hubtest"
	"github.com/realizar/realizar/internal/store"
)

// small mounts a disk with the given size and returns its path. It needs root.
func small(t *testing.T, size string) string {
	t.Helper()
	at := t.TempDir()
	if err := unix.Mount("tmpfs", at, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("no disk can be made: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return at
}

// TestNoRoom checks that a disk without room is an error before anything is downloaded.
func TestNoRoom(t *testing.T) {
	s := hubtest.New(t)
	s.AddRepo("org/x", map[string][]byte{"x.gguf": content(1, 3<<20)})
	p := puller(t, s, quick())
	p.Store.Hub = filepath.Join(small(t, "2m"), "hub")
	_, err := p.Pull(t.Context(), name(t, "hf:org/x"))
	var space *store.SpaceError
	if !errors.As(err, &space) || !strings.Contains(err.Error(), "HF_HUB_CACHE") || s.Sent("x.gguf") != 0 {
		t.Errorf("error %v after %d bytes", err, s.Sent("x.gguf"))
	}
}

// TestFullDisk checks that a disk that fills up during a pull is an error, that the downloaded part
// is kept, and that a later pull continues from it.
func TestFullDisk(t *testing.T) {
	s := hubtest.New(t)
	data := content(1, 1500<<10)
	s.AddRepo("org/x", map[string][]byte{"x.gguf": data})
	p := puller(t, s, quick())
	disk := small(t, "2m")
	p.Store.Hub = filepath.Join(disk, "hub")
	filler := filepath.Join(disk, "filler")
	p.Watcher = &filling{t: t, path: filler}
	_, err := p.Pull(t.Context(), name(t, "hf:org/x"))
	if err == nil || !strings.Contains(err.Error(), "the disk is full") || strings.Contains(err.Error(), "\n") {
		t.Fatalf("error %v", err)
	}
	if _, err := p.Store.Find(name(t, "hf:org/x")); !errors.Is(err, store.ErrAbsent) {
		t.Errorf("it is there: %v", err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	p.Watcher = nil
	m, err := p.Pull(t.Context(), name(t, "hf:org/x"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(m.Path); err != nil || !bytes.Equal(got, data) {
		t.Errorf("other bytes: %v", err)
	}
}

// A filling is a watcher that fills the disk when a pull begins.
type filling struct {
	t    *testing.T
	path string
}

func (f *filling) Plan([]store.File) {
	if out, err := exec.CommandContext(f.t.Context(), "dd", "if=/dev/zero", "of="+f.path, "bs=1k", "count=1200").CombinedOutput(); err != nil {
		f.t.Errorf("%v: %s", err, out)
	}
}
func (f *filling) Came(int, int64) {}
func (f *filling) Waits(int)       {}
