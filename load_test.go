package realizar

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/tensor"
)

// Progress reaches the last byte, whether weights are repacked or stay in the file.
func TestProgress(t *testing.T) {
	for name, path := range map[string]string{
		"mapped": modeltest.Llama(t, modeltest.DType(tensor.F16)), "laid out": modeltest.Llama(t, modeltest.DType(tensor.Q8_0)),
		"tied":   modeltest.Llama(t, modeltest.Tied()),
		"copied": modeltest.Hub(t, modeltest.Quantised(modeltest.LayoutOf(t, "fp8 blocks"))),
		"made":   modeltest.Hub(t, modeltest.Quantised(modeltest.LayoutOf(t, "awq"))),
	} {
		d, err := Describe(path)
		if err != nil {
			t.Fatal(err)
		}
		var want, got []Progress
		var total, done int64
		for _, x := range d.Tensors {
			total += x.Bytes
		}
		m, err := Open(t.Context(), path, Options{Progress: func(p Progress) { got = append(got, p) }})
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range m.arch.Program.Weights() {
			done += int64(w.Size())
			want = append(want, Progress{Done: done, Total: total})
		}
		if diff := cmp.Diff(want, got); diff != "" || done != total {
			t.Errorf("%s: of %d bytes (-want +got)\n%s", name, total, diff)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Loading ends when its context is cancelled, with the cause.
func TestLoadEnds(t *testing.T) {
	path := modeltest.Llama(t, modeltest.DType(tensor.Q8_0))
	why := errors.New("the user thinks better of it")
	ctx, end := context.WithCancelCause(t.Context())
	var last Progress
	m, err := Open(ctx, path, Options{Progress: func(p Progress) {
		last = p
		if p.Done > p.Total/2 {
			end(why)
		}
	}})
	if !errors.Is(err, why) {
		t.Errorf("error %v, want %v", err, why)
		if m != nil {
			_ = m.Close()
		}
	}
	if last.Done == last.Total {
		t.Error("all weights were loaded all the same")
	}
}
