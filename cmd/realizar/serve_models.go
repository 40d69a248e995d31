package main

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/pool"
	"github.com/realizar/realizar/internal/server"
)

// A servedModel is the loader of the model of a server.
type servedModel struct {
	app     *app
	path    string
	options realizar.Options
}

// Estimate is nothing: nobody shares memory with the only model, whose own options bound it.
func (m *servedModel) Estimate(context.Context, string) (pool.Need, error) { return pool.Need{}, nil }

// Load opens the model.
func (m *servedModel) Load(ctx context.Context, _ string, _ pool.Need) (*server.Model, error) {
	opened, err := m.app.openWith(ctx, m.path, m.options)
	if err != nil {
		return nil, err
	}
	served := &server.Model{Model: opened}
	if info, err := os.Stat(m.path); err == nil {
		served.Created = info.ModTime()
	}
	return served, nil
}

// models are those of the server: the one of the flags, which is loaded, and stays until
// somebody unloads it.
func (c *serveCommand) models(a *app, log *slog.Logger) (*server.Models, error) {
	o := c.options()
	o.Parallel = c.Parallel
	o.Damaged = func(err error) {
		if err == nil {
			log.Info("the model's file is again what it was")
			return
		}
		log.Error("the model's file has changed: not ready", slog.String("error", err.Error()))
	}
	all, err := pool.New(pool.Config[*server.Model]{
		Models: []pool.Spec{{Name: c.ServedModelName[0], Aliases: c.ServedModelName[1:], Pinned: true}},
		Loader: &servedModel{a, c.Model, o}, MaxWaiting: c.MaxQueue + 1,
	})
	if err != nil {
		return nil, err
	}
	err = all.Load(a.ctx, c.ServedModelName[0])
	var failed *pool.LoadError
	if errors.As(err, &failed) {
		err = failed.Err
	}
	if err != nil {
		_ = all.Close()
		return nil, err
	}
	return all, nil
}
