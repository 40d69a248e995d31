package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/pool"
	"github.com/realizar/realizar/internal/server"
)

// What holds of several models where the flags do not say: how many answers of one are under
// way at a time, to how many tokens a context is halved that takes more than half of the memory
// of all, and how long a model is left alone that is in use while others wait.
const (
	severalParallel = 16
	severalContext  = 4096
	severalStay     = 2 * time.Second
)

// A modelLoader loads the models of a server.
type modelLoader struct {
	app     *app
	options realizar.Options
	log     *slog.Logger
	paths   map[string]string // of models by name

	// limit is what all may take of the device; 0: there is one model alone, which is bounded
	// by its own options.
	limit int64

	mu    sync.Mutex
	plans map[string]realizar.Options // of models by name, as they were estimated
}

// Estimate plans the model of that name.
func (l *modelLoader) Estimate(ctx context.Context, name string) (pool.Need, error) {
	o, need := l.options, pool.Need{}
	if l.limit > 0 {
		least, err := l.least(ctx, name)
		if err != nil {
			return nil, err
		}
		o.Context, need = least.Context, needOf(least)
		if l.onHost(least.Device) {
			o.Memory = least.Bytes
		} else {
			o.DeviceMemory, o.StreamWeights = realizar.MemoryLimit{Bytes: least.Bytes}, realizar.StreamNever
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.plans[name] = o
	return need, nil
}

// needOf is what a model takes of each device.
func needOf(least *realizar.LeastMemory) pool.Need {
	need := pool.Need{least.Device: least.Bytes}
	if least.Host > 0 {
		need[backends.Processor.Name] += least.Host
	}
	return need
}

// onHost reports whether a device computes in the host's memory.
func (*modelLoader) onHost(device string) bool { return backends.All.Kind(device).Host }

// least is the least that the model of that name takes. A context that nobody asked for is
// halved while it takes more than half of what there is for all.
func (l *modelLoader) least(ctx context.Context, name string) (*realizar.LeastMemory, error) {
	d, err := realizar.DescribeWith(l.paths[name], l.options.PreTokenizer)
	if err != nil {
		return nil, err
	}
	for o := l.options; ; {
		least, err := d.Least(ctx, o)
		if err != nil || l.options.Context > 0 || least.Bytes <= l.limit/2 || least.Context <= severalContext {
			return least, err
		}
		o.Context = max(severalContext, least.Context/2)
	}
}

// Load opens the model of that name as it was estimated.
func (l *modelLoader) Load(ctx context.Context, name string, _ pool.Need) (*server.Model, error) {
	l.mu.Lock()
	o := l.plans[name]
	l.mu.Unlock()
	o.Damaged = func(err error) {
		if err == nil {
			l.log.Info("the model's file is again what it was", slog.String("model", name))
			return
		}
		l.log.Error("the model's file has changed: not ready", slog.String("model", name), slog.String("error", err.Error()))
	}
	m, err := l.app.openWith(ctx, l.paths[name], o)
	if err != nil {
		return nil, err
	}
	served := &server.Model{Model: m}
	if info, err := os.Stat(l.paths[name]); err == nil {
		served.Created = info.ModTime()
	}
	return served, nil
}

// named are the models of the flags: their specs, and their paths by name.
func (c *serveCommand) named(a *app) (specs []pool.Spec, paths map[string]string, err error) {
	if len(c.Models) == 0 {
		c.Models = []string{a.orDemo("", "serve")}
	}
	paths = map[string]string{}
	for _, model := range c.Models {
		path, err := a.modelPath(model, c.Pull)
		if err != nil {
			return nil, nil, err
		}
		s := pool.Spec{Name: fileName(model), TTL: c.KeepAlive}
		if path != model {
			s.Name = strings.TrimPrefix(model, "hf:")
		}
		if other, ok := paths[s.Name]; ok {
			return nil, nil, fmt.Errorf("%s and %s are both called %s; give one of the files another name, or a short name (realizar cp)", other, path, s.Name)
		}
		paths[s.Name] = path
		specs = append(specs, s)
	}
	if len(specs) == 1 {
		s := &specs[0]
		path := paths[s.Name]
		if own := c.ServedModelName; len(own) > 0 {
			s.Name, s.Aliases = own[0], own[1:]
		}
		s.Pinned, paths = c.KeepAlive == 0, map[string]string{s.Name: path}
	}
	return specs, paths, nil
}

// pool is the pool of the models. A model that is alone is loaded, and what is wrong with it is
// the error; several are loaded when somebody asks for them.
func (c *serveCommand) pool(a *app, specs []pool.Spec, paths map[string]string, log *slog.Logger) (*server.Models, error) {
	o := c.options()
	o.TargetITL = c.TargetITL
	l := &modelLoader{app: a, options: o, log: log, paths: paths, plans: map[string]realizar.Options{}}
	l.options.Parallel = c.Parallel
	var limits pool.Need
	if len(specs) > 1 {
		l.options.Parallel = cmp.Or(c.Parallel, severalParallel)
		var err error
		if limits, err = l.limits(a.ctx, specs); err != nil {
			return nil, err
		}
	}
	all, err := pool.New(pool.Config[*server.Model]{Models: specs, Loader: l, Limits: limits, Stay: severalStay, MaxWaiting: c.MaxQueue + 1})
	if err != nil || len(specs) > 1 {
		return all, err
	}
	err = all.Load(a.ctx, specs[0].Name)
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

// hostPart is the part of the host's free memory that several models may take where no flag
// says how much.
const hostPart = 0.75

// limits are what all models may take together of the device on which they run, by the first
// of them that can be read, and of the host.
func (l *modelLoader) limits(ctx context.Context, specs []pool.Spec) (pool.Need, error) {
	var first error
	for _, s := range specs {
		l.limit = math.MaxInt64
		least, err := l.least(ctx, s.Name)
		if err != nil {
			first = cmp.Or(first, err)
			continue
		}
		l.limit = cmp.Or(least.Free, math.MaxInt64)
		if l.onHost(least.Device) && l.options.Memory == 0 && least.Free > 0 {
			l.limit = int64(hostPart * float64(least.Free))
		}
		limits := pool.Need{backends.Processor.Name: l.options.HostCache * int64(len(specs))}
		limits[least.Device] = l.limit
		if l.onHost(least.Device) {
			limits[least.Device] += l.options.HostCache * int64(len(specs))
		}
		return limits, nil
	}
	return nil, first
}
