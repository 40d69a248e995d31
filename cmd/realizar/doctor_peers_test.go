package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/cuda"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
	"github.com/realizar/realizar/internal/plan"
)

// A wiredAbacus has wires to others. Its number is that of its row of rates.
type wiredAbacus struct {
	*abacus
	number int
	rates  [][]float64 // in GB/s, from each to each; 0: no wire, below 0: a broken one
}

func (a *wiredAbacus) Peer(_ context.Context, peer plan.Backend) (float64, error) {
	switch rate := a.rates[a.number][peer.(*wiredAbacus).number]; {
	case rate < 0:
		return 0, errors.New("a wire is bent")
	case rate == 0:
		return 0, fmt.Errorf("cuda: %w", driver.ErrNoPeer)
	default:
		return rate * 1e9, nil
	}
}

// TestDoctorPeers checks that each of several GPUs has one line with its links to all others.
func TestDoctorPeers(t *testing.T) {
	eight := make([][]float64, 8)
	var ofEight string
	for i := range eight {
		var parts []string
		for j := range eight {
			eight[i] = append(eight[i], 390+float64(j)/10)
			if j != i {
				parts = append(parts, fmt.Sprintf("cuda:%d at 390.%d GB/s", j, j))
			}
		}
		ofEight += fmt.Sprintf("cuda:%d        peers      ok      writes the memory of %s\n", i, strings.Join(parts, ", "))
	}
	for _, test := range []struct {
		what   string
		rates  [][]float64
		failed int
		want   string
	}{
		{what: "one", rates: [][]float64{{0}}},
		{what: "two", rates: [][]float64{{0, 391.24}, {388.96, 0}}, want: "" +
			"cuda:0        peers      ok      writes the memory of cuda:1 at 391.2 GB/s\n" +
			"cuda:1        peers      ok      writes the memory of cuda:0 at 389.0 GB/s\n"},
		{what: "two apart", rates: [][]float64{{0, 0}, {0, 0}}, want: "" +
			"cuda:0        peers      none    does not reach the memory of cuda:1: a model on cuda:0 and cuda:1 exchanges through host memory, which is slower; nvidia-smi topo -p2p rw shows why\n" +
			"cuda:1        peers      none    does not reach the memory of cuda:0: a model on cuda:1 and cuda:0 exchanges through host memory, which is slower; nvidia-smi topo -p2p rw shows why\n"},
		{what: "a pair, one apart and one with a bent wire", rates: [][]float64{{0, 50, 0, 0}, {49, 0, 0, 48}, {0, 0, 0, 0}, {1, 2, -1, 0}}, failed: 1, want: "" +
			"cuda:0        peers      ok      writes the memory of cuda:1 at 50.0 GB/s; does not reach the memory of cuda:2 or cuda:3: a model on cuda:0 and any of them exchanges through host memory, which is slower; nvidia-smi topo -p2p rw shows why\n" +
			"cuda:1        peers      ok      writes the memory of cuda:0 at 49.0 GB/s, cuda:3 at 48.0 GB/s; does not reach the memory of cuda:2: a model on cuda:1 and cuda:2 exchanges through host memory, which is slower; nvidia-smi topo -p2p rw shows why\n" +
			"cuda:2        peers      none    does not reach the memory of cuda:0 or cuda:1 or cuda:3: a model on cuda:2 and any of them exchanges through host memory, which is slower; nvidia-smi topo -p2p rw shows why\n" +
			"cuda:3        peers      failed  writing the memory of cuda:2: a wire is bent\n"},
		{what: "eight", rates: eight, want: ofEight},
	} {
		t.Run(test.what, func(t *testing.T) {
			app, out, _ := testApp(t)
			d := &doctor{app: app}
			var all []openGPU
			for i := range test.rates {
				all = append(all, openGPU{fmt.Sprintf("cuda:%d", i), &backends.Device{Backend: &wiredAbacus{number: i, rates: test.rates}}})
			}
			d.peers(all)
			if d.failed != test.failed || d.err != nil || out.String() != test.want {
				t.Errorf("%d failures (%v):\n%swant %d:\n%s", d.failed, d.err, out, test.failed, test.want)
			}
		})
	}
}

// TestDoctorMeasuresPeers checks when links are measured: if all GPUs are checked, after their other
// checks, among those that open.
func TestDoctorMeasuresPeers(t *testing.T) {
	three := drivertest.Options{Devices: []drivertest.Device{{Name: "A", Memory: 1 << 30}, {Name: "B", Memory: 1 << 30}, {Name: "C", Memory: 1 << 30}}}
	rates := [][]float64{{0, 1, 2}, {3, 0, 4}, {5, 6, 0}}
	for _, test := range []struct {
		what, device string
		broken       string // does not open
		tune         bool
		want         []string // the checks of links
	}{
		{what: "all, of which one is broken", device: "auto", broken: "cuda:1", want: []string{"cuda:0 writes the memory of cuda:2 at 2.0 GB/s", "cuda:2 writes the memory of cuda:0 at 5.0 GB/s"}},
		{what: "one chosen", device: "cuda:2"},
		{what: "tuned", device: "auto", tune: true},
	} {
		t.Run(test.what, func(t *testing.T) {
			app, out, _ := testApp(t)
			var opened []*abacus
			d := &doctor{app: app, json: true, driver: faked(t, three), open: func(name string) (*backends.Device, error) {
				if name == test.broken {
					return nil, errors.New("it is broken")
				}
				a := &abacus{Backend: cpu.New(1)}
				opened = append(opened, a)
				return &backends.Device{Backend: &wiredAbacus{a, int(name[len(name)-1] - '0'), rates}}, nil
			}}
			if test.tune {
				d.tune = func(string, *backends.Device) {}
			}
			d.gpus(test.device)
			var got []string
			for line := range strings.Lines(out.String()) {
				var f finding
				if err := json.Unmarshal([]byte(line), &f); err != nil {
					t.Fatal(err)
				}
				switch {
				case f.Check == "peers":
					got = append(got, f.Device+" "+f.Text)
				case len(got) > 0:
					t.Errorf("%s %s follows the links", f.Device, f.Check)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(test.want) {
				t.Errorf("got %q\nwant %q", got, test.want)
			}
			for i, a := range opened {
				if a.closed != 1 {
					t.Errorf("device %d of those that opened was closed %d times, want once", i, a.closed)
				}
			}
		})
	}
}

// TestDoctorPeersOfDriver checks the links of GPUs of a fake driver, where a copy takes a
// millisecond.
func TestDoctorPeersOfDriver(t *testing.T) {
	for apart, want := range map[bool]string{
		false: "cuda:0        peers      ok      writes the memory of cuda:1 at 134.2 GB/s\ncuda:1        peers      ok      writes the memory of cuda:0 at 134.2 GB/s\n",
		true: "cuda:0        peers      none    does not reach the memory of cuda:1: a model on cuda:0 and cuda:1 exchanges through host memory, which is slower; nvidia-smi topo -p2p rw shows why\n" +
			"cuda:1        peers      none    does not reach the memory of cuda:0: a model on cuda:1 and cuda:0 exchanges through host memory, which is slower; nvidia-smi topo -p2p rw shows why\n",
	} {
		devices := []drivertest.Device{{Name: "Left", Memory: 256 << 20}, {Name: "Right", Memory: 256 << 20}}
		found := drivertest.New(t, drivertest.Options{Devices: devices, Apart: apart}).Driver()
		app, out, _ := testApp(t)
		d := &doctor{app: app}
		var all []openGPU
		for i := range devices {
			b, err := cuda.Open(cuda.Options{Device: i, Driver: found})
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			all = append(all, openGPU{fmt.Sprintf("cuda:%d", i), &backends.Device{Backend: b}})
		}
		d.peers(all)
		if out.String() != want || d.failed > 0 {
			t.Errorf("%d failures:\n%swant\n%s", d.failed, out, want)
		}
	}
}
