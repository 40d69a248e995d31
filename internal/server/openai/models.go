package openai

import (
	"github.com/realizar/realizar/internal/pool"
	"github.com/realizar/realizar/internal/server"
)

// modelEntry is a model as lists have it. MaxModelLen is vLLM's name for the context, which is
// known of a model that is loaded.
type modelEntry struct {
	ID          string `json:"id"`
	Object      string `json:"object"`
	Created     int64  `json:"created"`
	OwnedBy     string `json:"owned_by"`
	MaxModelLen int    `json:"max_model_len,omitempty"`
	State       string `json:"state"`
}

func entry(s *server.Server, name string, m *pool.Status) modelEntry {
	e := modelEntry{ID: name, Object: "model", Created: s.Created().Unix(), OwnedBy: "realizar", State: m.State.String()}
	s.Look(m.Name, func(m *server.Model) { e.Created, e.MaxModelLen = m.Created.Unix(), m.Context() })
	return e
}

// models is GET /v1/models, where a model has an entry for each of its names.
func models(x *server.Exchange) error {
	list := []modelEntry{}
	for _, m := range x.Server.Models().Models() {
		for _, name := range append([]string{m.Name}, m.Aliases...) {
			list = append(list, entry(x.Server, name, &m))
		}
	}
	return x.JSON(map[string]any{"object": "list", "data": list})
}

// modelNamed is GET /v1/models/{id}; without an id it is the list.
func modelNamed(x *server.Exchange) error {
	name := x.PathValue("id")
	if name == "" {
		return models(x)
	}
	m, err := x.Server.Find(name)
	if err != nil {
		return err
	}
	return x.JSON(entry(x.Server, name, &m))
}
