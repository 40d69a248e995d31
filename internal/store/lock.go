package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
)

// A Lock keeps other processes away from what it protects, until it is released or the process
// ends.
type Lock struct{ file *os.File }

// errLocked reports that another process holds a lock.
var errLocked = errors.New("another process has the lock")

// takeLock waits for the lock at path. Shared locks can be held together. It calls waiting, unless
// nil, if it has to wait.
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
		go func() { // the system call cannot be canceled
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

// openLock opens the file of a lock. The file is never removed: otherwise two processes could lock
// different files of one name.
func openLock(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
}

// Release releases the lock. It unlocks explicitly, because a forked process may have the file
// open, too.
func (l *Lock) Release() {
	unlockFile(l.file)
	_ = l.file.Close()
}
