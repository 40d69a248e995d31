// Package manage lets clients of a server list, fetch, copy, create, push and delete the
// models of this machine, within bounds: names lead to models alone and never to a path,
// hosts are those that the operator allows, and so much is under way at one time.
package manage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/names"
	"github.com/realizar/realizar/internal/pull"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/store"
)

// The defaults of a [Config].
const (
	defaultAtOnce = 4
	defaultEvery  = 100 * time.Millisecond
)

// A Config says what clients may do.
type Config struct {
	// Puller fetches models into its store. It has no watcher.
	Puller *pull.Puller
	// Hosts are registries and web servers that clients may name, host or host:port, beside
	// the hub and Ollama's registry.
	Hosts []string
	// AtOnce is how many pulls, pushes, copies, uploads and makings of models are under way at
	// one time. 0: 4.
	AtOnce int
	// Every is the least time between two reports of a client's progress. 0: 100 milliseconds.
	Every time.Duration
	// Loaded is what the server calls the model that it has loaded from path, and whether there
	// is one. nil: there is none.
	Loaded func(path string) (name string, ok bool)
	// Added and Removed are told of a model, by its name as [server.Stored] has it, that has
	// come to the path or is gone from it. nil: nobody is.
	Added, Removed func(name, path string)
	Logger         *slog.Logger
}

// A Manager is the [server.Store] of a server.
type Manager struct {
	config Config
	store  *store.Store

	stopped context.Context // ends when all pulls shall
	stop    context.CancelFunc
	work    sync.WaitGroup

	mu    sync.Mutex
	busy  int // of config.AtOnce
	pulls map[names.Name]*sharedPull

	described sync.Mutex // guards descriptions
	briefs    map[string]brief
}

// New makes a manager, which is to be closed.
func New(c Config) *Manager {
	if c.AtOnce == 0 {
		c.AtOnce = defaultAtOnce
	}
	if c.Every == 0 {
		c.Every = defaultEvery
	}
	if c.Loaded == nil {
		c.Loaded = func(string) (string, bool) { return "", false }
	}
	ignore := func(string, string) {}
	if c.Added == nil {
		c.Added = ignore
	}
	if c.Removed == nil {
		c.Removed = ignore
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	m := &Manager{config: c, store: c.Puller.Store, pulls: map[names.Name]*sharedPull{}, briefs: map[string]brief{}}
	m.stopped, m.stop = context.WithCancel(context.Background())
	return m
}

// Close ends all pulls. What has come of them is kept.
func (m *Manager) Close() {
	m.stop()
	m.work.Wait()
}

// begin takes a place for something that takes long, until done is called.
func (m *Manager) begin() (done func(), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.take(); err != nil {
		return nil, err
	}
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.busy--
	}, nil
}

// take takes a place. It is called with mu.
func (m *Manager) take() error {
	if m.busy >= m.config.AtOnce {
		return fault(server.StoreBusy, "%d models are being fetched or changed, which is what the server does at one time; ask again soon", m.busy)
	}
	m.busy++
	return nil
}

// find is the model that a client names.
func (m *Manager) find(text string) (*store.Model, error) {
	n, err := parse(text)
	if err != nil {
		return nil, err
	}
	found, err := m.store.Find(n)
	if err != nil && n.Kind == names.Hub {
		// Ollama may have fetched it from the hub itself.
		if own, wrong := names.Parse("ollama:" + n.Ollama()); wrong == nil {
			if other, absent := m.store.Find(own); absent == nil {
				found, err = other, nil
			}
		}
	}
	if err != nil {
		return nil, m.told(text, err)
	}
	return found, nil
}

// Find returns the model of that name.
func (m *Manager) Find(_ context.Context, name string) (*server.Stored, error) {
	found, err := m.find(name)
	if err != nil {
		return nil, err
	}
	return m.stored(found), nil
}

// List returns the models by name.
func (m *Manager) List(ctx context.Context) ([]*server.Stored, error) {
	found, err := m.store.List()
	if err != nil {
		m.config.Logger.Debug("models that cannot be read are left out", slog.Any("error", err))
	}
	var all []*server.Stored
	seen := map[string]bool{}
	for _, f := range found {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if name := f.Name.Ollama(); !seen[name] {
			seen[name] = true
			all = append(all, m.stored(f))
		}
	}
	slices.SortFunc(all, func(a, b *server.Stored) int { return strings.Compare(a.Name, b.Name) })
	m.forget(found)
	return all, nil
}

// Describe says what the files of a model say.
func (m *Manager) Describe(_ context.Context, name string) (*realizar.Description, error) {
	found, err := m.find(name)
	if err != nil {
		return nil, err
	}
	d, err := realizar.Describe(found.Path)
	if err != nil {
		m.config.Logger.Warn("a model of the store cannot be read", slog.String("model", name), slog.Any("error", err))
		return nil, fault(server.NotAModel, "the files of %.200q cannot be read as a model's; the server's log says why", name)
	}
	return d, nil
}

// A brief is what lists say of a model.
type brief struct {
	size        int64
	modified    time.Time
	description *realizar.Description // nil where there is none
}

func (m *Manager) stored(f *store.Model) *server.Stored {
	return &server.Stored{
		Name: f.Name.Ollama(), Digest: digestOf(f), Size: f.Size(), Modified: f.Modified, Description: m.briefly(f),
	}
}

// briefly describes a model, and keeps the description while its files stay as they are.
func (m *Manager) briefly(f *store.Model) *realizar.Description {
	m.described.Lock()
	defer m.described.Unlock()
	if b, ok := m.briefs[f.Path]; ok && b.size == f.Size() && b.modified.Equal(f.Modified) {
		return b.description
	}
	d, err := realizar.Describe(f.Path)
	if err != nil {
		d = nil
	} else {
		d.Tensors, d.Plan = nil, ""
		d.Metadata = slices.DeleteFunc(d.Metadata, func(e realizar.MetadataEntry) bool { return long(e.Value) })
		d.Metadata = slices.Clip(d.Metadata)
	}
	m.briefs[f.Path] = brief{f.Size(), f.Modified, d}
	return d
}

// long reports whether a value of metadata is more than a name or a number.
func long(v any) bool {
	text, ok := v.(string)
	return ok && len(text) > 1024 || reflect.ValueOf(v).Kind() == reflect.Slice
}

// forget lets go of descriptions of models that are gone.
func (m *Manager) forget(found []*store.Model) {
	m.described.Lock()
	defer m.described.Unlock()
	for path := range m.briefs {
		if !slices.ContainsFunc(found, func(f *store.Model) bool { return f.Path == path }) {
			delete(m.briefs, path)
		}
	}
}

// digestOf tells models apart by their files.
func digestOf(f *store.Model) string {
	h := sha256.New()
	for _, file := range f.Files {
		_, _ = fmt.Fprintln(h, file.Name, file.Digest, file.Size) // a hash takes all
	}
	return hex.EncodeToString(h.Sum(nil))
}
