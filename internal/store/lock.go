package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
)

// A Lock keeps other processes away from what it is for, until it is released or the
// process ends in whatever way.
type Lock struct{ file *os.File }

// errLocked says that somebody else has a lock.
var errLocked = errors.New("another process has the lock")

// takeLock waits for the lock at path; shared ones go together. waiting is called if it
// has to wait; it may be nil.
func takeLock(ctx context.Context, path string, shared bool, waiting func()) (*Lock, error) {
	l, err := tryLock(path, shared)
	if !errors.Is(err, errLocked) {
		return l, err
	}
	if waiting != nil {
		waiting()
	}
	f, err := openLock(path)
	if err != nil {
		return nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = lockFile(f, shared, true)
	}()
	select {
	case <-done:
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return &Lock{f}, nil
	case <-ctx.Done():
		go func() { // the system's call cannot be called off
			<-done
			(&Lock{f}).Release()
		}()
		return nil, context.Cause(ctx)
	}
}

// tryLock takes the lock at path, or returns errLocked.
func tryLock(path string, shared bool) (*Lock, error) {
	f, err := openLock(path)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f, shared, false); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Lock{f}, nil
}

// openLock opens the file of a lock, which stays for ever: who removed it would lock
// another file than who opened it before.
func openLock(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
}

// Release lets others have it, at once: a process that was forked meanwhile may have the
// file open, too.
func (l *Lock) Release() {
	unlockFile(l.file)
	_ = l.file.Close()
}
