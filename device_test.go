package realizar

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/backends/backendstest"
	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/plan"
)

// An abacus is a device with memory of its own that computes on the CPU.
type abacus struct {
	*cpu.Backend
	free    int64
	compile error // error of Compile
	measure error // error of Bandwidth and Link
	opened  int
	closed  int
	limits  plan.Limits // limits of the last Compile
}

func (a *abacus) Name() string            { return "abacus" }
func (a *abacus) Description() string     { return "Large Abacus" }
func (a *abacus) Memory() plan.MemoryInfo { return plan.MemoryInfo{Free: a.free, Total: a.free} }
func (a *abacus) Weights(p *plan.Program, l plan.Limits) int {
	s := a.Streaming(p, l)
	return s.Device()
}
func (a *abacus) Bandwidth(context.Context) (float64, error) { return 1 << 30, a.measure }
func (a *abacus) Link(context.Context) (float64, error)      { return 1 << 20, a.measure }
func (a *abacus) Streaming(p *plan.Program, l plan.Limits) plan.Streaming {
	return backendstest.Stream(p, l)
}
func (a *abacus) Close() error { a.closed++; return nil }

func (a *abacus) Kernels(p *plan.Program, _ plan.Limits) []string {
	return slices.Repeat([]string{"beads"}, len(p.Nodes))
}

func (a *abacus) Compile(ctx context.Context, p *plan.Program, l plan.Limits, loaded plan.Loaded) (plan.Executable, error) {
	if a.compile != nil {
		return nil, a.compile
	}
	a.limits = l
	return a.Backend.Compile(ctx, p, l, loaded)
}

// present makes a the device of the process, whose opening fails with fails if that is not nil.
func present(t *testing.T, a *abacus, fails error) {
	opens(t, func() (backends.Backend, error) {
		if fails != nil {
			return nil, fails
		}
		a.opened++
		return a, nil
	})
}

// opens makes the device that open returns the device of the process.
func opens(t *testing.T, open func() (backends.Backend, error)) {
	all := backends.All
	t.Cleanup(func() { backends.All = all })
	backends.All = backends.List{{Name: "abacus", Parallel: 64, Open: func(backends.Options) (backends.Backend, error) { return open() }}, backends.Processor}
}

const roomy8G = 8 << 30

func TestDevice(t *testing.T) {
	path := modeltest.Llama(t)
	loose, missing := errors.New("a bead is loose"), errors.New("no beads")
	for _, test := range []struct {
		what    string
		abacus  abacus
		fails   error
		options Options
		device  string // "": Open returns an error
		problem error  // DeviceProblem, or the error of Open
		says    []string
	}{
		{what: "automatic", abacus: abacus{free: roomy8G}, device: "abacus"},
		{what: "by name", abacus: abacus{free: roomy8G}, options: Options{Device: "abacus:0"}, device: "abacus"},
		{what: "the processor", abacus: abacus{free: roomy8G}, options: Options{Device: "cpu"}, device: "cpu"},
		{what: "its kernels", abacus: abacus{free: roomy8G}, options: Options{Kernels: "generic"}, device: "cpu"},
		{what: "none", fails: backends.Absent(missing), device: "cpu"},
		{what: "broken", fails: loose, device: "cpu", problem: loose},
		{what: "too small", abacus: abacus{free: 1}, device: "cpu", problem: ErrMemory, says: []string{"Large Abacus", "the weights take ", "on Large Abacus"}},
		{what: "lacks a kernel", abacus: abacus{free: roomy8G, compile: loose}, device: "cpu", problem: loose, says: []string{"Large Abacus: "}},
		{what: "none, though there is a limit of its memory", fails: backends.Absent(missing), options: Options{DeviceMemory: MemoryLimit{Fraction: 0.5}}, device: "cpu", problem: missing},
		{what: "none, though weights are to stream", fails: backends.Absent(missing), options: Options{StreamWeights: StreamAlways}, device: "cpu", problem: missing},
		{what: "the processor, with a limit of a device", abacus: abacus{free: roomy8G}, options: Options{Device: "cpu", DeviceMemory: MemoryLimit{Bytes: 1 << 30}},
			problem: ErrOptions, says: []string{"--memory", "on the CPU"}},
		{what: "the processor's kernels, with weights that stream", abacus: abacus{free: roomy8G}, options: Options{Kernels: "generic", StreamWeights: StreamAlways},
			problem: ErrOptions, says: []string{"on the CPU"}},
		{what: "the processor, with a split among GPUs", options: Options{Device: "cpu", Split: SplitLayers}, problem: ErrOptions, says: []string{"--split", "on the CPU"}},
		{what: "a split that does not exist", options: Options{Split: 3}, problem: ErrOptions, says: []string{"Split(3)", "SplitLayers"}},
		{what: "none, by name", fails: backends.Absent(missing), options: Options{Device: "abacus"}, problem: ErrDevice, says: []string{"no beads"}},
		{what: "too small, by name", abacus: abacus{free: 1}, options: Options{Device: "abacus"}, problem: ErrMemory, says: []string{"the weights take ", "on Large Abacus", "on the CPU"}},
		{what: "lacks a kernel, by name", abacus: abacus{free: roomy8G, compile: loose}, options: Options{Device: "abacus"}, problem: loose},
		{what: "FP8 activations on the processor", options: Options{Device: "cpu", Activations: ActivationsF8}, problem: ErrOptions, says: []string{"--activations f8"}},
		{what: "another one", options: Options{Device: "slide rule"}, problem: ErrOptions, says: []string{`"slide rule"`, "auto, cpu or abacus"}},
	} {
		t.Run(test.what, func(t *testing.T) {
			a := test.abacus
			a.Backend = cpu.New(1)
			present(t, &a, test.fails)
			m, err := Open(t.Context(), path, test.options)
			problem := err
			if err == nil {
				problem = m.DeviceProblem()
				if m.Device() != test.device || (m.DeviceName() == "Large Abacus") != (test.device == "abacus") {
					t.Errorf("on %s (%q), want %s", m.Device(), m.DeviceName(), test.device)
				}
				if d := m.Metrics().Device; (d == DeviceMemory{"Large Abacus", roomy8G, roomy8G}) != (test.device == "abacus") || (d.Name == "cpu") != (test.device == "cpu") {
					t.Errorf("the memory of %s is %+v", test.device, d)
				}
				if got := m.Device() == "abacus"; got == (a.closed == a.opened) {
					t.Errorf("of %d devices %d are closed", a.opened, a.closed)
				}
				for e, err := range m.Generate(t.Context(), &Request{Prompt: "hello", Generation: Generation{MaxTokens: new(3), IgnoreEnd: true}}) {
					if err != nil || e.Finish != nil && e.Finish.Usage.CompletionTokens != 3 {
						t.Errorf("%+v, %v", e, err)
					}
				}
				if err := m.Close(); err != nil {
					t.Error(err)
				}
			}
			if (err == nil) != (test.device != "") || !errors.Is(problem, test.problem) || (problem == nil) != (test.problem == nil) {
				t.Errorf("error %v, problem %v", err, problem)
			}
			for _, part := range test.says {
				if !strings.Contains(problem.Error(), part) {
					t.Errorf("%q does not say %q", problem, part)
				}
			}
			if a.opened != a.closed || a.opened > 1 {
				t.Errorf("%d devices were opened, %d closed", a.opened, a.closed)
			}

			d, err := Describe(path)
			if err != nil {
				t.Fatal(err)
			}
			a.opened, a.closed = 0, 0
			memory, err := d.Memory(test.options)
			kernels, kernelsErr := d.Kernels(test.options)
			switch {
			case a.compile != nil: // nothing is compiled
			case test.device == "":
				if !errors.Is(err, test.problem) || !errors.Is(kernelsErr, test.problem) {
					t.Errorf("error %v of the memory, %v of the kernels", err, kernelsErr)
				}
			case err != nil || kernelsErr != nil:
				t.Error(err, kernelsErr)
			case memory.Device != test.device || (memory.DeviceProblem == "") != (test.problem == nil) || (memory.DeviceName != "") != (test.device == "abacus"):
				t.Errorf("%+v", memory)
			case test.device == "abacus" && (memory.Resident != int64(a.Weights(d.program.Program, plan.Limits{})) || memory.Free != roomy8G || len(kernels) != len(d.program.Nodes)):
				t.Errorf("%+v, %d kernels", memory, len(kernels))
			}
			if a.opened != a.closed {
				t.Errorf("%d devices were opened for a description, %d closed", a.opened, a.closed)
			}
		})
	}
}

// Cancelling the context while the model loads on a device does not start loading on the CPU.
func TestDeviceLoadEnds(t *testing.T) {
	a := &abacus{Backend: cpu.New(1), free: roomy8G}
	present(t, a, nil)
	why := errors.New("the user thinks better of it")
	ctx, end := context.WithCancelCause(t.Context())
	calls := 0
	_, err := Open(ctx, modeltest.Llama(t), Options{Progress: func(Progress) {
		calls++
		end(why)
	}})
	if !errors.Is(err, why) || calls != 1 || a.closed != 1 {
		t.Errorf("error %v after %d weights, %d devices closed", err, calls, a.closed)
	}
}

// A device's memory is read once a second at most, and callers do not wait for a reading
// in flight.
func TestMemoryMeter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &slowMemory{}
		m := memoryMeter{devices: []memoryReader{b}}
		read := func(want int64) {
			t.Helper()
			if got := m.read(); got.Free != want {
				t.Errorf("%d bytes are free, want %d", got.Free, want)
			}
		}
		go read(1)
		synctest.Wait()
		read(0) // the first reading takes a second
		time.Sleep(time.Second)
		synctest.Wait()
		for range 100 {
			read(1)
		}
		time.Sleep(2 * memoryAge)
		go read(2)
		synctest.Wait()
		read(1)
		time.Sleep(time.Second)
		synctest.Wait()
		read(2)
		if b.readings != 2 {
			t.Errorf("%d readings", b.readings)
		}
	})
}

// slowMemory takes a second to read its memory and returns another number each time.
type slowMemory struct {
	plan.Backend
	readings int64
}

func (s *slowMemory) Memory() plan.MemoryInfo {
	s.readings++
	n := s.readings
	time.Sleep(time.Second)
	return plan.MemoryInfo{Free: n}
}
