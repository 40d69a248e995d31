package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"

	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/machine"
	"github.com/realizar/realizar/internal/plan"
)

// doctorCommand is `realizar doctor`.
type doctorCommand struct {
	Device string `default:"auto" placeholder:"auto|cpu|cuda" common:"" help:"Check this device: cuda is an NVIDIA GPU, cuda:1 the GPU with number 1. auto is all GPUs and the CPU."`
	JSON   bool   `name:"json" common:"" help:"Write one JSON object for each check, one per line."`
	Tune   bool   `common:"" help:"Instead of the checks, measure which kernels of products are the fastest on the GPUs, and keep the result for later runs."`

	Model []string `arg:"" optional:"" help:"With --tune: the models whose products are measured. Default: products of common sizes and formats."`
}

// Help is shown below the command's line.
func (*doctorCommand) Help() string {
	return `doctor looks for the driver of NVIDIA GPUs and for the GPUs that it reports, measures memory
bandwidth, and compares what each GPU and each instruction set of the CPU computes with a slow and
plain program: products with weights of several formats, and the answer of a small model with random
weights. Of two or more GPUs it measures how fast each writes the memory of the others, or says that
it does not reach it.

Each line is a check with its result: ok; failed, with the reason and a way out; or none if this
machine lacks the device, or a GPU reaches no other one. The exit code is 1 if a check failed. A
missing GPU is a failure only with --device cuda or --tune.

With --tune, doctor measures products of weights with 1 to 2,048 rows on every GPU, by each kernel
that may be the fastest: those of the named models, or of 1B and 8B models in Q4_K, Q6_K, Q8_0 and
BF16, which takes about a minute. Nothing else should use the GPU meanwhile. The choice of a kernel
changes no bit of an answer, only its time. The result is a file in the folder tune of realizar's
cache: ~/.cache/realizar, unless REALIZAR_HOME or XDG_CACHE_HOME is set. Without it, estimates
choose. Products are measured by themselves: compare with realizar bench --batch, and remove the file
if it does not help. An interrupt leaves the file as it is. realizar inspect MODEL --plan shows the
choices.

With --json the members are device ("cuda:0", "cpu avx2"), check, state (ok, failed or none) and
text.

Examples:

    realizar doctor
    realizar doctor --tune
    realizar doctor --tune model.gguf --device cuda:0
    realizar doctor --device cuda:1
    realizar doctor --json | jq 'select(.state != "ok")'`
}

// Validate implements the parser's interface.
func (c *doctorCommand) Validate() error {
	switch {
	case len(c.Model) > 0 && !c.Tune:
		return fmt.Errorf("%s: doctor takes a model only with --tune; realizar verify checks the files of a model", c.Model[0])
	case c.Tune && backends.All.Host(backends.Choice{Name: c.Device}):
		return fmt.Errorf("--tune measures GPUs, and --device=%s is no GPU; leave --device out, or name a GPU such as cuda:0", c.Device)
	}
	return checkDevice(c.Device)
}

// Run checks the requested devices.
func (c *doctorCommand) Run(a *app) error {
	makeRoom(0)
	d := &doctor{app: a, json: c.JSON, width: terminalWidth(a.stdout), driver: driver.Open, open: func(name string) (*backends.Device, error) {
		device, _, err := backends.All.Open(backends.Choice{Name: name})
		return device, err
	}}
	if c.Tune {
		programs, err := a.programs(c.Model)
		if err != nil {
			return err
		}
		d.tune = func(name string, device *backends.Device) { d.tuneProducts(name, device, programs) }
	}
	host := backends.All.Host(backends.Choice{Name: c.Device})
	if !host {
		d.gpus(c.Device)
	}
	if d.tune == nil && (host || backends.Automatic(c.Device)) {
		d.processor()
	}
	switch {
	case a.ctx.Err() != nil:
		return context.Cause(a.ctx)
	case d.err != nil:
		return d.err
	case d.failed == 1:
		return errors.New("a check failed")
	case d.failed > 1:
		return fmt.Errorf("%d checks failed", d.failed)
	}
	return nil
}

// A finding is the result of a check, as --json writes it.
type finding struct {
	Device string `json:"device"`
	Check  string `json:"check"`
	State  string `json:"state"`
	Text   string `json:"text"`
}

// The states of findings.
const (
	stateOK     = "ok"
	stateFailed = "failed"
	stateNone   = "none" // there is nothing to check
)

// A doctor is one run of the command.
type doctor struct {
	app    *app
	json   bool
	width  int // of a line, in columns; 0 is any number
	driver func() (*driver.Driver, error)
	open   func(name string) (*backends.Device, error)
	tune   func(name string, device *backends.Device) // what to do with GPUs instead of checking them; nil for checks

	failed int
	err    error // of writing a finding
}

// report writes a finding.
func (d *doctor) report(device, check, state, text string) {
	if d.app.ctx.Err() != nil {
		return // an interrupt by the user is not a failure
	}
	if state == stateFailed {
		d.failed++
	}
	var err error
	if d.json {
		out := json.NewEncoder(d.app.out)
		out.SetEscapeHTML(false)
		err = out.Encode(finding{device, check, state, text})
	} else {
		first := fmt.Sprintf("%-12s  %-9s  %-6s  ", device, check, state)
		_, err = fmt.Fprintln(d.app.out, strings.Join(hanging(first, printable(text), len(first), d.width), "\n"))
	}
	d.err = errors.Join(d.err, err)
}

// check runs a check and reports its result or error.
func (d *doctor) check(device, check string, do func() (string, error)) {
	text, err := do()
	if err != nil {
		d.report(device, check, stateFailed, err.Error())
		return
	}
	d.report(device, check, stateOK, text)
}

// gpus checks the GPU of that name, or all GPUs.
func (d *doctor) gpus(name string) {
	found, err := d.driver()
	if err == nil {
		d.report("cuda", "driver", stateOK, fmt.Sprintf("made for CUDA %v", found.Version()))
	} else {
		state := stateFailed
		if d.tune == nil && backends.Automatic(name) && (errors.Is(err, driver.ErrNoDriver) || errors.Is(err, driver.ErrNoDevice)) {
			state = stateNone
		}
		d.report("cuda", "driver", state, err.Error())
		return
	}
	devices, err := found.Devices()
	if err != nil {
		d.report("cuda", "devices", stateFailed, err.Error())
		return
	}
	names := []string{name}
	if backends.Automatic(name) {
		names = nil
		for i := range devices {
			names = append(names, fmt.Sprintf("cuda:%d", i))
		}
	}
	var all []openGPU
	for _, name := range names {
		if device := d.gpu(name); device != nil {
			all = append(all, openGPU{name, device})
		}
	}
	if d.tune == nil {
		d.peers(all)
	}
	for _, g := range all {
		if err := g.Close(); err != nil {
			d.report(g.name, "closing", stateFailed, err.Error())
		}
	}
}

// gpu opens and checks one GPU. It returns nil if the GPU cannot be opened.
func (d *doctor) gpu(name string) *backends.Device {
	device, err := d.open(name)
	if err != nil {
		d.report(name, "device", stateFailed, err.Error())
		return nil
	}
	text := fmt.Sprintf("%s, %s of memory", device.Description(), byteText(device.Memory().Total))
	if described, ok := device.Backend.(interface{ Device() driver.Device }); ok {
		g := described.Device()
		text += fmt.Sprintf(", capability %v, %s", g.Capability, g.UUID)
	}
	d.report(name, "device", stateOK, text)
	if d.tune != nil {
		d.tune(name, device)
	} else {
		d.check(name, "bandwidth", func() (string, error) {
			reads, err := device.Bandwidth(d.app.ctx)
			return bandwidthText(reads), err
		})
		d.table(name, device)
		d.arithmetic(name, device)
	}
	return device
}

// processor checks every instruction set of the CPU, or the one that the environment selects.
func (d *doctor) processor() {
	name := backends.Processor.Name
	d.check(name, "bandwidth", func() (string, error) {
		b, err := backends.Processor.Open(backends.Options{})
		if err != nil {
			return "", err
		}
		reads, err := b.Bandwidth(d.app.ctx)
		return fmt.Sprintf("%s by %d threads", bandwidthText(reads), cpu.Threads(0)), errors.Join(err, b.Close())
	})
	d.report(name, "memory", stateOK, memoryLimitText(machine.ReadMemory()))
	d.report(name, "time", stateOK, timeLimitText(machine.Processors()))
	for _, tier := range cpu.Tiers() {
		if d.app.kernels != "" && d.app.kernels != tier {
			continue
		}
		b, err := backends.Processor.Open(backends.Options{Kernels: tier})
		if err != nil {
			d.report(name+" "+tier, "kernels", stateFailed, err.Error())
			continue
		}
		d.arithmetic(name+" "+tier, b)
	}
}

// memoryLimitText says how much memory is available, and what limits it.
func memoryLimitText(m machine.Memory) string {
	if m.Total == 0 {
		return "the system does not say how much there is"
	}
	return fmt.Sprintf("%s, of which %s are free, by %s", byteText(m.Total), byteText(m.Free), cmp.Or(m.Limit, "what the machine has"))
}

// timeLimitText says how much CPU time is available, and what limits it.
func timeLimitText(t machine.Time) string {
	if t.Limit == math.MaxInt32 {
		return fmt.Sprintf("%d processors, no limit of a group", runtime.NumCPU())
	}
	return fmt.Sprintf("%d of %d processors, by %s", t.Limit, runtime.NumCPU(), t.By)
}

func bandwidthText(bytes float64) string { return fmt.Sprintf("reads %.1f GB/s", bytes/1e9) }

// arithmetic compares a backend's results with those of the reference.
func (d *doctor) arithmetic(device string, b plan.Backend) {
	d.check(device, "products", func() (string, error) { return compareProducts(d.app.ctx, b) })
	d.check(device, "tokens", func() (string, error) { return compareTokens(d.app.ctx, b) })
}
