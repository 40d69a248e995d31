package cuda

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/internal/sample"
	"github.com/realizar/realizar/tensor"
)

// A program takes as much memory as the planner predicts.
func TestMemoryIsAsPlanned(t *testing.T) {
	b, _ := openFake(t, drivertest.Options{}, Options{})
	for _, p := range []*plan.Program{decoder(t, tensor.Q4_K), plantest.Model(t, nil)} {
		for _, lim := range []plan.Limits{
			limitsFor(p, 8, 2),
			plantest.LimitsFor(p, 300, 7, 100, 5, plan.Limits{Cache: tensor.Q8_0}),
			plantest.LimitsFor(p, 1, 1, 64_000, 4, plan.Limits{Cache: tensor.F32, Activations: tensor.F16}),
		} {
			states, err := lim.StateBytes(p)
			if err != nil {
				t.Fatal(err)
			}
			before := b.Memory()
			x, err := b.Compile(context.Background(), p, lim, nil)
			if err != nil {
				t.Fatal(err)
			}
			weights, scratch := b.Weights(p, lim), b.Scratch(p, lim)
			if got := before.Free - b.Memory().Free; got != int64(weights+states+scratch) {
				t.Errorf("%+v: %d bytes were taken, planned are %d for weights, %d for states and %d beside them", lim, got, weights, states, scratch)
			}
			if err := x.Close(); err != nil {
				t.Error(err)
			}
			if now := b.Memory(); now != before {
				t.Errorf("%+v: %d bytes free after Close, %d before", lim, now.Free, before.Free)
			}
		}
	}
}

func TestClose(t *testing.T) {
	b, f := openFake(t, drivertest.Options{}, Options{})
	p := decoder(t, tensor.F16)
	e := compiled(t, b, p, limitsFor(p, 8, 2))
	closesAfterSteps(t, e, f)
}

// closesAfterSteps checks that Close waits for submitted steps and leaves nothing.
func closesAfterSteps(t *testing.T, e *executable, f *drivertest.Fake) {
	t.Helper()
	release := f.Hold("cuEventSynchronize")
	var steps []plan.Step
	for i := range 3 {
		s, err := e.Submit(batchOf(e.p, 2, i, 1))
		if err != nil {
			t.Fatal(err)
		}
		steps = append(steps, s)
	}
	closed := make(chan error)
	go func() { closed <- e.Close() }()
	for begun := false; !begun; runtime.Gosched() {
		e.mu.Lock()
		begun = e.closed
		e.mu.Unlock()
	}
	select {
	case err := <-closed:
		t.Errorf("Close did not wait for the steps: %v", err)
	default:
	}
	release()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	for i, s := range steps {
		if r, err := s.Wait(context.Background()); err != nil || !slices.Equal(r.Tokens, []int32{0, 0}) {
			t.Errorf("step %d, submitted before Close: %v, %v", i, r, err)
		}
		s.Release()
	}
	if err := e.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
	if _, err := e.Submit(batchOf(e.p, 1, 0, 1)); err == nil {
		t.Error("a step began after Close")
	}
	if left := kept(f); left != "" {
		t.Errorf("left are %s", left)
	}
}

// Wait returns when its context ends and may be called again; the step continues.
func TestWaitEndsWithItsContext(t *testing.T) {
	b, f := openFake(t, drivertest.Options{}, Options{})
	p := decoder(t, tensor.F16)
	e := compiled(t, b, p, limitsFor(p, 8, 2))
	release := f.Hold("cuEventSynchronize")
	defer release()
	s, err := e.Submit(batchOf(p, 1, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	release()
	for range 2 {
		if _, err := s.Wait(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// made returns the number of long-lived driver objects created so far.
func made(f *drivertest.Fake) (n int) {
	for _, call := range []string{"cuMemHostAlloc", "cuMemAlloc", "cuEventCreate", "cuStreamCreate", "cuStreamBeginCapture"} {
		n += f.Calls(call)
	}
	return n
}

// pairs runs two steps at a time, like the engine, n times, and releases them.
func pairs(t *testing.T, e *executable, n int) {
	t.Helper()
	for i := range n {
		var steps [2]plan.Step
		for j := range steps {
			var err error
			if steps[j], err = e.Submit(batchOf(e.p, 2, i%60+j, 1)); err != nil {
				t.Fatal(err)
			}
		}
		for _, s := range steps {
			if _, err := s.Wait(context.Background()); err != nil {
				t.Fatal(err)
			}
			s.Release()
			s.Release() // a second Release is harmless
		}
	}
}

// Released steps are reused: neither pinned memory nor anything else grows with their number,
// whether they were waited for, abandoned or refused.
func TestStepsAreReused(t *testing.T) {
	b, f := openFake(t, drivertest.Options{}, Options{})
	p := decoder(t, tensor.F16)
	e := compiled(t, b, p, limitsFor(p, 8, 2))
	pairs(t, e, 1)
	before := made(f)
	pairs(t, e, 100)
	if n := made(f) - before; n != 0 {
		t.Errorf("200 steps made %d things", n)
	}
	if _, err := e.Submit(&plan.Batch{}); !errors.Is(err, plan.ErrBatch) {
		t.Errorf("a malformed batch: %v", err)
	}
	for range 50 {
		f.Fail("cuGraphLaunch", 1, driver.LaunchOutOfResources)
		if _, err := e.Submit(batchOf(p, 2, 0, 1)); err == nil {
			t.Fatal("the launch did not fail")
		}
	}
	if n := made(f) - before; n != 0 {
		t.Errorf("50 steps that failed to begin made %d things", n)
	}
	pairs(t, e, 1)
}

// Each step size is captured once, and sampling once for each number of rows.
func TestCaptures(t *testing.T) {
	b, f := openFake(t, drivertest.Options{}, Options{})
	p := decoder(t, tensor.F16)
	e := compiled(t, b, p, limitsFor(p, 16, 4))
	for _, test := range []struct {
		name                 string
		seqs, position, n, k int // k steps
		captures             int
	}{
		{"one token", 1, 0, 1, 20, 2},
		{"the next positions", 1, 20, 1, 20, 0},
		{"two sequences", 2, 0, 1, 20, 2},
		{"three", 3, 0, 1, 20, 2},
		{"four", 4, 0, 1, 20, 0},
		{"a prompt of five", 1, 0, 5, 2, 1},
		{"of eight", 1, 5, 8, 2, 0},
		{"of nine", 1, 5, 9, 2, 1},
		{"again", 1, 30, 1, 20, 0},
	} {
		before := f.Calls("cuStreamBeginCapture")
		for i := range test.k {
			if err := run(e, batchOf(p, test.seqs, test.position+i%8, test.n)); err != nil {
				t.Fatal(err)
			}
		}
		if n := f.Calls("cuStreamBeginCapture") - before; n != test.captures {
			t.Errorf("%s: %d captures, want %d", test.name, n, test.captures)
		}
	}
	// Without rows there is nothing to sample.
	rowless := batchOf(p, 2, 0, 7)
	rowless.Rows = nil
	before := f.Calls("cuGraphLaunch")
	if err := run(e, rowless); err != nil {
		t.Error(err)
	}
	if n := f.Calls("cuGraphLaunch") - before; n != 1 {
		t.Errorf("a step without rows launches %d graphs", n)
	}
}

// The device has room for page tables in which every sequence lists all pages, and no graph is
// captured again for them. A batch with more pages than exist is malformed.
func TestPageTables(t *testing.T) {
	b, f := openFake(t, drivertest.Options{}, Options{})
	p := decoder(t, tensor.F16)
	lim := plantest.LimitsFor(p, 8, 2, 100_000, testPageTokens, plan.Limits{Cache: tensor.F16, Activations: tensor.F16})
	e := compiled(t, b, p, lim)
	long := func(pages int) *plan.Batch {
		x := batchOf(p, 2, 0, 1)
		for g := range x.Tables {
			x.Tables[g].Pages = make([]int32, 2*pages)
			x.Tables[g].Start[1], x.Tables[g].Start[2] = int32(pages), int32(2*pages)
		}
		return x
	}
	free, most := b.Memory().Free, lim.Pages[0]
	for _, test := range []struct {
		name     string
		pages    int
		captures int
	}{
		{"few", 8, 2},
		{"many", most / 2, 0},
		{"all", most, 0},
		{"few again", 8, 0},
	} {
		before := f.Calls("cuStreamBeginCapture")
		for range 3 {
			if err := run(e, long(test.pages)); err != nil {
				t.Fatalf("%s: %v", test.name, err)
			}
		}
		if n := f.Calls("cuStreamBeginCapture") - before; n != test.captures {
			t.Errorf("%s: %d captures, want %d", test.name, n, test.captures)
		}
	}
	if now := b.Memory().Free; now != free {
		t.Errorf("%d bytes of the device's memory were taken", free-now)
	}
	if err := run(e, long(most+1)); !errors.Is(err, plan.ErrBatch) {
		t.Errorf("%d pages of %d: %v", most+1, most, err)
	}
}

// A decode step allocates nothing. The fake's own functions allocate, so the test makes them do
// nothing.
func TestAllocations(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	b, _ := openFake(t, drivertest.Options{Hollow: []string{
		"cuGraphLaunch", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuEventRecord", "cuEventSynchronize", "cuStreamWaitEvent",
	}}, Options{})
	for _, streamed := range []bool{false, true} {
		p := deep(t)
		lim := limitsFor(p, 8, 2)
		if streamed {
			lim.Weights, lim.Pinned = 1, 1<<30
		}
		if n, err := stepAllocations(t, compiled(t, b, p, lim)); n != 0 || err != nil {
			t.Errorf("layers stream: %v: %v allocations, %v", streamed, n, err)
		}
	}
}

// stepAllocations returns the number of allocations of a decode step.
func stepAllocations(t *testing.T, e *executable) (float64, error) {
	t.Helper()
	p := e.p
	x := batchOf(p, 2, 3, 1)
	x.Rows[1].Adjustments = []sample.Adjustment{{Token: 3, Bias: 1}, {Token: 4, Count: 2}}
	mask := make([]uint32, p.MaskWords())
	do := func() (plan.Step, error) {
		x.Rows[0].Mask = 1 + x.Rows[0].Mask%2
		if err := e.SetMask(x.Rows[0].Mask, mask); err != nil {
			return nil, err
		}
		s, err := e.Submit(x)
		if err == nil {
			_, err = s.Wait(context.Background())
		}
		return s, err
	}
	s, err := do()
	if err != nil {
		t.Fatal(err)
	}
	// The hollow copies leave out unchanged: fill in the flags of a good step.
	flags := device.Words[int32](s.(*step).out)
	for i := range (e.room.FlagsEnd - e.room.Failed) / 4 {
		flags[i] = none
	}
	s.Release()
	var failed error
	n := testing.AllocsPerRun(300, func() {
		s, err := do()
		if err != nil {
			failed = err
		}
		s.Release()
	})
	return n, failed
}

// Unsupported formats of activations are refused.
func TestActivations(t *testing.T) {
	b, _ := openFake(t, drivertest.Options{}, Options{Base: true})
	p := decoder(t, tensor.Q4_K)
	lim := limitsFor(p, 8, 2)
	for d, want := range map[tensor.DType]string{tensor.Q8_0: "no Q8_0 activations; use one of [F32 F16]", tensor.F8_E4M3: "need a GPU of compute capability 9.0"} {
		lim.Activations = d
		if _, err := b.Compile(t.Context(), p, lim, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v activations: %v", d, err)
		}
	}
}
