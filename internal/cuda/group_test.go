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
	"unsafe"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
	"github.com/realizar/realizar/internal/cuda/kernels/emulate"
	"github.com/realizar/realizar/internal/cuda/lower"
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

// groupPrograms returns programs for several devices: a decoder and a model with sums, and if
// REALIZAR_EMULATED is set, models with all operations.
func groupPrograms(t *testing.T) map[string]*plan.Program {
	programs := map[string]*plan.Program{"decoder": decoder(t, tensor.Q8_0), "sums": plantest.SumsModel(t, nil)}
	if os.Getenv("REALIZAR_EMULATED") != "" {
		for name, model := range plantest.Models {
			programs[name] = model(t, nil)
		}
	}
	return programs
}

// Several devices compute the bits of one. If REALIZAR_EMULATED names a folder for compiled kernels,
// models with all operations are tried.
func TestGroupBits(t *testing.T) {
	if raceDetector {
		t.Skip("kernels run in other processes")
	}
	g := emulate.Open(t)
	one, _ := openFake(t, g.Options(1), Options{PTX: g.PTX})
	programs, bases := groupPrograms(t), []plan.Limits{{Cache: tensor.F16, Activations: tensor.F16}}
	if os.Getenv("REALIZAR_EMULATED") != "" {
		bases = append(bases, plan.Limits{Cache: tensor.F32, Activations: tensor.F32})
	}
	for name, p := range programs {
		lengths, steps := [2]int{40, 5}, []int{23}
		if name == "sums" {
			lengths, steps = [2]int{70, 2}, []int{23, 70}
		}
		for _, base := range bases {
			for _, tokens := range steps {
				want := plantest.LogitsInSteps(t, one, p, base, lengths, tokens)
				for _, c := range []struct {
					devices, packets int
					apart            bool
				}{{2, lower.BoxPackets, false}, {4, lower.BoxPackets, false}, {8, lower.BoxPackets, false}, {8, 1024, false}, {2, 1024, false}, {2, 1024, true}} {
					devices := c.devices
					t.Run(fmt.Sprintf("%s, %v cache, steps of %d, %d devices, %d packets, apart %v", name, base.Cache, tokens, devices, c.packets, c.apart), func(t *testing.T) {
						options := g.Options(devices)
						options.Apart = c.apart
						group := openGroup(t, options, Options{PTX: g.PTX})
						group.packets = c.packets
						if (group.Apart() != nil) != c.apart {
							t.Fatalf("devices that are apart: %v, want %v", group.Apart(), c.apart)
						}
						group.patience = time.Hour // kernels are compiled meanwhile
						plantest.SameAsOne(t, plantest.LogitsInSteps(t, mesh.New(group, devices, mesh.ByTensor), p, base, lengths, tokens), want)
					})
				}
			}
		}
	}
}

// Devices of which each has some of the layers compute the bits of one. If REALIZAR_EMULATED is set,
// models with all operations are tried.
func TestGroupByLayer(t *testing.T) {
	if raceDetector {
		t.Skip("kernels run in other processes")
	}
	g := emulate.Open(t)
	one, _ := openFake(t, g.Options(1), Options{PTX: g.PTX})
	base := plan.Limits{Cache: tensor.F16, Activations: tensor.F16}
	for name, p := range groupPrograms(t) {
		want := plantest.LogitsInSteps(t, one, p, base, [2]int{40, 5}, 23)
		for _, devices := range []int{2, 3} {
			t.Run(fmt.Sprintf("%s, %d devices", name, devices), func(t *testing.T) {
				group := openGroup(t, g.Options(devices), Options{PTX: g.PTX})
				plantest.SameAsOne(t, plantest.LogitsInSteps(t, mesh.New(group, devices, mesh.ByLayer), p, base, [2]int{40, 5}, 23), want)
			})
		}
	}
}

// Programs with heads run on several devices, by tensor and by layer. If REALIZAR_EMULATED is set,
// what heads predict is compared, with all forms of attention.
func TestGroupHeads(t *testing.T) {
	if raceDetector {
		t.Skip("kernels run in other processes")
	}
	g := emulate.Open(t)
	for _, split := range []mesh.Split{mesh.ByTensor, mesh.ByLayer} {
		t.Run(fmt.Sprint(split), func(t *testing.T) {
			group := openGroup(t, g.Options(2), Options{PTX: g.PTX})
			group.patience = time.Hour // kernels are compiled meanwhile
			names := []string{"HeadsOfTheFirst"}
			if os.Getenv("REALIZAR_EMULATED") != "" {
				names = append(names, "Heads")
			}
			plantest.Some(t, mesh.New(group, 2, split), names...)
		})
	}
}

// Products whose columns the parts have are sums, with one exchange each; all others are rows, with
// columns to gather.
func TestGroupSums(t *testing.T) {
	g := openGroup(t, drivertest.Options{Devices: []drivertest.Device{{Name: "left", Memory: 1 << 30}, {Name: "right", Memory: 1 << 30}}}, Options{})
	count := func(activations tensor.DType) (sums, gathers int) {
		parts, err := mesh.New(g, 2, mesh.ByTensor).Partition(plantest.SumsModel(t, nil), plan.Limits{Activations: activations})
		if err != nil {
			t.Fatal(err)
		}
		for i := range parts[1].Program.Nodes {
			switch n := &parts[1].Program.Nodes[i]; {
			case n.Summed() != nil:
				sums++
				if of, first := n.Weight.Whole(); 2*n.Weight.Cols() != of.Cols() || 2*first != of.Cols() {
					t.Errorf("%s has columns %d to %d of %d", n.Weight.Name, first, first+n.Weight.Cols(), of.Cols())
				}
			case n.Op == plan.Gather:
				gathers++
			}
		}
		return sums, gathers
	}
	if sums, gathers := count(tensor.F16); sums != 6 || gathers != 1 {
		t.Errorf("%d sums and %d gathers; want those of two products in each of three layers, and of the logits", sums, gathers)
	}
	for _, activations := range []tensor.DType{tensor.F32, tensor.F8_E4M3} {
		if sums, gathers := count(activations); sums != 0 || gathers != 13 {
			t.Errorf("%v activations: %d sums and %d gathers; want none and 13", activations, sums, gathers)
		}
	}
}

// Packets of no rows, for which nobody waits, are no meeting: else a part could be two meetings ahead
// of another one, and send into the box that the other one still reads. Steps of five tokens have the
// graph of eight, and with boxes of five rows a second exchange that has none.
func TestGroupMeets(t *testing.T) {
	if raceDetector {
		t.Skip("kernels run in other processes")
	}
	e := emulate.Open(t)
	options := e.Options(2)
	options.Apart = true
	g := openGroup(t, options, Options{PTX: e.PTX})
	g.patience, g.packets = time.Hour, 5*256/4 // kernels are compiled meanwhile; rows have 256 columns
	p := decoder(t, tensor.Q8_0)
	limits := plantest.LimitsFor(p, 8, 1, testContext, testPageTokens, plan.Limits{Cache: tensor.F16, Activations: tensor.F16})
	all, err := mesh.New(g, 2, mesh.ByTensor).Partition(p, limits)
	if err != nil {
		t.Fatal(err)
	}
	var parts []*executable
	for i, b := range g.Connect(2) {
		exe, err := b.Compile(t.Context(), all[i].Program, limits, nil)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, exe.(*executable))
	}
	together := func(do func(x *executable) error) {
		t.Helper()
		var all sync.WaitGroup
		for _, x := range parts {
			all.Go(func() {
				if err := do(x); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	defer together(func(x *executable) error { return x.Close() })
	want := uint32(0)
	for position, rows := range []bool{false, true, false, false} { // whether the step wants logits
		together(func(x *executable) error {
			b := batchOf(x.p, 1, 5*position, 5)
			if !rows {
				b.Rows = nil
			}
			return run(x, b)
		})
		if want += 4; rows { // gathers of a layer, and of logits
			want++
		}
		for i, x := range parts {
			mail := make([]byte, unsafe.Sizeof(lower.Mail{}))
			if err := x.b.Main.Do(func() error { return x.b.Main.CopyToHost(mail, x.scratchAt+driver.DevicePtr(x.room.Mail)) }); err != nil {
				t.Fatal(err)
			}
			if got := device.Words[lower.Mail](mail)[0].Meetings; got != want {
				t.Errorf("part %d has ended %d meetings after step %d, want %d", i, got, position, want)
			}
		}
	}
}

// Devices that appear twice, or do not exist, are refused by name.
func TestGroupRefuses(t *testing.T) {
	devices := []drivertest.Device{{Name: "left", Memory: 1 << 30}, {Name: "right", Memory: 1 << 29}}
	g := openGroup(t, drivertest.Options{Devices: devices}, Options{})
	if m := mesh.New(g, 2, mesh.ByTensor).Memory(); m.Total != 2<<29 {
		t.Errorf("%d bytes; want twice the smaller device", m.Total)
	}
	if m := mesh.New(g, 2, mesh.ByLayer).Memory(); m.Total < 3<<29-1 || m.Total > 3<<29 {
		t.Errorf("%d bytes by layer; want those of both devices", m.Total)
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
	all, err := mesh.New(g, 2, mesh.ByTensor).Partition(p, limits)
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
