//go:build gpu

package realizar_test

import (
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/cuda"
	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
	"github.com/realizar/realizar/internal/cuda/kernels/emulate"
	"github.com/realizar/realizar/internal/modeltest"
)

// Answers with a head of multi-token prediction and with an EAGLE-3 head have the tokens of answers
// without, alone and among others, and if they are not random those of the processor. Where
// REALIZAR_EMULATED names a folder for compiled kernels, the device is emulated.
func TestGPUHeads(t *testing.T) {
	device := "cuda"
	if os.Getenv("REALIZAR_EMULATED") != "" {
		device = "emulated"
		backends.Register(backends.Kind{Name: device, Parallel: 8, Open: func(backends.Options) (backends.Backend, error) {
			g := emulate.Open(t)
			return cuda.Open(cuda.Options{Driver: drivertest.New(t, g.Options(1)).Driver(), PTX: g.PTX})
		}})
	}
	const requests, length = 4, 16
	for name, c := range map[string]struct {
		model, head string
		with        realizar.Speculative
	}{
		"mtp":   {modeltest.Llama(t, modeltest.Predicting()), "", realizar.SpeculativeMTP},
		"eagle": {modeltest.Llama(t, modeltest.LastToken()), modeltest.Eagle(t, modeltest.LastToken()), realizar.SpeculativeEAGLE},
	} {
		t.Run(name, func(t *testing.T) {
			answers := func(device string, with realizar.Speculative, together bool) (all [requests][]int32, m realizar.Metrics) {
				o := realizar.Options{Device: device, Parallel: requests, Context: 96, Activations: realizar.ActivationsF32, Cache: realizar.CacheF32, Speculative: with}
				if with != realizar.SpeculativeOff {
					o.Draft, o.SpeculativeTokens = c.head, 3
				}
				model, err := realizar.Open(t.Context(), c.model, o)
				if err != nil {
					t.Fatal(err)
				}
				defer func() {
					if err := model.Close(); err != nil {
						t.Error(err)
					}
				}()
				var ends sync.WaitGroup
				for i := range all {
					prompt := []string{"the port of a server", "a", "list words again and again and again", "8080"}[i]
					g := realizar.Generation{MaxTokens: new(length), IgnoreEnd: true}
					g.Seed, g.Temperature = uint64(i), float32(i/2)
					answer := func() { all[i] = generate(t, model, realizar.Request{Prompt: prompt, Generation: g}).tokens }
					if together {
						ends.Go(answer)
					} else {
						answer()
					}
				}
				ends.Wait()
				return all, model.Metrics()
			}
			want, _ := answers(device, realizar.SpeculativeOff, false)
			processor, _ := answers("cpu", realizar.SpeculativeOff, false)
			for i := range requests / 2 {
				if !slices.Equal(want[i], processor[i]) {
					t.Errorf("request %d: tokens %v, the processor's are %v", i, want[i], processor[i])
				}
			}
			for _, together := range []bool{false, true} {
				got, m := answers(device, c.with, together)
				for i := range got {
					if !slices.Equal(got[i], want[i]) {
						t.Errorf("together %v, request %d: tokens %v, without the head %v", together, i, got[i], want[i])
					}
				}
				if m.AcceptedTokens == 0 || m.AcceptedTokens == m.ProposedTokens {
					t.Errorf("of %d proposed tokens %d were right", m.ProposedTokens, m.AcceptedTokens)
				}
			}
		})
	}
}
