package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/store"
)

// listCommand is `realizar list`.
type listCommand struct {
	JSON bool `name:"json" help:"Write one JSON object for each model, one per line."`
}

// Help is shown below the command's line.
func (*listCommand) Help() string {
	return `list shows all models that have a name: those in the cache of the hub, whichever tool downloaded
them, those of Ollama, and those of realizar. Memory is what the model needs on the device that run
chooses, with weights, for one request.

Examples:

    realizar list
    realizar list --json`
}

// A listedModel is a model in the output of list and show.
type listedModel struct {
	Name         string    `json:"name"`
	Place        string    `json:"place"`
	Path         string    `json:"path"`
	Size         int64     `json:"size"`
	Architecture string    `json:"architecture,omitempty"`
	Quant        string    `json:"quantization,omitempty"`
	Context      int       `json:"context,omitempty"`
	Memory       int64     `json:"memory,omitempty"`
	Problem      string    `json:"problem,omitempty"`
	Modified     time.Time `json:"modified"`
	Used         time.Time `json:"used,omitzero"`
}

// listed describes a model from its files.
func (a *app) listed(s *store.Store, m *store.Model) (l listedModel, d *realizar.Description) {
	l = listedModel{
		Name: shortName(m.Name), Place: string(m.Place), Path: m.Path, Size: m.Size(), Quant: m.Quant, Modified: m.Modified, Used: s.LastUsed(m),
	}
	d, err := realizar.Describe(m.Path)
	if err != nil {
		l.Problem = oneLine(message(err))
		return l, nil
	}
	l.Architecture, l.Context, l.Problem = d.Architecture, d.Dimensions.Context, d.Problem
	if len(d.DTypes) > 0 && (l.Quant == "" || l.Quant == "safetensors") {
		l.Quant = d.DTypes[0].Name
	}
	if d.Problem == "" {
		memory, err := d.Memory(realizar.Options{Device: "auto", Parallel: 1, Kernels: a.kernels})
		if err != nil {
			l.Problem = oneLine(message(err))
		} else {
			l.Memory = memory.Total
		}
	}
	return l, d
}

// Run lists the models.
func (c *listCommand) Run(a *app) error {
	s := models()
	found, problem := s.List()
	all := make([]listedModel, len(found))
	var work errgroup.Group
	work.SetLimit(runtime.GOMAXPROCS(0))
	for i, m := range found {
		work.Go(func() error {
			all[i], _ = a.listed(s, m)
			return a.ctx.Err()
		})
	}
	if err := work.Wait(); err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b listedModel) int { return cmp.Compare(a.Name, b.Name) })
	if problem != nil {
		a.notef("%s", oneLine(problem.Error()))
	}
	if c.JSON {
		out := json.NewEncoder(a.out)
		for _, l := range all {
			if err := out.Encode(l); err != nil {
				return err
			}
		}
		return nil
	}
	if len(all) == 0 {
		a.notef("no models yet; realizar pull hf:org/repo downloads one, and demo is built in")
		return nil
	}
	t := newTable()
	t.row("name", "size", "memory", "context", "quantisation", "architecture", "last used", "place")
	now := time.Now()
	for _, l := range all {
		memory, context := "-", "-"
		if l.Memory > 0 {
			memory = byteText(l.Memory)
		}
		if l.Context > 0 {
			context = fmt.Sprint(l.Context)
		}
		t.row(l.Name, byteText(l.Size), memory, context, cmp.Or(l.Quant, "-"), cmp.Or(l.Architecture, "-"), agoText(now, l.Used), l.Place)
	}
	_, err := io.WriteString(a.out, t.text(1, 2, 3))
	return err
}

// agoText returns how long ago then was, in the largest unit that gives at least one.
func agoText(now, then time.Time) string {
	if then.IsZero() {
		return "never"
	}
	d := max(0, now.Sub(then))
	for _, u := range []struct {
		size time.Duration
		name string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}} {
		switch n := int(d / u.size); {
		case n == 1:
			return "1 " + u.name + " ago"
		case n > 1:
			return fmt.Sprintf("%d %ss ago", n, u.name)
		}
	}
	return "now"
}
