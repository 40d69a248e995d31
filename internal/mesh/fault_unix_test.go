//go:build unix

package mesh_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/mesh"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// A part whose weights become unreadable fails the step with its own error, and not with that of the
// parts that wait for it. When they are there again, steps have the bits of before.
func TestFault(t *testing.T) {
	t.Run("by tensor", func(t *testing.T) { faults(t, mesh.New(cpu.New(1), 4, mesh.ByTensor)) })
	t.Run("by layer", func(t *testing.T) { faults(t, mesh.New(cpu.New(1), 2, mesh.ByLayer)) })
}

func faults(t *testing.T, b plan.Backend) {
	const vocab, hidden = 64, 1024
	rng := rand.New(rand.NewPCG(5, 6))
	w := plantest.Weight(rng, "head", tensor.F32, 0.1, vocab, hidden)
	path, content := filepath.Join(t.TempDir(), "weights"), w.Data
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	if w.Data, err = unix.Mmap(int(file.Fd()), 0, len(content), unix.PROT_READ, unix.MAP_SHARED); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(w.Data) })
	p, err := plan.Build(func(b *plan.Builder) {
		x := b.Pick(b.Embed(plantest.Weight(rng, "embed", tensor.F32, 1, vocab, hidden)))
		b.Output(x, b.Linear(x, w, nil))
	})
	if err != nil {
		t.Fatal(err)
	}
	e, err := b.Compile(t.Context(), p, plantest.LimitsFor(p, 1, 1, 16, 16, plan.Limits{}), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	step := func() ([]float32, error) {
		s, err := e.Submit(&plan.Batch{
			Tokens: []int32{7}, Positions: []int32{0}, Start: []int32{0, 1}, Lengths: []int32{1}, Rows: []plan.Row{{Want: plan.WantLogits}},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Release()
		r, err := s.Wait(context.Background())
		if err != nil {
			return nil, err
		}
		return append([]float32(nil), r.Logits[0]...), nil
	}
	want, err := step()
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := file.Truncate(int64(len(content) / 2)); err != nil {
			t.Fatal(err)
		}
		_, err := step()
		var fault *tensor.FaultError
		if !errors.As(err, &fault) || errors.Is(err, plan.ErrPeer) {
			t.Fatalf("half of the weights are missing: %v", err)
		}
		if _, err := file.WriteAt(content, 0); err != nil {
			t.Fatal(err)
		}
		got, err := step()
		if err != nil {
			t.Fatal(err)
		}
		plantest.SameAsOne(t, [][]float32{got}, [][]float32{want})
	}
}
