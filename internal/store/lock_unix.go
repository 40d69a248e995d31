//go:build unix && !solaris && !aix

package store

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockFile takes a flock, as the hub's own tools do.
func lockFile(f *os.File, shared, wait bool) error {
	how := unix.LOCK_EX
	if shared {
		how = unix.LOCK_SH
	}
	if !wait {
		how |= unix.LOCK_NB
	}
	for {
		err := unix.Flock(int(f.Fd()), how)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EWOULDBLOCK):
			return errLocked
		}
		return err
	}
}

func unlockFile(f *os.File) { _ = unix.Flock(int(f.Fd()), unix.LOCK_UN) }
