package manage

import (
	"context"
	"log/slog"

	"github.com/realizar/realizar/internal/names"
	"github.com/realizar/realizar/internal/server"
)

// A sharedPull is one that clients wait for.
type sharedPull struct {
	files
	waiting int // clients; guarded by the manager's mu
	cancel  context.CancelFunc
	done    chan struct{}
	err     error // after done
}

// Pull fetches a model.
func (m *Manager) Pull(ctx context.Context, name string, progress func(server.Progress) error) error {
	n, err := m.remote(name)
	if err != nil {
		return err
	}
	p, err := m.join(n)
	if err != nil {
		return err
	}
	defer m.leave(n, p)
	if err := follow(ctx, m.config.Every, &p.files, p.done, progress); err != nil {
		return err
	}
	if p.err != nil {
		return m.toldBy(name, p.err)
	}
	for _, phase := range []server.Phase{server.Verify, server.WriteManifest} {
		if err := progress(server.Progress{Phase: phase}); err != nil {
			return err
		}
	}
	return nil
}

// join has a client wait for the pull of a model, which begins where there is none.
func (m *Manager) join(n names.Name) (*sharedPull, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.pulls[n]; p != nil {
		p.waiting++
		return p, nil
	}
	if err := m.take(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(m.stopped)
	p := &sharedPull{waiting: 1, cancel: cancel, done: make(chan struct{})}
	m.pulls[n] = p
	m.work.Go(func() { m.run(ctx, n, p) })
	return p, nil
}

// leave ends a pull that nobody waits for any more. Who comes then begins another, which
// goes on where this one was.
func (m *Manager) leave(n names.Name, p *sharedPull) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.waiting--; p.waiting > 0 {
		return
	}
	p.cancel()
	if m.pulls[n] == p {
		delete(m.pulls, n)
	}
}

// run pulls.
func (m *Manager) run(ctx context.Context, n names.Name, p *sharedPull) {
	puller := *m.config.Puller
	puller.Watcher = &p.files
	found, err := puller.Pull(ctx, n)
	if err == nil {
		m.config.Logger.Info("a client had a model fetched", slog.String("model", n.String()))
		m.config.Added(found.Name.Ollama(), found.Path)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy--
	if m.pulls[n] == p {
		delete(m.pulls, n)
	}
	p.err = err
	close(p.done)
}
