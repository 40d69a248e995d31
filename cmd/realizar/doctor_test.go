package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/plan"
)

// TestDoctorGPUs checks the findings about GPUs on any machine, with fake drivers.
func TestDoctorGPUs(t *testing.T) {
	good, wrong := &abacus{Backend: cpu.New(1)}, &abacus{Backend: cpu.New(1), off: 1}
	two := drivertest.Options{Devices: []drivertest.Device{{Name: "Good", Memory: 1 << 30}, {Name: "Wrong", Memory: 1 << 30}}}
	open := func(name string) (*backends.Device, error) {
		switch name {
		case "cuda:0", "cuda":
			return &backends.Device{Backend: good}, nil
		case "cuda:1":
			return &backends.Device{Backend: wrong}, nil
		}
		return nil, fmt.Errorf("there is no %s", name)
	}
	const sound = "cuda:0        device     ok      Large Abacus, 2.0 TiB of memory\n" +
		"cuda:0        bandwidth  ok      reads 2.0 GB/s\n" +
		"cuda:0        products   ok      Q4_0, Q4_K, Q6_K, Q8_0, F16, BF16 as cpu-reference\n" +
		"cuda:0        tokens     ok      Q8_0 activations: 24 tokens of 24, float32: 24 tokens of 24, as cpu-reference\n"
	const madeFor = "cuda          driver     ok      made for CUDA 12.8\n"
	for _, test := range []struct {
		what   string
		device string
		driver func() (*driver.Driver, error)
		failed int
		want   string   // the whole output, or
		says   []string // parts of it
	}{
		{what: "no driver", device: "auto", driver: missing, says: []string{"cuda          driver     none    no usable NVIDIA driver: "}},
		{what: "no driver, wanted", device: "cuda", driver: missing, failed: 1, says: []string{"driver     failed  no usable NVIDIA driver: "}},
		{what: "no device", device: "auto", driver: faked(t, drivertest.Options{Init: driver.NoDevice}), says: []string{"driver     none    no NVIDIA GPU is visible", "CUDA_VISIBLE_DEVICES"}},
		{what: "too old", device: "auto", driver: faked(t, drivertest.Options{Version: 11080}), failed: 1, says: []string{"driver     failed  the NVIDIA driver is too old", "11.8", "530"}},
		{what: "one of two", device: "cuda:0", driver: faked(t, two), want: madeFor + sound},
		{what: "no such one", device: "cuda:7", driver: faked(t, two), failed: 1, want: madeFor + "cuda:7        device     failed  there is no cuda:7\n"},
		{what: "all", device: "auto", driver: faked(t, two), failed: 2, says: []string{
			madeFor + sound + "cuda:1        device     ok ", "cuda:1        products   failed  weights of Q4_0, Q8_0 activations: the relative error is ",
			"cuda:1        tokens     failed  Q8_0 activations: the relative error of the logits of token 0 is ", "use another device",
		}},
	} {
		t.Run(test.what, func(t *testing.T) {
			app, out, _ := testApp(t)
			d := &doctor{app: app, driver: test.driver, open: open}
			d.gpus(test.device)
			if d.failed != test.failed || d.err != nil || test.want != "" && out.String() != test.want {
				t.Errorf("%d failures (%v):\n%swant %d:\n%s", d.failed, d.err, out, test.failed, test.want)
			}
			mentions(t, out.String(), test.says...)
		})
	}
	if good.closed != 2 || wrong.closed != 1 {
		t.Errorf("%d and %d devices were closed, want 2 and 1", good.closed, wrong.closed)
	}
}

// A tunedAbacus chooses its beads by measurements.
type tunedAbacus struct {
	*abacus
	tuning   string
	err      error
	programs []*plan.Program
}

func (a *tunedAbacus) Tuning() (string, error) { return a.tuning, a.err }

func (a *tunedAbacus) Tune(_ context.Context, programs []*plan.Program, report func(done, all int, text string)) (string, error) {
	a.programs = programs
	report(1, 2, "short rows")
	report(2, 2, "long rows")
	return "/cache/abacus.json", a.err
}

// TestDoctorTune checks what --tune measures and reports, and that the other checks say what they
// know of measurements.
func TestDoctorTune(t *testing.T) {
	model := modeltest.Llama(t)
	one := drivertest.Options{Devices: []drivertest.Device{{Name: "Good", Memory: 1 << 30}}}
	for _, test := range []struct {
		what   string
		tune   bool
		models []string
		tuning string
		err    error
		device any // the backend; nil for a tunedAbacus
		driver func() (*driver.Driver, error)
		failed int
		says   []string
	}{
		{what: "usual products", tune: true, says: []string{
			"cuda:0        device     ok      Large Abacus", "cuda:0        tune       ok      1 of 2, short rows\n",
			"cuda:0        tune       ok      2 of 2, long rows\ncuda:0        tune       ok      wrote /cache/abacus.json\n",
		}},
		{what: "a model twice", tune: true, models: []string{model, model}, says: []string{"wrote /cache/abacus.json"}},
		{what: "a failure", tune: true, err: errors.New("a bead is loose"), failed: 1, says: []string{"cuda:0        tune       failed  a bead is loose"}},
		{what: "a device without a choice", tune: true, device: &abacus{Backend: cpu.New(1)}, says: []string{"tune       none    the device has no choice of kernels"}},
		{what: "no driver", tune: true, driver: missing, failed: 1, says: []string{"driver     failed  no usable NVIDIA driver"}},
		{what: "checks without a table", says: []string{"cuda:0        table      none    kernels are chosen by estimates; realizar doctor --tune measures them"}},
		{what: "checks with a table", tuning: "52 products", says: []string{"cuda:0        table      ok      52 products"}},
		{what: "checks with a wrong table", err: errors.New("a.json: device is 7"), failed: 1, says: []string{"cuda:0        table      failed  a.json: device is 7"}},
	} {
		t.Run(test.what, func(t *testing.T) {
			app, out, _ := testApp(t)
			tuned := &tunedAbacus{abacus: &abacus{Backend: cpu.New(1)}, tuning: test.tuning, err: test.err}
			d := &doctor{app: app, driver: test.driver, open: func(string) (*backends.Device, error) {
				if a, ok := test.device.(*abacus); ok {
					return &backends.Device{Backend: a}, nil
				}
				return &backends.Device{Backend: tuned}, nil
			}}
			if d.driver == nil {
				d.driver = faked(t, one)
			}
			if test.tune {
				programs, err := app.programs(test.models)
				if err != nil {
					t.Fatal(err)
				}
				d.tune = func(name string, device *backends.Device) { d.tuneProducts(name, device, programs) }
			}
			d.gpus("auto")
			if d.failed != test.failed || d.err != nil {
				t.Errorf("%d failures (%v), want %d", d.failed, d.err, test.failed)
			}
			mentions(t, out.String(), test.says...)
			if compared := strings.Contains(out.String(), "products "); compared == test.tune && test.driver == nil {
				t.Errorf("products are compared: %v\n%s", compared, out)
			}
			if len(tuned.programs) != len(test.models) {
				t.Errorf("%d programs, want %d", len(tuned.programs), len(test.models))
			}
			for _, p := range tuned.programs {
				if len(p.Nodes) == 0 || p.Weights()[0].Data != nil {
					t.Errorf("a program of %d nodes", len(p.Nodes))
				}
			}
		})
	}
}

func missing() (*driver.Driver, error) {
	return driver.OpenLibrary(func(string) (uintptr, error) { return 0, errors.New("no such library") })
}

// faked returns a fake driver that exists while t runs.
func faked(t *testing.T, o drivertest.Options) func() (*driver.Driver, error) {
	fake := drivertest.New(t, o)
	return func() (*driver.Driver, error) { return driver.OpenLibrary(fake.Lookup) }
}

// TestDoctorWidth checks that a finding is wrapped to the width of a terminal.
func TestDoctorWidth(t *testing.T) {
	app, out, _ := testApp(t)
	d := &doctor{app: app, width: 60}
	d.report("cuda", "driver", stateNone, "no usable NVIDIA driver: none of its libraries was found")
	const want = "cuda          driver     none    no usable NVIDIA driver:\n" +
		"                                 none of its libraries was\n" +
		"                                 found\n"
	if out.String() != want {
		t.Errorf("the finding is\n%swant\n%s", out, want)
	}
}

// TestDoctorProcessor checks that every instruction set of the processor computes what the
// reference does, on a machine where no temporary file can be written.
func TestDoctorProcessor(t *testing.T) {
	for _, name := range []string{"TMPDIR", "TMP", "TEMP"} {
		t.Setenv(name, filepath.Join(t.TempDir(), "missing"))
	}
	app, out, notes := testApp(t)
	if err := (&doctorCommand{Device: "cpu", JSON: true}).Run(app); err != nil || notes.Len() > 0 {
		t.Fatal(err, notes)
	}
	var devices []string
	for line := range strings.Lines(out.String()) {
		var f finding
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatal(err)
		}
		if f.State != "ok" || f.Text == "" {
			t.Errorf("%s", line)
		}
		devices = append(devices, f.Device+" "+f.Check)
	}
	want := []string{"cpu bandwidth", "cpu memory", "cpu time"}
	for _, tier := range cpu.Tiers() {
		want = append(want, "cpu "+tier+" products", "cpu "+tier+" tokens")
	}
	if got := strings.Join(devices, ", "); got != strings.Join(want, ", ") {
		t.Errorf("checks %s, want %s", got, strings.Join(want, ", "))
	}
}

// TestCompareGreedyAnswers checks that answers may differ only where two tokens are equally likely.
func TestCompareGreedyAnswers(t *testing.T) {
	reference := greedyAnswer{tokens: []int32{1, 0}, logits: [][]float32{{0, 4, 3.99, 1}, {5, 0, 1, 2}}}
	answer := func(token int32, logits ...float32) greedyAnswer {
		return greedyAnswer{tokens: []int32{token, 0}, logits: [][]float32{logits, {5, 0, 1, 2}}}
	}
	for _, test := range []struct {
		what   string
		answer greedyAnswer
		want   string // empty: an error
	}{
		{"the same", reference, "2 tokens of 2"},
		{"rounded", answer(1, 0, 4.01, 4, 1), "2 tokens of 2"},
		{"as likely", answer(2, 0, 3.99, 4, 1), "0 tokens of 2 and then one as likely"},
		{"less likely", answer(3, 0, 4, 3.99, 1), ""},
		{"none", answer(-1, 0, 4, 3.99, 1), ""},
		{"off", answer(1, 1, 4, 3.99, 1), ""},
	} {
		got, err := reference.compare(test.answer, 0.01)
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%s: %q, %v", test.what, got, err)
		}
	}
}
