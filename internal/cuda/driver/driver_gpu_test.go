//go:build gpu

package driver_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/realizar/realizar/internal/cuda/driver"
)

// These tests need a GPU of capability 8.0 or later. They log times and do not judge them:
//
//	CGO_ENABLED=0 go test -tags gpu -c ./internal/cuda/driver
//	./driver.test -test.v -test.run GPU

const vectorPTX = `
.version 7.0
.target sm_80
.address_size 64

// c[i] = a[i] + b[i]
.visible .entry vector_add(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u32 pn)
{
	.reg .pred %past;
	.reg .b32 %r<6>;
	.reg .f32 %f<4>;
	.reg .b64 %d<8>;

	mov.u32 %r1, %ctaid.x;
	mov.u32 %r2, %ntid.x;
	mov.u32 %r3, %tid.x;
	mad.lo.u32 %r4, %r1, %r2, %r3;
	ld.param.u32 %r5, [pn];
	setp.ge.u32 %past, %r4, %r5;
	@%past bra done;
	ld.param.u64 %d1, [pa];
	ld.param.u64 %d2, [pb];
	ld.param.u64 %d3, [pc];
	mul.wide.u32 %d4, %r4, 4;
	add.u64 %d5, %d1, %d4;
	add.u64 %d6, %d2, %d4;
	add.u64 %d7, %d3, %d4;
	ld.global.f32 %f1, [%d5];
	ld.global.f32 %f2, [%d6];
	add.rn.f32 %f3, %f1, %f2;
	st.global.f32 [%d7], %f3;
done:
	ret;
}

// y[i] += s * x[i]; the scalar stands before pointers, so that there is padding.
.visible .entry saxpy(.param .f32 ps, .param .u64 px, .param .u64 py, .param .u32 pn)
{
	.reg .pred %past;
	.reg .b32 %r<6>;
	.reg .f32 %f<5>;
	.reg .b64 %d<6>;

	mov.u32 %r1, %ctaid.x;
	mov.u32 %r2, %ntid.x;
	mov.u32 %r3, %tid.x;
	mad.lo.u32 %r4, %r1, %r2, %r3;
	ld.param.u32 %r5, [pn];
	setp.ge.u32 %past, %r4, %r5;
	@%past bra done;
	ld.param.f32 %f1, [ps];
	ld.param.u64 %d1, [px];
	ld.param.u64 %d2, [py];
	mul.wide.u32 %d3, %r4, 4;
	add.u64 %d4, %d1, %d3;
	add.u64 %d5, %d2, %d3;
	ld.global.f32 %f2, [%d4];
	ld.global.f32 %f3, [%d5];
	fma.rn.f32 %f4, %f1, %f2, %f3;
	st.global.f32 [%d5], %f4;
done:
	ret;
}

// One word of shared memory beyond the declared ones, to ask for much of it.
.extern .shared .align 16 .b8 dynamic[];
.visible .entry last_word(.param .u64 pout, .param .u32 pbytes)
{
	.reg .b32 %r<4>;
	.reg .b64 %d<2>;

	mov.u32 %r1, dynamic;
	ld.param.u32 %r2, [pbytes];
	add.u32 %r1, %r1, %r2;
	st.shared.u32 [%r1+-4], %r2;
	ld.shared.u32 %r3, [%r1+-4];
	ld.param.u64 %d1, [pout];
	st.global.u32 [%d1], %r3;
	ret;
}
`

// gpu is the first device, with the kernels and the stream that most tests need.
type gpu struct {
	c                    *driver.Context
	s                    *driver.Stream
	add, saxpy, lastWord *driver.Function
}

func newGPU(t *testing.T) *gpu {
	t.Helper()
	d, err := driver.Open()
	if err != nil {
		t.Fatal(err)
	}
	devices, err := d.Devices()
	if err != nil {
		t.Fatal(err)
	}
	g := &gpu{}
	if g.c, err = d.NewContext(devices[0]); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.c.Close(); err != nil {
			t.Error(err)
		}
	})
	within(t, g.c, func() error {
		if g.s, err = g.c.NewStream(); err != nil {
			return err
		}
		m, err := g.c.LoadModule([]byte(vectorPTX))
		if err != nil {
			return err
		}
		t.Cleanup(func() {
			if err := g.c.Do(func() error { return errors.Join(m.Unload(), g.s.Destroy()) }); err != nil && !errors.Is(err, driver.ErrDeviceLost) {
				t.Error(err)
			}
		})
		for name, f := range map[string]**driver.Function{"vector_add": &g.add, "saxpy": &g.saxpy, "last_word": &g.lastWord} {
			if *f, err = m.Function(name); err != nil {
				return err
			}
		}
		return nil
	})
	return g
}

// alloc allocates device memory until the end of the test.
func (g *gpu) alloc(t *testing.T, bytes int) driver.DevicePtr {
	t.Helper()
	p, err := g.c.Alloc(bytes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.c.Do(func() error { return g.c.Free(p) }); err != nil {
			t.Error(err)
		}
	})
	return p
}

// time returns how long the stream takes for the work that f queues, in milliseconds.
func (g *gpu) time(t *testing.T, f func() error) float64 {
	t.Helper()
	start, err := g.c.NewTimer()
	if err != nil {
		t.Fatal(err)
	}
	defer destroy(t, start.Destroy)
	end, err := g.c.NewTimer()
	if err != nil {
		t.Fatal(err)
	}
	defer destroy(t, end.Destroy)
	if err := errors.Join(g.s.Synchronize(), start.Record(g.s), f(), end.Record(g.s), end.Synchronize()); err != nil {
		t.Fatal(err)
	}
	ms, err := end.Since(start)
	if err != nil {
		t.Fatal(err)
	}
	return float64(ms)
}

func floats(n int, f func(i int) float32) []byte {
	b := make([]byte, 0, 4*n)
	for i := range n {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f(i)))
	}
	return b
}

func TestGPUDevices(t *testing.T) {
	d, err := driver.Open()
	if err != nil {
		t.Fatal(err)
	}
	devices, err := d.Devices()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("CUDA %v", d.Version())
	for _, dev := range devices {
		t.Logf("%+v, %.0f GB/s", dev, dev.Bandwidth()/1e9)
		if dev.Name == "" || dev.Memory <= 0 || dev.Capability.Major == 0 || dev.Multiprocessors <= 0 || dev.SharedPerBlock < 48<<10 || dev.L2 <= 0 {
			t.Errorf("device %d has not told all", dev.Index)
		}
	}
}

func TestGPUKernels(t *testing.T) {
	const n = 1_000_003
	g := newGPU(t)
	within(t, g.c, func() error {
		x, y, z := g.alloc(t, 4*n), g.alloc(t, 4*n), g.alloc(t, 4*n)
		if err := errors.Join(
			g.c.CopyToDevice(x, floats(n, func(i int) float32 { return float32(i % 1000) })),
			g.c.CopyToDevice(y, floats(n, func(i int) float32 { return float32(i % 77) })),
		); err != nil {
			return err
		}
		shape := driver.LaunchConfig{Grid: driver.Dim3{X: (n + 255) / 256}, Block: driver.Dim3{X: 256}}
		shapes := []driver.LaunchConfig{shape}
		if g.c.Device().Capability.AtLeast(9, 0) {
			shape.Programmatic = true
			shapes = append(shapes, shape)
			shape.Grid.X = (shape.Grid.X + 1) &^ 1
			shape.Cluster.X = 2
			shapes = append(shapes, shape)
		}
		for _, shape := range shapes {
			var add, saxpy driver.Args
			add.Pointer(x).Pointer(y).Pointer(z).Uint32(n)
			saxpy.Float32(0.5).Pointer(x).Pointer(z).Uint32(n)
			got := make([]byte, 4*n)
			if err := errors.Join(
				g.c.Memset32(z, 0xffffffff, n),
				g.add.Launch(g.s, shape, &add),
				// The second kernel must not begin before the first one ends.
				g.s.Synchronize(),
				g.saxpy.Launch(g.s, shape, &saxpy),
				g.s.Synchronize(),
				g.c.CopyToHost(got, z),
			); err != nil {
				return err
			}
			want := floats(n, func(i int) float32 { return float32(i%1000) + float32(i%77) + 0.5*float32(i%1000) })
			if !bytes.Equal(got, want) {
				t.Errorf("%+v: wrong sums", shape)
			}
		}
		a, err := g.add.Attributes()
		if err != nil {
			return err
		}
		blocks, err := g.add.Occupancy(256, 0)
		t.Logf("vector_add: %+v, %d blocks of 256 at a time", a, blocks)
		if blocks <= 0 || a.Registers <= 0 || a.MaxThreadsPerBlock <= 0 {
			t.Error("the kernel takes nothing")
		}
		return err
	})
}

func TestGPUShared(t *testing.T) {
	g := newGPU(t)
	within(t, g.c, func() error {
		out := g.alloc(t, 4)
		limit := g.c.Device().SharedPerBlock
		shape := driver.LaunchConfig{Grid: driver.Dim3{X: 1}, Block: driver.Dim3{X: 1}, Shared: limit}
		var a driver.Args
		a.Pointer(out).Uint32(uint32(limit))
		if err := g.lastWord.Launch(g.s, shape, &a); err == nil {
			t.Error("all shared memory was given unasked")
		}
		got := make([]byte, 4)
		if err := errors.Join(g.lastWord.SetMaxDynamicShared(limit), g.lastWord.Launch(g.s, shape, &a), g.s.Synchronize(), g.c.CopyToHost(got, out)); err != nil {
			return err
		}
		if n := binary.LittleEndian.Uint32(got); n != uint32(limit) {
			t.Errorf("%d, want %d", n, limit)
		}
		return nil
	})
}

func TestGPUCopies(t *testing.T) {
	const n = 256 << 20
	g := newGPU(t)
	within(t, g.c, func() error {
		p, q := g.alloc(t, n), g.alloc(t, n)
		host, err := g.c.AllocHost(n)
		if err != nil {
			return err
		}
		defer destroy(t, func() error { return g.c.FreeHost(host) })
		back, err := g.c.AllocHost(n)
		if err != nil {
			return err
		}
		defer destroy(t, func() error { return g.c.FreeHost(back) })
		for i := range host {
			host[i] = byte(i * 7 >> 3)
		}
		const rounds = 10
		for what, f := range map[string]func() error{
			"to the device": func() error { return g.s.CopyToDevice(p, host) },
			"on the device": func() error { return g.s.CopyOnDevice(q, p, n) },
			"to the host":   func() error { return g.s.CopyToHost(back, q) },
		} {
			ms := g.time(t, func() error {
				for range rounds {
					if err := f(); err != nil {
						return err
					}
				}
				return nil
			})
			t.Logf("%s: %.1f GB/s", what, rounds*n/ms/1e6)
		}
		clear(back)
		if err := errors.Join(g.s.CopyToDevice(p, host), g.s.CopyOnDevice(q, p, n), g.s.CopyToHost(back, q), g.s.Synchronize()); err != nil {
			return err
		}
		if !bytes.Equal(host, back) {
			t.Error("what came back is not what was sent")
		}
		goes := make([]byte, 1<<20)
		if err := errors.Join(g.c.Memset8(q, 3, len(goes)), g.c.CopyToHost(goes, q)); err != nil {
			return err
		}
		if !bytes.Equal(goes, bytes.Repeat([]byte{3}, len(goes))) {
			t.Error("the bytes are not what was written")
		}
		return nil
	})
}

func TestGPUGraph(t *testing.T) {
	const n, launches, rounds = 1024, 300, 100
	g := newGPU(t)
	within(t, g.c, func() error {
		x, y := g.alloc(t, 4*n), g.alloc(t, 4*n)
		if err := errors.Join(g.c.CopyToDevice(x, floats(n, func(i int) float32 { return 1 })), g.c.Memset32(y, 0, n)); err != nil {
			return err
		}
		shape := driver.LaunchConfig{Grid: driver.Dim3{X: n / 256}, Block: driver.Dim3{X: 256}}
		var a driver.Args
		a.Float32(1).Pointer(x).Pointer(y).Uint32(n)
		all := func() error {
			for range launches {
				if err := g.saxpy.Launch(g.s, shape, &a); err != nil {
					return err
				}
			}
			return nil
		}
		if err := all(); err != nil { // the first launches load the code
			return err
		}
		begin := time.Now()
		eager := g.time(t, all)
		host := time.Since(begin)

		graph, err := g.s.Capture(all)
		if err != nil {
			return err
		}
		defer destroy(t, graph.Destroy)
		if nodes, err := graph.Nodes(); nodes != launches || err != nil {
			t.Errorf("%d nodes, %v", nodes, err)
		}
		x300, err := graph.Instantiate()
		if err != nil {
			return err
		}
		defer destroy(t, x300.Destroy)
		if err := errors.Join(x300.Upload(g.s), x300.Launch(g.s)); err != nil {
			return err
		}
		var call time.Duration
		ms := g.time(t, func() error {
			begin := time.Now()
			for range rounds {
				if err := x300.Launch(g.s); err != nil {
					return err
				}
			}
			call = time.Since(begin)
			return nil
		})
		t.Logf("%d launches: eager %.1f us (host %v), as a graph %.1f us (host %v)", launches, 1000*eager, host, 1000*ms/rounds, call/rounds)
		got := make([]byte, 4*n)
		if err := g.c.CopyToHost(got, y); err != nil {
			return err
		}
		if want := floats(n, func(int) float32 { return (2 + 1 + rounds) * launches }); !bytes.Equal(got, want) {
			t.Errorf("y[0] is %v, want %d", math.Float32frombits(binary.LittleEndian.Uint32(got)), (2+1+rounds)*launches)
		}
		return nil
	})
}

func TestGPUTensorMap(t *testing.T) {
	g := newGPU(t)
	if !g.c.Device().Capability.AtLeast(9, 0) {
		t.Skip("tensor maps need capability 9.0")
	}
	within(t, g.c, func() error {
		p := g.alloc(t, 64*128*2)
		tile := driver.TiledTensor{Type: driver.TensorBFloat16, Address: p, Shape: []uint64{128, 64}, Strides: []uint64{256}, Box: []uint32{64, 8}, Swizzle: driver.Swizzle128, Promotion: driver.Promotion256}
		m, err := g.c.EncodeTensorMap(tile)
		if err != nil {
			return err
		}
		if m == (driver.TensorMap{}) {
			t.Error("the map is empty")
		}
		tile.Strides[0] = 250
		if _, err := g.c.EncodeTensorMap(tile); err == nil {
			t.Error("a stride of 250 bytes was taken")
		}
		return nil
	})
}

func TestGPUErrors(t *testing.T) {
	g := newGPU(t)
	within(t, g.c, func() error {
		_, err := g.c.Alloc(1 << 50)
		if !errors.Is(err, driver.ErrOutOfMemory) {
			t.Errorf("a petabyte: %v", err)
		}
		t.Log(err)
		_, err = g.c.LoadModule([]byte(strings.Replace(vectorPTX, "add.rn.f32", "add.rn.f33", 1)))
		if err == nil || !strings.Contains(err.Error(), "f33") {
			t.Errorf("the compiler's log is missing: %v", err)
		}
		t.Log(err)
		if _, err := g.s.Capture(g.s.Synchronize); err == nil {
			t.Error("waiting was captured")
		}
		return g.s.Synchronize()
	})
}

// This test must come last: the process may not be able to use the device after it.
func TestGPULost(t *testing.T) {
	g := newGPU(t)
	err := g.c.Do(func() error {
		defer g.c.Doing(g.c.Doing("writing where there is nothing"))
		var a driver.Args
		a.Float32(1).Pointer(0x10).Pointer(0x10).Uint32(1)
		return errors.Join(g.saxpy.Launch(g.s, small, &a), g.s.Synchronize())
	})
	if !errors.Is(err, driver.ErrDeviceLost) {
		t.Errorf("got %v", err)
	}
	t.Log(err)
	again := g.c.Do(func() error {
		_, err := g.c.Alloc(16)
		return err
	})
	if !errors.Is(again, driver.ErrDeviceLost) {
		t.Errorf("afterwards: %v", again)
	}
}
