package lower

import (
	"fmt"
	"math/rand/v2"
	"slices"
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
	g := emulate.Open(t)
	options := g.Options(1)
	options.Devices[0].Capability = driver.Capability{Major: 9}
	d := drivertest.New(t, options).Driver()
	devices, err := d.Devices()
	if err != nil {
		t.Fatal(err)
	}
	gpu, err := device.Open(d, devices[0], driver.Capability{Major: 9}, g.PTX)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := gpu.Close(); err != nil {
			t.Error(err)
		}
	}()
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
			c := &Compiler{Layout: &Layout{lim: &plan.Limits{Cache: tensor.F16, PageTokens: test.pageTokens}}, Kernel: gpu.Function, Shared: gpu.Shared, Hopper: true, Multiprocessors: test.blocks, SharedPerBlock: gpu.Info.SharedPerBlock}
			by := c.attentionBy(test.headDim)
			if by.wideDim != test.headDim {
				t.Fatalf("there are no wide tiles for heads of %d", test.headDim)
			}
			a := &attentionArgs{
				heads: int32(test.heads), kvHeads: int32(test.kvHeads), dim: int32(test.headDim), scale: 0.125,
				softcap: test.softcap, window: int32(test.window),
			}
			var got [2][]byte
			sh, tokens := &Shape{}, 0
			for _, s := range test.spans {
				tokens += s.tokens
			}
			sh.Tokens, sh.segments = Power(tokens), splitPartials // so many that blocks share none
			err := gpu.Main.Do(func() error {
				b := &attentionBuffers{c: gpu.Main, rng: rand.New(rand.NewPCG(1, uint64(test.headDim)))}
				b.fill(a, test.spans, tokens, test.pageTokens, test.sinks)
				st, err := gpu.Main.NewStream()
				if err != nil {
					return err
				}
				for i, launch := range []func(attentionBy, *attentionArgs) (Launch, error){c.attendTiles, c.attendWide} {
					out := b.out(a, tokens)
					l, err := launch(by, a)
					if err == nil {
						err = l.begin(st, sh)
					}
					if err == nil {
						err = st.Synchronize()
					}
					if err != nil {
						return err
					}
					got[i] = b.read(out)
				}
				b.free()
				if err := st.Destroy(); err != nil {
					return err
				}
				return b.err
			})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got[0], got[1]) {
				t.Errorf("%d of %d bytes differ", differ(got[0], got[1]), len(got[0]))
			}
			if numbers := device.Words[float32](got[0]); numbers[0] != numbers[0] || numbers[0] == 0 {
				t.Errorf("the first number is %v", numbers[0])
			}
		})
	}
}

func differ(a, b []byte) (n int) {
	for i := range a {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}

// attentionBuffers are the inputs of attention on a device. err is the first error.
type attentionBuffers struct {
	c    *driver.Context
	rng  *rand.Rand
	held []driver.DevicePtr
	err  error
}

// free frees the memory.
func (b *attentionBuffers) free() {
	for _, p := range b.held {
		if err := b.c.Free(p); b.err == nil {
			b.err = err
		}
	}
}

// put copies all to new device memory.
func put[T any](b *attentionBuffers, all []T) driver.DevicePtr {
	var v T
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(all))), len(all)*int(unsafe.Sizeof(v)))
	p, err := b.c.Alloc(len(bytes))
	if err == nil {
		err = b.c.CopyToDevice(p, bytes)
	}
	if b.err == nil {
		b.err = err
	}
	b.held = append(b.held, p)
	return p
}

// fill sets the inputs of a step of these spans, whose pages are in no order.
func (b *attentionBuffers) fill(a *attentionArgs, spans []span, tokens, pageTokens int, sinks bool) {
	headDim, kvHeads := int(a.dim), int(a.kvHeads)
	starts, places, pages := []int32{0}, []Place(nil), []int32(nil)
	positions := 0
	for _, s := range spans {
		shift := len(pages)
		for range (s.past + s.tokens + pageTokens - 1) / pageTokens {
			pages = append(pages, int32(len(pages)))
		}
		for i := range s.tokens {
			places = append(places, Place{position: int32(s.past + i), shift: int32(shift)})
		}
		starts = append(starts, starts[len(starts)-1]+int32(s.tokens))
		positions += s.past + s.tokens
	}
	for len(places) < Power(tokens) {
		places = append(places, Place{position: -1})
	}
	b.rng.Shuffle(len(pages), func(i, j int) { pages[i], pages[j] = pages[j], pages[i] })

	pageNumbers := 2 * kvHeads * headDim * pageTokens
	pool := make([]uint16, len(pages)*pageNumbers)
	for i := range pool {
		pool[i] = tensor.F32ToF16(float32(b.rng.NormFloat64()))
	}
	// Positions that no token has written hold NaN.
	at := 0
	for _, s := range spans {
		n := (s.past + s.tokens + pageTokens - 1) / pageTokens
		last := int(pages[at+n-1]) * pageNumbers
		for i := range pageNumbers {
			position := i / 8 % pageTokens // of a key
			if i >= pageNumbers/2 {
				position = i / headDim % pageTokens
			}
			if (n-1)*pageTokens+position >= s.past+s.tokens {
				pool[last+i] = 0xffff
			}
		}
		at += n
	}
	q := make([]float32, tokens*int(a.heads)*headDim)
	for i := range q {
		q[i] = float32(b.rng.NormFloat64())
	}
	a.q, a.stride = put(b, q), a.heads*a.dim
	if sinks {
		all := make([]float32, a.heads)
		for i := range all {
			all[i] = float32(b.rng.NormFloat64())
		}
		a.sinks = put(b, all)
	}
	a.pool = poolArgs{base: put(b, pool), apart: int64(2 * pageNumbers), pageTokens: int32(pageTokens), kvHeads: a.kvHeads, dim: a.dim}
	a.table = tableArgs{pages: put(b, pages), places: put(b, places)}
	a.count, a.seqs, a.starts = put(b, []int32{int32(tokens)}), put(b, []int32{int32(len(spans))}), put(b, starts)
}

// An output is device memory and its size in bytes.
type output struct {
	f32, f16    driver.DevicePtr
	bytes, of16 int
}

// out gives the step an output that holds zeros.
func (b *attentionBuffers) out(a *attentionArgs, tokens int) output {
	stride := (int(a.heads*a.dim) + 255) / 256 * 256
	o := output{bytes: 4 * tokens * stride, of16: 2 * (tokens + 127) / 128 * 128 * stride}
	o.f32, o.f16 = put(b, make([]byte, o.bytes)), put(b, make([]byte, o.of16))
	a.out = device.Forms{F32: o.f32, F16: o.f16, Stride: int32(stride), Cols: a.heads * a.dim, By: 0.5}
	return o
}

// read returns the bytes of an output.
func (b *attentionBuffers) read(o output) []byte {
	all := make([]byte, o.bytes+o.of16)
	for _, part := range []struct {
		to   []byte
		from driver.DevicePtr
	}{{all[:o.bytes], o.f32}, {all[o.bytes:], o.f16}} {
		if err := b.c.CopyToHost(part.to, part.from); b.err == nil {
			b.err = err
		}
	}
	return all
}
