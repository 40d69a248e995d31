package cuda

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
	"github.com/realizar/realizar/internal/cuda/weights"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// Every weight is announced once, in the program's order, and is spare then.
func TestLoadingIsTold(t *testing.T) {
	b, _ := openFake(t, drivertest.Options{}, Options{})
	p := plantest.Model(t, nil)
	var told []*tensor.Tensor
	x, err := b.Compile(context.Background(), p, limitsFor(p, 8, 2), func(w *tensor.Tensor, spare bool) {
		if !spare {
			t.Errorf("%s is not spare", w.Name)
		}
		told = append(told, w)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
	if !slices.Equal(told, p.Weights()) {
		t.Errorf("%d weights were announced, or in another order than these %d", len(told), len(p.Weights()))
	}
}

// A weight split into chunks is announced once its last chunk is loaded.
func TestLoadingIsToldOfWholeWeights(t *testing.T) {
	for _, order := range [][]int{{0, 1, 1, 2, 2, 2}, {2, 2, 2, 1, 1, 0}, {1, 2, 0, 2, 1, 2}} {
		var told []*tensor.Tensor
		l := &weights.Loader{
			Plan: &weights.Plan{Order: []*tensor.Tensor{{Name: "a"}, {Name: "b"}, {Name: "c"}}}, Left: []int{1, 2, 3},
			Loaded: func(w *tensor.Tensor, _ bool) { told = append(told, w) },
		}
		here := [3]int{}
		for _, w := range order {
			l.Read(w)
			here[w]++
			whole := 0
			for whole < 3 && here[whole] == whole+1 {
				whole++
			}
			if !slices.Equal(told, l.Plan.Order[:whole]) {
				t.Errorf("%v: after %v of the chunks %d weights were announced, want %d", order, here, len(told), whole)
			}
		}
	}
}

func TestLoadingIsCancelled(t *testing.T) {
	b, f := openFake(t, drivertest.Options{}, Options{})
	p := plantest.Model(t, nil)
	ctx, cancel := context.WithCancel(context.Background())
	told := 0
	_, err := b.Compile(ctx, p, limitsFor(p, 8, 2), func(*tensor.Tensor, bool) {
		if told++; told == 3 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if left := kept(f); left != "" {
		t.Errorf("left are %s", left)
	}
	if free := b.Memory(); free.Free != free.Total {
		t.Errorf("%d bytes are taken", free.Total-free.Free)
	}
	compiled(t, b, p, limitsFor(p, 8, 2))
}
