package cuda

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// The search for a non-finite value restores the pages, although its kernels store keys, values and
// states again: later steps may have given the pages to other sequences.
func TestDiagnosisKeepsPages(t *testing.T) {
	for name, p := range map[string]*plan.Program{"pages": decoder(t, tensor.Q8_0), "slots": recurrent(t)} {
		var stores func(at func(p uint64, n int) []byte) // kernels' writes during the search
		stored := 0
		b, _ := openFake(t, drivertest.Options{Effect: func(_ *drivertest.Launch, at func(p uint64, n int) []byte) {
			if stores != nil {
				stored++
				stores(at)
			}
		}}, Options{})
		e := compiled(t, b, p, limitsFor(p, 8, 2))
		batch := batchOf(p, 2, testPageTokens-2, 4) // for each sequence, the ends of two pages
		submitted, err := e.Submit(batch)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := submitted.Wait(context.Background()); err != nil {
			t.Fatal(err)
		}
		const pages = testContext / testPageTokens
		type place struct {
			at    driver.DevicePtr
			bytes int
		}
		var written []place
		for _, k := range e.pools {
			numbers := []int32{0, 1, pages, pages + 1}
			if k.State.Kind == plan.PerSequence {
				numbers = []int32{1, 3}
			}
			for _, n := range numbers {
				written = append(written, place{k.Base + driver.DevicePtr(int(n)*k.Apart), k.Bytes})
			}
		}
		stores = func(at func(p uint64, n int) []byte) {
			for _, w := range written {
				clear(at(uint64(w.at), w.bytes))
			}
		}
		err = b.Main.Do(func() error {
			for i, w := range written {
				if err := b.Main.Memset8(w.at, byte(i+1), w.bytes); err != nil {
					return err
				}
			}
			x := submitted.(*step)
			x.failed = []error{plan.ErrNotFinite, nil}
			if err := x.look(1); err != nil {
				return err
			}
			for i, w := range written {
				got := make([]byte, w.bytes)
				if err := b.Main.CopyToHost(got, w.at); err != nil {
					return err
				}
				if want := bytes.Repeat([]byte{byte(i + 1)}, w.bytes); !slices.Equal(got, want) {
					t.Errorf("%s: page %d of what the step writes has changed", name, i)
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if stored == 0 {
			t.Errorf("%s: nothing was run again", name)
		}
		submitted.Release()
	}
}
