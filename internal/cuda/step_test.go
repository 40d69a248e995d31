package cuda

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
	"github.com/realizar/realizar/internal/cuda/lower"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/internal/sample"
	"github.com/realizar/realizar/tensor"
)

// A status from the kernels about a sequence or a row becomes an error of that sequence alone, even
// if no memory is left to search for the cause.
func TestResultsBecomeErrors(t *testing.T) {
	is := func(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }
	says := func(text string) func(error) bool {
		return func(err error) bool { return err != nil && strings.Contains(err.Error(), text) }
	}
	for _, memory := range []bool{true, false} {
		b, f := openFake(t, drivertest.Options{}, Options{})
		p := decoder(t, tensor.F16)
		e := compiled(t, b, p, limitsFor(p, 8, 8))
		free := b.Memory().Free
		for _, test := range []struct {
			name string
			set  func(out func(offset int) []int32, results []lower.RowResult)
			want func(error) bool
		}{
			{"no token before", func(out func(int) []int32, _ []lower.RowResult) { out(e.room.Failed)[2] = 0 }, says("a row of the step before gave no token")},
			{"overflow", func(out func(int) []int32, _ []lower.RowResult) { out(e.room.Overflow)[2] = 7 }, says("layer 7: keys or values exceed the range of an F16 cache")},
			{"not finite", func(out func(int) []int32, _ []lower.RowResult) { out(e.room.Bad)[2] = 0 }, is(plan.ErrNotFinite)},
			{"logits not finite", func(_ func(int) []int32, rows []lower.RowResult) { rows[2].Status = lower.RowNotFinite }, is(plan.ErrNotFinite)},
			{"empty mask", func(_ func(int) []int32, rows []lower.RowResult) { rows[2].Status = lower.RowEmptyMask }, is(sample.ErrEmptyMask)},
			{"no logit", func(_ func(int) []int32, rows []lower.RowResult) { rows[2].Status = lower.RowNoLogit }, is(sample.ErrNotFinite)},
			{"nonsense", func(_ func(int) []int32, rows []lower.RowResult) { rows[2].Status = 99 }, says("a row has no status")},
		} {
			// The copy back is queued when the step is submitted, and read after its end.
			release := f.Hold("cuEventSynchronize")
			s, err := e.Submit(batchOf(p, 5, 0, 1))
			if err != nil {
				t.Fatal(err)
			}
			out := s.(*step).out
			rows := device.Words[lower.RowResult](out[e.room.Results-e.room.Failed:])
			for i := range 5 {
				rows[i].Token = int32(10 + i)
			}
			test.set(func(offset int) []int32 { return device.Words[int32](out[offset-e.room.Failed:]) }, rows)
			if !memory {
				f.Fail("cuMemAlloc", 1, driver.OutOfMemory)
			}
			release()
			r, err := s.Wait(context.Background())
			f.Mend()
			if err != nil {
				t.Fatalf("%s: %v", test.name, err)
			}
			if !slices.Equal(r.Tokens, []int32{10, 11, -1, 13, 14}) || len(r.Err) != 5 {
				t.Errorf("%s: tokens %v, errors %v", test.name, r.Tokens, r.Err)
			}
			for q, err := range r.Err {
				if q == 2 && !test.want(err) || q != 2 && err != nil {
					t.Errorf("%s: sequence %d: %v", test.name, q, err)
				}
			}
			s.Release()
			if now := b.Memory().Free; now != free {
				t.Errorf("%s: %d bytes were kept", test.name, free-now)
			}
		}
		if err := run(e, batchOf(p, 5, 0, 1)); err != nil {
			t.Errorf("the step after them: %v", err)
		}
	}
}

// Saved pages restore every state of a group in other steps.
func TestStatePages(t *testing.T) {
	for name, p := range map[string]*plan.Program{"dense": plantest.Model(t, nil), "recurrent": recurrent(t)} {
		t.Run(name, func(t *testing.T) { statePages(t, p) })
	}
}

func statePages(t *testing.T, p *plan.Program) {
	b, _ := openFake(t, drivertest.Options{}, Options{})
	for _, cache := range plantest.Caches {
		lim := plantest.LimitsFor(p, 8, 3, testContext, testPageTokens, plan.Limits{Cache: cache})
		e := compiled(t, b, p, lim)
		for g := range p.Groups {
			size, err := lim.PageBytes(p, g)
			if err != nil {
				t.Fatal(err)
			}
			rng := rand.New(rand.NewPCG(uint64(g), 3))
			host := func() []byte {
				b, err := e.AllocHost(size)
				if err != nil {
					t.Fatal(err)
				}
				return b
			}
			page, saved := host(), host()
			for i := range page {
				page[i] = byte(rng.Uint32())
			}
			do := func(ops ...plan.StateOp) {
				t.Helper()
				x := batchOf(p, 1, 0, 1)
				x.States = ops
				if err := run(e, x); err != nil {
					t.Fatal(err)
				}
			}
			op := func(kind plan.StateOpKind, page int, host []byte) plan.StateOp {
				return plan.StateOp{Kind: kind, Group: g, Page: int32(page), Host: host}
			}
			clear(saved)
			do(op(plan.RestorePage, 3, page), op(plan.RestorePage, 1, page), op(plan.RestorePage, 5, page), op(plan.RestorePage, 5, saved))
			for at, want := range map[int][]byte{1: page, 3: page, 5: make([]byte, size)} {
				copy(saved, bytes.Repeat([]byte{0xee}, size))
				do(op(plan.SavePage, at, saved))
				if !bytes.Equal(saved, want) {
					t.Errorf("%v cache, group %d: page %d came back otherwise", cache, g, at)
				}
			}
			if err := e.FreeHost(saved); err != nil {
				t.Fatal(err)
			}
			if e.FreeHost(saved) == nil || e.FreeHost(page[1:]) == nil {
				t.Error("memory that AllocHost did not return was given back")
			}
		}
	}
}

// recurrent returns a program with states per token and per sequence, which nothing reads.
func recurrent(t *testing.T) *plan.Program {
	return program(t, func(b *plan.Builder) {
		x := b.Embed(plantest.Weight(newRand(), "embed", tensor.F16, 1, decoderVocab, 256))
		b.State(plan.State{Name: "kv", Kind: plan.PerToken, KVHeads: 1, HeadDim: 64, ValueDim: 32})
		b.State(plan.State{Name: "tail", Kind: plan.PerSequence, Size: 3 * 64})
		b.State(plan.State{Name: "matrix", Kind: plan.PerSequence, Size: 63 * 5})
		h := b.Pick(x)
		b.Output(h, b.Linear(h, plantest.Weight(newRand(), "head", tensor.F16, 1, decoderVocab, 256), nil))
	})
}

// Kernels find the slots of every state for each sequence of the step.
func TestSlots(t *testing.T) {
	b, _ := openFake(t, drivertest.Options{}, Options{})
	p := recurrent(t)
	e := compiled(t, b, p, limitsFor(p, 8, 3))
	const slots = 6
	tail, matrix := e.compiler().Slots(1), e.compiler().Slots(2)
	if tail.Apart < 4*3*64 || matrix.Apart < 4*63*5 || matrix.Base < tail.Base+driver.DevicePtr(slots*tail.Apart) || tail.Slots != matrix.Slots {
		t.Errorf("slots lie at %+v and %+v", tail, matrix)
	}
	// Slot 4 of the group is slot 4 of each state.
	size, err := e.lim.PageBytes(p, 1)
	if err != nil || size != 4*(3*64+63*5) {
		t.Fatalf("a slot has %d bytes (%v)", size, err)
	}
	page, err := e.AllocHost(size)
	if err != nil {
		t.Fatal(err)
	}
	for i := range page {
		page[i] = byte(i * 7)
	}
	x := batchOf(p, 3, 1, 1)
	x.States = []plan.StateOp{{Kind: plan.RestorePage, Group: 1, Page: 4, Host: page}}
	for _, test := range []struct {
		batch *plan.Batch
		want  []int32
	}{{batchOf(p, 3, 0, 2), []int32{-1, 1, -1, 3, -1, 5}}, {x, []int32{0, 1, 2, 3, 4, 5}}} {
		if err := run(e, test.batch); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 4*2*3)
		if err := b.Main.Do(func() error { return b.Main.CopyToHost(got, tail.Slots) }); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(device.Words[int32](got), test.want) {
			t.Errorf("the device has the slots %v, want %v", device.Words[int32](got), test.want)
		}
	}
	for _, test := range []struct {
		at   lower.SlotArgs
		want []byte
	}{{tail, page[:4*3*64]}, {matrix, page[4*3*64:]}} {
		got := make([]byte, len(test.want))
		if err := b.Main.Do(func() error { return b.Main.CopyToHost(got, test.at.Base+driver.DevicePtr(4*test.at.Apart)) }); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, test.want) {
			t.Error("a slot holds something else than what was restored to it")
		}
	}
}

// Host memory for pages is not freed while the device may copy from or to it. The rest is freed
// with the executable.
func TestHostMemoryIsFreed(t *testing.T) {
	b, f := openFake(t, drivertest.Options{}, Options{})
	p := decoder(t, tensor.F16)
	e := compiled(t, b, p, limitsFor(p, 8, 2))
	size, err := e.lim.PageBytes(p, 0)
	if err != nil {
		t.Fatal(err)
	}
	page, err := e.AllocHost(size)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.AllocHost(size); err != nil {
		t.Fatal(err)
	}
	x := batchOf(p, 1, 0, 1)
	if err := run(e, x); err != nil {
		t.Fatal(err)
	}
	made := f.Calls("cuMemHostAlloc")
	x.States = []plan.StateOp{{Kind: plan.SavePage, Host: page}, {Kind: plan.RestorePage, Page: 1, Host: page}}
	if err := run(e, x); err != nil {
		t.Fatal(err)
	}
	if n := f.Calls("cuMemHostAlloc") - made; n != 0 {
		t.Errorf("a step that saves a page takes %d pieces of memory beside it", n)
	}
	waits := f.Calls("cuStreamSynchronize")
	if err := e.FreeHost(page); err != nil {
		t.Fatal(err)
	}
	if f.Calls("cuStreamSynchronize") == waits {
		t.Error("memory was given back without waiting for the steps")
	}
	f.Fail("cuMemHostAlloc", 1, driver.OutOfMemory)
	if _, err := e.AllocHost(size); !errors.Is(err, driver.ErrOutOfMemory) {
		t.Errorf("no memory: %v", err)
	}
	f.Mend()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if left := kept(f); left != "" {
		t.Errorf("left are %s", left)
	}
	if _, err := e.AllocHost(size); err == nil {
		t.Error("there is memory after Close")
	}
}
