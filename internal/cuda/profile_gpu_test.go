//go:build gpu

package cuda

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/lower"
	"github.com/realizar/realizar/internal/mesh"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// profileRuns is the number of runs of each kind of step; the median counts.
const profileRuns = 15

// TestProfile logs, for the models that MODELS names, the time of each kernel in a decode step and
// in a prefill, and the share of the memory bandwidth that it uses. It compares the sums with
// unobserved steps. ACTIVATIONS=f8 has activations in E4M3. TUNED names a folder with a table of
// kernels; see TestGPUTable. PARTS=2 profiles the first of two parts of a model, with the other one on
// GPU 1, or with ALONE=1 without: its exchanges wait for nobody.
func TestProfile(t *testing.T) {
	eachModel(t, func(t *testing.T, p *plan.Program) {
		tables := os.Getenv("TUNED")
		b, eager, serial := openGPU(t, Options{Tables: tables}), openGPU(t, Options{Eager: true, Tables: tables}), openGPU(t, Options{Eager: true, Tables: tables})
		serial.Version = device.Programmatic - 1 // as between timers: no kernel begins before the previous one has ended
		bandwidth, err := b.Bandwidth(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("  memory %.0f GB/s\n", bandwidth/1e9)
		for _, size := range profileSizes(t) {
			what := fmt.Sprintf("%d x %d tokens and %d x 1, %d chosen", size.seqs, size.tokens, size.decoding, size.seqs*size.rows+size.decoding)
			graphs, apart := profiled(t, b, p, size)
			plain, _ := profiled(t, eager, p, size)
			one, _ := profiled(t, serial, p, size)
			profileTable(what, apart, bandwidth)
			sum, whole := apart.result.Times.Total, one.result.Times.Total
			fmt.Printf("  spans add up to %v (a timer costs %v), %.1f%% of an eager step without timers, %v; with launches that begin early %v, as graphs %v, of which embed %v, choose %v\n",
				sum, b.timer, 100*float64(sum)/float64(whole), whole, plain.result.Times.Total, graphs.result.Times.Total, graphs.result.Times.Embed, graphs.result.Times.Choose)
		}
	})
}

// A profileSize is the number of sequences in a step, the number of tokens of each, of how many of
// these the step chooses the next one, and the number of other sequences, with one token each.
type profileSize struct{ seqs, tokens, rows, decoding int }

// profileSizes returns the sizes that SIZES names, for example 16x1,1x256, or a few defaults. 1x6x6 is
// a step that verifies 5 drafted tokens, 2x300+100 one that reads two prompts beside 100 sequences.
func profileSizes(t *testing.T) (all []profileSize) {
	t.Helper()
	names := cmp.Or(os.Getenv("SIZES"), "1x1,16x1,1x256")
	for _, name := range strings.Split(names, ",") {
		s := profileSize{rows: 1}
		numbers := []*int{&s.seqs, &s.tokens, &s.rows}
		main, others, mixed := strings.Cut(name, "+")
		parts := strings.Split(main, "x")
		good := len(parts) == 2 || len(parts) == 3
		for i := range parts[:min(len(parts), len(numbers))] {
			n, err := strconv.Atoi(parts[i])
			*numbers[i], good = n, good && err == nil
		}
		if mixed {
			n, err := strconv.Atoi(others)
			s.decoding, good = n, good && err == nil
		}
		if !good || s.seqs < 1 || s.decoding < 0 || s.seqs+s.decoding > 256 || s.tokens < 1 || s.rows < 1 || s.rows > s.tokens {
			t.Fatalf("SIZES=%s: %q is not sequences x tokens, as in 16x1, or that x at most as many rows, as in 1x6x6, or these and other sequences, as in 2x300+100, together 1 to 256", names, name)
		}
		all = append(all, s)
	}
	return all
}

// A profiledStep is a step's result and the time from its submission to its end.
type profiledStep struct {
	result plan.Result
	wall   time.Duration
}

// profiled runs steps of the given size, timed as a whole and by launch. It returns the step with
// the median time of each kind.
func profiled(t *testing.T, b *Backend, p *plan.Program, size profileSize) (whole, apart profiledStep) {
	t.Helper()
	seqs := size.seqs + size.decoding
	length := 512 + (size.tokens+31)/32*32 // whole pages
	lim := plan.Limits{Tokens: max(256, size.seqs*size.tokens+size.decoding), Seqs: seqs, Rows: size.seqs*size.rows + size.decoding, PageTokens: 32, Cache: tensor.F16, Activations: tensor.F16}
	if os.Getenv("ACTIVATIONS") == "f8" {
		lim.Activations = tensor.F8_E4M3
	}
	held := make([][]int32, len(p.Groups)) // the slot with the state of each sequence, or -1
	for i, g := range p.Groups {
		n := seqs * length / lim.PageTokens
		if g.Kind == plan.PerSequence {
			n, held[i] = 2*seqs, slices.Repeat([]int32{-1}, seqs)
		}
		lim.Pages = append(lim.Pages, n)
	}
	e := compiledPart(t, b, p, lim)
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	// step runs a step of sequences at this position: n tokens of each, or decoded of the others.
	step := func(position, n, decoded int, spans bool) profiledStep {
		x := &plan.Batch{Start: []int32{0}, Timed: true, Spans: spans, Tables: make([]plan.PageTable, len(p.Groups))}
		for g := range x.Tables {
			x.Tables[g].Start = []int32{0}
		}
		for s := range seqs {
			n := n
			if s >= size.seqs {
				n = decoded
			}
			for i := range n {
				x.Tokens, x.Positions = append(x.Tokens, int32((position+i)*31+s*7)%int32(p.Vocab)), append(x.Positions, int32(position+i))
			}
			x.Start, x.Lengths = append(x.Start, int32(len(x.Tokens))), append(x.Lengths, int32(length))
			for i := range min(size.rows, n) {
				x.Rows = append(x.Rows, plan.Row{Token: int32(len(x.Tokens) - min(size.rows, n) + i), Want: plan.WantToken})
			}
			for g := range x.Tables {
				table := &x.Tables[g]
				if group := p.Groups[g]; group.Kind == plan.PerSequence {
					in, out := held[g][s], int32(-1)
					if group.Taken(position+n) != group.Taken(position) {
						if out = int32(2 * s); in == out {
							out++
						}
					}
					table.AddSlots(in, out)
					if out >= 0 && position < 256 { // the others repeat one step
						held[g][s] = out
					}
					continue
				}
				for i := range length / lim.PageTokens {
					table.Pages = append(table.Pages, int32(s*length/lim.PageTokens+i))
				}
				table.Start, table.First = append(table.Start, int32(len(table.Pages))), append(table.First, 0)
			}
		}
		begun := time.Now()
		s, r := done(t, e, x)
		defer s.Release()
		got := profiledStep{result: *r, wall: time.Since(begun)}
		got.result.Spans = slices.DeleteFunc(slices.Clone(r.Spans), func(s plan.Span) bool { return s.Device > 0 }) // parts do the same work
		return got
	}
	for at := 0; at < 256; at += 256 / seqs { // the context that steps attend to
		step(at, 256/seqs, 256/seqs, false)
	}
	median := func(spans bool) profiledStep {
		var all []profiledStep
		for range profileRuns {
			all = append(all, step(256, size.tokens, 1, spans))
		}
		slices.SortFunc(all, func(a, b profiledStep) int { return cmp.Compare(a.result.Times.Total, b.result.Times.Total) })
		return all[len(all)/2]
	}
	return median(false), median(true)
}

// profileTable prints a step by kernel and bytes moved, the slowest first.
func profileTable(what string, s profiledStep, bandwidth float64) {
	type total struct {
		calls, bytes int
		time         time.Duration
	}
	type shape struct {
		kernel string
		bytes  int
	}
	kernels := map[shape]*total{}
	for _, x := range s.result.Spans {
		of := shape{x.Kernel, x.Bytes}
		k := kernels[of]
		if k == nil {
			k = &total{}
			kernels[of] = k
		}
		k.calls, k.bytes, k.time = k.calls+1, k.bytes+x.Bytes, k.time+x.Time
	}
	names := slices.SortedFunc(maps.Keys(kernels), func(a, b shape) int { return cmp.Compare(kernels[b].time, kernels[a].time) })
	var all total
	row := func(name string, k total) {
		rate := float64(k.bytes) / k.time.Seconds()
		fmt.Printf("  %-44s x%-4d %9.1f us %5.1f%% %7.2f each %9.1f MB %6.0f GB/s %4.0f%%\n", name, k.calls, float64(k.time)/1e3,
			100*float64(k.time)/float64(s.result.Times.Total), float64(k.time)/1e3/float64(k.calls), float64(k.bytes)/1e6, rate/1e9, 100*rate/bandwidth)
	}
	fmt.Printf("  %s\n", what)
	for _, of := range names {
		k := kernels[of]
		row(of.kernel, *k)
		all.calls, all.bytes, all.time = all.calls+k.calls, all.bytes+k.bytes, all.time+k.time
	}
	row("all", all)
}

// compiledPart compiles p, or if PARTS says so, parts of it, see TestProfile.
func compiledPart(t *testing.T, b *Backend, p *plan.Program, lim plan.Limits) plan.Executable {
	t.Helper()
	parts, err := strconv.Atoi(cmp.Or(os.Getenv("PARTS"), "1"))
	if err != nil || parts < 1 {
		t.Fatalf("PARTS=%s", os.Getenv("PARTS"))
	}
	if parts == 1 {
		return compiled(t, b, p, lim)
	}
	if os.Getenv("ALONE") == "" {
		return compiledOnAll(t, b, p, lim, parts)
	}
	g := &Group{Backend: b, all: slices.Repeat([]*Backend{b}, parts), packets: lower.BoxPackets, team: lower.Team}
	all, err := mesh.New(g, parts, mesh.ByTensor).Partition(p, lim)
	if err != nil {
		t.Fatal(err)
	}
	part := g.Connect(parts)[0].(*Backend)
	e := compiled(t, part, all[0].Program, lim)
	l := part.link
	for i := range l.members {
		l.members[i] = e
	}
	if err := l.connect(); err != nil {
		t.Fatal(err)
	}
	part.link = nil // nobody is lost
	lost := make([]byte, unsafe.Sizeof(lower.Mail{}))
	device.Words[lower.Mail](lost)[0].Lost = 1
	err = b.Main.Do(func() error { return b.Main.CopyToDevice(e.scratchAt+driver.DevicePtr(e.room.Mail), lost) })
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// compiledOnAll compiles p for several GPUs with the options of b.
func compiledOnAll(t *testing.T, b *Backend, p *plan.Program, lim plan.Limits, parts int) plan.Executable {
	t.Helper()
	var numbers []int
	for i := range parts {
		numbers = append(numbers, i)
	}
	g, err := OpenGroup(Options{Eager: b.eager, Tables: b.tables}, numbers)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	for _, one := range g.all {
		one.Version = b.Version
	}
	e, err := mesh.New(g, parts, mesh.ByTensor).Compile(t.Context(), p, lim, nil)
	if err != nil {
		t.Fatal(err)
	}
	return e
}
