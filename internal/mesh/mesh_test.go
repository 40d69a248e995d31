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
