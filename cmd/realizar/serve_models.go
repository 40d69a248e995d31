package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"sync"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/demo"
	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/machine"
	"github.com/realizar/realizar/internal/pool"
	"github.com/realizar/realizar/internal/server"
)

// Defaults for several models: the running requests of one model; the context, in tokens, down to
// which it is halved while the model would take more than half of the device's limit; and how long
// a model in use stays while others wait.
const (
	severalParallel = 16
	severalContext  = 4096
	severalStay     = 2 * time.Second
)

// hostPart is the part of the host's free memory that several models may take by default.
const hostPart = 0.75

// A modelLoader loads the models of a server.
type modelLoader struct {
	app *app
	log *slog.Logger

	// limits are the bytes that all models together may take of each device. They are nil for a
	// single model, which its own options bound.
	limits pool.Need
	pull   bool
	target time.Duration // the target time between two tokens of an answer
	copies int           // of a single model
	models map[string]*servedModel

	plans *plans
	kept  *keptCaches

	events    func(realizar.CacheEvent) // gets the events of the model named published; or nil
	published string

	transferred string // the model whose KV cache is transferred, or empty
}

// keptCaches are the KV caches of models in host memory, by name, loaded or not.
type keptCaches struct {
	mu    sync.Mutex
	names map[string]*realizar.KeptCache
}

// of returns the cache of a model.
func (k *keptCaches) of(name string) *realizar.KeptCache {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.names[name] == nil {
		k.names[name] = new(realizar.KeptCache)
	}
	return k.names[name]
}

// only drops the caches of models that are not in the map.
func (k *keptCaches) only(models map[string]*servedModel) {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.names, func(name string, _ *realizar.KeptCache) bool { return models[name] == nil })
}

// plans are the estimates of models, by name.
type plans struct {
	mu    sync.Mutex
	names map[string]modelPlan
}

// A modelPlan says how to open a model.
type modelPlan struct {
	path    string
	version string // of the model and its files
	options realizar.Options
	need    pool.Need
}

func newModelLoader(a *app, log *slog.Logger) *modelLoader {
	return &modelLoader{app: a, log: log, kept: &keptCaches{names: map[string]*realizar.KeptCache{}}}
}

// with returns a loader of these models with the same limits.
func (l *modelLoader) with(list []servedModel) *modelLoader {
	own := *l
	own.models, own.plans = map[string]*servedModel{}, &plans{names: map[string]modelPlan{}}
	for i := range list {
		own.models[list[i].name] = &list[i]
	}
	own.kept.only(own.models)
	return &own
}

// options returns the options of m, for several answers at a time.
func (m *servedModel) options() realizar.Options {
	o := m.modelFlags.options()
	m.setSpeculative(&o)
	o.Parallel, o.TargetITL = cmp.Or(m.Parallel, severalParallel), m.TargetITL
	return o
}

// Estimate plans the model with a name. The plan does not depend on free memory, so it is made once
// for the same files.
func (l *modelLoader) Estimate(ctx context.Context, name string) (pool.Need, error) {
	m := l.models[name]
	path, err := l.app.modelPath(m.Source, l.pull)
	if err != nil {
		return nil, err
	}
	p := modelPlan{path: path, version: m.version + filesOf(path), options: m.options(), need: pool.Need{}}
	p.options.TargetITL = l.target
	if p.options.HostCache > 0 {
		p.options.Kept = l.kept.of(name)
	}
	if name == l.published {
		p.options.CacheEvents = l.events
	}
	p.options.TransferCache = name != "" && name == l.transferred
	l.plans.mu.Lock()
	known := l.plans.names[name]
	l.plans.mu.Unlock()
	switch {
	case known.version == p.version:
		return known.need, nil
	case l.limits == nil:
		p.options.Parallel, p.options.Replicas = m.Parallel, l.copies
	default:
		least, err := l.least(ctx, path, p.options)
		if err != nil {
			return nil, err
		}
		p.options.Context, p.need = least.Context, needOf(least)
		if onHost(least.Device) {
			p.options.Memory = least.Bytes
		} else {
			p.options.DeviceMemory, p.options.StreamWeights = realizar.MemoryLimit{Bytes: least.Bytes}, realizar.StreamNever
		}
	}
	l.plans.mu.Lock()
	defer l.plans.mu.Unlock()
	l.plans.names[name] = p
	return p.need, nil
}

// onHost reports whether a device computes in host memory.
func onHost(device string) bool { return backends.All.Kind(device).Host }

// least returns the least memory of the model at path. An automatic context is halved while the
// model would take more than half of the device's limit.
func (l *modelLoader) least(ctx context.Context, path string, o realizar.Options) (*realizar.LeastMemory, error) {
	d, err := realizar.DescribeWith(path, o.PreTokenizer)
	if err != nil {
		return nil, err
	}
	if err := l.app.findDraft(&o); err != nil {
		return nil, err
	}
	for asked := o.Context > 0; ; {
		least, err := d.Least(ctx, o)
		if err != nil || asked || least.Context <= severalContext {
			return least, err
		}
		fits := true
		for device, bytes := range needOf(least) {
			limit, ok := l.limits[device]
			fits = fits && (!ok || bytes <= limit/2)
		}
		if fits {
			return least, nil
		}
		o.Context = max(severalContext, least.Context/2)
	}
}

// Load opens the model as estimated.
func (l *modelLoader) Load(ctx context.Context, name string, _ pool.Need) (*server.Model, error) {
	l.plans.mu.Lock()
	p := l.plans.names[name]
	l.plans.mu.Unlock()
	p.options.Damaged = func(err error) {
		if err == nil {
			l.log.Info("the model's file is again what it was", slog.String("model", name))
			return
		}
		l.log.Error("the model's file has changed: not ready", slog.String("model", name), slog.String("error", err.Error()))
	}
	begun := time.Now()
	m, err := l.app.openWith(ctx, p.path, p.options)
	if err != nil {
		return nil, err
	}
	served := &server.Model{Model: m, Created: begun, Path: resolved(p.path)}
	if info, err := os.Stat(p.path); err == nil {
		served.Created = info.ModTime()
	}
	return served, nil
}

// specsOf returns the models of a list for the pool.
func specsOf(list []servedModel) []pool.Spec {
	specs := make([]pool.Spec, len(list))
	for i := range list {
		specs[i] = list[i].spec()
	}
	return specs
}

// hostCaches returns the bytes of host memory that the caches of several models may take, loaded or
// not.
func hostCaches(list []servedModel) (n int64) {
	for _, m := range list {
		n += int64(m.KVHost)
	}
	return n
}

// parallelOf returns how many requests several models may run at a time.
func parallelOf(list []servedModel) (n int) {
	for _, m := range list {
		n += cmp.Or(m.Parallel, severalParallel)
	}
	return cmp.Or(n, severalParallel)
}

// pool makes the pool of the models. A model that is alone is loaded at once, and an error of the
// load is returned. Several models are loaded on demand.
func (c *serveCommand) pool(l *modelLoader, list []servedModel) (*server.Models, error) {
	l.pull, l.target, l.copies = c.Pull, c.TargetITL, c.Replicas
	*l = *l.with(list)
	if !c.alone() {
		var err error
		measured := list
		if len(list) == 0 { // any model has the same devices
			measured = []servedModel{c.newModel(demo.Name, demo.Name)}
		}
		if l.limits, err = l.limitsOf(measured, int64(c.Memory)); err != nil {
			return nil, err
		}
	}
	all, err := pool.New(pool.Config[*server.Model]{Models: specsOf(list), Loader: l, Limits: l.limits, Stay: severalStay, MaxWaiting: c.MaxQueue + 1})
	if err != nil || !c.alone() {
		return all, err
	}
	err = all.Load(l.app.ctx, list[0].name)
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

// limitsOf returns what all models together may take of the host and of each device that one of
// them runs on. For the host it is memory, unless that is 0. It is an error if none of the models
// can be read.
func (l *modelLoader) limitsOf(list []servedModel, memory int64) (pool.Need, error) {
	limits := pool.Need{}
	var first error
	for _, m := range list {
		path, err := l.app.modelPath(m.Source, false)
		if err == nil {
			var least *realizar.LeastMemory
			if least, err = l.least(l.app.ctx, path, m.options()); err == nil {
				for d, free := range freeOf(least) {
					limits[d] = cmp.Or(limits[d], free)
				}
			}
		}
		if err != nil {
			first = cmp.Or(first, fmt.Errorf("%s: %w", m.name, err))
		}
	}
	if len(limits) == 0 && !l.pull {
		return nil, first
	}
	host := memory
	if host == 0 {
		host = int64(hostPart * float64(max(0, machine.ReadMemory().Free-hostCaches(list))))
	}
	limits[backends.Processor.Name] = cmp.Or(host, unlimited)
	return limits, nil
}

// unlimited exceeds the memory of any device.
const unlimited = 1 << 62

// preload loads the models that are marked to be loaded when the server starts.
func preload(ctx context.Context, models *server.Models, list []servedModel) {
	for _, m := range list {
		if !m.Preload {
			continue
		}
		_ = models.Load(ctx, m.name) // the error is logged
	}
}

// logModels logs the loads and unloads of models until ctx ends.
func logModels(ctx context.Context, models *server.Models, log *slog.Logger) {
	var after uint64
	begun := map[string]time.Time{} // loads
	for {
		list, more := models.Events(after)
		for _, e := range list {
			after = e.Number
			attrs := []any{slog.String("model", e.Model)}
			switch e.State {
			case pool.Loading:
				begun[e.Model] = e.Time
			case pool.Ready:
				if h, ok := models.Look(e.Model); ok {
					m := h.Model
					attrs = append(attrs, slog.String("device", m.Device()), slog.Int("context", m.Context()), slog.Int("parallel", m.Parallel()))
					h.Release()
				}
				log.Info("a model was loaded", append(attrs, slog.Duration("took", e.Time.Sub(begun[e.Model]).Round(time.Millisecond)))...)
				delete(begun, e.Model)
			case pool.Draining:
				log.Info("a model is unloaded after use", append(attrs, slog.String("reason", e.Why))...)
			case pool.Failed:
				log.Error("a model cannot be loaded", append(attrs, slog.String("reason", e.Why))...)
			}
		}
		select {
		case <-more:
		case <-ctx.Done():
			return
		}
	}
}
