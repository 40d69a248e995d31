package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/describe"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/modelfile"
)

// A tuner is a device that chooses kernels by measurements.
type tuner interface {
	// Tuning describes the measurements that the device uses; the text is empty if there are none.
	Tuning() (string, error)
	// Tune measures the products of programs, or usual ones, and returns the file with the result.
	Tune(ctx context.Context, programs []*plan.Program, report func(done, all int, text string)) (string, error)
}

// programs returns the programs of models, without their weights.
func (a *app) programs(models []string) (all []*plan.Program, err error) {
	for _, name := range models {
		path, err := a.modelPath(name, false)
		if err != nil {
			return nil, err
		}
		f, err := modelfile.Open(path)
		if err != nil {
			return nil, err
		}
		m, err := arch.Build(f)
		if err == nil {
			all = append(all, describe.NewProgram(m.Program).Program)
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// table reports the measurements by which a GPU chooses kernels.
func (d *doctor) table(name string, device *backends.Device) {
	t, ok := device.Backend.(tuner)
	if !ok {
		return
	}
	text, err := t.Tuning()
	if err == nil && text == "" {
		d.report(name, "table", stateNone, "kernels are chosen by estimates; realizar doctor --tune measures them")
		return
	}
	d.check(name, "table", func() (string, error) { return text, err })
}

// tuneProducts measures the kernels of a GPU, and reports each product.
func (d *doctor) tuneProducts(name string, device *backends.Device, programs []*plan.Program) {
	t, ok := device.Backend.(tuner)
	if !ok {
		d.report(name, "tune", stateNone, "the device has no choice of kernels")
		return
	}
	d.check(name, "tune", func() (string, error) {
		path, err := t.Tune(d.app.ctx, programs, func(done, all int, text string) {
			d.report(name, "tune", stateOK, fmt.Sprintf("%d of %d, %s", done, all, text))
		})
		return "wrote " + path, err
	})
}
