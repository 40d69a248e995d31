package manage

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/names"
	"github.com/realizar/realizar/internal/push"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/store"
)

// replaceable refuses to give a name away that a model has which must stay.
func (m *Manager) replaceable(n names.Name) error {
	found, err := m.store.Find(n)
	if err != nil {
		return nil //nolint:nilerr // what is not there is not in use
	}
	if found.Place != store.OwnLayout {
		return fault(server.NotAllowed, "%.200q is Ollama's own, which realizar does not change", n.Ollama())
	}
	return m.unused(found)
}

// unused refuses a model that is loaded.
func (m *Manager) unused(f *store.Model) error {
	if name, loaded := m.config.Loaded(f.Path); loaded {
		return fault(server.InUse, "%.200q is loaded, as %q; unload it first: a request with keep_alive 0 does, or POST /models/unload", f.Name.Ollama(), name)
	}
	return nil
}

// Copy gives a model another name.
func (m *Manager) Copy(ctx context.Context, from, to string) error {
	found, err := m.find(from)
	if err != nil {
		return err
	}
	n, err := destination(to)
	if err != nil {
		return err
	}
	if found.Name == n {
		return nil
	}
	if err := m.replaceable(n); err != nil {
		return err
	}
	done, err := m.begin()
	if err != nil {
		return err
	}
	defer done()
	if err := m.store.Copy(ctx, found, n, func(int64) {}); err != nil {
		return m.told(from, err)
	}
	return m.added(n)
}

// added tells of a new model.
func (m *Manager) added(n names.Name) error {
	found, err := m.store.Find(n)
	if err != nil {
		return m.told(n.Ollama(), err)
	}
	m.config.Logger.Info("a client gave a model a name", slog.String("model", n.String()))
	m.config.Added(n.Ollama(), found.Path)
	return nil
}

// Create makes a model of files.
func (m *Manager) Create(ctx context.Context, name string, files map[string]string, progress func(server.Progress) error) error {
	n, err := destination(name)
	if err != nil {
		return err
	}
	made := &store.Model{Name: n}
	var list []string
	for file, digest := range files {
		hex, err := names.CheckDigest(digest)
		if err != nil {
			return fault(server.NotAName, "%v", err)
		}
		f, ok := m.store.Uploaded(hex)
		if !ok {
			return fault(server.NoBlob, "there is no file %.100q; send it to POST /api/blobs/%s first", digest, digest)
		}
		f.Name = file
		made.Files, list = append(made.Files, f), append(list, file)
	}
	if err := names.CheckFiles(list); err != nil {
		return fault(server.NotAName, "%v", err)
	}
	slices.SortFunc(made.Files, func(a, b store.File) int { return strings.Compare(a.Name, b.Name) })
	if err := m.replaceable(n); err != nil {
		return err
	}
	done, err := m.begin()
	if err != nil {
		return err
	}
	defer done()
	for _, f := range made.Files {
		if err := progress(server.Progress{Phase: server.Transfer, Digest: string(f.Digest), Total: f.Size, Completed: f.Size}); err != nil {
			return err
		}
	}
	if err := progress(server.Progress{Phase: server.WriteManifest}); err != nil {
		return err
	}
	check := func(path string) error {
		if _, err := realizar.Describe(path); err != nil {
			m.config.Logger.Info("a client sent files that are no model", slog.Any("error", err))
			return fault(server.NotAModel, "the files cannot be read as a model's; the server's log says why")
		}
		return nil
	}
	if err := m.store.CreateOwn(ctx, made, check); err != nil {
		return m.told(name, err)
	}
	return m.added(n)
}

// Delete removes a model.
func (m *Manager) Delete(_ context.Context, name string) error {
	found, err := m.find(name)
	if err != nil {
		return err
	}
	if err := m.unused(found); err != nil {
		return err
	}
	if _, err := m.store.Remove(found); err != nil {
		return m.told(name, err)
	}
	m.config.Logger.Info("a client deleted a model", slog.String("model", found.Name.String()))
	m.config.Removed(found.Name.Ollama(), found.Path)
	return nil
}

// Push gives a model to the registry that its name leads to.
func (m *Manager) Push(ctx context.Context, name string, progress func(server.Progress) error) error {
	to, err := m.target(name)
	if err != nil {
		return err
	}
	found, err := m.find(name)
	if err != nil {
		return err
	}
	done, err := m.begin()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(m.stopped, cancel)()
	sent, ended := &files{}, make(chan struct{})
	var failed error
	m.work.Go(func() {
		defer close(ended)
		defer done()
		_, failed = push.Model(ctx, m.config.Puller.Client.HTTP, m.store, found, to, func(int64) {}, sent.sent)
	})
	if err := follow(ctx, m.config.Every, sent, ended, progress); err != nil {
		return err
	}
	if failed != nil {
		return m.toldBy(name, failed)
	}
	return progress(server.Progress{Phase: server.WriteManifest})
}

// HasBlob reports whether there is a file with that digest.
func (m *Manager) HasBlob(digest string) (bool, error) {
	hex, err := names.CheckDigest(digest)
	if err != nil {
		return false, fault(server.NotAName, "%v", err)
	}
	_, ok := m.store.Uploaded(hex)
	return ok, nil
}

// AddBlob keeps a file that a client sends.
func (m *Manager) AddBlob(ctx context.Context, digest string, r io.Reader, size int64) error {
	hex, err := names.CheckDigest(digest)
	if err != nil {
		return fault(server.NotAName, "%v", err)
	}
	done, err := m.begin()
	if err != nil {
		return err
	}
	defer done()
	var refused *server.Error
	switch err := m.store.Upload(ctx, hex, r, size); {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return err // of the body
	default:
		return m.told(digest, err)
	}
}
