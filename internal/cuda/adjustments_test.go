package cuda

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"unsafe"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
	"github.com/realizar/realizar/internal/cuda/lower"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/internal/sample"
	"github.com/realizar/realizar/tensor"
)

// The records of rows have the layout of kernels/sample.cu.
func TestRowLayouts(t *testing.T) {
	var r lower.RowParams
	var a sample.Adjustment
	got := []uintptr{
		unsafe.Sizeof(r), unsafe.Offsetof(r.Mask), unsafe.Offsetof(r.Last), unsafe.Offsetof(r.Typical), unsafe.Offsetof(r.Adjusted), unsafe.Offsetof(r.Adjustments),
		unsafe.Sizeof(a), unsafe.Offsetof(a.Token), unsafe.Offsetof(a.Bias), unsafe.Offsetof(a.Count), unsafe.Offsetof(a.Prompt), unsafe.Sizeof(a.Prompt),
	}
	if want := []uintptr{lower.ParamsBytes, 40, 44, 48, 64, 72, 16, 0, 4, 8, 12, 1}; !slices.Equal(got, want) {
		t.Errorf("sizes and offsets %v, want %v", got, want)
	}
}

// The kernels read the adjustments that the batch specifies.
func TestAdjustmentsArrive(t *testing.T) {
	b, _ := openFake(t, drivertest.Options{}, Options{})
	p := decoder(t, tensor.F16)
	e := compiled(t, b, p, limitsFor(p, 8, 8))
	x := batchOf(p, 6, 0, 1)
	list := []sample.Adjustment{{Token: 3, Bias: 1.5, Count: 2}, {Token: 7, Bias: float32(math.Inf(-1)), Prompt: true}}
	penalties := sample.Params{Repetition: 1.25, Frequency: 0.5, Presence: -0.5}
	x.From = []int32{-1, -1, 2, 0, 1, 0}
	x.Rows[0].Sampling = sample.Params{Temperature: 1, Typical: 0.75}
	x.Rows[1].Adjustments = list
	x.Rows[2].Adjustments, x.Rows[2].Sampling = list, penalties // and the last token
	x.Rows[3].Sampling = penalties                              // the last token alone
	x.Rows[4].Adjustments = list[1:]                            // no penalty: the last token does not matter
	x.Rows[5].Adjustments, x.Rows[5].Sampling, x.Rows[5].Want = list, penalties, plan.WantLogits
	if err := run(e, batchOf(p, 6, 0, 1)); err != nil { // rows with From
		t.Fatal(err)
	}
	if err := run(e, x); err != nil {
		t.Fatal(err)
	}
	params, adjustments := make([]byte, lower.ParamsBytes*6), make([]byte, 7*lower.AdjustmentBytes)
	err := b.Main.Do(func() error {
		return errors.Join(b.Main.CopyToHost(params, e.scratchAt+driver.DevicePtr(e.room.Params)), b.Main.CopyToHost(adjustments, e.scratchAt+driver.DevicePtr(e.room.Adjustments)))
	})
	if err != nil {
		t.Fatal(err)
	}
	none := sample.Adjustment{Token: -1}
	if got, want := device.Words[sample.Adjustment](adjustments), slices.Concat(list, list, []sample.Adjustment{none}, []sample.Adjustment{none}, list[1:]); !slices.Equal(got, want) {
		t.Errorf("adjustments %v, want %v", got, want)
	}
	type told struct {
		typical, repetition, frequency, presence float32
		first, n, last                           int32
	}
	for i, want := range []told{
		{typical: 0.75, repetition: 1, first: -1, last: -1},
		{repetition: 1, first: 0, n: 2, last: -1},
		{repetition: 1.25, frequency: 0.5, presence: -0.5, first: 2, n: 2, last: 2},
		{repetition: 1.25, frequency: 0.5, presence: -0.5, first: 5, n: 0, last: 3},
		{repetition: 1, first: 6, n: 1, last: -1},
		{repetition: 1.25, frequency: 0.5, presence: -0.5, first: -1, last: -1},
	} {
		r := device.Words[lower.RowParams](params)[i]
		first := int32(-1)
		if r.Adjustments != 0 {
			first = int32(int(r.Adjustments-e.scratchAt)-e.room.Adjustments) / int32(lower.AdjustmentBytes)
		}
		if got := (told{r.Typical, r.Repetition, r.Frequency, r.Presence, first, r.Adjusted, r.Last}); got != want {
			t.Errorf("row %d is told %+v, want %+v", i, got, want)
		}
	}
}

// Rows with adjustments have kernels of their own, with a graph for each number of rows. Steps
// without such rows use the ordinary kernels.
func TestAdjustedSteps(t *testing.T) {
	for _, test := range []struct {
		name     string
		change   func(*plan.Batch)
		adjusted bool
	}{
		{"nothing", func(*plan.Batch) {}, false},
		{"adjustments", func(b *plan.Batch) { b.Rows[1].Adjustments = []sample.Adjustment{{Token: 3}} }, true},
		{"adjustments where no token is wanted", func(b *plan.Batch) {
			b.Rows[1].Adjustments, b.Rows[1].Want = []sample.Adjustment{{Token: 3}}, plan.WantLogits
		}, false},
		{"a penalty of nothing", func(b *plan.Batch) { b.Rows[0].Sampling.Repetition = 2 }, false},
		{"a penalty of a token to come", func(b *plan.Batch) { b.Rows[0].Sampling.Presence, b.From = 2, []int32{1, -1} }, true},
		{"a penalty of another one", func(b *plan.Batch) { b.Rows[0].Sampling.Presence, b.From = 2, []int32{-1, 1} }, false},
		{"typical", func(b *plan.Batch) { b.Rows[1].Sampling = sample.Params{Temperature: 1, Typical: 0.5} }, true},
		{"typical of all", func(b *plan.Batch) { b.Rows[1].Sampling = sample.Params{Temperature: 1, Typical: 1} }, false},
		{"typical and greedy", func(b *plan.Batch) { b.Rows[1].Sampling = sample.Params{Typical: 0.5} }, false},
	} {
		b, f := openFake(t, drivertest.Options{}, Options{Eager: true})
		p := decoder(t, tensor.F16)
		e := compiled(t, b, p, limitsFor(p, 8, 4))
		loaded := len(f.Launches())
		if err := run(e, batchOf(p, 2, 0, 1)); err != nil {
			t.Fatal(err)
		}
		x := batchOf(p, 2, 1, 1)
		test.change(x)
		before := len(f.Launches())
		if err := run(e, x); err != nil {
			t.Fatal(err)
		}
		launches := f.Launches()[before:]
		want := []string{"survey", "choose"}
		if test.adjusted {
			want = []string{"surveyAdjusted", "chooseAdjusted"}
		}
		var got []string
		for _, l := range launches[len(launches)-2:] {
			got = append(got, l.Kernel)
		}
		if ordinary := before - loaded; !slices.Equal(got, want) || len(launches) != ordinary {
			t.Errorf("%s: %d launches, %d without it, that end with %v, want %v", test.name, len(launches), ordinary, got, want)
		}
	}
}

func adjustedBatch(p *plan.Program, rows, each int) *plan.Batch {
	x := batchOf(p, rows, 0, 1)
	for i := range x.Rows {
		for id := range each {
			x.Rows[i].Adjustments = append(x.Rows[i].Adjustments, sample.Adjustment{Token: int32(id), Bias: 1})
		}
	}
	return x
}

// However many adjustments there are, device memory does not grow: adjustments that do not fit stay
// in host memory. No graph is captured again.
func TestManyAdjustments(t *testing.T) {
	b, f := openFake(t, drivertest.Options{}, Options{})
	p := wide(t)
	const most = 4
	e := compiled(t, b, p, limitsFor(p, 8, most))
	free := b.Memory().Free
	for _, test := range []struct {
		name       string
		rows, each int
		onDevice   int // rows
		captures   int
	}{
		{"none", 4, 0, 0, 2},
		{"few", 4, 8, 4, 1},
		{"none again", 4, 0, 0, 0},
		{"as many as there is room for", 4, lower.RoomyAdjustments / 4, 4, 0},
		{"more", 4, lower.RoomyAdjustments/4 + 1, 3, 0},
		{"many more", 4, lower.RoomyAdjustments + 1, 0, 0},
		{"few again", 4, 8, 4, 0},
	} {
		before := f.Calls("cuStreamBeginCapture")
		for range 3 {
			s, err := e.Submit(adjustedBatch(p, test.rows, test.each))
			if err != nil {
				t.Fatalf("%s: %v", test.name, err)
			}
			if _, err := s.Wait(context.Background()); err != nil {
				t.Fatalf("%s: %v", test.name, err)
			}
			lists, params := device.Words[sample.Adjustment](s.(*step).lists), device.Words[lower.RowParams](s.(*step).in[e.room.Params-e.room.Counts:])
			onDevice := 0
			for i := range test.rows {
				switch at := params[i].Adjustments; {
				case test.each == 0:
					if at != 0 {
						t.Errorf("%s: row %d has adjustments", test.name, i)
					}
				case at == e.scratchAt+driver.DevicePtr(e.room.Adjustments+i*test.each*lower.AdjustmentBytes):
					onDevice++
				case at != driver.DevicePtr(uintptr(unsafe.Pointer(&lists[i*test.each]))):
					t.Errorf("%s: row %d has its adjustments elsewhere", test.name, i)
				}
			}
			if onDevice != test.onDevice {
				t.Errorf("%s: %d rows have adjustments on the device, want %d", test.name, onDevice, test.onDevice)
			}
			s.Release()
		}
		if n := f.Calls("cuStreamBeginCapture") - before; n != test.captures {
			t.Errorf("%s: %d captures, want %d", test.name, n, test.captures)
		}
	}
	if now := b.Memory().Free; now != free {
		t.Errorf("%d bytes of the device's memory were taken", free-now)
	}
	f.Fail("cuMemHostAlloc", 1, driver.OutOfMemory)
	if err := run(e, adjustedBatch(p, most, 5*lower.RoomyAdjustments)); !errors.Is(err, driver.ErrOutOfMemory) {
		t.Errorf("the host has no memory: %v", err)
	}
	f.Mend()
	for _, n := range []int{0, 8, 5 * lower.RoomyAdjustments} {
		if err := run(e, adjustedBatch(p, most, n)); err != nil {
			t.Errorf("%d adjustments after that: %v", n, err)
		}
	}
}

// wide returns a program with a large vocabulary.
func wide(t *testing.T) *plan.Program {
	rng := newRand()
	weight := func(rows, cols int) *tensor.Tensor { return plantest.Weight(rng, "w", tensor.F32, 1, rows, cols) }
	return program(t, func(b *plan.Builder) {
		x := b.Embed(weight(decoderVocab, 32))
		h := b.Pick(x)
		b.Output(h, b.Linear(h, weight(6*lower.RoomyAdjustments, 32), nil))
	})
}
