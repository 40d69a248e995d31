//go:build gpu

package cuda

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/lower"
	"github.com/realizar/realizar/internal/cuda/weights"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// placements returns limits for weights: all layers on the device, half of them, a third of all
// memory, none, and none with no or little pinned memory.
func placements(b *Backend, p *plan.Program, lim plan.Limits) (names []string, limits []plan.Limits) {
	add := func(name string, weights, pinned int) {
		l := lim
		l.Weights, l.Pinned = weights, pinned
		names, limits = append(names, name), append(limits, l)
	}
	const plenty = 1 << 40
	add("resident", 0, 0)
	all := b.Weights(p, lim)
	least := lim
	least.Weights, least.Pinned = 1, plenty
	none := b.Streaming(p, least)
	add("half of layers", none.Resident+none.Streamed/2, plenty)
	add("third of memory", all/3, plenty)
	add("no layer", 1, plenty)
	add("staged", 1, 0)
	add("partly staged", 1, none.Streamed/2)
	return names, limits
}

// Wherever its weights are, a sequence has the same bits: alone, in a batch of 8, and after a
// prompt of 300 tokens.
func TestGPUStreamedBits(t *testing.T) {
	eachModel(t, func(t *testing.T, p *plan.Program) {
		b := openGPU(t, Options{})
		var wantAlone, wantBeside [][]float32
		var wantTokens []int32
		names, limits := placements(b, p, readerLimits(p))
		fmt.Printf("  %-16s %10s %8s %8s %8s %8s\n", "", "device MB", "layers", "slots", "load s", "read s")
		for i, name := range names {
			s := b.Streaming(p, limits[i])
			begun := time.Now()
			r := &reader{t, p, compiled(t, b, p, limits[i])}
			load := time.Since(begun)
			begun = time.Now()
			const prompt, last = 300, 6
			x := r.textOf(0, prompt+last)
			alone := r.read(x, prompt, last)
			var others []*text
			for k := range 7 {
				o := r.textOf(k+1, gpuContext)
				r.feed(portion{o, 1 + 41*k, 0})
				others = append(others, o)
			}
			beside := r.read(x, prompt, last, others...)
			tokens := r.greedy(r.textOf(0, 40), 24)
			fmt.Printf("  %-16s %10.1f %8d %8d %8.2f %8.2f\n", name, float64(s.Device())/1e6, len(s.Layers), s.Slots, load.Seconds(), time.Since(begun).Seconds())
			if i == 0 {
				wantAlone, wantBeside, wantTokens = alone, beside, tokens
			}
			sameLogits(t, name+", alone", alone, wantAlone)
			sameLogits(t, name+", in a batch of 8", beside, wantBeside)
			sameLogits(t, name+", alone and in a batch of 8", beside, wantAlone)
			if !slices.Equal(tokens, wantTokens) {
				t.Errorf("%s: tokens %v, want %v", name, tokens, wantTokens)
			}
			if err := r.x.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// The sizes with which decode is measured.
const (
	rateContext = 1200
	ratePages   = (rateContext + gpuPageTokens - 1) / gpuPageTokens
)

func rateLimits(p *plan.Program) plan.Limits {
	lim := plan.Limits{Tokens: 64, Seqs: 16, Rows: 16, PageTokens: gpuPageTokens, Cache: tensor.F16, Activations: tensor.F16}
	for range p.Groups {
		lim.Pages = append(lim.Pages, 16*ratePages)
	}
	return lim
}

// decoding returns a step of one token for each sequence at a position. If from is true, the tokens
// are those that the previous step sampled.
func decoding(p *plan.Program, seqs, position int, from bool) *plan.Batch {
	b := &plan.Batch{Start: []int32{0}, Tables: make([]plan.PageTable, len(p.Groups))}
	for g := range b.Tables {
		b.Tables[g].Start = []int32{0}
	}
	for s := range seqs {
		b.Tokens, b.Positions, b.Lengths = append(b.Tokens, int32(s)), append(b.Positions, int32(position)), append(b.Lengths, 1)
		b.Rows = append(b.Rows, plan.Row{Token: int32(s), Want: plan.WantToken})
		b.Start = append(b.Start, int32(s+1))
		if from {
			b.From = append(b.From, int32(s))
		}
		for g := range b.Tables {
			pt := &b.Tables[g]
			for i := range ratePages {
				pt.Pages = append(pt.Pages, int32(s*ratePages+i))
			}
			pt.Start, pt.First = append(pt.Start, int32(len(pt.Pages))), append(pt.First, 0)
		}
	}
	return b
}

// decode runs steps, two at a time, and returns the time per step. It calls each after every step,
// unless each is nil.
func decode(t *testing.T, x plan.Executable, p *plan.Program, seqs, steps int, each func()) time.Duration {
	t.Helper()
	var under []plan.Step
	take := func() {
		r, err := under[0].Wait(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range r.Err {
			if err != nil {
				t.Fatal(err)
			}
		}
		under[0].Release()
		under = under[1:]
		if each != nil {
			each()
		}
	}
	const warm = 3
	var begun time.Time
	for i := range warm + steps {
		if i == warm {
			begun = time.Now()
		}
		s, err := x.Submit(decoding(p, seqs, i, i > 0))
		if err != nil {
			t.Fatal(err)
		}
		if under = append(under, s); len(under) == 2 {
			take()
		}
	}
	took := time.Since(begun)
	take()
	return took / time.Duration(steps)
}

// stepsFor returns how many steps take about two seconds if one copies the given number of bytes.
func stepsFor(bytes int, link float64) int {
	return max(5, min(200, int(2*link/float64(max(1, bytes)))))
}

// TestGPUStreamedRate logs the time of decode steps with streamed layers, compared with the link's
// limit as measured in the same run, for each way of launching.
func TestGPUStreamedRate(t *testing.T) {
	eachModel(t, func(t *testing.T, p *plan.Program) {
		b, eager := openGPU(t, Options{}), openGPU(t, Options{Eager: true})
		link, err := b.Link(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		memory, err := b.Bandwidth(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("  link %.1f GB/s, memory %.0f GB/s\n", link/1e9, memory/1e9)
		names, limits := placements(b, p, rateLimits(p))
		resident := map[int]time.Duration{} // by number of sequences
		fmt.Printf("  %-16s %5s %8s %10s %10s %10s %9s %8s %12s\n", "", "seqs", "layers", "device MB", "copied MB", "ms a step", "tokens/s", "link ms", "of the link")
		for i, name := range names {
			s := b.Streaming(p, limits[i])
			x := compiled(t, b, p, limits[i])
			for _, seqs := range []int{1, 16} {
				took := decode(t, x, p, seqs, stepsFor(s.Streamed, link), nil)
				if i == 0 {
					resident[seqs] = took
				}
				bound := time.Duration(float64(s.Streamed) / link * 1e9)
				expected := max(bound, resident[seqs])
				fmt.Printf("  %-16s %5d %8d %10.1f %10.1f %10.3f %9.1f %8.3f %11.1f%%\n", name, seqs, len(s.Layers), float64(s.Device())/1e6, float64(s.Streamed)/1e6,
					took.Seconds()*1e3, float64(seqs)/took.Seconds(), bound.Seconds()*1e3, 100*expected.Seconds()/took.Seconds())
				if s.Staged == 0 && float64(expected) < 0.8*float64(took) {
					t.Errorf("%s, %d sequences: %v a step, and the link allows %v", name, seqs, took, expected)
				}
			}
			if err := x.Close(); err != nil {
				t.Error(err)
			}
		}
		fmt.Printf("  %-16s %6s %10s\n", "no layer stays", "slots", "ms a step")
		variant := func(name string, b *Backend, slots int) {
			b.slots = slots
			defer func() { b.slots = weights.StreamSlots }()
			lim := rateLimits(p)
			lim.Weights, lim.Pinned = 1, 1<<40
			x := compiled(t, b, p, lim)
			took := decode(t, x, p, 1, stepsFor(b.Streaming(p, lim).Streamed, link), nil)
			fmt.Printf("  %-16s %6d %10.3f\n", name, slots, took.Seconds()*1e3)
			if name == "graphs" && len(x.weights.Images) > 0 {
				took, whole := measureWhole(t, x, stepsFor(b.Streaming(p, lim).Streamed, link))
				fmt.Printf("  %-16s %6d %10.3f\n", "on the device", slots, took)
				fmt.Printf("  %-16s %6d %10.3f\n", "as one graph", slots, whole)
			}
			if err := x.Close(); err != nil {
				t.Error(err)
			}
		}
		variant("graphs", b, 2)
		variant("graphs", b, 3)
		variant("eager", eager, 2)
	})
}

// measureWhole compares a step of several graphs between copies with a step of one graph that
// contains the copies. Both times are device time in milliseconds per step.
func measureWhole(t *testing.T, e *executable, steps int) (sections, whole float64) {
	t.Helper()
	begun, err := e.Submit(decoding(e.p, 1, 3, false))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := begun.Wait(context.Background()); err != nil {
		t.Fatal(err)
	}
	defer begun.Release()
	s, c := begun.(*step), e.b.Main
	err = c.Do(func() error {
		timed := func(f func() error) (float64, error) {
			from, err := c.NewTimer()
			if err != nil {
				return 0, err
			}
			to, err := c.NewTimer()
			if err != nil {
				return 0, err
			}
			for i := range steps + 2 {
				if i == 2 {
					if err := from.Record(e.stream); err != nil {
						return 0, err
					}
				}
				if err := f(); err != nil {
					return 0, err
				}
			}
			if err := to.Record(e.stream); err != nil {
				return 0, err
			}
			if err := to.Synchronize(); err != nil {
				return 0, err
			}
			ms, err := to.Since(from)
			if err != nil {
				return 0, err
			}
			if err := from.Destroy(); err != nil {
				return 0, err
			}
			return float64(ms) / float64(steps), to.Destroy()
		}
		var err error
		if sections, err = timed(func() error { return e.run(s) }); err != nil {
			return err
		}
		if err := e.rotation.Synchronize(); err != nil {
			return err
		}
		g, err := captureWhole(e, &s.sh)
		if err != nil {
			return err
		}
		x, err := g.Instantiate()
		if err != nil {
			return err
		}
		whole, err = timed(func() error {
			if err := x.Launch(e.stream); err != nil {
				return err
			}
			return e.pieces(s, e.parts[0].sample, piece{sampling: samplingOf(s.Batch)})
		})
		if err != nil {
			return err
		}
		if err := x.Destroy(); err != nil {
			return err
		}
		return g.Destroy()
	})
	if err != nil {
		t.Fatal(err)
	}
	return sections, whole
}

// captureWhole captures a step with its copies. The first images come from the previous graph or
// are in their slots already.
func captureWhole(e *executable, sh *lower.Shape) (*driver.Graph, error) {
	r, fork, join := e.rotation, e.rotation.Slots[0].Done, e.rotation.Slots[0].Arrived
	return e.stream.Capture(func() error {
		if err := fork.Record(e.stream); err != nil {
			return err
		}
		if err := r.Copies.Wait(fork); err != nil {
			return err
		}
		image := 0
		for i := range e.parts[0].forward {
			l := &e.parts[0].forward[i]
			k := &r.Slots[image%len(r.Slots)]
			switch {
			case !l.Live:
				if err := lower.Give(e.stream, sh, e.parts[0].forward[i:i+1]); err != nil {
					return err
				}
			case l.Name == lower.AwaitName:
				if image >= len(r.Slots) {
					if err := e.stream.Wait(k.Arrived); err != nil {
						return err
					}
				}
			default:
				next := image + len(r.Slots)
				if next >= len(r.Host) {
					next = image % len(r.Slots)
				}
				if err := k.Done.Record(e.stream); err != nil {
					return err
				}
				if err := r.Copies.Wait(k.Done); err != nil {
					return err
				}
				if err := r.Copies.CopyToDevice(r.At(next), r.Host[next]); err != nil {
					return err
				}
				if err := k.Arrived.Record(r.Copies); err != nil {
					return err
				}
				image++
			}
		}
		if err := join.Record(r.Copies); err != nil {
			return err
		}
		return e.stream.Wait(join)
	})
}

// Device memory is as planned, from Compile to the last of 1,000 steps.
func TestGPUStreamedMemory(t *testing.T) {
	const close = 64 << 20
	eachModel(t, func(t *testing.T, p *plan.Program) {
		b := openGPU(t, Options{})
		names, limits := placements(b, p, rateLimits(p))
		fmt.Printf("  %-16s %10s %10s %10s %10s %10s  MB\n", "", "planned", "compiled", "least", "most", "closed")
		for i, name := range names {
			lim := limits[i]
			if b.Streaming(p, lim).Staged > 0 {
				continue // steps take too long
			}
			states, err := lim.StateBytes(p)
			if err != nil {
				t.Fatal(err)
			}
			planned := int64(b.Weights(p, lim) + states + b.Scratch(p, lim))
			before := b.Memory().Free
			taken := func() int64 { return before - b.Memory().Free }
			x := compiled(t, b, p, lim)
			after := taken()
			least, most := after, after
			decode(t, x, p, 1, 1000, func() {
				n := taken()
				least, most = min(least, n), max(most, n)
			})
			if err := x.Close(); err != nil {
				t.Error(err)
			}
			closed := taken()
			mb := func(n int64) float64 { return float64(n) / 1e6 }
			fmt.Printf("  %-16s %10.1f %10.1f %10.1f %10.1f %10.1f\n", name, mb(planned), mb(after), mb(least), mb(most), mb(closed))
			// The first executable also loads the kernels, which stay.
			for _, n := range []int64{after, least, most, closed + planned} {
				if i > 0 && (n > planned+close || n < planned-close) {
					t.Errorf("%s: %d bytes are taken, planned are %d", name, n, planned)
				}
			}
		}
	})
}
