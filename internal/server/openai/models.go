package openai

import "github.com/realizar/realizar/internal/server"

// modelEntry is a model as lists have it. MaxModelLen is vLLM's name for the context.
type modelEntry struct {
	ID          string `json:"id"`
	Object      string `json:"object"`
	Created     int64  `json:"created"`
	OwnedBy     string `json:"owned_by"`
	MaxModelLen int    `json:"max_model_len"`
}

func entry(s *server.Server, name string) modelEntry {
	return modelEntry{ID: name, Object: "model", Created: s.Created().Unix(), OwnedBy: "realizar", MaxModelLen: s.Model().Context()}
}

// models is GET /v1/models.
func models(x *server.Exchange) error {
	names := x.Server.Names()
	list := make([]modelEntry, len(names))
	for i, name := range names {
		list[i] = entry(x.Server, name)
	}
	return x.JSON(map[string]any{"object": "list", "data": list})
}

// modelNamed is GET /v1/models/{id}; without an id it is the list.
func modelNamed(x *server.Exchange) error {
	name := x.PathValue("id")
	if name == "" {
		return models(x)
	}
	if err := x.Server.CheckModel(name); err != nil {
		return err
	}
	return x.JSON(entry(x.Server, name))
}
