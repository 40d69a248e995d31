//go:build gpu

package arch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/realizar/realizar/internal/cuda"
	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
	"github.com/realizar/realizar/internal/cuda/kernels/emulate"
	"github.com/realizar/realizar/internal/longtest"
	"github.com/realizar/realizar/internal/mesh"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// These tests need a GPU, and the conformance data or a part of them:
//
//	CGO_ENABLED=0 go test -tags gpu -c -o arch.test ./internal/arch
//	REALIZAR_CONFORMANCE=... ./arch.test -test.v -test.run GPU
//
// Where REALIZAR_EMULATED names a folder for compiled kernels, they run on an emulated device; see
// package emulate.

func gpu(t *testing.T) *cuda.Backend {
	t.Helper()
	b, err := cuda.Open(gpuOptions(t, 1))
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

// gpuOptions returns the options of that many devices.
func gpuOptions(t *testing.T, devices int) cuda.Options {
	t.Helper()
	o := cuda.Options{}
	if os.Getenv("REALIZAR_EMULATED") != "" {
		g := emulate.Open(t)
		o.Driver, o.PTX = drivertest.New(t, g.Options(devices)).Driver(), g.PTX
	}
	return o
}

func init() { deviceOfHeads = func(t *testing.T) plan.Backend { return gpu(t) } }

// GPUs pass the tests of processors.
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
			e, least, sharp := expected(t, want), roundedBy(t, m, path, want), sharpness(m.Program)
			if chooses(m.Program) {
				agreeTied(t, m, e, map[string]plan.Backend{b.Name(): b})
				return
			}
			for _, n := range numbersOf(b, m.Program) {
				if n.limits.Cache != tensor.F32 {
					n.bound = max(n.bound*sharp, sensitive[filepath.Base(path)])
				}
				t.Run(fmt.Sprintf("%v cache, %v activations", n.limits.Cache, n.limits.Activations), func(t *testing.T) { agree(t, b, m, e, n.limits, max(n.bound, least)) })
			}
		})
		if !ok {
			failed++
		}
	}
	fmt.Printf("conformance on %s: %d cases, %d failed\n", b.Description(), len(cases), failed)
}

// A sequence's bits do not depend on the rest of the step, for every format and architecture.
func TestGPUSameBits(t *testing.T) {
	cases := casesIn(conformance(t))
	if len(cases) == 0 {
		t.Fatalf("there is no case under %s", conformance(t))
	}
	b := gpu(t)
	for path, want := range cases {
		t.Run(filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path), func(t *testing.T) {
			m, err := buildFile(t, path)
			if err != nil {
				t.Fatal(err)
			}
			ids := expected(t, want).ids
			sameBits(t, b, m, ids, inFloats.limits, longtest.Cases(7, 3))
			sameBits(t, b, m, ids, rounds(b, m.Program).limits, longtest.Cases(7, 3))
		})
	}
	fmt.Printf("same bits on %s: %d models\n", b.Description(), len(cases))
}

// Two GPUs have the bits of one, with models of all architectures, by tensor and by layer.
func TestGPUConformanceOnTwo(t *testing.T) {
	cases := casesIn(conformance(t))
	g, err := cuda.OpenGroup(gpuOptions(t, 2), []int{0, 1})
	if err != nil {
		t.Skipf("there are no two GPUs: %v", err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	for path := range cases {
		t.Run(filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path), func(t *testing.T) {
			m, err := buildFile(t, path)
			if err != nil {
				t.Fatal(err)
			}
			if m.Program.Whole {
				t.Skip("sequences have to be whole")
			}
			for _, cache := range []tensor.DType{tensor.F16, tensor.Q8_0} {
				if m.Program.MisfitHead(cache) > 0 {
					continue
				}
				base, lengths := plan.Limits{Cache: cache, Activations: g.Rounds()}, [2]int{68, 9}
				want := plantest.LogitsOfTwo(t, g.Backend, m.Program, base, lengths)
				for _, split := range []mesh.Split{mesh.ByTensor, mesh.ByLayer} {
					plantest.SameAsOne(t, plantest.LogitsOfTwo(t, mesh.New(g, 2, split), m.Program, base, lengths), want)
				}
			}
		})
	}
	fmt.Printf("two GPUs, %s: %d models\n", g.Names(), len(cases))
}

// Models with other options, from testdata/variants/make.py.
func TestGPUVariants(t *testing.T) {
	dir := os.Getenv("REALIZAR_VARIANTS")
	if dir == "" {
		t.Skip("REALIZAR_VARIANTS is not set; it names what testdata/variants/make.py wrote")
	}
	b := gpu(t)
	for path, want := range casesIn(dir) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			m, err := buildFile(t, path)
			if err != nil {
				t.Fatal(err)
			}
			agree(t, b, m, expected(t, want), inFloats.limits, inFloats.bound)
		})
	}
}

// Encoders, from testdata/encoders.
func TestGPUEncoders(t *testing.T) {
	b := gpu(t)
	for path, texts := range encoders(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			m, err := buildFile(t, path)
			if err != nil {
				t.Fatal(err)
			}
			encodes(t, b, m.Program, texts)
		})
	}
}

// Weights that checkpoints store as several tensors have the same values on a GPU as on a
// processor.
func TestGPUDerivedWeights(t *testing.T) {
	b := gpu(t)
	for _, l := range modeltest.Layouts() {
		quantised, plain := derivedModels(t, l)
		t.Run(l.Name, func(t *testing.T) { sameModel(t, b, quantised, plain) })
	}
}
