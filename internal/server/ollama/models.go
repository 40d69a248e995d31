package ollama

import (
	"cmp"
	"time"

	"github.com/realizar/realizar/internal/server"
)

// spoken is the version of Ollama whose API this is: clients ask for one that is new enough.
const spoken = "0.17.4"

// root is GET /, by which clients see that a server is there.
func root(x *server.Exchange) error {
	s := x.Stream("text/plain; charset=utf-8", func(e *server.Error) error { return e })
	s.Add([]byte("Ollama is running"))
	return s.Flush()
}

// version is GET /api/version.
func version(x *server.Exchange) error {
	return x.JSON(map[string]string{"version": spoken, "server": "realizar"})
}

// A modelEntry is a model as lists have it.
type modelEntry struct {
	Name       string    `json:"name"`
	Model      string    `json:"model"`
	ModifiedAt time.Time `json:"modified_at"`
	Size       int64     `json:"size"`
	Digest     string    `json:"digest"`
	Details    details   `json:"details"`
}

// tags is GET /api/tags: the models that are served, and those of the store. Of one that is
// served and not loaded no more than its names is known.
func tags(x *server.Exchange) error {
	list := []modelEntry{}
	for _, m := range x.Server.Models().Models() {
		e := modelEntry{ModifiedAt: x.Server.Created()}
		x.Server.Look(m.Name, func(m *server.Model) {
			is := catalogOf(m)
			e.ModifiedAt, e.Size, e.Digest, e.Details = m.Created, is.size, is.digest, is.details
		})
		for _, name := range append([]string{m.Name}, m.Aliases...) {
			e.Name, e.Model = server.Tagged(name), server.Tagged(name)
			list = append(list, e)
		}
	}
	if store, err := x.Server.Store(); err == nil {
		all, err := store.List(x.Work())
		if err != nil {
			return err
		}
		for _, m := range all {
			if _, err := x.Server.Find(m.Name); err == nil {
				continue
			}
			e := modelEntry{Name: m.Name, Model: m.Name, ModifiedAt: m.Modified, Size: m.Size, Digest: m.Digest}
			if m.Description != nil {
				e.Details = detailsOf(m.Description)
			}
			list = append(list, e)
		}
	}
	return x.JSON(map[string]any{"models": list})
}

// A runningEntry is a model as it runs.
type runningEntry struct {
	Name      string    `json:"name"`
	Model     string    `json:"model"`
	Size      int64     `json:"size"`
	Digest    string    `json:"digest"`
	Details   details   `json:"details"`
	ExpiresAt time.Time `json:"expires_at"`
	SizeVRAM  int64     `json:"size_vram"`
	Context   int       `json:"context_length"`
}

// never is when a model goes that stays.
var never = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

// running is GET /api/ps: the models that are loaded.
func running(x *server.Exchange) error {
	list := []runningEntry{}
	for _, status := range x.Server.Models().Models() {
		x.Server.Look(status.Name, func(m *server.Model) {
			is := catalogOf(m)
			e := runningEntry{Size: is.size, Digest: is.digest, Details: is.details, ExpiresAt: cmp.Or(status.Expires, never), Context: m.Context()}
			switch s := m.Streaming(); {
			case m.Device() == "cpu":
				e.Size = max(e.Size, m.HostMemory())
			case s != nil:
				e.SizeVRAM = s.Resident
			default:
				e.SizeVRAM = e.Size
			}
			for _, name := range append([]string{status.Name}, status.Aliases...) {
				e.Name, e.Model = server.Tagged(name), server.Tagged(name)
				list = append(list, e)
			}
		})
	}
	return x.JSON(map[string]any{"models": list})
}
