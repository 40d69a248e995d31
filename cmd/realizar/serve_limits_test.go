package main

import (
	"math"
	"testing"

	"github.com/realizar/realizar/internal/machine"
)

func TestConnectionLimits(t *testing.T) {
	for _, test := range []struct{ most, each, files, wantAll, wantEach int }{
		{0, 0, 64, 48, 36}, {0, 0, 1024, 960, 720}, {0, 0, math.MaxInt32, mostConnections, mostConnections / 4 * 3}, {0, 0, 1, 1, 1},
		{100, 0, 64, 100, 75}, {0, 5, 64, 48, 5}, {7, 9, 64, 7, 9},
	} {
		if all, each := connectionLimits(test.most, test.each, test.files); all != test.wantAll || each != test.wantEach {
			t.Errorf("of %+v: %d and %d", test, all, each)
		}
	}
}

// TestPlanServe checks that the model, the requests and the heap fit together.
func TestPlanServe(t *testing.T) {
	const mib = 1 << 20
	for _, free := range []int64{200 * mib, 512 * mib, 8 << 30, 1 << 40} {
		for _, model := range []int64{10 * mib, free / 2} {
			p := planServe(machine.Memory{Total: free, Free: free}, model, 0, 0)
			if p.requests < leastRequests || p.requests > mostRequests || p.heap < p.requests+p.requests/4 || model+p.heap > free*4/5+leastRequests {
				t.Errorf("of %d with a model of %d: %+v", free, model, p)
			}
		}
	}
	if p := planServe(machine.Memory{Free: 1 << 30}, 0, 5*mib, 0); p.requests != 5*mib {
		t.Errorf("%+v", p)
	}
	if p := planServe(machine.Memory{}, 1<<30, 0, 1); p.heap != 0 || p.requests != unknownRequests {
		t.Errorf("where nothing is known: %+v", p)
	}
	if p := planServe(machine.Memory{Total: 1 << 40}, 1<<30, 0, 1); p.heap != 0 || p.requests != unknownRequests {
		t.Errorf("where it is not known what is free: %+v", p)
	}
	if p := planServe(machine.Memory{Total: 1 << 30, Limit: "a group"}, 1<<20, 0, 1); p.requests != leastRequests {
		t.Errorf("where nothing is free: %+v", p)
	}
}
