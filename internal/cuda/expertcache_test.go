package cuda

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
	"github.com/realizar/realizar/internal/cuda/lower"
	"github.com/realizar/realizar/internal/cuda/weights"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// Sizes in the program of mixtures, in bytes: a tile, an expert, and a layer's other matrices.
const (
	mixtureTile   = 4096
	mixtureExpert = 3 * mixtureTile
	mixtureRest   = mixtureTile + 2048
)

// mixtures returns a program with one layer for each mixture, which has the given number of
// experts. If shared is true, all mixtures have the experts of the first.
func mixtures(t *testing.T, shared bool, of ...int) *plan.Program {
	t.Helper()
	const width = 16
	rng := newRand()
	matrix := func(name string, d tensor.DType, rows int) *tensor.Tensor {
		return plantest.Weight(rng, name, d, 1, rows, width)
	}
	lists := map[string][]*tensor.Tensor{}
	list := func(layer int, name string, n int) []*tensor.Tensor {
		if !shared {
			name = fmt.Sprint(layer, " ", name)
		}
		if lists[name] == nil {
			for e := range n {
				lists[name] = append(lists[name], matrix(fmt.Sprint(name, " ", e), tensor.F16, width))
			}
		}
		return lists[name]
	}
	return program(t, func(b *plan.Builder) {
		table := matrix("table", tensor.F16, decoderVocab)
		x := b.Embed(table)
		for i, n := range of {
			b.Layer(i)
			h := b.RMSNorm(x, plantest.Weight(rng, fmt.Sprint("norm ", i), tensor.F32, 1, width), 1e-5)
			x = b.Add(x, b.Linear(h, matrix(fmt.Sprint("plain ", i), tensor.F16, width), nil))
			a := plan.ExpertsAttr{Route: plan.RouteAttr{Used: 2, Scale: 1}, Gate: list(i, "gate", n), Up: list(i, "up", n), Down: list(i, "down", n)}
			x = b.Add(x, b.Experts(h, b.Linear(h, matrix(fmt.Sprint("router ", i), tensor.F32, n), nil), nil, a))
		}
		b.Layer(plan.NoLayer)
		h := b.Pick(x)
		b.Output(h, b.Linear(h, table, nil))
	})
}

// Experts leave the device before layers do, equally many of each mixture. The shared places number
// as many as the missing experts of one mixture, or as a step uses.
func TestExpertPlacement(t *testing.T) {
	const (
		tables  = 4 * 256 // the tables of keep
		fixed   = 3*mixtureTile + 4*256
		rest    = fixed + 4*mixtureRest
		experts = 4 * 8 * mixtureExpert
	)
	four := []int{8, 8, 8, 8}
	cache := func(kept, shared int) plan.ExpertCache {
		return plan.ExpertCache{Layers: 4, Of: 8, Used: 2, Kept: kept, Shared: shared, Bytes: mixtureExpert}
	}
	for _, test := range []struct {
		name                    string
		of                      []int
		tokens, weights, pinned int
		want                    plan.Streaming
	}{
		{"no limit", four, 8, 0, 1 << 30, plan.Streaming{Resident: rest + experts}},
		{"all fit", four, 8, rest + experts, 1 << 30, plan.Streaming{Resident: rest + experts}},
		{"one byte too few", four, 8, rest + experts - 1, experts, plan.Streaming{Resident: rest + tables, Experts: cache(7, 1), Pinned: experts}},
		{"two of eight", four, 8, rest + tables + (4*2+6)*mixtureExpert, experts, plan.Streaming{Resident: rest + tables, Experts: cache(2, 6), Pinned: experts}},
		{"less than two", four, 8, rest + tables + (4*2+6)*mixtureExpert - 1, experts, plan.Streaming{Resident: rest + tables, Experts: cache(1, 7), Pinned: experts}},
		{"none", four, 8, rest + tables + 8*mixtureExpert, experts, plan.Streaming{Resident: rest + tables, Experts: cache(0, 8), Pinned: experts}},
		{"less than none", four, 8, rest + tables + 8*mixtureExpert - 1, 1 << 30,
			plan.Streaming{Resident: fixed + tables + 2*mixtureRest, Layers: []int{1, 3}, Slots: 1, SlotBytes: mixtureRest, Streamed: 2 * mixtureRest, Experts: cache(0, 8), Pinned: experts + 2*mixtureRest}},
		{"less than the least", four, 8, 1, experts + mixtureRest,
			plan.Streaming{Resident: fixed + tables + mixtureRest, Layers: []int{0, 2, 3}, Slots: 1, SlotBytes: mixtureRest, Streamed: 3 * mixtureRest, Staged: 2 * mixtureRest, Experts: cache(0, 8), Pinned: experts + mixtureRest}},
		{"a token at a time", four, 1, rest + tables + (4*3+2)*mixtureExpert, experts, plan.Streaming{Resident: rest + tables, Experts: cache(3, 2), Pinned: experts}},
		// If host memory has no room for all experts, they stream with their layers.
		{"too little pinned", four, 8, rest + experts - 1, experts - 1,
			plan.Streaming{Resident: rest + experts - 2*(8*mixtureExpert+mixtureRest), Layers: []int{1, 3}, Slots: 1, SlotBytes: 8*mixtureExpert + mixtureRest, Streamed: 2 * (8*mixtureExpert + mixtureRest), Pinned: 2 * (8*mixtureExpert + mixtureRest)}},
		// There would be as many shared places as experts.
		{"one mixture", []int{8}, 8, 1, 1 << 30, plan.Streaming{Resident: 3*mixtureTile + 256 + 8*mixtureExpert + mixtureRest}},
	} {
		p := mixtures(t, false, test.of...)
		lim := plan.Limits{Tokens: test.tokens, Rows: 1, Activations: tensor.F16, Weights: test.weights, Pinned: test.pinned}
		w := weights.NewPlan(p, &lim, weights.StreamSlots)
		if got := w.Streaming(); fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", test.want) || w.Bytes != got.Device() {
			t.Errorf("%s: %+v in %d bytes, want\n%+v in %d", test.name, got, w.Bytes, test.want, test.want.Device())
		}
	}
	w := weights.NewPlan(mixtures(t, true, four...), &plan.Limits{Tokens: 8, Activations: tensor.F16, Weights: 1, Pinned: 1 << 30}, weights.StreamSlots)
	if w.Experts != nil {
		t.Error("experts of several mixtures are in a cache")
	}
}

// The parts of a cache do not overlap. Initially, each mixture's own places hold the experts that
// its tables list.
func TestExpertPlaces(t *testing.T) {
	for _, p := range []*plan.Program{mixtures(t, false, 8, 8, 8, 8), mixtures(t, false, 3, 9, 2, 8, 8, 2), plantest.MoEModel(t, nil)} {
		lim := plan.Limits{Tokens: 8, Rows: 1, Activations: tensor.F16, Pinned: 1 << 30}
		all := weights.NewPlan(p, &lim, weights.StreamSlots).Bytes
		for lim.Weights = 1; lim.Weights < all; lim.Weights += all / 23 {
			w := weights.NewPlan(p, &lim, weights.StreamSlots)
			c := w.Experts
			if c == nil {
				t.Fatalf("%d bytes of %d: no cache", lim.Weights, all)
			}
			type span struct {
				what       string
				begin, end int
			}
			spans := []span{{"slots", w.Resident, w.Resident + w.Slots*w.SlotBytes}, {"shared places", c.At + c.Layers*c.Kept*c.Bytes, w.Bytes}}
			for i, m := range c.Mixtures {
				spans = append(spans, span{fmt.Sprint("tables of ", i), m.Tables, m.Tables + m.TableBytes()})
				if m.First+m.Kept > (i+1)*c.Kept || m.Bytes > c.Bytes {
					t.Errorf("mixture %d has places %d to %d and %d bytes", i, m.First, m.First+m.Kept, m.Bytes)
				}
			}
			for _, x := range w.Order {
				part, cached := c.PartOf[x]
				switch {
				case cached && part.Expert < c.Mixtures[part.Mixture].Kept:
					m := &c.Mixtures[part.Mixture]
					if want := c.At + (m.First+int(device.Words[int32](m.Table(m.Kept))[part.Expert]))*c.Bytes + m.Parts[part.Part]; w.At[x] != want {
						t.Errorf("%s is loaded to %d, its table says %d", x.Name, w.At[x], want)
					}
					spans = append(spans, span{x.Name, w.At[x], w.At[x] + w.Size(x)})
				case cached:
					if w.At[x] < c.At+c.Layers*c.Kept*c.Bytes || w.At[x]+w.Size(x) > w.Bytes {
						t.Errorf("%s is loaded to %d", x.Name, w.At[x])
					}
				case w.At[x] < w.Resident:
					spans = append(spans, span{x.Name, w.At[x], w.At[x] + w.Size(x)})
				}
			}
			spans = slices.DeleteFunc(spans, func(s span) bool { return s.begin == s.end })
			slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.begin, b.begin) })
			for i := 1; i < len(spans); i++ {
				if spans[i].begin < spans[i-1].end || spans[i].begin%256 != 0 {
					t.Errorf("%d bytes: %s at %d, %s ends at %d", lim.Weights, spans[i].what, spans[i].begin, spans[i-1].what, spans[i-1].end)
				}
			}
		}
	}
}

// A keeper implements the kernel keep for one mixture of a cache.
type keeper struct {
	first, shared         int32
	table, heat, holders  []int32
	chosen, missing, left int64
}

func newKeeper(c *weights.ExpertCache, i int) *keeper {
	m := &c.Mixtures[i]
	all := device.Words[int32](m.Table(m.Kept))
	return &keeper{first: int32(m.First), shared: int32(c.Layers * c.Kept), table: all[:m.Experts], heat: all[m.Experts : 2*m.Experts], holders: all[2*m.Experts:]}
}

// An active is an expert chosen by some token; see kernels/experts.cuh.
type active struct{ expert, begin, end, place int32 }

// A missing is an expert to fetch; see kernels/expertcache.cu.
type missing struct{ expert, place int32 }

// keep assigns places to the active experts and returns the missing ones.
func (k *keeper) keep(all []active) []missing {
	const unit, most, loss = 1 << 16, 255, 64
	slots := make([]int32, len(k.heat))
	for _, a := range all {
		slots[a.expert] = a.end - a.begin
	}
	for e := range k.heat {
		k.heat[e] += unit*min(slots[e], most) - k.heat[e]/loss
	}
	var wanted, cold []int32 // experts, places
	for i := range all {
		if p := k.table[all[i].expert]; p >= 0 {
			all[i].place = k.first + p
		} else {
			wanted = append(wanted, all[i].expert)
		}
	}
	heat := func(p int32) int32 {
		if k.holders[p] < 0 {
			return -1
		}
		return k.heat[k.holders[p]]
	}
	for p, e := range k.holders {
		if e < 0 || slots[e] == 0 {
			cold = append(cold, int32(p))
		}
	}
	slices.SortStableFunc(wanted, func(a, b int32) int { return cmp.Compare(k.heat[b], k.heat[a]) })
	slices.SortStableFunc(cold, func(a, b int32) int { return cmp.Compare(heat(a), heat(b)) })
	k.chosen, k.missing = k.chosen+int64(len(all)), k.missing+int64(len(wanted))
	var list []missing
	left := int32(0)
	for i, e := range wanted {
		place := k.shared + left
		if i < len(cold) && heat(cold[i]) < k.heat[e] {
			p := cold[i]
			if old := k.holders[p]; old >= 0 {
				k.table[old] = -1
			}
			k.table[e], k.holders[p], place = p, e, k.first+p
		} else {
			left++
		}
		list = append(list, missing{e, place})
		all[slices.IndexFunc(all, func(a active) bool { return a.expert == e })].place = place
	}
	k.left += int64(left)
	return list
}

// choose draws the experts of a step with the given number of tokens, which prefer some experts.
func choose(rng *rand.Rand, experts, used, tokens int) (all []active) {
	slots := make([]int32, experts)
	for range tokens {
		for range used {
			slots[int(float64(experts)*rng.Float64()*rng.Float64())]++
		}
	}
	at := int32(0)
	for e, n := range slots {
		if n > 0 {
			all = append(all, active{int32(e), at, at + n, int32(e)})
			at += n
		}
	}
	return all
}

// Whatever steps choose, every chosen expert has a place of its own, in its mixture's places or the
// shared ones. An expert that is not fetched is where it was left.
func TestPlacesSuffice(t *testing.T) {
	rng := newRand()
	for _, of := range [][]int{{8, 8, 8, 8}, {3, 9, 2, 8, 8, 2}, {64, 64}} {
		p := mixtures(t, false, of...)
		for _, tokens := range []int{1, 3, 64} {
			lim := plan.Limits{Tokens: tokens, Activations: tensor.F16}
			c := weights.NewExpertCache(p, &lim)
			if c == nil {
				continue
			}
			for kept := range c.Of {
				c.Keep(kept)
				held := map[int32][2]int{} // mixture and expert, by place
				var ks []*keeper
				for i := range c.Mixtures {
					ks = append(ks, newKeeper(c, i))
					for e := range c.Mixtures[i].Kept {
						held[int32(c.Mixtures[i].First+e)] = [2]int{i, e}
					}
				}
				for step := range 30 {
					for i, k := range ks {
						m := &c.Mixtures[i]
						all := choose(rng, m.Experts, 2, 1+rng.IntN(tokens))
						for _, x := range k.keep(all) {
							held[x.place] = [2]int{i, int(x.expert)}
						}
						for _, a := range all {
							own := int(a.place) >= m.First && int(a.place) < m.First+m.Kept
							if shared := int(a.place) >= c.Layers*c.Kept && int(a.place) < c.Layers*c.Kept+c.Shared; !own && !shared || held[a.place] != [2]int{i, int(a.expert)} {
								t.Fatalf("%v, %d kept, step %d: expert %d of %d is in place %d, which has %v", of, kept, step, a.expert, i, a.place, held[a.place])
							}
						}
					}
				}
			}
		}
	}
}

// A mixture in a cache has two more launches than a resident one. They come after the choice of
// experts and before the products, which read the experts by place.
func TestExpertsAreFetched(t *testing.T) {
	b, f := openFake(t, drivertest.Options{}, Options{Eager: true})
	p := mixtures(t, false, 8, 8, 8)
	lim := limitsFor(p, 8, 2)
	lim.Pinned = 1 << 30
	resident := compiled(t, b, p, lim)
	lim.Weights = resident.weights.Bytes - 3*8*mixtureExpert/2
	cached := compiled(t, b, p, lim)
	s := b.Streaming(p, lim)
	pinned := 0
	for _, x := range cached.expertImages {
		pinned += len(x)
	}
	if s.Experts.Kept == 0 || len(s.Layers) > 0 || pinned != s.Pinned || len(resident.expertImages) > 0 {
		t.Fatalf("%+v, images are %d bytes", s, pinned)
	}
	const line = "%5 experts, %6 add: experts route; experts group; expertcache keep; expertcache fetch; experts gather; " +
		"experts_f16 gated_1, expert_gated_16, expert_gated_32, expert_gated_64, expert_gated_128; " +
		"experts_f16 expert_1, expert_16, expert_32, expert_64, expert_128; experts combine"
	if lines := b.Kernels(p, lim); !slices.Contains(lines, line) {
		t.Errorf("%s, want among them\n%s", strings.Join(lines, "\n"), line)
	}
	names := func(e *executable, tokens int) (all []string, launches []drivertest.Launch) {
		before := len(f.Launches())
		if err := run(e, batchOf(p, 2, 0, tokens)); err != nil {
			t.Fatal(err)
		}
		launches = f.Launches()[before:]
		for _, l := range launches {
			all = append(all, l.Kernel)
		}
		return all, launches
	}
	for _, tokens := range []int{1, 4} {
		plain, _ := names(resident, tokens)
		got, launches := names(cached, tokens)
		want := strings.ReplaceAll(strings.Join(plain, " "), "group ", "group keep fetch ")
		if strings.Join(got, " ") != want {
			t.Errorf("%d tokens: %v, want\n%v", tokens, got, want)
		}
		i := -1
		for _, l := range launches {
			params := unsafe.Pointer(unsafe.SliceData(l.Params))
			switch c := cached.weights.Experts; {
			case l.Kernel == "keep":
				i++
				a, m := (*lower.KeepArgs)(params), &c.Mixtures[i]
				if a.Table != cached.weightsAt+driver.DevicePtr(m.Tables) || a.Heat != a.Table+8*4 || a.Holders != a.Heat+8*4 || int(a.First) != i*c.Kept || int(a.Shared) != 3*c.Kept || int(a.Kept) != c.Kept || a.Experts != 8 || a.Bytes != mixtureExpert {
					t.Errorf("keep of mixture %d: %+v", i, *a)
				}
			case l.Kernel == "fetch":
				a := (*lower.FetchArgs)(params)
				if a.Images != driver.DevicePtr(uintptr(unsafe.Pointer(unsafe.SliceData(cached.expertImages[i])))) || a.Places != cached.weightsAt+driver.DevicePtr(c.At) || a.Apart != mixtureExpert || l.Grid.X != lower.FetchBlocks {
					t.Errorf("fetch of mixture %d: %+v in %d blocks", i, *a, l.Grid.X)
				}
			case strings.HasPrefix(l.Kernel, "gated_") && len(l.Params) == int(unsafe.Sizeof(lower.ExpertArgs{})):
				a := (*lower.ExpertArgs)(params)
				if at := cached.weightsAt + driver.DevicePtr(c.At); a.P[0].W != at || a.P[1].W != at+mixtureTile || a.P[0].Apart != mixtureExpert || a.P[1].Apart != mixtureExpert {
					t.Errorf("the units of mixture %d: %+v", i, a.P)
				}
			}
		}
		if i != 2 {
			t.Errorf("%d tokens: %d mixtures fetch", tokens, i+1)
		}
	}
	// The tables on the device are those of the plan.
	for i := range cached.weights.Experts.Mixtures {
		m := &cached.weights.Experts.Mixtures[i]
		table := make([]byte, m.TableBytes())
		if err := b.Main.Do(func() error { return b.Main.CopyToHost(table, cached.weightsAt+driver.DevicePtr(m.Tables)) }); err != nil || !slices.Equal(table, m.Table(m.Kept)) {
			t.Errorf("mixture %d begins with %v, %v", i, device.Words[int32](table), err)
		}
	}
}

// Loading leaves the complete image of every expert, in the layout of the device.
func TestExpertImages(t *testing.T) {
	b, _ := openFake(t, drivertest.Options{}, Options{})
	for _, p := range []*plan.Program{mixtures(t, false, 3, 9, 2, 8), plantest.MoEModel(t, nil)} {
		lim := limitsFor(p, 8, 2)
		lim.Pinned = 1 << 30
		lim.Weights = b.Weights(p, lim) * 4 / 5
		w := b.planWeights(p, &lim)
		// No kernel runs here: the packed image equals the memory's initial content.
		memory := make([]byte, w.Bytes)
		for i := range device.Words[int32](memory) {
			device.Words[int32](memory)[i] = int32(i)
		}
		var base driver.DevicePtr
		var stream *driver.Stream
		var images [][]byte
		err := b.Main.Do(func() (err error) {
			if stream, err = b.Main.NewStream(); err != nil {
				return err
			}
			if base, err = b.Main.Alloc(w.Bytes); err != nil {
				return err
			}
			for i := range w.Experts.Mixtures {
				image, err := b.Main.AllocHost(w.Experts.Mixtures[i].Images())
				if err != nil {
					return err
				}
				images = append(images, image)
			}
			return b.Main.CopyToDevice(base, memory)
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Load(context.Background(), b.GPU, base, images, stream, nil, func(int) error { return nil }); err != nil {
			t.Fatal(err)
		}
		for x, part := range w.Experts.PartOf {
			m := &w.Experts.Mixtures[part.Mixture]
			got := images[part.Mixture][part.Expert*m.Bytes+m.Parts[part.Part]:][:w.Size(x)]
			if !slices.Equal(got, memory[w.At[x]:][:w.Size(x)]) {
				t.Errorf("the image of %s is of words %d, want %d", x.Name, device.Words[int32](got)[0], w.At[x]/4)
			}
		}
		err = b.Main.Do(func() error {
			all := []error{stream.Destroy(), b.Main.Free(base)}
			for _, image := range images {
				all = append(all, b.Main.FreeHost(image))
			}
			return errors.Join(all...)
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// Every step returns the counts of the kernel keep.
func TestExpertUse(t *testing.T) {
	b, _ := openFake(t, drivertest.Options{}, Options{})
	p := mixtures(t, false, 8, 8, 8)
	lim := limitsFor(p, 8, 2)
	lim.Weights, lim.Pinned = 1, 1<<30
	e := compiled(t, b, p, lim)
	counts := make([]byte, lower.UsesBytes)
	copy(device.Words[int64](counts), []int64{60, 7, 7 * mixtureExpert})
	if err := b.Main.Do(func() error { return b.Main.CopyToDevice(e.scratchAt+driver.DevicePtr(e.room.Uses), counts) }); err != nil {
		t.Fatal(err)
	}
	if err := run(e, batchOf(p, 1, 0, 1)); err != nil {
		t.Fatal(err)
	}
	if got, want := e.expertUse(), (expertUse{Chosen: 60, Fetched: 7, Bytes: 7 * mixtureExpert}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// If any allocation of pinned memory fails, the others are freed.
func TestNoMemoryForExperts(t *testing.T) {
	b, f := openFake(t, drivertest.Options{}, Options{})
	p := mixtures(t, false, 8, 8, 8)
	lim := limitsFor(p, 8, 2)
	lim.Weights, lim.Pinned = 1, 1<<30
	for n := 1; ; n++ {
		f.Fail("cuMemHostAlloc", n, driver.OutOfMemory)
		x, err := b.Compile(context.Background(), p, lim, nil)
		if err == nil {
			f.Mend()
			if err := x.Close(); err != nil || n <= 3 {
				t.Errorf("call %d: %v", n, err)
			}
			return
		}
		if n == 3 && !strings.Contains(err.Error(), "making room for experts in the host's memory") || !errors.Is(err, driver.ErrOutOfMemory) {
			t.Errorf("call %d: %v", n, err)
		}
		if left := kept(f); left != "" {
			t.Errorf("call %d: left are %s", n, left)
		}
	}
}

// A step that fails between its launches may leave a place without its expert. The next step begins
// with all places free.
func TestTornStep(t *testing.T) {
	b, f := openFake(t, drivertest.Options{}, Options{Eager: true})
	p := mixtures(t, false, 8, 8, 8)
	lim := limitsFor(p, 8, 2)
	lim.Pinned = 1 << 30
	lim.Weights = weights.NewPlan(p, &lim, weights.StreamSlots).Bytes - 3*8*mixtureExpert/2
	e := compiled(t, b, p, lim)
	if err := run(e, batchOf(p, 1, 0, 1)); err != nil {
		t.Fatal(err)
	}
	tables := func() (all [][]byte) {
		for _, m := range e.weights.Experts.Mixtures {
			table := make([]byte, m.TableBytes())
			if err := b.Main.Do(func() error { return b.Main.CopyToHost(table, e.weightsAt+driver.DevicePtr(m.Tables)) }); err != nil {
				t.Fatal(err)
			}
			all = append(all, table)
		}
		return all
	}
	before := f.Calls("cuLaunchKernelEx")
	if err := run(e, batchOf(p, 1, 1, 1)); err != nil {
		t.Fatal(err)
	}
	launches := f.Calls("cuLaunchKernelEx") - before
	f.Fail("cuLaunchKernelEx", launches/2, driver.OutOfMemory)
	if err := run(e, batchOf(p, 1, 2, 1)); !errors.Is(err, driver.ErrOutOfMemory) {
		t.Fatalf("the step's error is %v", err)
	}
	if err := run(e, batchOf(p, 1, 2, 1)); err != nil {
		t.Fatal(err)
	}
	for i, m := range e.weights.Experts.Mixtures {
		if !slices.Equal(tables()[i], m.Table(0)) {
			t.Errorf("mixture %d: after a torn step places have experts", i)
		}
	}
}
