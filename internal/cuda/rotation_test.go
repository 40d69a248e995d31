package cuda

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
	"github.com/realizar/realizar/internal/cuda/weights"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/internal/sample"
	"github.com/realizar/realizar/tensor"
)

const deepLayers = 5

// deep returns a program of several layers of different sizes.
func deep(t *testing.T) *plan.Program {
	t.Helper()
	const hidden = 256
	rng := newRand()
	return program(t, func(b *plan.Builder) {
		matrix := func(name string, rows, cols int) *tensor.Tensor {
			return plantest.Weight(rng, name, tensor.Q8_0, 1, rows, cols)
		}
		vector := func(name string) *tensor.Tensor { return plantest.Weight(rng, name, tensor.F32, 1, hidden) }
		x := b.Embed(matrix("embed", decoderVocab, hidden))
		for i := range deepLayers {
			b.Layer(i)
			name := func(s string) string { return fmt.Sprint(i, ".", s) }
			h := b.RMSNorm(x, vector(name("norm")), 1e-5)
			ffn := 256 + 32*i
			g := b.GLU(b.Linear(h, matrix(name("gate"), ffn, hidden), nil), b.Linear(h, matrix(name("up"), ffn, hidden), nil), plan.GLUAttr{Act: plan.SiLU})
			x = b.Add(x, b.Linear(g, matrix(name("down"), hidden, ffn), nil))
		}
		b.Layer(plan.NoLayer)
		h := b.RMSNorm(b.Pick(x), vector("last"), 1e-5)
		b.Output(h, b.Linear(h, matrix("head", decoderVocab, hidden), nil))
	})
}

// streams are the ways in which layers of a program stream.
var streams = []struct {
	name    string
	limited func(b *Backend, p *plan.Program, lim plan.Limits) plan.Limits
}{
	{"all", func(_ *Backend, _ *plan.Program, lim plan.Limits) plan.Limits {
		lim.Weights, lim.Pinned = 1, 1<<30
		return lim
	}},
	{"some", func(b *Backend, p *plan.Program, lim plan.Limits) plan.Limits {
		lim.Weights, lim.Pinned = b.Weights(p, lim)-1, 1<<30
		return lim
	}},
	{"all, staged", func(_ *Backend, _ *plan.Program, lim plan.Limits) plan.Limits {
		lim.Weights = 1
		return lim
	}},
	{"all, some staged", func(b *Backend, p *plan.Program, lim plan.Limits) plan.Limits {
		lim.Weights, lim.Pinned = 1, 1<<30
		lim.Pinned = b.Streaming(p, lim).Pinned/2 + 1
		return lim
	}},
}

// A watch follows the device's work. From the events that streams record and wait for, it derives
// what work is complete before what other work.
type watch struct {
	t      *testing.T
	e      *executable
	clocks map[uintptr]map[uintptr]int // by stream: the last completed work of each other stream
	events map[uintptr]map[uintptr]int // by event: the clock of its stream when it was recorded
	host   map[uintptr]int             // the clock of the host and of all work that it starts
	slots  []watched
	images []int // in the order in which launches read them
}

// A watched is the state of a slot.
type watched struct {
	readers []work
	writers []work                                // since the last read
	image   int                                   // the complete image in the slot, or noImage
	packs   map[driver.DevicePtr]weights.PackArgs // complete pieces by address
}

// A work identifies a piece of work by stream and position.
type work struct {
	stream uintptr
	at     int
}

func newWatch(t *testing.T, e *executable) *watch {
	w := &watch{t: t, e: e, clocks: map[uintptr]map[uintptr]int{}, events: map[uintptr]map[uintptr]int{}, host: map[uintptr]int{}}
	for range e.rotation.Slots {
		w.slots = append(w.slots, watched{image: weights.NoImage, packs: map[driver.DevicePtr]weights.PackArgs{}})
	}
	return w
}

// slotOf returns the slot that contains an address, or -1.
func (w *watch) slotOf(at uint64) int {
	from := uint64(w.e.weightsAt) + uint64(w.e.weights.Resident)
	if i := int(at-from) / w.e.weights.SlotBytes; at >= from && i < len(w.slots) {
		return i
	}
	return -1
}

func (w *watch) see(at int, x *drivertest.Work) {
	w.t.Helper()
	clock := w.clocks[x.Stream]
	if clock == nil {
		clock = map[uintptr]int{}
		w.clocks[x.Stream] = clock
	}
	clock[x.Stream] = at
	for s, n := range w.host {
		clock[s] = max(clock[s], n)
	}
	switch me := (work{x.Stream, at}); {
	case x.Synchronized:
		w.host[x.Stream] = at
	case x.Record != 0:
		w.events[x.Record] = maps.Clone(clock)
	case x.Wait != 0:
		for s, n := range w.events[x.Wait] {
			clock[s] = max(clock[s], n)
		}
	case x.Launch == nil:
		if i := w.slotOf(x.To); i >= 0 {
			image := slices.IndexFunc(w.e.rotation.Host, func(b []byte) bool { return b != nil && unsafe.SliceData(b) == x.From })
			if image%len(w.slots) != i || x.To != uint64(w.e.rotation.At(image)) || x.Bytes != w.e.weights.Images[image].Bytes {
				w.t.Errorf("a copy of %d bytes to %#x in slot %d is of image %d", x.Bytes, x.To, i, image)
			}
			w.write(i, me)
			w.slots[i].image = image
			clear(w.slots[i].packs)
		}
	case x.Launch.Kernel == "pack":
		a := device.Words[weights.PackArgs](x.Launch.Params)[0]
		if i := w.slotOf(uint64(a.Dst)); i >= 0 {
			w.write(i, me)
			a.Src = 0
			_, tile := weights.TileOf(tensor.Q8_0)
			end := a.Dst + driver.DevicePtr((int(a.Rows)+weights.TileRows-1)/weights.TileRows*int(a.ColTiles)*tile)
			k := &w.slots[i]
			maps.DeleteFunc(k.packs, func(at driver.DevicePtr, _ weights.PackArgs) bool { return at >= a.Dst && at < end })
			k.packs[a.Dst], k.image = a, weights.NoImage
		}
	default:
		w.read(me, x.Launch)
	}
}

// write records a write to a slot.
func (w *watch) write(i int, me work) {
	w.t.Helper()
	k := &w.slots[i]
	for _, r := range k.readers {
		if w.clocks[me.stream][r.stream] < r.at {
			w.t.Fatalf("work %d writes slot %d, which work %d may still read", me.at, i, r.at)
		}
	}
	if k.readers != nil {
		k.writers, k.readers = nil, nil
	}
	k.writers = append(k.writers, me)
}

func (w *watch) read(me work, l *drivertest.Launch) {
	w.t.Helper()
	for p := 0; p+8 <= len(l.Params); p += 8 {
		at := binary.LittleEndian.Uint64(l.Params[p:])
		i := w.slotOf(at)
		if i < 0 {
			continue
		}
		k := &w.slots[i]
		for _, x := range k.writers {
			if w.clocks[me.stream][x.stream] < x.at {
				w.t.Fatalf("work %d, %s, reads slot %d, which work %d may still write", me.at, l.Kernel, i, x.at)
			}
		}
		if k.image == weights.NoImage {
			k.image = w.packed(i, driver.DevicePtr(at))
		}
		k.readers = append(k.readers, me)
		if k.image == weights.NoImage || !slices.ContainsFunc(w.e.weights.Images[k.image].Weights, func(x *tensor.Tensor) bool {
			return w.begins(x, driver.DevicePtr(at))
		}) {
			w.t.Fatalf("work %d, %s, reads %#x in slot %d, which has image %d", me.at, l.Kernel, at, i, k.image)
		}
		if n := len(w.images); n == 0 || w.images[n-1] != k.image {
			w.images = append(w.images, k.image)
		}
	}
}

// begins reports whether at is the start of weight x or of the powers of two of its rows.
func (w *watch) begins(x *tensor.Tensor, at driver.DevicePtr) bool {
	begin, m := w.e.weightsAt+driver.DevicePtr(w.e.weights.At[x]), w.e.weights.Matrices[x]
	return at == begin || m.Scaled() && at == begin+driver.DevicePtr(m.Tiles())
}

// packed returns the image that has a weight at this address and all of whose pieces are in slot i,
// or noImage.
func (w *watch) packed(i int, at driver.DevicePtr) int {
	plan := w.e.weights
	chunks, _ := weights.StagedChunks(plan)
	for image := i; image < len(chunks); image += len(w.slots) {
		complete, has := len(chunks[image]) > 0, false
		for _, c := range chunks[image] {
			x := plan.Order[c.Weight]
			m := plan.Matrices[x]
			begin := w.e.weightsAt + driver.DevicePtr(plan.At[x])
			dst := begin + driver.DevicePtr(c.Row/weights.TileRows*m.ColTiles*m.Bytes)
			has = has || w.begins(x, at)
			complete = complete && w.slots[i].packs[dst] == weights.PackArgs{
				Dst: dst, Powers: begin + driver.DevicePtr(m.Tiles()+4*c.Row), RowBytes: int64(m.RowBytes()), Rows: int32(c.Rows), Cols: int32(m.Cols), ColTiles: int32(m.ColTiles),
			}
		}
		if complete && has {
			return image
		}
	}
	return weights.NoImage
}

// follow processes the device's work since index from. It returns the images that steps have read
// in it, and the next index.
func (w *watch) follow(f *drivertest.Fake, from int) (images []int, end int) {
	w.t.Helper()
	all := f.Work()
	for i := from; i < len(all); i++ {
		w.see(i, &all[i])
	}
	images, w.images = w.images, nil
	return images, len(all)
}

// In every step the launches of a streamed layer find its image in its slot, and no copy overwrites
// the slot before the last of them, however steps are launched.
func TestRotation(t *testing.T) {
	for _, slots := range []int{2, 3} {
		for _, eager := range []bool{false, true} {
			for _, stream := range streams {
				t.Run(fmt.Sprintf("%s, %d slots, eager %v", stream.name, slots, eager), func(t *testing.T) {
					b, f := openFake(t, drivertest.Options{}, Options{Eager: eager})
					b.slots = slots
					p := deep(t)
					e := compiled(t, b, p, stream.limited(b, p, limitsFor(p, 8, 4)))
					n := len(e.weights.Images)
					if n < 2*e.weights.Slots || e.weights.Slots == 0 {
						t.Fatalf("%d layers stream through %d slots", n, e.weights.Slots)
					}
					var all []int
					for i := range n {
						all = append(all, i)
					}
					w := newWatch(t, e)
					_, at := w.follow(f, 0)
					for i, batch := range []*plan.Batch{
						batchOf(p, 1, 0, 1), batchOf(p, 1, 1, 1), batchOf(p, 4, 0, 2), batchOf(p, 3, 2, 1), batchOf(p, 1, 2, 1), {}, batchOf(p, 3, 0, 2),
					} {
						if len(batch.Tokens) == 0 {
							batch = batchOf(p, 2, 0, 1)
							batch.Trace = true
						}
						copies := f.Calls("cuMemcpyHtoDAsync")
						if err := run(e, batch); err != nil {
							t.Fatal(err)
						}
						var images []int
						if images, at = w.follow(f, at); !slices.Equal(images, all) {
							t.Fatalf("step %d reads images %v, want %v", i, images, all)
						}
						if n := f.Calls("cuMemcpyHtoDAsync") - copies; !e.rotation.Staging() && n != len(all)+1+len(batch.Tables) {
							t.Errorf("step %d makes %d copies for %d images", i, n, len(all))
						}
					}
				})
			}
		}
	}
}

// A step has one graph for each streamed layer, one for each section of stages between them, and
// one for sampling.
func TestStreamedGraphs(t *testing.T) {
	b, f := openFake(t, drivertest.Options{}, Options{})
	p := deep(t)
	for _, test := range []struct {
		stream int // streams' index
		graphs int
	}{
		{0, 1 + deepLayers + 1 + 1}, // before the layers, after them, and sampling
		{1, 1 + 2*2 + 1},
	} {
		e := compiled(t, b, p, streams[test.stream].limited(b, p, limitsFor(p, 8, 2)))
		for i := range 3 {
			captures, graphs := f.Calls("cuStreamBeginCapture"), f.Calls("cuGraphLaunch")
			if err := run(e, batchOf(p, 2, i, 1)); err != nil {
				t.Fatal(err)
			}
			if n := f.Calls("cuStreamBeginCapture") - captures; i == 0 && n != test.graphs || i > 0 && n != 0 {
				t.Errorf("%s: step %d captures %d graphs, want %d for all", streams[test.stream].name, i, n, test.graphs)
			}
			if n := f.Calls("cuGraphLaunch") - graphs; n != test.graphs {
				t.Errorf("%s: step %d launches %d graphs, want %d", streams[test.stream].name, i, n, test.graphs)
			}
		}
	}
}

// Device memory and pinned host memory are as planned, from Compile to Close.
func TestStreamingMemoryIsAsPlanned(t *testing.T) {
	for _, stream := range streams {
		b, f := openFake(t, drivertest.Options{}, Options{})
		for _, p := range []*plan.Program{deep(t), plantest.Model(t, nil), plantest.MoEModel(t, nil)} {
			lim := stream.limited(b, p, limitsFor(p, 8, 4))
			states, err := lim.StateBytes(p)
			if err != nil {
				t.Fatal(err)
			}
			before := b.Memory()
			x, err := b.Compile(context.Background(), p, lim, nil)
			if err != nil {
				t.Fatal(err)
			}
			s := b.Streaming(p, lim)
			chunks, berth := weights.StagedChunks(weights.NewPlan(p, &lim, weights.StreamSlots))
			pinned := s.Pinned
			if s.Staged > 0 {
				pinned += weights.StagedBerths * berth
			}
			if got := f.HostBytes(); got != pinned || len(chunks) == 0 && s.Experts.Layers == 0 {
				t.Errorf("%s: %d bytes of the host are pinned, planned are %d", stream.name, got, pinned)
			}
			planned := int64(b.Weights(p, lim) + states + b.Scratch(p, lim))
			for i := range 6 {
				if got := before.Free - b.Memory().Free; got != planned {
					t.Errorf("%s: before step %d %d bytes are taken, planned are %d", stream.name, i, got, planned)
				}
				batch := batchOf(p, 1+i%4, 0, 1+i%2)
				batch.Rows[0].Adjustments = []sample.Adjustment{{Token: 3, Bias: 1}}
				if err := run(x, batch); err != nil {
					t.Fatal(err)
				}
			}
			if err := x.Close(); err != nil {
				t.Error(err)
			}
			if now := b.Memory(); now != before || f.HostBytes() != 0 {
				t.Errorf("%s: %d bytes free after Close, %d before; %d are pinned", stream.name, now.Free, before.Free, f.HostBytes())
			}
		}
	}
}

// Staged weights are not spare. All weights are announced in order.
func TestStreamedWeightsAreAnnounced(t *testing.T) {
	for _, stream := range streams {
		b, _ := openFake(t, drivertest.Options{}, Options{})
		p := deep(t)
		lim := stream.limited(b, p, limitsFor(p, 8, 4))
		staged := weights.NewPlan(p, &lim, weights.StreamSlots).Staged()
		var told []*tensor.Tensor
		x, err := b.Compile(context.Background(), p, lim, func(w *tensor.Tensor, spare bool) {
			if spare == staged[w] {
				t.Errorf("%s: %s is spare: %v", stream.name, w.Name, spare)
			}
			told = append(told, w)
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := x.Close(); err != nil {
			t.Error(err)
		}
		if !slices.Equal(told, p.Weights()) {
			t.Errorf("%s: %d weights were announced, or in another order than these %d", stream.name, len(told), len(p.Weights()))
		}
	}
}

// Steps with streamed layers create nothing that outlives them.
func TestStreamedStepsAreReused(t *testing.T) {
	for _, stream := range streams {
		b, f := openFake(t, drivertest.Options{}, Options{})
		p := deep(t)
		e := compiled(t, b, p, stream.limited(b, p, limitsFor(p, 8, 2)))
		pairs(t, e, 1)
		before := made(f)
		pairs(t, e, 20)
		if n := made(f) - before; n != 0 {
			t.Errorf("%s: 40 steps made %d things", stream.name, n)
		}
	}
}

// A failed call fails its step alone: later steps find all images in place.
func TestStreamedStepFails(t *testing.T) {
	for _, stream := range streams {
		b, f := openFake(t, drivertest.Options{}, Options{})
		p := deep(t)
		e := compiled(t, b, p, stream.limited(b, p, limitsFor(p, 8, 2)))
		w := newWatch(t, e)
		at := 0
		for range 2 {
			if err := run(e, batchOf(p, 1, 0, 1)); err != nil {
				t.Fatal(err)
			}
		}
		_, at = w.follow(f, at)
		for _, call := range []string{"cuMemcpyHtoDAsync", "cuEventRecord", "cuStreamWaitEvent", "cuGraphLaunch", "cuLaunchKernelEx"} {
			for n := range 12 {
				f.Fail(call, n+1, driver.LaunchOutOfResources)
				failed := 0
				for range 3 {
					if err := run(e, batchOf(p, 1, 0, 1)); err != nil {
						failed++
						if !errors.As(err, new(*driver.Error)) {
							t.Errorf("%s: %s fails: %v", stream.name, call, err)
						}
					}
				}
				f.Mend()
				if failed > 2 {
					t.Errorf("%s: %s fails once, and %d steps do", stream.name, call, failed)
				}
				if err := run(e, batchOf(p, 1, 0, 1)); err != nil {
					t.Errorf("%s: a step after %s failed: %v", stream.name, call, err)
				}
			}
		}
		if err := run(e, batchOf(p, 1, 0, 1)); err != nil {
			t.Errorf("%s: %v", stream.name, err)
		}
		w.follow(f, at)
	}
}

// The search for a non-finite value visits streamed layers too, and later steps are unaffected.
func TestStreamedDiagnosis(t *testing.T) {
	for _, stream := range streams {
		b, f := openFake(t, drivertest.Options{}, Options{})
		p := deep(t)
		e := compiled(t, b, p, stream.limited(b, p, limitsFor(p, 8, 2)))
		w := newWatch(t, e)
		s, err := e.Submit(batchOf(p, 1, 0, 1))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Wait(context.Background()); err != nil {
			t.Fatal(err)
		}
		_, at := w.follow(f, 0)
		x := s.(*step)
		x.failed = []error{plan.ErrNotFinite}
		if err := b.Main.Do(func() error { return x.look(1) }); err != nil {
			t.Errorf("%s: %v", stream.name, err)
		}
		images, at := w.follow(f, at)
		if len(images) != len(e.weights.Images) {
			t.Errorf("%s: images %v of %d are looked at", stream.name, images, len(e.weights.Images))
		}
		s.Release()
		for range 2 {
			if err := run(e, batchOf(p, 1, 0, 1)); err != nil {
				t.Error(err)
			}
		}
		w.follow(f, at)
	}
}

// Close waits for submitted steps, and for copies in flight for later steps.
func TestCloseWhileStreaming(t *testing.T) {
	for _, stream := range streams {
		t.Run(stream.name, func(t *testing.T) {
			b, f := openFake(t, drivertest.Options{}, Options{})
			p := deep(t)
			closesAfterSteps(t, compiled(t, b, p, stream.limited(b, p, limitsFor(p, 8, 2))), f)
		})
	}
}

// If Compile fails, it leaves nothing.
func TestStreamingCannotBegin(t *testing.T) {
	for _, stream := range streams {
		b, f := openFake(t, drivertest.Options{}, Options{})
		p := deep(t)
		lim := stream.limited(b, p, limitsFor(p, 8, 2))
		for _, call := range []string{"cuMemHostAlloc", "cuMemAlloc", "cuEventCreate", "cuStreamCreate", "cuDevicePrimaryCtxRetain", "cuMemcpyDtoH"} {
			for n := 1; ; n++ {
				f.Fail(call, n, driver.OutOfMemory)
				x, err := b.Compile(context.Background(), p, lim, nil)
				f.Mend()
				if err == nil {
					if err := x.Close(); err != nil {
						t.Error(err)
					}
				} else if !errors.Is(err, driver.ErrOutOfMemory) {
					t.Errorf("%s: call %d of %s fails: %v", stream.name, n, call, err)
				}
				if left := f.Live(); kept(f) != "" || !strings.HasPrefix(left, "2 context") {
					t.Errorf("%s: call %d of %s fails; left are %s", stream.name, n, call, left)
				}
				if err == nil {
					break
				}
			}
		}
	}
}
