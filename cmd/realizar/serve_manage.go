package main

import (
	"path/filepath"

	"github.com/realizar/realizar/internal/manage"
	"github.com/realizar/realizar/internal/pool"
	"github.com/realizar/realizar/internal/server"
)

// manager lets clients change the models of this machine, where the flags allow it; nil: they
// do not. paths are those of the models that are served, by their names.
func (c *serveCommand) manager(models *server.Models, paths map[string]string, config *server.Config) (*manage.Manager, error) {
	if !c.ManageModels {
		return nil, nil
	}
	p, err := puller(pullConnections)
	if err != nil {
		return nil, err
	}
	m := manage.New(manage.Config{
		Puller: p, Hosts: c.AllowRegistry, Logger: config.Logger,
		Served: func(path string) (string, bool) { return servedAt(models, paths, path) },
	})
	config.Store = m
	return m, nil
}

// pullConnections are those of all pulls of clients together.
const pullConnections = 8

// servedAt is what the model at path is called where it is served, and whether it is loaded.
func servedAt(models *server.Models, paths map[string]string, path string) (name string, loaded bool) {
	at := resolved(path)
	for _, m := range models.Models() {
		if resolved(paths[m.Name]) == at {
			return m.Name, m.State != pool.Absent && m.State != pool.Failed
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
