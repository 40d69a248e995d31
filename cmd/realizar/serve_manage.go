package main

import (
	"path/filepath"

	"github.com/realizar/realizar/internal/manage"
	"github.com/realizar/realizar/internal/server"
)

// manager lets clients change the models of this machine, where the flags allow it; nil: they
// do not.
func (c *serveCommand) manager(models *server.Models, config *server.Config, r *reloader) (*manage.Manager, error) {
	if !c.ManageModels {
		return nil, nil
	}
	changed := func(string, string) {
		if c.ModelsFrom == allStored {
			r.modelsNow()
		}
	}
	p, err := puller(pullConnections)
	if err != nil {
		return nil, err
	}
	m := manage.New(manage.Config{
		Puller: p, Hosts: c.AllowRegistry, Logger: config.Logger,
		Loaded: func(path string) (string, bool) { return loadedFrom(models, path) },
		Added:  changed, Removed: changed,
	})
	config.Store = m
	return m, nil
}

// pullConnections are those of all pulls of clients together.
const pullConnections = 8

// loadedFrom is what the model is called that was loaded from path, and whether there is one.
func loadedFrom(models *server.Models, path string) (name string, ok bool) {
	at := resolved(path)
	for _, m := range models.Models() {
		h, loaded := models.Look(m.Name)
		if !loaded {
			continue
		}
		own := h.Model.Path
		if h.Release(); own == at {
			return m.Name, true
		}
	}
	return "", false
}

// resolved is a path without links, as far as there is such.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if whole, err := filepath.Abs(path); err == nil {
		path = whole
	}
	return path
}
