// Package manage lets clients of a server list, fetch, copy, create, push and delete the models of
// this machine, within bounds: names denote models and never paths, hosts are those that the
// operator allows, and the number of operations at a time is limited.
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
	// Puller fetches models into its store. Its Watcher is not used.
	Puller *pull.Puller
	// Hosts are registries and web servers, as host or host:port, that clients may name besides the
	// hub and Ollama's registry.
	Hosts []string
	// AtOnce is the largest number of pulls, pushes, copies, uploads and creations at a time. 0
	// means 4.
	AtOnce int
	// Every is the least time between two reports of progress to a client. 0 means 100
	// milliseconds.
	Every time.Duration
	// Loaded reports whether the server has loaded a model from path, and returns its name in the
	// server. nil means no.
	Loaded func(path string) (name string, ok bool)
	// Added and Removed are called when a model has come to path or is gone from it, with its name
	// as in [server.Stored]. They may be nil.
	Added, Removed func(name, path string)
	Logger         *slog.Logger
}

// A Manager is the [server.Store] of a server.
type Manager struct {
	config Config
	store  *store.Store

	stopped context.Context // the context of all pulls
	stop    context.CancelFunc
	work    sync.WaitGroup

	mu    sync.Mutex
	busy  int // operations, at most config.AtOnce
	pulls map[names.Name]*sharedPull

	described sync.Mutex // guards briefs
	briefs    map[string]brief
}

// New returns a manager. Close must be called when it is no longer used.
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

// Close ends all pulls. What they have downloaded is kept.
func (m *Manager) Close() {
	m.stop()
	m.work.Wait()
}

// begin counts a long operation, until done is called.
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

// take counts an operation. The caller holds mu.
func (m *Manager) take() error {
	if m.busy >= m.config.AtOnce {
		return fault(server.StoreBusy, "%d models are being fetched or changed, which is the limit of the server; retry soon", m.busy)
	}
	m.busy++
	return nil
}

// find returns the model that a client names.
func (m *Manager) find(text string) (*store.Model, error) {
	n, err := parse(text)
	if err != nil {
		return nil, err
	}
	found, err := m.store.Find(n)
	if err != nil && n.Kind == names.Hub {
		// Ollama may have fetched the model from the hub itself.
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

// Find returns the model with the name.
func (m *Manager) Find(_ context.Context, name string) (*server.Stored, error) {
	found, err := m.find(name)
	if err != nil {
		return nil, err
	}
	return m.stored(found), nil
}

// List returns the models, one for each name.
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

// Describe describes a model from its files.
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

// A brief is a model's description for lists, with the size and time of the files that it is from.
type brief struct {
	size        int64
	modified    time.Time
	description *realizar.Description // nil if the files cannot be read
}

func (m *Manager) stored(f *store.Model) *server.Stored {
	return &server.Stored{
		Name: f.Name.Ollama(), Digest: digestOf(f), Size: f.Size(), Modified: f.Modified, Description: m.briefly(f),
	}
}

// briefly describes a model. The description is kept while the model's files stay the same.
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

// long reports whether a metadata value is a long text or an array.
func long(v any) bool {
	text, ok := v.(string)
	return ok && len(text) > 1024 || reflect.ValueOf(v).Kind() == reflect.Slice
}

// forget removes the descriptions of models that are gone.
func (m *Manager) forget(found []*store.Model) {
	m.described.Lock()
	defer m.described.Unlock()
	for path := range m.briefs {
		if !slices.ContainsFunc(found, func(f *store.Model) bool { return f.Path == path }) {
			delete(m.briefs, path)
		}
	}
}

// digestOf returns a digest of the names, digests and sizes of a model's files.
func digestOf(f *store.Model) string {
	h := sha256.New()
	for _, file := range f.Files {
		_, _ = fmt.Fprintln(h, file.Name, file.Digest, file.Size) // a hash never fails
	}
	return hex.EncodeToString(h.Sum(nil))
}
