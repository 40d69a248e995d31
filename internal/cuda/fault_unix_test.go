//go:build unix

package cuda

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// mapWeights puts the program's weights into a mapped file, each at the start of a page. It returns
// the file's path.
func mapWeights(t *testing.T, p *plan.Program) (path string) {
	t.Helper()
	page := os.Getpagesize()
	var content []byte
	at := map[*tensor.Tensor]int{}
	for _, w := range p.Weights() {
		at[w] = len(content)
		content = append(content, w.Data...)
		content = append(content, make([]byte, (page-len(content)%page)%page)...)
	}
	path = filepath.Join(t.TempDir(), "weights")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := unix.Mmap(int(f.Fd()), 0, len(content), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(data) })
	for w, i := range at {
		w.Data = data[i : i+len(w.Data)]
	}
	return path
}

// If weights cannot be read while loading, the error says where, for matrices and vectors in every
// layout. All memory is freed, and the backend still loads other weights.
func TestLoadingFaults(t *testing.T) {
	modeltest.NeedsFaults(t)
	b, f := openFake(t, drivertest.Options{}, Options{})
	for _, d := range []tensor.DType{tensor.F16, tensor.Q4_K, tensor.TQ2_0} { // the last is laid out as F16
		for _, weight := range []string{"gate", "norm2"} {
			p := decoder(t, d)
			path := mapWeights(t, p)
			var start, cut uintptr
			for i, w := range p.Weights() {
				at := uintptr(unsafe.Pointer(&w.Data[0]))
				if i == 0 {
					start = at
				}
				if w.Name == weight {
					cut = at
				}
			}
			if err := os.Truncate(path, int64(cut-start)); err != nil {
				t.Fatal(err)
			}
			_, err := b.Compile(context.Background(), p, limitsFor(p, 8, 2), nil)
			var fault *tensor.FaultError
			if !errors.As(err, &fault) || fault.Addr < cut {
				t.Errorf("%v, cut at %s: %v", d, weight, err)
			}
			if left := kept(f); left != "" {
				t.Errorf("%v, cut at %s: left are %s", d, weight, left)
			}
		}
		p := decoder(t, d)
		mapWeights(t, p)
		x, err := b.Compile(context.Background(), p, limitsFor(p, 8, 2), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A non-finite value in any weight fails loading.
func TestLoadingNotFinite(t *testing.T) {
	b, f := openFake(t, drivertest.Options{}, Options{})
	for _, d := range []tensor.DType{tensor.F16, tensor.Q8_0, tensor.F8_E5M2} {
		for _, weight := range []string{"embed", "norm2", "head"} {
			p := decoder(t, d)
			var at uintptr
			for _, w := range p.Weights() {
				if w.Name != weight {
					continue
				}
				last := w.Data[len(w.Data)-w.DType.BlockBytes():] // the last block
				switch w.DType {
				case tensor.F32:
					binary.LittleEndian.PutUint32(last, 0xff800000)
				case tensor.F8_E5M2:
					last[0] = 0x7c
				default:
					binary.LittleEndian.PutUint16(last, 0x7c00)
				}
				at = uintptr(unsafe.Pointer(&last[0]))
			}
			_, err := b.Compile(context.Background(), p, limitsFor(p, 8, 2), nil)
			var e *tensor.NotFiniteError
			if !errors.As(err, &e) || e.Addr != at {
				t.Errorf("%v, %s: %v", d, weight, err)
			}
			if left := kept(f); left != "" {
				t.Errorf("%v, %s: left are %s", d, weight, left)
			}
		}
	}
}

// If weights to be staged cannot be read, the step that needs them fails and launches nothing
// further. Submitted steps that continue with its tokens fail too. Once the weights are back, steps
// succeed.
func TestStagingFaults(t *testing.T) {
	modeltest.NeedsFaults(t)
	b, f := openFake(t, drivertest.Options{}, Options{Eager: true})
	p := deep(t)
	path := mapWeights(t, p)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var start, cut uintptr
	for i, w := range p.Weights() {
		at := uintptr(unsafe.Pointer(&w.Data[0]))
		if i == 0 {
			start = at
		}
		if w.Name == "3.up" {
			cut = at
		}
	}
	lim := limitsFor(p, 8, 2)
	lim.Weights = 1
	e := compiled(t, b, p, lim)
	if err := run(e, batchOf(p, 1, 0, 1)); err != nil {
		t.Fatal(err)
	}
	complete := len(f.Launches())
	if err := run(e, batchOf(p, 1, 0, 1)); err != nil {
		t.Fatal(err)
	}
	complete = len(kernelsOf(f, complete))
	for range 3 {
		if err := os.Truncate(path, int64(cut-start)); err != nil {
			t.Fatal(err)
		}
		before := len(f.Launches())
		first, err := e.Submit(batchOf(p, 1, 0, 1))
		if err != nil {
			t.Fatal(err)
		}
		next := batchOf(p, 1, 1, 1)
		next.From = []int32{0}
		second, err := e.Submit(next)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range []plan.Step{first, second} {
			var fault *tensor.FaultError
			if _, err := s.Wait(context.Background()); !errors.As(err, &fault) || fault.Addr < cut {
				t.Errorf("step %d: %v", i, err)
			}
			s.Release()
		}
		if n := len(kernelsOf(f, before)); n == 0 || n >= complete {
			t.Errorf("%d kernels were launched, a whole step has %d", n, complete)
		}
		if err := os.WriteFile(path, whole, info.Mode()); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := run(e, batchOf(p, 1, 0, 1)); err != nil {
				t.Errorf("with all weights again: %v", err)
			}
		}
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	if err := run(e, batchOf(p, 1, 0, 1)); err == nil {
		t.Error("a step ran without weights")
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if left := kept(f); left != "" {
		t.Errorf("left are %s", left)
	}
}

// kernelsOf returns the launches from index from on that do not belong to the loader.
func kernelsOf(f *drivertest.Fake, from int) (all []drivertest.Launch) {
	for _, l := range f.Launches()[from:] {
		if l.Kernel != "pack" {
			all = append(all, l)
		}
	}
	return all
}
