package lower

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
	"github.com/realizar/realizar/internal/cuda/kernels/emulate"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// A span is the tokens of a sequence in a step: those before it, and its own.
type span struct{ past, tokens int }

// Wide tiles of prefill attention compute the bits of the other tiles, on a device whose kernels run
// on the host: rows that fill tiles and rows that do not, of several sequences, with windows, softcaps
// and sinks.
func TestWideAttention(t *testing.T) {
	gpu := openHopper(t)
	several := []span{{0, 37}, {500, 1}, {130, 33}, {31, 1}, {63, 2}}
	for _, test := range []struct {
		headDim, heads, kvHeads, pageTokens, window int
		softcap                                     float32
		sinks                                       bool
		spans                                       []span
		blocks                                      int
	}{
		{headDim: 64, heads: 8, kvHeads: 2, pageTokens: 32, spans: several, blocks: 3},
		{headDim: 64, heads: 3, kvHeads: 3, pageTokens: 64, window: 40, sinks: true, spans: []span{{0, 150}, {300, 20}}, blocks: 5},
		{headDim: 128, heads: 8, kvHeads: 2, pageTokens: 32, sinks: true, spans: several, blocks: 2},
		{headDim: 128, heads: 7, kvHeads: 1, pageTokens: 32, window: 300, softcap: 20, spans: []span{{250, 40}, {0, 1}, {1000, 3}}, blocks: 1},
		{headDim: 256, heads: 4, kvHeads: 2, pageTokens: 96, spans: several, blocks: 4},
		{headDim: 256, heads: 2, kvHeads: 1, pageTokens: 32, window: 100, softcap: 30, spans: []span{{200, 70}}, blocks: 2},
	} {
		t.Run(fmt.Sprintf("%d heads of %d, window %d", test.heads, test.headDim, test.window), func(t *testing.T) {
			c := compilerFor(gpu, test.pageTokens, test.blocks)
			by := c.attentionBy(test.headDim)
			if by.wideDim != test.headDim {
				t.Fatalf("there are no wide tiles for heads of %d", test.headDim)
			}
			computeTheSame(t, gpu, test.spans, test.pageTokens, func(b *stepBuffers) ([]func(*driver.Stream) error, error) {
				a := &attentionArgs{
					heads: int32(test.heads), kvHeads: int32(test.kvHeads), dim: int32(test.headDim), scale: 0.125, softcap: test.softcap,
					window: int32(test.window), stride: int32(test.heads * test.headDim), count: b.count, seqs: b.seqs, starts: b.starts,
				}
				a.q, a.table = put(b, b.normal(b.tokens*int(a.stride))), b.table
				a.pool = poolArgs{pageTokens: int32(test.pageTokens), kvHeads: a.kvHeads, dim: a.dim}
				a.pool.base, a.pool.apart = b.pool(test.kvHeads, test.headDim, test.headDim)
				if test.sinks {
					a.sinks = put(b, b.normal(test.heads))
				}
				sh := &Shape{Tokens: Power(b.tokens), segments: splitPartials} // so many that blocks share none
				var runs []func(*driver.Stream) error
				for _, launch := range []func(attentionBy, *attentionArgs) (Launch, error){c.attendTiles, c.attendWide} {
					runs = append(runs, func(st *driver.Stream) error {
						a.out = b.out(test.heads * test.headDim)
						l, err := launch(by, a)
						if err != nil {
							return err
						}
						return l.begin(st, sh)
					})
				}
				return runs, nil
			})
		})
	}
}

// Sequences of one token have the bits of tiles, whether all of a step have one, or some are beside
// longer ones, at the step's begin, in between or at its end; whether blocks share the segments of a
// token, have all of them, or a warp has them.
func TestOneToken(t *testing.T) {
	gpu := openHopper(t)
	beside := []span{{300, 1}, {40, 1}, {130, 33}, {31, 1}, {0, 20}, {0, 1}}
	ones := []span{{0, 1}, {31, 1}, {32, 1}, {255, 1}, {256, 1}, {700, 1}, {63, 1}}
	for _, test := range []struct {
		headDim, heads, kvHeads, window int
		softcap                         float32
		sinks, norms                    bool
		spans                           []span
	}{
		{headDim: 128, heads: 8, kvHeads: 2, sinks: true, spans: beside},
		{headDim: 64, heads: 6, kvHeads: 6, window: 40, spans: []span{{0, 50}, {500, 1}}},
		{headDim: 256, heads: 4, kvHeads: 2, spans: []span{{270, 1}, {10, 30}, {64, 1}}},
		{headDim: 128, heads: 8, kvHeads: 2, sinks: true, norms: true, spans: ones},
		{headDim: 64, heads: 20, kvHeads: 2, window: 300, spans: ones},
		{headDim: 256, heads: 3, kvHeads: 1, softcap: 30, spans: ones},
	} {
		for _, by := range []struct {
			by              string
			multiprocessors int
			segments        int // at least
		}{
			{by: decodeWarps, multiprocessors: 1},
			{by: "blocks", multiprocessors: 20, segments: splitPartials},
			{by: "several blocks", multiprocessors: 20},
		} {
			t.Run(fmt.Sprintf("%d heads of %d, window %d, %d sequences, %s", test.heads, test.headDim, test.window, len(test.spans), by.by), func(t *testing.T) {
				const pageTokens = 32
				c := compilerFor(gpu, pageTokens, by.multiprocessors)
				kind := c.attentionBy(test.headDim)
				computeTheSame(t, gpu, test.spans, pageTokens, func(b *stepBuffers) ([]func(*driver.Stream) error, error) {
					batch := &plan.Batch{Tokens: make([]int32, b.tokens), Start: []int32{0}}
					sequence := []int32(nil)
					for q, s := range test.spans {
						batch.Start = append(batch.Start, batch.Start[q]+int32(s.tokens))
						for i := range s.tokens {
							batch.Positions = append(batch.Positions, int32(s.past+i))
							sequence = append(sequence, int32(q))
						}
					}
					sh := ShapeOf(batch, &PrefixSet{})
					sh.segments = max(sh.segments, by.segments)
					singles := make([]int32, Power(len(test.spans))+1)
					FillSingles(singles, batch)
					c.Step.counts, c.Step.singles, c.Step.sequence, c.Step.overflow = b.count, put(b, singles), put(b, sequence), put(b, make([]int32, len(test.spans)))
					kv := test.kvHeads * test.headDim
					a := attentionArgs{
						heads: int32(test.heads), kvHeads: int32(test.kvHeads), dim: int32(test.headDim), scale: 0.125, softcap: test.softcap,
						window: int32(test.window), stride: int32(test.heads * test.headDim), count: b.count, seqs: b.seqs, starts: b.starts,
					}
					a.table = b.table
					a.pool = poolArgs{pageTokens: pageTokens, kvHeads: a.kvHeads, dim: a.dim}
					a.pool.base, a.pool.apart = b.pool(test.kvHeads, test.headDim, test.headDim)
					if test.sinks {
						a.sinks = put(b, b.normal(test.heads))
					}
					attr := plan.AttentionAttr{Heads: test.heads, KVHeads: test.kvHeads, HeadDim: test.headDim}
					a.partial = put(b, make([]float32, headGroups(attr)*blockHeads*(test.headDim+2)*splitPartials))
					a.tickets = put(b, make([]int32, test.heads*Power(b.tokens)))
					turn := turnArgs{
						k: put(b, b.normal(b.tokens*kv)), v: put(b, b.normal(b.tokens*kv)), qStride: a.stride, kStride: int32(kv), vStride: int32(kv),
						heads: a.heads, kvHeads: a.kvHeads, headDim: a.dim, pool: a.pool, table: a.table,
						qAngles: put(b, b.normal(b.tokens*test.headDim)), qDims: int32(test.headDim), qInterleaved: 1, qOutStride: a.stride,
						kDims: int32(test.headDim / 2),
					}
					turn.kAngles = turn.qAngles
					if test.norms {
						turn.qNorm, turn.kNorm, turn.qEps, turn.kEps = put(b, b.normal(test.headDim)), put(b, b.normal(test.headDim)), 1e-5, 1e-6
					} else {
						turn.qDims /= 2 // through shared memory, between heads that no norm keeps in step
					}
					queries := b.normal(b.tokens * int(a.stride))
					run := func(launches func(t turnArgs, a *attentionArgs) ([]Launch, error)) func(*driver.Stream) error {
						return func(st *driver.Stream) error {
							a, turn := a, turn
							a.q, a.out = put(b, queries), b.out(test.heads*test.headDim)
							turn.q, turn.qOut = a.q, a.q
							all, err := launches(turn, &a)
							if err != nil {
								return err
							}
							return Give(st, &sh, all)
						}
					}
					tiles := run(func(turn turnArgs, a *attentionArgs) ([]Launch, error) {
						store, err := c.turn(&turn)
						if err != nil {
							return nil, err
						}
						attend, err := c.attendTiles(kind, a)
						return []Launch{store, attend}, err
					})
					apart := run(func(turn turnArgs, a *attentionArgs) ([]Launch, error) {
						args := decodeArgs{turn: turn, attention: *a}
						decode, err := c.decode(kind, &args)
						if err != nil {
							return nil, err
						}
						all := []Launch{decode}
						if sh.mixed() {
							store, err := c.turn(&turn)
							if err != nil {
								return nil, err
							}
							beside, err := c.beside(kind, args)
							if err != nil {
								return nil, err
							}
							attend, err := c.attendWide(kind, a)
							if err != nil {
								return nil, err
							}
							all = []Launch{store, attend, beside}
						}
						for _, l := range all {
							name := l.Kernel(&sh)
							if strings.HasPrefix(name, "decode_") && strings.HasSuffix(name, decodeWarps) != (by.by == decodeWarps) {
								return nil, fmt.Errorf("%s runs, not %s", name, by.by)
							}
						}
						return all, nil
					})
					return []func(*driver.Stream) error{tiles, apart}, nil
				})
			})
		}
	}
}

// The launches of a mixed step count each sequence once.
func TestSequencesOf(t *testing.T) {
	b := &plan.Batch{Tokens: make([]int32, 6), Start: []int32{0, 1, 4, 5, 6}, Positions: []int32{9, 300, 301, 302, 0, 70}}
	ones, others := sequencesOf(b, true), sequencesOf(b, false)
	for _, test := range []struct {
		b                      *plan.Batch
		seqs, tokens, attended int
	}{{ones, 3, 3, 10 + 1 + 71}, {others, 1, 3, 303}} {
		if test.b.Seqs() != test.seqs || len(test.b.Tokens) != test.tokens || test.b.Attended(plan.Group{}) != test.attended {
			t.Errorf("%d sequences of %d tokens that see %d positions, not %d of %d that see %d",
				test.b.Seqs(), len(test.b.Tokens), test.b.Attended(plan.Group{}), test.seqs, test.tokens, test.attended)
		}
	}
}

// The kernel for many tokens of latent attention on Hopper computes the bits of that for one.
func TestWideLatent(t *testing.T) {
	gpu := openHopper(t)
	for _, test := range []struct {
		keyDim, values, heads, pageTokens, window int
		spans                                     []span
	}{
		{keyDim: 576, values: 512, heads: 16, pageTokens: 32, spans: []span{{0, 5}, {300, 1}, {62, 4}}},
		{keyDim: 288, values: 256, heads: 20, pageTokens: 64, window: 90, spans: []span{{500, 3}, {0, 2}}},
	} {
		t.Run(fmt.Sprintf("%d heads of %d and %d, window %d", test.heads, test.keyDim, test.values, test.window), func(t *testing.T) {
			c := compilerFor(gpu, test.pageTokens, 132)
			attr := &plan.AttentionAttr{Heads: test.heads, KVHeads: 1, HeadDim: test.keyDim, ValueDim: test.values, Latent: true}
			computeTheSame(t, gpu, test.spans, test.pageTokens, func(b *stepBuffers) ([]func(*driver.Stream) error, error) {
				a := &anyAttentionArgs{
					heads: int32(test.heads), values: int32(test.values), latent: 1, scale: 0.05, window: int32(test.window),
					stride: int32(test.heads * test.keyDim), count: b.count, maxSegments: 1,
				}
				a.q, a.table = put(b, b.normal(b.tokens*int(a.stride))), b.table
				a.pool = anyPoolArgs{pageTokens: int32(test.pageTokens), every: 1, rows: int32(test.pageTokens), kvHeads: 1, keyDim: int32(test.keyDim)}
				a.pool.base, a.pool.apart = b.pool(1, test.keyDim, 0)
				name := "attend_512"
				if test.values <= 256 {
					name = "attend_256"
				}
				groups := latentGroups(attr)
				var runs []func(*driver.Stream) error
				for _, l := range []struct {
					family, name    string
					threads, shared int
					grid            driver.Dim3
				}{
					{"latent", "attend", 256, 0, driver.Dim3{X: 1, Y: groups, Z: b.tokens}},
					{"wide_latent", name, wideLatentThreads, c.latentShared(attr), driver.Dim3{X: groups, Y: (b.tokens + latentTokens - 1) / latentTokens}},
				} {
					f, err := c.sharedKernel(l.family, l.name, l.shared)
					if err != nil {
						return nil, err
					}
					runs = append(runs, func(st *driver.Stream) error {
						a.out = b.out(test.heads * test.values)
						return c.queue(f, st, driver.LaunchConfig{Grid: l.grid, Block: driver.Dim3{X: l.threads}, Shared: l.shared}, device.Arguments(a))
					})
				}
				return runs, nil
			})
		})
	}
}

// openHopper opens a device of capability 9.0 whose kernels run on the host.
func openHopper(t *testing.T) *device.GPU {
	t.Helper()
	hopper := driver.Capability{Major: 9}
	g := emulate.OpenOf(t, hopper)
	d := drivertest.New(t, g.Options(1)).Driver()
	devices, err := d.Devices()
	if err != nil {
		t.Fatal(err)
	}
	gpu, err := device.Open(d, devices[0], hopper, g.PTX)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := gpu.Close(); err != nil {
			t.Error(err)
		}
	})
	return gpu
}

func compilerFor(gpu *device.GPU, pageTokens, multiprocessors int) *Compiler {
	return &Compiler{
		Layout: &Layout{lim: &plan.Limits{Cache: tensor.F16, PageTokens: pageTokens}}, Kernel: gpu.Function, Shared: gpu.Shared,
		Hopper: true, Multiprocessors: multiprocessors, SharedPerBlock: gpu.Info.SharedPerBlock,
	}
}

// computeTheSame checks that launches write the same bits, and numbers. begin returns functions that
// give a step of these spans a new output and queue a launch.
func computeTheSame(t *testing.T, gpu *device.GPU, spans []span, pageTokens int, begin func(b *stepBuffers) ([]func(*driver.Stream) error, error)) {
	t.Helper()
	var got [][]byte
	f32 := 0 // bytes of float32
	err := gpu.Main.Do(func() error {
		b := &stepBuffers{c: gpu.Main, rng: rand.New(rand.NewPCG(1, 2)), spans: spans, pageTokens: pageTokens}
		st, err := gpu.Main.NewStream()
		if err != nil {
			return err
		}
		b.step()
		runs, err := begin(b)
		for _, run := range runs {
			if err == nil {
				err = run(st)
			}
			if err == nil {
				err = st.Synchronize()
			}
			got, f32 = append(got, b.read()), b.lastF32
		}
		for _, p := range b.held {
			b.keep(gpu.Main.Free(p))
		}
		b.keep(err)
		b.keep(st.Destroy())
		return b.err
	})
	if err != nil {
		t.Fatal(err)
	}
	different := 0
	for i := range got[0] {
		if got[0][i] != got[1][i] {
			different++
		}
	}
	if different > 0 {
		t.Errorf("%d of %d bytes differ", different, len(got[0]))
	}
	zeros := 0
	numbers := device.Words[float32](got[0][:f32])
	for i, v := range numbers {
		if v != v {
			t.Fatalf("number %d of %d is %v", i, len(numbers), v)
		}
		if v == 0 {
			zeros++
		}
	}
	if zeros > len(numbers)/2 {
		t.Errorf("%d of %d numbers are 0", zeros, len(numbers))
	}
}

// stepBuffers are the inputs of a step of some spans on a device.
type stepBuffers struct {
	c          *driver.Context
	rng        *rand.Rand
	spans      []span
	pageTokens int
	err        error // the first one

	tokens              int
	count, seqs, starts driver.DevicePtr
	table               tableArgs
	pages               []int32
	held                []driver.DevicePtr
	last                device.Forms // the last output, and its sizes in bytes
	lastF32, lastF16    int
}

func (b *stepBuffers) keep(err error) {
	if b.err == nil {
		b.err = err
	}
}

// put copies all to new device memory.
func put[T any](b *stepBuffers, all []T) driver.DevicePtr {
	var v T
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(all))), len(all)*int(unsafe.Sizeof(v)))
	p, err := b.c.Alloc(len(bytes))
	if err == nil {
		err = b.c.CopyToDevice(p, bytes)
	}
	b.keep(err)
	b.held = append(b.held, p)
	return p
}

func (b *stepBuffers) normal(n int) []float32 {
	all := make([]float32, n)
	for i := range all {
		all[i] = float32(b.rng.NormFloat64())
	}
	return all
}

// pagesOf returns the number of pages of a sequence.
func (b *stepBuffers) pagesOf(s span) int {
	return (s.past + s.tokens + b.pageTokens - 1) / b.pageTokens
}

// step sets what does not depend on heads. Pages are in no order.
func (b *stepBuffers) step() {
	starts, places := []int32{0}, []Place(nil)
	for _, s := range b.spans {
		shift := len(b.pages)
		for range b.pagesOf(s) {
			b.pages = append(b.pages, int32(len(b.pages)))
		}
		for i := range s.tokens {
			places = append(places, Place{position: int32(s.past + i), shift: int32(shift)})
		}
		b.tokens += s.tokens
		starts = append(starts, int32(b.tokens))
	}
	for len(places) < Power(b.tokens) {
		places = append(places, Place{position: -1})
	}
	b.rng.Shuffle(len(b.pages), func(i, j int) { b.pages[i], b.pages[j] = b.pages[j], b.pages[i] })
	b.table = tableArgs{pages: put(b, b.pages), places: put(b, places)}
	b.count, b.seqs, b.starts = put(b, []int32{int32(b.tokens)}), put(b, []int32{int32(len(b.spans))}), put(b, starts)
}

// pool returns a pool of float16 keys and values, and the bytes from a page to the next. Positions
// that no token has written hold NaN.
func (b *stepBuffers) pool(kvHeads, keyDim, valueDim int) (base driver.DevicePtr, apart int64) {
	keys := kvHeads * keyDim * b.pageTokens
	page := keys + kvHeads*valueDim*b.pageTokens
	all := make([]uint16, len(b.pages)*page)
	at := 0
	for _, s := range b.spans {
		for k := range b.pagesOf(s) {
			for i := range page {
				position := i / 8 % b.pageTokens // of a key
				if i >= keys {
					position = (i - keys) / valueDim % b.pageTokens
				}
				v := uint16(0xffff)
				if k*b.pageTokens+position < s.past+s.tokens {
					v = tensor.F32ToF16(float32(b.rng.NormFloat64()))
				}
				all[int(b.pages[at+k])*page+i] = v
			}
		}
		at += b.pagesOf(s)
	}
	return put(b, all), int64(2 * page)
}

// out returns an output of this many columns, which holds zeros. read reads it.
func (b *stepBuffers) out(cols int) device.Forms {
	stride := (cols + 255) / 256 * 256
	b.lastF32, b.lastF16 = 4*b.tokens*stride, 2*((b.tokens+127)/128*128)*stride
	b.last = device.Forms{F32: put(b, make([]byte, b.lastF32)), F16: put(b, make([]byte, b.lastF16)), Stride: int32(stride), Cols: int32(cols), By: 0.5}
	return b.last
}

func (b *stepBuffers) read() []byte {
	all := make([]byte, b.lastF32+b.lastF16)
	b.keep(b.c.CopyToHost(all[:b.lastF32], b.last.F32))
	b.keep(b.c.CopyToHost(all[b.lastF32:], b.last.F16))
	return all
}
