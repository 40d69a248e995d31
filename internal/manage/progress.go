package manage

import (
	"context"
	"sync"
	"time"

	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/store"
)

// files are how far the files of a model are, for any number of clients that look at them.
type files struct {
	mu  sync.Mutex
	all []server.Progress
}

// Plan is for [pull.Watcher].
func (f *files) Plan(files []store.File) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, file := range files {
		f.all = append(f.all, server.Progress{Phase: server.Transfer, Digest: string(file.Digest), Total: file.Size})
	}
}

// Came is for [pull.Watcher].
func (f *files) Came(file int, n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all[file].Completed += n
}

// Waits is for [pull.Watcher].
func (*files) Waits(int) {}

// sent notes bytes of a file that may be a new one.
func (f *files) sent(digest string, size, n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.all {
		if f.all[i].Digest == digest {
			f.all[i].Completed += n
			return
		}
	}
	f.all = append(f.all, server.Progress{Phase: server.Transfer, Digest: digest, Total: size, Completed: n})
}

// A follower tells one client of files.
type follower struct {
	files    *files
	told     []server.Progress
	progress func(server.Progress) error
}

// look tells what is new.
func (f *follower) look() error {
	f.files.mu.Lock()
	var news []server.Progress
	for i, p := range f.files.all {
		if i >= len(f.told) {
			f.told = append(f.told, p)
		} else if f.told[i] == p {
			continue
		}
		f.told[i] = p
		news = append(news, p)
	}
	f.files.mu.Unlock()
	for _, p := range news {
		if err := f.progress(p); err != nil {
			return err
		}
	}
	return nil
}

// follow tells a client of files no more often than every so often, until they are done or
// the client has left.
func follow(ctx context.Context, every time.Duration, of *files, done <-chan struct{}, progress func(server.Progress) error) error {
	f := &follower{files: of, progress: progress}
	if err := progress(server.Progress{Phase: server.ReadManifest}); err != nil {
		return err
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-done:
			return f.look()
		case <-tick.C:
		}
		if err := f.look(); err != nil {
			return err
		}
	}
}
