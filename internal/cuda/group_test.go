package cuda

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
	"github.com/realizar/realizar/internal/cuda/kernels/emulate"
	"github.com/realizar/realizar/internal/mesh"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// openGroup opens a driver with several devices and all of them together.
func openGroup(t *testing.T, options drivertest.Options, o Options) *Group {
	t.Helper()
	o.Driver = drivertest.New(t, options).Driver()
	var numbers []int
	for i := range options.Devices {
		numbers = append(numbers, i)
	}
	g, err := OpenGroup(o, numbers)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// Several devices compute the bits of one. If REALIZAR_EMULATED names a folder for compiled kernels,
// models with all operations are tried.
func TestGroupBits(t *testing.T) {
	if raceDetector {
		t.Skip("kernels run in other processes")
	}
	lengths := [2]int{40, 5}
	g := emulate.Open(t)
	one, _ := openFake(t, g.Options(1), Options{PTX: g.PTX})
	programs := map[string]*plan.Program{"decoder": decoder(t, tensor.Q8_0)}
	bases := []plan.Limits{{Cache: tensor.F16, Activations: tensor.F16}}
	if os.Getenv("REALIZAR_EMULATED") != "" {
		for name, model := range plantest.Models {
			programs[name] = model(t, nil)
		}
		bases = append(bases, plan.Limits{Cache: tensor.F32, Activations: tensor.F32})
	}
	for name, p := range programs {
		for _, base := range bases {
			want := plantest.LogitsOfTwo(t, one, p, base, lengths)
			for _, devices := range []int{2, 4} {
				t.Run(fmt.Sprintf("%s, %v cache, %d devices", name, base.Cache, devices), func(t *testing.T) {
					group := openGroup(t, g.Options(devices), Options{PTX: g.PTX})
					group.patience = time.Hour // kernels are compiled meanwhile
					plantest.SameAsOne(t, plantest.LogitsOfTwo(t, mesh.New(group, devices), p, base, lengths), want)
				})
			}
		}
	}
}

// Devices that do not reach each other's memory, or that appear twice, are refused by name.
func TestGroupRefuses(t *testing.T) {
	devices := []drivertest.Device{{Name: "left", Memory: 1 << 30}, {Name: "right", Memory: 1 << 29}}
	g := openGroup(t, drivertest.Options{Devices: devices, Apart: true}, Options{})
	if m := g.Memory(); m.Total != 2<<29 {
		t.Errorf("%d bytes; want twice the smaller device", m.Total)
	}
	p := plantest.Model(t, nil)
	limits := plantest.LimitsFor(p, 8, 1, 32, testPageTokens, plan.Limits{Cache: tensor.F16, Activations: tensor.F16})
	_, err := mesh.New(g, 2).Compile(t.Context(), p, limits, nil)
	if !errors.Is(err, driver.ErrNoPeer) || !strings.Contains(err.Error(), "device 0, left, does not reach device 1, right") {
		t.Errorf("without a link: %v", err)
	}
	for numbers, says := range map[string]string{"[0 0]": "device 0 appears twice", "[0 5]": "device 5 of 2", "[]": "0 devices"} {
		var list []int
		for _, word := range strings.Fields(strings.Trim(numbers, "[]")) {
			list = append(list, int(word[0]-'0'))
		}
		_, err := OpenGroup(Options{Driver: drivertest.New(t, drivertest.Options{Devices: devices}).Driver()}, list)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("devices %s: %v, want %q", numbers, err, says)
		}
	}
}

// A device that does not answer ends the steps with an error, and the executable closes.
func TestGroupLosesOne(t *testing.T) {
	if raceDetector {
		t.Skip("kernels run in other processes")
	}
	e := emulate.Open(t)
	g := openGroup(t, e.Options(2), Options{PTX: e.PTX})
	g.patience = 50 * time.Millisecond
	p := decoder(t, tensor.Q8_0)
	limits := plantest.LimitsFor(p, 8, 1, testContext, testPageTokens, plan.Limits{Cache: tensor.F16, Activations: tensor.F16})
	var parts []plan.Executable
	all, err := mesh.Partition(p, 2)
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range g.Connect(2) {
		exe, err := b.Compile(context.Background(), all[i].Program, limits, nil)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, exe)
	}
	s, err := parts[0].Submit(batchOf(all[0].Program, 1, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Wait(t.Context()); !errors.Is(err, plan.ErrPeer) || !strings.Contains(err.Error(), "part 1 of 2 has not answered for 50ms") {
		t.Errorf("the step of a part alone: %v", err)
	}
	var closed sync.WaitGroup
	for _, part := range parts {
		closed.Go(func() {
			if err := part.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	closed.Wait()
}
