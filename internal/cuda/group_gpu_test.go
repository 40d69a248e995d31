//go:build gpu

package cuda

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/lower"
	"github.com/realizar/realizar/internal/mesh"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// Two parts of a model on one GPU compute the bits of the whole one. Their kernels run at the same
// time, so none may begin before the one before it has ended, and steps are small: those that wait
// would take the place of those for which they wait.
func TestTwoPartsOfOneGPU(t *testing.T) {
	one := openGPU(t, Options{})
	g := &Group{Backend: openGPU(t, Options{}), patience: linkPatience, packets: 1024, team: 1}
	g.Version = device.Programmatic - 1
	g.all = []*Backend{g.Backend, g.Backend}
	for name, model := range plantest.Models {
		t.Run(name, func(t *testing.T) {
			p, lengths := model(t, nil), [2]int{40, 5}
			g := *g
			for _, cache := range []tensor.DType{tensor.F16, tensor.Q8_0} {
				if p.MisfitHead(cache) > 0 {
					continue
				}
				base := plan.Limits{Cache: cache, Activations: tensor.F16}
				want := plantest.LogitsOfTwo(t, one, p, base, lengths)
				for _, g.apart = range []error{nil, driver.ErrNoPeer} {
					for _, tokens := range []int{23, lengths[0]} {
						plantest.SameAsOne(t, plantest.LogitsInSteps(t, mesh.New(&g, 2, mesh.ByTensor), p, base, lengths, tokens), want)
					}
				}
			}
		})
	}
}

// So do two parts by layer, of a prompt that is cut into micro-batches and of one that is not.
func TestTwoPartsOfOneGPUByLayer(t *testing.T) {
	one := openGPU(t, Options{})
	g := &Group{Backend: openGPU(t, Options{})}
	g.all = []*Backend{g.Backend, g.Backend}
	for name, model := range plantest.Models {
		t.Run(name, func(t *testing.T) {
			p := model(t, nil)
			for _, lengths := range [][2]int{{40, 5}, {600, 5}} {
				base := plan.Limits{Cache: tensor.F16, Activations: tensor.F16}
				want := plantest.LogitsInSteps(t, one, p, base, lengths, lengths[0])
				plantest.SameAsOne(t, plantest.LogitsInSteps(t, mesh.New(g, 2, mesh.ByLayer), p, base, lengths, lengths[0]), want)
			}
		})
	}
}

// So they do if a team of blocks adds the sums of a row, of as many columns as one block of the team
// or all of them have, in steps of few rows.
func TestTwoPartsOfOneGPUInTeams(t *testing.T) {
	one := openGPU(t, Options{})
	g := &Group{Backend: openGPU(t, Options{}), patience: linkPatience, team: lower.Team}
	g.Version = device.Programmatic - 1
	g.all = []*Backend{g.Backend, g.Backend}
	for _, hidden := range []int{256, 4608, 9216} {
		p, lengths := plantest.SumsModelOf(t, hidden), [2]int{9, 5}
		base := plan.Limits{Cache: tensor.F16, Activations: tensor.F16}
		want := plantest.LogitsInSteps(t, one, p, base, lengths, 3)
		for _, g.packets = range []int{lower.BoxPackets, hidden} { // for all rows of a step, and for two
			plantest.SameAsOne(t, plantest.LogitsInSteps(t, mesh.New(g, 2, mesh.ByTensor), p, base, lengths, 3), want)
		}
	}
}

// openTwoGPUs opens GPUs 0 and 1 until the test ends. It skips the test if they do not exist.
func openTwoGPUs(t *testing.T) *Group {
	t.Helper()
	g, err := OpenGroup(Options{}, []int{0, 1})
	if err != nil {
		t.Skipf("there are no two GPUs: %v", err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// Two GPUs satisfy what one does, and compute its bits. Spans are those of the first one, and neither
// has all values to observe or runs a step again.
func TestTwoGPUs(t *testing.T) {
	g := openTwoGPUs(t)
	both, apart := mesh.New(g, 2, mesh.ByTensor), *g
	apart.apart = driver.ErrNoPeer
	t.Run("Bits", func(t *testing.T) {
		for name, model := range plantest.Models {
			p := model(t, nil)
			for _, cache := range []tensor.DType{tensor.F16, tensor.Q8_0} {
				if p.MisfitHead(cache) > 0 {
					continue
				}
				t.Run(fmt.Sprintf("%s, %v cache", name, cache), func(t *testing.T) {
					base, lengths := plan.Limits{Cache: cache, Activations: tensor.F16}, [2]int{68, 9}
					want := plantest.LogitsOfTwo(t, g.Backend, p, base, lengths)
					plantest.SameAsOne(t, plantest.LogitsOfTwo(t, both, p, base, lengths), want)
					plantest.SameAsOne(t, plantest.LogitsInSteps(t, both, p, base, lengths, lengths[0]), want)
					plantest.SameAsOne(t, plantest.LogitsInSteps(t, mesh.New(&apart, 2, mesh.ByTensor), p, base, lengths, lengths[0]), want)
					plantest.SameAsOne(t, plantest.LogitsOfTwo(t, mesh.New(g, 2, mesh.ByLayer), p, base, lengths), want)
				})
			}
		}
	})
	t.Run("Suite", func(t *testing.T) {
		plantest.Except(t, both, "Spans", "Observed", "NotFinite", "NotFiniteReused", "NotFiniteExperts")
	})
}

// A kernel that faults on one of two GPUs ends the steps of both if they run a model together, in
// time, and those of its own replica alone if each has one. The process goes on. The faulting GPU
// cannot be used afterwards, so the test runs as a child.
func TestTwoGPUsFault(t *testing.T) {
	if os.Getenv(faultVariable) == "" {
		for _, how := range []string{"parts", "replicas"} {
			c := exec.Command(os.Args[0], "-test.run=^TestTwoGPUsFault$", "-test.v", "-test.timeout=1m")
			c.Env = append(os.Environ(), faultVariable+"="+how)
			out, err := c.CombinedOutput()
			if strings.Contains(string(out), "--- SKIP") {
				t.Skip("there are no two GPUs")
			}
			if err != nil || !strings.Contains(string(out), "--- PASS: TestTwoGPUsFault") {
				t.Errorf("%s: %v\n%s", how, err, out)
			}
		}
		return
	}
	p := plantest.SumsModel(t, nil)
	lim := plantest.LimitsFor(p, 8, 2, testContext, testPageTokens, plan.Limits{Cache: tensor.F16, Activations: tensor.F16})
	together := os.Getenv(faultVariable) == "parts"
	programs, backends := []*plan.Program{p, p}, []plan.Backend{}
	if together {
		g, err := OpenGroup(Options{}, []int{0, 1})
		if err != nil {
			t.Skipf("there are no two GPUs: %v", err)
		}
		g.patience = time.Second
		parts, err := mesh.New(g, 2, mesh.ByTensor).Partition(p, lim)
		if err != nil {
			t.Fatal(err)
		}
		programs, backends = []*plan.Program{parts[0].Program, parts[1].Program}, g.Connect(2)
	} else {
		for device := range 2 { // as replicas have them, which do not reach each other's memory
			b, err := Open(Options{Device: device})
			if err != nil {
				t.Skipf("there are no two GPUs: %v", err)
			}
			backends = append(backends, b)
		}
	}
	var all []*executable
	for i, b := range backends {
		exe, err := b.Compile(t.Context(), programs[i], lim, nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, exe.(*executable))
	}
	defer func() {
		var closed sync.WaitGroup
		for _, e := range all {
			closed.Go(func() {
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		closed.Wait()
	}()
	// step runs a step on both and returns the error of each.
	step := func(position int) [2]error {
		var errs [2]error
		var steps [2]plan.Step
		for i, e := range all {
			steps[i], errs[i] = e.Submit(batchOf(e.p, 2, position, 1))
		}
		for i, s := range steps {
			if s != nil {
				_, errs[i] = s.Wait(t.Context())
			}
		}
		return errs
	}
	if errs := step(0); errs[0] != nil || errs[1] != nil {
		t.Fatal(errs)
	}
	faulty := all[1].b
	err := faulty.Main.Do(func() error {
		m, err := faulty.Main.LoadModule([]byte(faulting))
		if err != nil {
			return err
		}
		f, err := m.Function("fault")
		if err != nil {
			return err
		}
		return f.Launch(all[1].stream, driver.LaunchConfig{Grid: driver.Dim3{X: 1}, Block: driver.Dim3{X: 1}}, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		errs := step(1 + i)
		t.Log(errs)
		if !errors.Is(errs[1], driver.ErrDeviceLost) {
			t.Errorf("step %d of the faulting GPU: %v", i, errs[1])
		}
		if together != (errs[0] != nil) {
			t.Errorf("step %d of the other GPU: %v", i, errs[0])
		}
	}
}

// Two GPUs write each other's memory, or neither does.
func TestTwoGPUsReach(t *testing.T) {
	g := openTwoGPUs(t)
	for i, b := range g.all {
		rate, err := b.Peer(t.Context(), g.all[1-i])
		switch {
		case g.apart != nil && !errors.Is(err, driver.ErrNoPeer):
			t.Errorf("GPU %d of two that are apart: %g bytes a second, %v", i, rate, err)
		case g.apart == nil && (err != nil || rate < 1e9):
			t.Errorf("GPU %d: %g bytes a second, %v", i, rate, err)
		}
		t.Logf("GPU %d writes the memory of the other one at %.1f GB/s", i, rate/1e9)
	}
}
