package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/pool"
	"github.com/realizar/realizar/internal/server/fields"
)

// A Model is a loaded model with the server's data about it.
type Model struct {
	*realizar.Model
	// Created is the model's time of creation in lists of models. Zero means the time of loading.
	Created time.Time
	// Path is the path that the model was opened from. It may be empty. Clients never see it.
	Path string

	pieces   pieces
	pulse    pulse
	noted    sync.Map
	recorded atomic.Pointer[record]
}

// Note returns the value that a dialect keeps with m under the key. The first call computes it with
// find.
func Note[V any](m *Model, key any, find func() V) V {
	once, _ := m.noted.LoadOrStore(key, sync.OnceValue(find))
	return once.(func() V)()
}

// Models is the pool of a server's models.
type Models = pool.Pool[*Model]

// One returns a pool of m alone under these names, already loaded and pinned. Closing the pool
// closes m. Unloading m closes it too, and it cannot be loaded again.
func One(m *Model, names ...string) (*Models, error) {
	if len(names) == 0 {
		return nil, errors.New("server: the model has no name")
	}
	if m.Created.IsZero() {
		m.Created = time.Now()
	}
	p, err := pool.New(pool.Config[*Model]{
		Models: []pool.Spec{{Name: names[0], Aliases: names[1:], Pinned: true}}, Loader: &opened{model: m}, MaxWaiting: 1,
	})
	if err != nil {
		return nil, err
	}
	return p, p.Load(context.Background(), names[0])
}

// opened is the loader of a model that is already open.
type opened struct {
	model *Model
	given bool
}

// Estimate returns an empty Need, as no other model shares memory with it.
func (o *opened) Estimate(context.Context, string) (pool.Need, error) { return pool.Need{}, nil }

// Load returns the model, once.
func (o *opened) Load(context.Context, string, pool.Need) (*Model, error) {
	if o.given {
		return nil, errors.New("server: the model was closed")
	}
	o.given = true
	return o.model, nil
}

// Models returns the models of s.
func (s *Server) Models() *Models { return s.models }

// Listed returns the status of the models that clients can use, in the order of the list.
func (s *Server) Listed() []pool.Status {
	return slices.DeleteFunc(s.models.Models(), func(m pool.Status) bool { return m.Removed })
}

// Names returns the names of all models. Answers have the first name of each.
func (s *Server) Names() (names []string) {
	for _, m := range s.Listed() {
		names = append(append(names, m.Name), m.Aliases...)
	}
	return names
}

// Find returns the status of the model with that name. A name without a tag has the tag "latest".
func (s *Server) Find(name string) (pool.Status, error) {
	for _, m := range s.Listed() {
		if slices.ContainsFunc(append([]string{m.Name}, m.Aliases...), func(own string) bool { return Tagged(own) == Tagged(name) }) {
			return m, nil
		}
	}
	return pool.Status{}, &pool.UnknownError{Name: name, Names: s.Names()}
}

// Tagged returns a name with its tag, as Ollama's clients write it.
func Tagged(name string) string {
	if strings.Contains(name[strings.LastIndexByte(name, '/')+1:], ":") {
		return name
	}
	return name + ":latest"
}

// Look calls f with the model of that name if it is loaded.
func (s *Server) Look(name string, f func(m *Model)) {
	if h, ok := s.models.Look(name); ok {
		defer h.Release()
		s.records.of(h.Name).follow(h.Model)
		f(h.Model)
	}
}

// Hold loads the model of that name, if it is not loaded, and keeps it loaded until the request
// ends. The name may be empty if the server has exactly one model.
func (x *Exchange) Hold(name string) error {
	if name == "" {
		all := x.Server.Listed()
		if len(all) != 1 {
			return fields.Missing("model")
		}
		name = all[0].Name
	}
	found, err := x.Server.Find(name)
	if err != nil {
		return x.unknown(name, err)
	}
	done := x.phase(x.settings.deadlines.FirstToken, errFirst)
	defer done()
	h, err := x.Server.models.Acquire(x.work, found.Name)
	if err != nil {
		return err
	}
	x.Server.records.of(h.Name).follow(h.Model)
	x.hold = h
	x.after = append(x.after, h.Release)
	return nil
}

// Model returns the model of the request. It must follow [Exchange.Hold] or [ReadFor].
func (x *Exchange) Model() *Model { return x.hold.Model }

// Name returns the first name of [Exchange.Model].
func (x *Exchange) Name() string { return x.hold.Name }

// KeepAlive sets how long the model stays loaded while unused, as in [pool.Hold.KeepAlive].
func (x *Exchange) KeepAlive(d time.Duration) { x.hold.KeepAlive(d) }

// errNamed ends the search for the name of the model.
var errNamed = errors.New("the model is named")

// nameIn returns the name of the model in the body of a request with the fields of list: the value
// of "model", or of "name" if list has that field. It is empty if the body has none. It does not
// report errors in the body.
func nameIn[R any](data []byte, list fields.List[R]) (name string) {
	for _, field := range []string{"model", "name"} {
		if !slices.ContainsFunc(list, func(f fields.Field[R]) bool { return f.Name == field }) {
			continue
		}
		_ = fields.Members(data, "", func(member string, value json.RawMessage) error {
			if member != field {
				return nil
			}
			_ = fields.ReadText(value, &name)
			return errNamed
		})
		if name != "" {
			break
		}
	}
	return name
}

// poolError returns the answer to an error of the pool; nil for other errors.
func poolError(err error) *Error {
	var (
		unknown *pool.UnknownError
		memory  *pool.MemoryError
		queue   *pool.QueueError
		load    *pool.LoadError
	)
	switch {
	case as(err, &unknown):
		return &Error{Status: http.StatusNotFound, Param: "model", Code: "model_not_found", Message: unknown.Error()}
	case as(err, &memory):
		e := &Error{Status: http.StatusServiceUnavailable, Code: "model_memory", Message: memory.Error()}
		if !memory.Forever() {
			e.RetryAfter = 1
		}
		return e
	case as(err, &queue):
		return &Error{Status: http.StatusTooManyRequests, Code: "model_queue_full", RetryAfter: 1, Message: queue.Error()}
	case as(err, &load): // clients must not learn the path of the model
		return &Error{Status: http.StatusServiceUnavailable, Code: "model_failed", RetryAfter: max(1, int(load.Again/time.Second)),
			Message: fmt.Sprintf("model %.100q cannot be loaded; the server's log says why", load.Model)}
	case errors.Is(err, pool.ErrUnloaded):
		return &Error{Status: http.StatusServiceUnavailable, Code: "model_unloaded", RetryAfter: 1, Message: "the model was unloaded while it was being loaded; retry to load it"}
	case errors.Is(err, pool.ErrClosed):
		return errDraining
	}
	return nil
}
