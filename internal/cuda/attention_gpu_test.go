//go:build gpu

package cuda

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// attentionOnly returns a program of one attention, which is its output.
func attentionOnly(t *testing.T, a plan.AttentionAttr, sinks bool) *plan.Program {
	t.Helper()
	const width = 64
	rng := newRand()
	w := func(name string, d tensor.DType, size float64, rows int) *tensor.Tensor {
		return plantest.Weight(rng, name, d, size, rows, width)
	}
	return program(t, func(b *plan.Builder) {
		x := b.Embed(w("table", tensor.F32, 1, 509))
		linear := func(name string, size float64, heads int) plan.Value {
			return b.Linear(x, w(name, tensor.F16, size, heads*a.HeadDim), nil)
		}
		s := b.State(plan.State{Name: "kv", Kind: plan.PerToken, KVHeads: a.KVHeads, HeadDim: a.HeadDim, ValueDim: a.HeadDim, Window: a.Window})
		var logits *tensor.Tensor
		if sinks {
			logits = plantest.Weight(rng, "sinks", tensor.F32, 2, a.Heads)
		}
		y := b.Pick(b.Attention(linear("q", 0.3, a.Heads), linear("k", 0.3, a.KVHeads), linear("v", 0.1, a.KVHeads), logits, s, a))
		b.Output(y, y)
	})
}

func attentionReader(t *testing.T, b *Backend, p *plan.Program, cache tensor.DType, context int) *reader {
	lim := plan.Limits{Tokens: 4096, Seqs: 64, Rows: 64, PageTokens: gpuPageTokens, Cache: cache, Activations: tensor.F16}
	for range p.Groups {
		lim.Pages = append(lim.Pages, gpuSequences*((context+gpuPageTokens-1)/gpuPageTokens))
	}
	return &reader{t, p, compiled(t, b, p, lim)}
}

func attentionText(number, n int) *text {
	s := &text{number: number}
	for i := range n {
		s.ids = append(s.ids, int32((number*7919+i*i*31+i*17+11)%509))
	}
	return s
}

// A token's attention has the same bits with every kernel: alone, in a prompt of any length, in
// pieces and in a batch.
func TestGPUAttentionBits(t *testing.T) {
	for name, o := range map[string]Options{"graphs": {}, "base": {Base: true}} {
		t.Run(name, func(t *testing.T) { attentionBits(t, openGPU(t, o)) })
	}
}

func attentionBits(t *testing.T, b *Backend) {
	const length = 620
	for _, c := range []struct {
		attr  plan.AttentionAttr
		sinks bool
	}{
		{plan.AttentionAttr{Heads: 8, KVHeads: 2, HeadDim: 64, Scale: 0.125}, false},
		{plan.AttentionAttr{Heads: 8, KVHeads: 2, HeadDim: 128, Scale: 0.09}, true},
		{plan.AttentionAttr{Heads: 7, KVHeads: 1, HeadDim: 128, Scale: 0.09, Window: 300, Softcap: 20}, false},
		{plan.AttentionAttr{Heads: 40, KVHeads: 1, HeadDim: 64, Scale: 0.125, Window: 40}, true},
		{plan.AttentionAttr{Heads: 3, KVHeads: 3, HeadDim: 64, Scale: 0.125, Window: 256}, false},
		{plan.AttentionAttr{Heads: 16, KVHeads: 8, HeadDim: 128, Scale: 0.09}, true},
		{plan.AttentionAttr{Heads: 8, KVHeads: 8, HeadDim: 64, Scale: 0.125, Window: 300}, false},
		{plan.AttentionAttr{Heads: 4, KVHeads: 4, HeadDim: 96, Scale: 0.1}, false},
		{plan.AttentionAttr{Heads: 20, KVHeads: 2, HeadDim: 32, Scale: 0.2, Window: 270}, true},
		{plan.AttentionAttr{Heads: 4, KVHeads: 2, HeadDim: 256, Scale: 0.06, Softcap: 30}, false},
		{plan.AttentionAttr{Heads: 6, KVHeads: 2, HeadDim: 12, Scale: 0.3}, false},
		{plan.AttentionAttr{Heads: 4, KVHeads: 2, HeadDim: 80, Scale: 0.11, Window: 100}, false},
	} {
		for _, cache := range []tensor.DType{tensor.F16, tensor.Q8_0, tensor.F8_E4M3} {
			if c.attr.HeadDim%plan.HeadUnit(cache) != 0 {
				continue
			}
			p := attentionOnly(t, c.attr, c.sinks)
			r := attentionReader(t, b, p, cache, length)
			s := attentionText(0, length)
			want := r.read(s, 1, length)
			name := func(what string, n int) string { return fmt.Sprintf("%v, %v cache, %s %d", c.attr, cache, what, n) }
			for _, n := range []int{2, 15, 16, 17, 33, 63, 64, 65, 200, 255, 256, 257, 300, 400, 512, 513, 600, length} {
				s.fed = 0
				sameLogits(t, name("a prompt of", n), r.feed(portion{s, n, plan.WantLogits}), want[n-1:n])
			}
			for _, chunk := range []int{2, 3, 8, 50, 256, 301} {
				for s.fed = 0; s.fed+chunk <= length; {
					sameLogits(t, name("in pieces of", chunk), r.feed(portion{s, chunk, plan.WantLogits}), want[s.fed-1:s.fed])
				}
			}
			others := []*text{attentionText(1, length), attentionText(2, length), attentionText(3, length)}
			for _, n := range []int{9, 100, 310} {
				s.fed = 0
				for _, o := range others {
					o.fed = 0
				}
				r.feed(portion{others[0], 290, 0}, portion{others[2], 7, 0})
				for s.fed+n <= length {
					got := r.feed(portion{others[0], 1, 0}, portion{others[1], 30, 0}, portion{s, n, plan.WantLogits}, portion{others[2], 1, 0})
					sameLogits(t, name("beside others in pieces of", n), got[2:3], want[s.fed-1:s.fed])
					if others[1].fed+30 > length {
						break
					}
				}
			}
			for _, n := range []int{1, 2, 5, 8} { // no sequence has more than eight tokens
				s.fed = 0
				for _, o := range others {
					o.fed = 0
				}
				r.feed(portion{others[0], 290, 0}, portion{others[2], 7, 0})
				for s.fed+n <= length && others[1].fed+6 <= length {
					got := r.feed(portion{others[1], 6, 0}, portion{s, n, plan.WantLogits}, portion{others[2], 1, 0})
					sameLogits(t, name("beside others in small pieces of", n), got[1:2], want[s.fed-1:s.fed])
				}
			}
			decodesAmongMany(r, s, want, name)
			if err := r.x.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// decodesAmongMany decodes s, whose logits are want, in a batch of 64 sequences of unlike lengths.
func decodesAmongMany(r *reader, s *text, want [][]float32, name func(what string, n int) string) {
	var all []portion
	for i := range 63 {
		o := attentionText(4+i%60, len(s.ids))
		o.number = 1 + i
		r.feed(portion{o, 1 + i*97%(len(s.ids)-100), 0})
		all = append(all, portion{o, 1, 0})
	}
	for _, begin := range []int{1, 31, 120, 250, 505} {
		s.fed = 0
		r.feed(portion{s, begin, 0})
		for range 12 {
			batch := slices.Insert(slices.Clone(all), 40, portion{s, 1, plan.WantLogits})
			sameLogits(r.t, name("among 63 others, token", s.fed), r.feed(batch...)[40:41], want[s.fed-1:s.fed])
		}
	}
}

// TestGPUAttentionRate logs the time of attention in a layer. HEADS, CACHES and CASES name head
// dimensions, cache formats and steps other than the usual ones: 2x512+1000 are 2 sequences with 512
// tokens each after 1,000.
func TestGPUAttentionRate(t *testing.T) {
	b := openGPU(t, Options{})
	list := func(name, usual string) []string { return strings.Split(cmp.Or(os.Getenv(name), usual), ",") }
	for _, cacheName := range list("CACHES", "F16,Q8_0,F8_E4M3") {
		cache, ok := map[string]tensor.DType{"F16": tensor.F16, "Q8_0": tensor.Q8_0, "F8_E4M3": tensor.F8_E4M3}[cacheName]
		if !ok {
			t.Fatalf("CACHES: %q is not F16, Q8_0 or F8_E4M3", cacheName)
		}
		for _, head := range list("HEADS", "64,128") {
			headDim, err := strconv.Atoi(head)
			if err != nil {
				t.Fatalf("HEADS: %q is not a number", head)
			}
			var cases []attentionCase
			context := 0
			for _, name := range list("CASES", "1x256+0,1x2048+0,1x4096+0,1x512+3584,1x1+40,1x1+256,1x1+500,1x1+4000,16x1+256,64x1+256,16x1+4000") {
				var c attentionCase
				if _, err := fmt.Sscanf(name, "%dx%d+%d", &c.seqs, &c.tokens, &c.past); err != nil || c.seqs < 1 || c.tokens < 1 || c.seqs*c.tokens > 4096 || c.past < 0 {
					t.Fatalf("CASES: %q is not sequences x tokens (at most 4096 in all) + tokens before them, as in 2x512+1000", name)
				}
				cases, context = append(cases, c), max(context, c.past+c.tokens)
			}
			a := plan.AttentionAttr{Heads: 32, KVHeads: 8, HeadDim: headDim, Scale: 0.1}
			r := attentionReader(t, b, attentionOnly(t, a, false), cache, context)
			for _, c := range cases {
				logAttentionRate(r, a, c, context)
			}
			if err := r.x.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// An attentionCase is a step: tokens of each sequence after those of the past.
type attentionCase struct{ seqs, tokens, past int }

func logAttentionRate(r *reader, a plan.AttentionAttr, c attentionCase, context int) {
	var portions []portion
	for i := range c.seqs {
		portions = append(portions, portion{attentionText(i, context), c.tokens, plan.WantToken})
	}
	for i := range portions {
		for portions[i].fed < c.past {
			r.feed(portion{portions[i].text, min(2048, c.past-portions[i].fed), 0})
		}
	}
	var took []time.Duration
	kernel := ""
	for range 9 {
		for i := range portions {
			portions[i].fed = c.past
		}
		x := r.batch(portions...)
		x.Timed, x.Spans = true, true
		s := r.submit(x)
		for _, span := range r.wait(s).Spans {
			if strings.Contains(span.Kernel, "attention") || strings.HasPrefix(span.Kernel, "decode") {
				took, kernel = append(took, span.Time), span.Kernel
			}
		}
		s.Release()
	}
	slices.Sort(took)
	middle := took[len(took)/2]
	pairs := float64(c.seqs*c.tokens) * (float64(c.past) + float64(c.tokens+1)/2)
	fmt.Printf("%-28s %2d x %4d tokens after %5d: %8.1f us %6.1f TFLOP/s\n", kernel, c.seqs, c.tokens, c.past, float64(middle)/1e3,
		4*pairs*float64(a.Heads*a.HeadDim)/middle.Seconds()/1e12)
}

// TestGPUAttentionSteps logs the time of a layer's attention and the products around it in a graph,
// where kernels may begin before the previous ones have ended.
func TestGPUAttentionSteps(t *testing.T) {
	b := openGPU(t, Options{})
	const layers, width, context = 8, 512, 4096
	for _, cache := range []tensor.DType{tensor.F16, tensor.Q8_0, tensor.F8_E4M3} {
		for _, headDim := range []int{64, 128} {
			rng := newRand()
			freqs := make([]float64, headDim/2)
			for i := range freqs {
				freqs[i] = 1 / float64(1+i*i)
			}
			a := plan.AttentionAttr{Heads: 32, KVHeads: 8, HeadDim: headDim, Scale: 0.1}
			p := program(t, func(b *plan.Builder) {
				x := b.Embed(plantest.Weight(rng, "table", tensor.F32, 1, 509, width))
				for l := range layers {
					b.Layer(l)
					w := func(name string, rows, cols int) *tensor.Tensor {
						return plantest.Weight(rng, fmt.Sprintf("%s%d", name, l), tensor.Q8_0, 0.02, rows, cols)
					}
					n := b.RMSNorm(x, plantest.Weight(rng, fmt.Sprintf("norm%d", l), tensor.F32, 1, width), 1e-5)
					rope := plan.RopeAttr{HeadDim: headDim, Dims: headDim, Freqs: freqs, Scale: 1}
					s := b.State(plan.State{Name: fmt.Sprintf("kv%d", l), Kind: plan.PerToken, KVHeads: a.KVHeads, HeadDim: headDim, ValueDim: headDim})
					q := b.Rope(b.Linear(n, w("q", a.Heads*headDim, width), nil), rope)
					k := b.Rope(b.Linear(n, w("k", a.KVHeads*headDim, width), nil), rope)
					v := b.Linear(n, w("v", a.KVHeads*headDim, width), nil)
					x = b.Add(x, b.Linear(b.Attention(q, k, v, nil, s, a), w("o", width, a.Heads*headDim), nil))
				}
				y := b.Pick(x)
				b.Output(y, y)
			})
			r := attentionReader(t, b, p, cache, context)
			var all []portion
			for i := range 64 {
				all = append(all, portion{attentionText(i, context), 1, plan.WantToken})
			}
			for _, past := range []int{40, 250, 256, 1000, 4000} {
				for _, o := range all {
					for o.fed < past {
						r.feed(portion{o.text, min(2048, past-o.fed), 0})
					}
				}
				for _, size := range []struct{ seqs, tokens int }{{1, 1}, {1, 2}, {1, 4}, {1, 8}, {2, 1}, {4, 1}, {8, 1}, {8, 4}, {16, 1}, {16, 4}, {64, 1}, {64, 4}, {64, 8}} {
					if past+size.tokens > context {
						continue
					}
					var took []time.Duration
					for range 15 {
						portions := slices.Clone(all[:size.seqs])
						for i := range portions {
							portions[i].fed, portions[i].n = past, size.tokens
						}
						x := r.batch(portions...)
						x.Timed = true
						s := r.submit(x)
						took = append(took, r.wait(s).Times.Total)
						s.Release()
					}
					slices.Sort(took)
					fmt.Printf("step %v %3d: %2d x %d after %4d: %8.2f us a layer\n", cache, headDim, size.seqs, size.tokens, past, float64(took[len(took)/2])/1e3/layers)
				}
			}
			if err := r.x.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
