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

// A Model is a loaded model that a server answers with, and what the server knows of it.
type Model struct {
	*realizar.Model
	// Created is when the model came to be, as lists of models say it. Zero: when it was loaded.
	Created time.Time

	pieces   pieces
	pulse    pulse
	noted    sync.Map
	recorded atomic.Pointer[record]
}

// Note is what a dialect keeps of m under a key of its own: what find returned the first time.
func Note[V any](m *Model, key any, find func() V) V {
	once, _ := m.noted.LoadOrStore(key, sync.OnceValue(find))
	return once.(func() V)()
}

// Models are those that a server answers with.
type Models = pool.Pool[*Model]

// One is m alone under these names, which is there and stays. Closing the pool closes it, and so
// does unloading it, after which it cannot be loaded again.
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

// opened is the loader of a model that is there.
type opened struct {
	model *Model
	given bool
}

// Estimate is nothing, as nobody shares memory with it.
func (o *opened) Estimate(context.Context, string) (pool.Need, error) { return pool.Need{}, nil }

// Load is the model.
func (o *opened) Load(context.Context, string, pool.Need) (*Model, error) {
	if o.given {
		return nil, errors.New("server: the model was closed")
	}
	o.given = true
	return o.model, nil
}

// Models are those that s answers with.
func (s *Server) Models() *Models { return s.models }

// Names are those of all models; answers bear the first of each.
func (s *Server) Names() (names []string) {
	for _, m := range s.models.Models() {
		names = append(append(names, m.Name), m.Aliases...)
	}
	return names
}

// Find is the model of that name. A name without a tag has the tag "latest".
func (s *Server) Find(name string) (pool.Status, error) {
	for _, m := range s.models.Models() {
		if slices.ContainsFunc(append([]string{m.Name}, m.Aliases...), func(own string) bool { return Tagged(own) == Tagged(name) }) {
			return m, nil
		}
	}
	return pool.Status{}, &pool.UnknownError{Name: name, Names: s.Names()}
}

// Tagged is a name with its tag, as Ollama's clients have it.
func Tagged(name string) string {
	if strings.Contains(name[strings.LastIndexByte(name, '/')+1:], ":") {
		return name
	}
	return name + ":latest"
}

// Look calls f with the model of that name where it is loaded.
func (s *Server) Look(name string, f func(m *Model)) {
	if h, ok := s.models.Look(name); ok {
		defer h.Release()
		s.records.of(h.Name).follow(h.Model)
		f(h.Model)
	}
}

// Hold has the request be for the model of that name, which is loaded where it is not there,
// and stays until the request ends. A request need not name the one model that there is: name
// may be empty then.
func (x *Exchange) Hold(name string) error {
	if name == "" {
		all := x.Server.models.Models()
		if len(all) > 1 {
			return fields.Missing("model")
		}
		name = all[0].Name
	}
	found, err := x.Server.Find(name)
	if err != nil {
		return err
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

// Model is the one that the request is for, after [Exchange.Hold] or [ReadFor].
func (x *Exchange) Model() *Model { return x.hold.Model }

// Name is the first name of [Exchange.Model].
func (x *Exchange) Name() string { return x.hold.Name }

// KeepAlive is how long the model stays when nobody uses it, as [pool.Hold.KeepAlive] has it.
func (x *Exchange) KeepAlive(d time.Duration) { x.hold.KeepAlive(d) }

// errNamed ends the search for the name of the model.
var errNamed = errors.New("the model is named")

// nameIn is the model that the body of a request with the fields of list names: in "model", or
// "name" where that is one of them. It is empty where it names none. What is wrong with the
// body, others say.
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

// poolError is an error of the models as it is answered; nil: it is another.
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
	case as(err, &load): // where the model lies is nothing that clients need to know
		return &Error{Status: http.StatusServiceUnavailable, Code: "model_failed", RetryAfter: max(1, int(load.Again/time.Second)),
			Message: fmt.Sprintf("model %.100q cannot be loaded; the server's log says why", load.Model)}
	case errors.Is(err, pool.ErrUnloaded):
		return &Error{Status: http.StatusServiceUnavailable, Code: "model_unloaded", RetryAfter: 1, Message: "the model was unloaded while it was being loaded; ask again to load it"}
	case errors.Is(err, pool.ErrClosed):
		return errDraining
	}
	return nil
}
