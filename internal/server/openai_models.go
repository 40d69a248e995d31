package server

import (
	"fmt"
	"net/http"
	"slices"
)

// modelEntry is a model as lists have it. MaxModelLen is vLLM's name for the context.
type modelEntry struct {
	ID          string `json:"id"`
	Object      string `json:"object"`
	Created     int64  `json:"created"`
	OwnedBy     string `json:"owned_by"`
	MaxModelLen int    `json:"max_model_len"`
}

func (s *Server) entry(name string) modelEntry {
	return modelEntry{ID: name, Object: "model", Created: s.config.Created.Unix(), OwnedBy: "realizar", MaxModelLen: s.model.Context()}
}

// models is GET /v1/models.
func (s *Server) models(x *exchange) error {
	list := make([]modelEntry, len(s.config.Names))
	for i, name := range s.config.Names {
		list[i] = s.entry(name)
	}
	return x.answer(map[string]any{"object": "list", "data": list})
}

// modelNamed is GET /v1/models/{id}.
func (s *Server) modelNamed(x *exchange) error {
	name := x.PathValue("id")
	if err := s.checkModel(name); err != nil {
		return err
	}
	return x.answer(s.entry(name))
}

// checkModel refuses a name that the model is not served under.
func (s *Server) checkModel(name string) error {
	if slices.Contains(s.config.Names, name) {
		return nil
	}
	return &Error{Status: http.StatusNotFound, Param: "model", Code: "model_not_found",
		Message: fmt.Sprintf("there is no model %.100q here; there is %q", name, s.config.Names)}
}

// answer answers with v as JSON.
func (x *exchange) answer(v any) error {
	data, err := encode(v)
	if err != nil {
		return err
	}
	writeJSON(x.w, http.StatusOK, data)
	return nil
}
