package main_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFirstHourDisks checks that a disk that is full or not writable gives one sentence that says
// what to do. It needs root to mount such disks.
func TestFirstHourDisks(t *testing.T) {
	s, _ := babbleHub(t)
	u := newUser(t, s.URL)
	for _, c := range []struct{ options, says string }{
		{"size=64k", `hf:org/babble: the disk of DISK/hub has 0\.\d MB free, and 0\.2 MB are to come: remove something \(realizar list, rm and gc\), or set HF_HUB_CACHE to a folder on a larger disk`},
		{"nr_inodes=2", `hf:org/babble: the disk is full: .*no space left on device; make room \(realizar gc removes what no model has\) and pull again: what has come is kept`},
		{"mode=0555", `hf:org/babble: DISK/hub/\S+ cannot be written to \((permission denied|read-only file system)\); set HF_HUB_CACHE to another folder`},
	} {
		disk := t.TempDir()
		if err := unix.Mount("tmpfs", disk, "tmpfs", 0, c.options); err != nil {
			t.Skipf("no disk can be made: %v", err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(disk, unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
		if c.options == "mode=0555" {
			if err := os.Mkdir(filepath.Join(disk, "hub"), 0o500); err != nil {
				t.Fatal(err)
			}
			if err := unix.Mount("", disk, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil { // root could write otherwise
				t.Fatal(err)
			}
		}
		v := *u
		v.env = append(append([]string{}, u.env...), "HF_HUB_CACHE="+filepath.Join(disk, "hub"))
		r := v.run("pull", "hf:org/babble", "--quiet")
		want := regexp.MustCompile(`^realizar: ` + regexp.MustCompile(`DISK`).ReplaceAllLiteralString(c.says, regexp.QuoteMeta(disk)) + `\n$`)
		if r.code != 1 || !want.MatchString(r.stderr) || r.stdout != "" {
			t.Errorf("%s: exit code %d, standard output %q, standard error %q, want %s", c.options, r.code, r.stdout, r.stderr, want)
		}
	}
}
