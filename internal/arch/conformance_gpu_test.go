//go:build gpu

package arch_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/realizar/realizar/internal/cuda"
	"github.com/realizar/realizar/internal/modeltest"
)

// These tests need a GPU, and the conformance data or a part of them:
//
//	CGO_ENABLED=0 go test -tags gpu -c -o arch.test ./internal/arch
//	REALIZAR_CONFORMANCE=... ./arch.test -test.v -test.run GPU

func gpu(t *testing.T) *cuda.Backend {
	t.Helper()
	b, err := cuda.Open(cuda.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// What holds for the processor holds for a GPU.
func TestGPUConformance(t *testing.T) {
	dir := conformance(t)
	cases := casesIn(dir)
	if len(cases) == 0 {
		t.Fatalf("there is no case under %s", dir)
	}
	b := gpu(t)
	failed := 0
	for path, want := range cases {
		ok := t.Run(filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path), func(t *testing.T) {
			m, err := buildFile(t, path)
			if err != nil {
				t.Fatal(err)
			}
			e := expected(t, want)
			for _, n := range numbers {
				t.Run(fmt.Sprintf("%v cache, %v activations", n.limits.Cache, n.limits.Activations), func(t *testing.T) { agree(t, b, m, e, n.limits, n.bound) })
			}
		})
		if !ok {
			failed++
		}
	}
	fmt.Printf("conformance on %s: %d cases, %d failed\n", b.Description(), len(cases), failed)
}

// The bits of a sequence are its own in every format.
func TestGPUSameBits(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(conformance(t), "gguf-quants", "*.gguf"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there is no quantised model: %v", err)
	}
	b := gpu(t)
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			m, err := buildFile(t, path)
			if err != nil {
				t.Fatal(err)
			}
			sameBits(t, b, m, expected(t, casesIn(conformance(t))[path]).ids, numbers[2].limits)
		})
	}
	fmt.Printf("same bits on %s: %d formats\n", b.Description(), len(files))
}

// What checkpoints store as several tensors is on a GPU what it is on the processor.
func TestGPUDerivedWeights(t *testing.T) {
	b := gpu(t)
	for _, l := range modeltest.Layouts() {
		quantised, plain := derivedModels(t, l)
		t.Run(l.Name, func(t *testing.T) { sameModel(t, b, quantised, plain) })
	}
}
