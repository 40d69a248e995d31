package mesh_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/longtest"
	"github.com/realizar/realizar/internal/mesh"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// Several processors satisfy what one does. Spans are those of all parts at the same time, and no part
// has all values to observe.
func TestSuite(t *testing.T) {
	all := longtest.Cases([]int{2, 4}, []int{2})
	longtest.Short(t) // package cpu runs the long form
	for _, parts := range all {
		t.Run(fmt.Sprint(parts), func(t *testing.T) {
			plantest.Except(t, mesh.New(cpu.New(1), parts, mesh.ByTensor), "Spans", "Observed")
		})
	}
}

// One processor after the other satisfies what one does, for programs that have no inputs already.
func TestSuiteByLayer(t *testing.T) {
	longtest.Short(t) // package cpu runs the long form
	plantest.Except(t, mesh.New(cpu.New(1), 2, mesh.ByLayer), "Observed", "Input", "InputMalformed")
}

// A step has the spans of all parts, with their devices: by tensor at the same time, and by layer one
// after the other.
func TestSpans(t *testing.T) {
	p := plantest.Model(t, nil)
	for _, split := range []mesh.Split{mesh.ByTensor, mesh.ByLayer} {
		e, err := mesh.New(cpu.New(1), 2, split).Compile(t.Context(), p, plantest.LimitsFor(p, 8, 2, 64, 16, plan.Limits{Cache: tensor.F16}), nil)
		if err != nil {
			t.Fatal(err)
		}
		for position := range int32(3) {
			b := decoding(p, position, nil)
			b.Spans = true
			s := submit(t, e, b)
			r, err := s.Wait(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			n := len(r.Spans)
			if r, err = s.Wait(t.Context()); err != nil || len(r.Spans) != n { // it may be called again
				t.Fatalf("split %v: %d spans, then %d: %v", split, n, len(r.Spans), err)
			}
			var first, end [2]time.Duration
			device := 0
			for i, span := range r.Spans {
				if span.Device < device || span.Device > 1 || span.Device == device && span.Begin < end[device] {
					t.Errorf("split %v, span %d is of device %d from %v on, the one before is of device %d and ends at %v", split, i, span.Device, span.Begin, device, end[device])
				}
				if device = span.Device; end[device] == 0 {
					first[device] = span.Begin
				}
				end[device] = span.Begin + span.Time
			}
			if device != 1 || end[0] == 0 || (split == mesh.ByLayer) != (first[1] >= end[0]) {
				t.Errorf("split %v: spans of device 0 end at %v, those of the other begin at %v", split, end[0], first[1])
			}
			s.Release()
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Devices with unlike memories are as many of one processor.
type unlike struct {
	*cpu.Backend
	memories []plan.MemoryInfo
}

func (u unlike) Memories() []plan.MemoryInfo { return u.memories }

// By layer, a device has layers in proportion to its memory; by tensor all have as much as the one with
// the least. A program that fits the memory of all together fits each device.
func TestUnlikeMemories(t *testing.T) {
	p := plantest.SumsModelOf(t, 1024)
	l := plantest.LimitsFor(p, 32, 4, 512, 16, plan.Limits{Cache: tensor.F16, Activations: cpu.Rounds})
	for _, c := range []struct {
		split    mesh.Split
		memories []plan.MemoryInfo
		memory   plan.MemoryInfo
	}{
		{mesh.ByTensor, []plan.MemoryInfo{{Free: 90, Total: 100}, {Free: 200, Total: 300}}, plan.MemoryInfo{Free: 180, Total: 200}},
		{mesh.ByLayer, []plan.MemoryInfo{{Free: 90, Total: 100}, {Free: 300, Total: 300}}, plan.MemoryInfo{Free: 360, Total: 400}},
		{mesh.ByLayer, []plan.MemoryInfo{{Free: 300, Total: 300}, {Free: 20, Total: 100}}, plan.MemoryInfo{Free: 80, Total: 400}},
		{mesh.ByLayer, []plan.MemoryInfo{{Free: 50}, {Free: 20, Total: 100}}, plan.MemoryInfo{Free: 40}},
	} {
		b := mesh.New(unlike{cpu.New(1), c.memories}, 2, c.split)
		if got := b.Memory(); got != c.memory {
			t.Errorf("split %v of %+v: memory %+v, want %+v", c.split, c.memories, got, c.memory)
		}
		states, err := l.StateBytes(p)
		if err != nil {
			t.Fatal(err)
		}
		parts, err := b.Partition(p, l)
		if err != nil {
			t.Fatal(err)
		}
		all := float64(b.Weights(p, l) + states + b.Scratch(p, l))
		for i, share := range b.Shares() {
			q, own := parts[i].Program, parts[i].Limits(l)
			states, err := own.StateBytes(q)
			if err != nil {
				t.Fatal(err)
			}
			if takes := cpu.New(1).Weights(q, own) + states + cpu.New(1).Scratch(q, own); float64(takes) > all*share+1 {
				t.Errorf("split %v of %+v: part %d takes %d bytes, more than its %v of %v", c.split, c.memories, i, takes, share, all)
			}
		}
		if c.split == mesh.ByLayer && c.memories[0].Total > 0 {
			if large := c.memories[0].Total > 100; (parts[0].Weights() > 2*parts[1].Weights()) != large || (parts[1].Weights() > 2*parts[0].Weights()) == large {
				t.Errorf("of %+v the parts have %d and %d bytes of weights", c.memories, parts[0].Weights(), parts[1].Weights())
			}
		}
	}
}
