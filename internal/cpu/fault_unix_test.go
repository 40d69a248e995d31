//go:build unix

package cpu

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// A mappedFile is a file in memory.
type mappedFile struct {
	t       *testing.T
	path    string
	content []byte
	data    []byte
}

func mapped(t *testing.T, content []byte) *mappedFile {
	t.Helper()
	m := &mappedFile{t: t, path: filepath.Join(t.TempDir(), "weights"), content: content}
	m.restore()
	f, err := os.Open(m.path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if m.data, err = unix.Mmap(int(f.Fd()), 0, len(content), unix.PROT_READ, unix.MAP_SHARED); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(m.data) })
	return m
}

// cut truncates the file to n bytes.
func (m *mappedFile) cut(n int) {
	m.t.Helper()
	if err := os.Truncate(m.path, int64(n)); err != nil {
		m.t.Fatal(err)
	}
}

// restore restores the file's contents.
func (m *mappedFile) restore() {
	m.t.Helper()
	if err := os.WriteFile(m.path, m.content, 0o600); err != nil {
		m.t.Fatal(err)
	}
}

// faulted reports whether err is a fault in m's memory.
func (m *mappedFile) faulted(err error) bool {
	var fault *tensor.FaultError
	if !errors.As(err, &fault) {
		return false
	}
	start := addressOf(m.data)
	return fault.Addr >= start && fault.Addr < start+uintptr(len(m.data))
}

// Whichever worker faults, share reports it, and the workers stay usable.
func TestShareFaults(t *testing.T) {
	modeltest.NeedsFaults(t)
	m := mapped(t, make([]byte, 1<<18))
	m.cut(0)
	for _, n := range []int{1, 2, 4} {
		w := poolOf(t, n)
		for broken := range n + 1 { // in the last iteration all workers
			var err error
			w.perform(func() {
				var here atomic.Int32
				err = tensor.Guard(func() error {
					w.share(n, 1, func(worker, _, _ int) {
						// Each worker has a unit when all have arrived.
						for here.Add(1); int(here.Load()) < n; {
							pause()
						}
						if worker == broken || broken == n {
							_ = slices.Max(m.data)
						}
					})
					return nil
				})
			})
			if !m.faulted(err) {
				t.Errorf("%d workers, %d of them at fault: %v", n, broken, err)
			}
			w.perform(func() { checkShare(t, w, 100, 1) })
		}
	}
}

// mappedProgram returns a program that reads weights of some formats from a mapped file in its
// steps: a table, and a product whose rows are multiplied in their stored format or dequantized.
func mappedProgram(t *testing.T, table, product tensor.DType) (*plan.Program, *mappedFile) {
	t.Helper()
	const vocab, cols, rows = 300, 256, 1024
	rng := rand.New(rand.NewPCG(3, uint64(product)))
	a, b := plantest.Weight(rng, "table", table, 1, vocab, cols), plantest.Weight(rng, "product", product, 1, rows, cols)
	split := len(a.Data)
	m := mapped(t, append(slices.Clone(a.Data), b.Data...))
	a.Data, b.Data = m.data[:split:split], m.data[split:]
	p, err := plan.Build(func(build *plan.Builder) {
		y := build.Linear(build.Pick(build.Embed(a)), b, nil)
		build.Output(y, y)
	})
	if err != nil {
		t.Fatal(err)
	}
	return p, m
}

// A step that reads missing weights fails, in every kernel that reads weights in place. Later steps
// are not affected.
func TestStepFaults(t *testing.T) {
	modeltest.NeedsFaults(t)
	for _, tier := range Tiers() {
		for _, threads := range []int{1, 3} {
			for _, d := range []tensor.DType{tensor.F32, tensor.F16, tensor.BF16, tensor.Q8_0, tensor.Q4_K} {
				for _, tokens := range []int{1, 40} { // rows multiplied in their stored format, or dequantized
					t.Run(fmt.Sprintf("%s, %d threads, %v, %d tokens", tier, threads, d, tokens), func(t *testing.T) {
						b, err := New(threads).WithTier(tier)
						if err != nil {
							t.Fatal(err)
						}
						stepFaults(t, b, d, tokens)
					})
				}
			}
		}
	}
}

func stepFaults(t *testing.T, b *Backend, d tensor.DType, tokens int) {
	p, m := mappedProgram(t, d, d)
	lim := plantest.LimitsFor(p, 64, 1, 64, 16, plan.Limits{Cache: tensor.F32, Activations: tensor.F32})
	exe, err := b.Compile(context.Background(), p, lim, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := exe.Close(); err != nil {
			t.Error(err)
		}
	}()
	batch := &plan.Batch{Start: []int32{0, int32(tokens)}, Lengths: []int32{int32(tokens)}, Tables: []plan.PageTable{}}
	for i := range tokens {
		batch.Tokens, batch.Positions = append(batch.Tokens, int32(i*7)), append(batch.Positions, int32(i))
		batch.Rows = append(batch.Rows, plan.Row{Token: int32(i), Want: plan.WantLogits})
	}
	run := func() (logits [][]float32, err error) {
		step, err := exe.Submit(batch)
		if err != nil {
			t.Fatal(err)
		}
		defer step.Release()
		r, err := step.Wait(context.Background())
		if err != nil {
			return nil, err
		}
		for _, l := range r.Logits {
			logits = append(logits, slices.Clone(l))
		}
		return logits, nil
	}
	want, err := run()
	if err != nil {
		t.Fatal(err)
	}
	table := len(p.Nodes[0].Weight.Data)
	for _, left := range []int{0, table + (len(m.data)-table)/2, len(m.content) - 3*os.Getpagesize()} { // the table too, the product's second half, its end
		m.cut(left)
		for range 3 {
			if _, err := run(); !m.faulted(err) {
				t.Errorf("%d bytes of %d are left: %v", left, len(m.content), err)
			}
		}
		m.restore()
		got, err := run()
		if err != nil {
			t.Fatalf("the step after a fault: %v", err)
		}
		for i := range want {
			if !slices.Equal(got[i], want[i]) {
				t.Fatalf("token %d of the step after a fault has other bits", i)
			}
		}
	}
}

// A step that was submitted before the previous step failed runs those of its rows that do not
// depend on it.
func TestStepAfterFault(t *testing.T) {
	modeltest.NeedsFaults(t)
	p, m := mappedProgram(t, tensor.F32, tensor.F32)
	exe, err := New(2).Compile(context.Background(), p, plantest.LimitsFor(p, 8, 2, 64, 16, plan.Limits{Cache: tensor.F32, Activations: tensor.F32}), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer exe.Close()
	m.cut(len(p.Nodes[0].Weight.Data) / 2) // of the table, whose end the first step needs
	first := &plan.Batch{Tokens: []int32{1, 299}, Positions: []int32{0, 0}, Start: []int32{0, 1, 2}, Lengths: []int32{1, 1}, Tables: []plan.PageTable{},
		Rows: []plan.Row{{Token: 0, Want: plan.WantToken}, {Token: 1, Want: plan.WantToken}}}
	failed, err := exe.Submit(first)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := failed.Wait(context.Background()); !m.faulted(err) {
		t.Fatalf("the first step: %v", err)
	}
	m.restore()
	second := &plan.Batch{Tokens: []int32{0, 5}, From: []int32{1, -1}, Positions: []int32{1, 0}, Start: []int32{0, 1, 2}, Lengths: []int32{1, 1}, Tables: []plan.PageTable{},
		Rows: []plan.Row{{Token: 0, Want: plan.WantToken}, {Token: 1, Want: plan.WantToken}}}
	step, err := exe.Submit(second)
	if err != nil {
		t.Fatal(err)
	}
	r, err := step.Wait(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Err) != 2 || r.Err[0] == nil || r.Err[1] != nil || r.Tokens[1] < 0 {
		t.Errorf("errors %v, tokens %v; only what needs the failed step's row must fail", r.Err, r.Tokens)
	}
}

// If weights are missing when they are loaded, Compile fails and frees everything, whether it
// interleaves them or not.
func TestCompileFaults(t *testing.T) {
	modeltest.NeedsFaults(t)
	for _, activations := range []tensor.DType{tensor.F32, tensor.Q8_0} {
		for _, threads := range []int{1, 3} {
			p, m := mappedProgram(t, tensor.F32, tensor.Q4_K)
			lim := plantest.LimitsFor(p, 64, 1, 64, 16, plan.Limits{Cache: tensor.F32, Activations: activations})
			_, err := New(threads).Compile(context.Background(), p, lim, func(*tensor.Tensor, bool) {
				m.cut(len(m.content) - 3*os.Getpagesize()) // while the product is still to be loaded
			})
			if !m.faulted(err) {
				t.Errorf("%v activations, %d threads: %v", activations, threads, err)
			}
		}
	}
}

// The error names the first number that is not finite.
func TestCompileNotFinite(t *testing.T) {
	for _, activations := range []tensor.DType{tensor.F32, tensor.Q8_0} {
		for _, block := range []int{0, 700, 1023} {
			p, m := mappedProgram(t, tensor.F16, tensor.Q4_K)
			at := len(p.Nodes[0].Weight.Data) + 144*block
			for later := at; later < len(m.content); later += 144 {
				m.content[later+3] = 0x7e // the second scale of the block and of the following ones
			}
			m.restore()
			lim := plantest.LimitsFor(p, 64, 1, 64, 16, plan.Limits{Cache: tensor.F32, Activations: activations})
			_, err := New(3).Compile(context.Background(), p, lim, nil)
			var e *tensor.NotFiniteError
			if !errors.As(err, &e) || e.Offset != 144*block+2 || e.Addr != addressOf(m.data)+uintptr(at+2) {
				t.Errorf("%v activations, block %d: %v", activations, block, err)
			}
		}
	}
}

func addressOf(data []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(data))) }
