package cuda

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/check"
	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
	"github.com/realizar/realizar/internal/cuda/kernels/emulate"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// openEmulated opens a device whose kernels run on the host. Its decode steps attend to all common
// prefixes once, however short.
func openEmulated(t *testing.T) *Backend {
	b, _ := openEmulatedOf(t, driver.Capability{Major: 8}, "")
	return b
}

// openEmulatedOf opens a device of another capability, on which launches of a family do nothing.
func openEmulatedOf(t *testing.T, capability driver.Capability, idle string) (*Backend, *drivertest.Fake) {
	t.Helper()
	if raceDetector {
		t.Skip("kernels run in other processes")
	}
	g := emulate.OpenOf(t, capability)
	g.Idle = idle
	return openFake(t, g.Options(1), Options{PTX: g.PTX, PrefixBytes: 1})
}

// Kernels compute what operations mean: those of which the host compiles few.
func TestEmulated(t *testing.T) {
	b := openEmulated(t)
	plantest.Some(t, b, "Input", "InputMalformed", "OnlyStates", "Conv", "Elementwise", "Chains", "Pick", "PickMean", "Concat", "Mul", "Temper", "Mix", "Rescale", "Sparsify", "RopeEnds", "Spread", "Recall", "HeadsOfTheFirst")
	t.Run("Columns", func(t *testing.T) { fourColumns(t, b, "Conv", "Convs", "Chains") })
	t.Run("Programs", func(t *testing.T) { programsAgree(t, b) })
	t.Run("Streamed", func(t *testing.T) { plantest.Some(t, allStreamed{b}, "HeadsOfTheFirst") })
}

// On Hopper each sequence of a model has the bits that it has alone, as a prompt in wide tiles and token
// by token.
func TestEmulatedHopper(t *testing.T) {
	b, fake := openEmulatedOf(t, driver.Capability{Major: 9}, "sample")
	b.Info.Multiprocessors = 8 // few, so that a short prompt has wide tiles
	p := decoder(t, tensor.BF16)
	r, err := plantest.NewRunner(b, p, plantest.LimitsFor(p, 32, 3, 64, 32, plan.Limits{Cache: tensor.F16, Activations: tensor.F16}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Exe.Close() }()
	// run runs sequences of these lengths in steps of these numbers of tokens.
	run := func(lengths, chunks []int) (all []*plantest.Seq) {
		for i, n := range lengths {
			var ids []int32
			for k := range n {
				ids = append(ids, int32((i+k*7)%decoderVocab))
			}
			all = append(all, r.Add(ids, chunks[i]))
		}
		if err := r.Run(); err != nil {
			t.Fatal(err)
		}
		for _, s := range all {
			r.Drop(s)
		}
		return all
	}
	lengths := []int{3, 60, 4}
	together := run(lengths, []int{1, 20, 1})
	for what, is := range map[string]func(drivertest.Launch) bool{
		"wide products":         func(l drivertest.Launch) bool { return strings.HasPrefix(l.Kernel, "wide_") },
		"wide tiles":            func(l drivertest.Launch) bool { return l.Kernel == "attend" && l.Block.X == 384 },
		"tokens beside prompts": func(l drivertest.Launch) bool { return strings.HasPrefix(l.Kernel, "several_") },
	} {
		if !slices.ContainsFunc(fake.Launches(), is) {
			t.Errorf("there are no %s", what)
		}
	}
	for i, n := range lengths {
		alone := make([]int, len(lengths))
		alone[i] = n
		for k, row := range run(alone, []int{1, 1, 1})[i].Logits {
			if !slices.Equal(row, together[i].Logits[k]) {
				t.Fatalf("sequence %d has other bits in row %d", i, k)
			}
		}
	}
}

// TestEmulatedHopperSuite runs tests of attention and of experts on Hopper, if REALIZAR_EMULATED names a
// folder for compiled kernels. It takes two minutes, and longer if the folder is empty.
func TestEmulatedHopperSuite(t *testing.T) {
	if os.Getenv("REALIZAR_EMULATED") == "" {
		t.Skip("REALIZAR_EMULATED names no folder")
	}
	b, _ := openEmulatedOf(t, driver.Capability{Major: 9}, "sample")
	plantest.Some(t, b, "Embed", "RMSNorm", "GLU", "Rope", "Attention", "Experts")
}

// fourColumns runs tests on a device with one multiprocessor, for which threads of elementwise kernels
// have four columns.
func fourColumns(t *testing.T, b *Backend, tests ...string) {
	defer func(all int) { b.Info.Multiprocessors = all }(b.Info.Multiprocessors)
	b.Info.Multiprocessors = 1
	plantest.Some(t, b, tests...)
}

// allStreamed leaves device memory for as few layers as possible.
type allStreamed struct{ *Backend }

func (s allStreamed) Compile(ctx context.Context, p *plan.Program, lim plan.Limits, loaded plan.Loaded) (plan.Executable, error) {
	lim.Weights, lim.Pinned = 1, 1<<30
	if streamed := s.Streaming(p, lim).Layers; len(streamed) < 2 || slices.Contains(streamed, p.Layers()-1) {
		return nil, fmt.Errorf("of %d layers %v stream, want some and not the head's, the last", p.Layers(), streamed)
	}
	return s.Backend.Compile(ctx, p, lim, loaded)
}

// logitsOf returns the logits of a sequence of p in steps of chunk tokens.
func logitsOf(t *testing.T, b plan.Backend, p *plan.Program, cache tensor.DType, tokens, chunk int) [][]float32 {
	t.Helper()
	r, err := plantest.NewRunner(b, p, plantest.LimitsFor(p, tokens, 1, tokens, testPageTokens, plan.Limits{Cache: cache, Activations: tensor.F32}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Exe.Close() }()
	var list []int32
	for i := range tokens {
		list = append(list, int32(i*7%decoderVocab))
	}
	s := r.Add(list, chunk)
	if err := r.Run(); err != nil {
		t.Fatal(err)
	}
	return s.Logits
}

// programsAgree checks that programs of recurrent layers, of attention in all forms and of latent
// attention compute what processors compute, and that their bits depend neither on how a sequence
// is cut into steps nor on the device's shared memory.
func programsAgree(t *testing.T, b *Backend) {
	for name, c := range map[string]struct {
		p      *plan.Program
		cache  tensor.DType
		tokens int
		chunks []int
		bound  float64 // of errors, in parts of the largest logit
	}{
		"recurrent": {recurring(t, []int{32, 64}, []int{64}), tensor.F32, 70, []int{33}, 1e-4},
		"attention": {attendingInAllForms(t), tensor.F32, 70, []int{33}, 1e-4},
		"latent":    {attendingToLatents(t, 64), tensor.F16, 260, []int{33, 8}, 2e-3}, // queries and weights are float16
	} {
		p, tokens := c.p, c.tokens
		logits := func(b plan.Backend, chunk int) [][]float32 { return logitsOf(t, b, p, c.cache, tokens, chunk) }
		want, got := logits(cpu.New(1), tokens), logits(b, tokens)
		agree := func(other [][]float32, how string) {
			for i, row := range other {
				if !slices.Equal(row, got[i]) {
					t.Fatalf("%s: row %d has other bits %s", name, i, how)
				}
			}
		}
		for _, chunk := range c.chunks {
			agree(logits(b, chunk), fmt.Sprint("in steps of ", chunk))
		}
		func() {
			defer func(all int) { b.Info.SharedPerBlock = all }(b.Info.SharedPerBlock)
			b.Info.SharedPerBlock = 99 << 10 // as capability 8.9 has
			agree(logits(b, tokens), "with little shared memory")
		}()
		for i, row := range want {
			size, off := 0.0, 0.0
			for j, v := range row {
				size, off = max(size, math.Abs(float64(v))), max(off, math.Abs(float64(v-got[i][j])))
			}
			if !(off <= c.bound*size) {
				t.Errorf("%s: row %d is off by %.2g of its size", name, i, off/size)
			}
		}
	}
}

// TestEmulatedSuite runs the whole suite if REALIZAR_EMULATED names a folder for compiled kernels. It
// takes more than ten minutes, and longer if the folder is empty.
func TestEmulatedSuite(t *testing.T) {
	if os.Getenv("REALIZAR_EMULATED") == "" {
		t.Skip("REALIZAR_EMULATED names no folder")
	}
	b := openEmulated(t)
	plantest.All(t, b)
	t.Run("Columns", func(t *testing.T) { fourColumns(t, b, "Conv", "Convs", "Chains", "HeadLinear", "Experts") })
}

// TestEmulatedChecks compares each operation of models with the reference, from the device's own
// inputs, if REALIZAR_EMULATED names a folder for compiled kernels.
func TestEmulatedChecks(t *testing.T) {
	if os.Getenv("REALIZAR_EMULATED") == "" {
		t.Skip("REALIZAR_EMULATED names no folder")
	}
	for name, model := range map[string]func(*testing.T, func(*tensor.Tensor)) *plan.Program{
		"delta": plantest.DeltaModel, "states": plantest.StatesModel, "latent": plantest.LatentModel, "forms": plantest.FormsModel, "sparse": plantest.SparseModel, "compressed": plantest.CompressedModel,
	} {
		t.Run(name, func(t *testing.T) {
			const tokens = 70
			p, most := model(t, nil), map[string]float64{}
			b := check.Wrap(openEmulated(t), check.Options{
				Argmax: true, Reference: tokens,
				Seen: func(nodes []*plan.Node, drift float64) {
					op := nodes[len(nodes)-1].Op.String()
					most[op] = max(most[op], drift)
				},
				NewReference: func(p *plan.Program, l plan.Limits) (check.Reference, error) { return cpu.NewReplay(p, l, 0) },
			})
			for _, base := range []plan.Limits{{Cache: tensor.F32}, {Cache: tensor.F16, Activations: tensor.F16}} {
				r, err := plantest.NewRunner(b, p, plantest.LimitsFor(p, tokens, 1, tokens, testPageTokens, base))
				if err != nil {
					t.Fatal(err)
				}
				var list []int32
				for i := range tokens {
					list = append(list, int32(i*7%p.Vocab))
				}
				r.Add(list, 33)
				if err := r.Run(); err != nil {
					t.Errorf("%v cache, %v activations: %v", base.Cache, base.Activations, err)
				}
				if err := r.Exe.Close(); err != nil {
					t.Error(err)
				}
			}
			t.Logf("largest drifts, in parts of the bounds: %v", most)
		})
	}
}
