//go:build gpu

package cuda

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// TestGPUPrefixes logs, for the models that MODELS names, the time of decode steps of sequences that
// begin alike and have 128 tokens of their own: if attention reads common pages once, if it reads
// them for each sequence, and if each sequence has copies of its own. All choose the same tokens.
func TestGPUPrefixes(t *testing.T) {
	eachModel(t, func(t *testing.T, p *plan.Program) {
		sizes := [][2]int{{4, 2048}, {16, 512}, {16, 2048}, {64, 256}, {64, 1024}, {64, 2048}, {128, 2048}}
		type timed struct {
			step, attention time.Duration
			kernels         []string
		}
		times := map[string][]timed{}
		tokens := map[[2]int][]int32{}
		for _, mode := range []struct {
			name   string
			bytes  int
			copied bool
		}{{"once", 1, false}, {"each", math.MaxInt, false}, {"copies", math.MaxInt, true}} {
			b := openGPU(t, Options{PrefixBytes: mode.bytes})
			r := prefixReader{t: t, p: p, copied: mode.copied}
			lim := plan.Limits{Tokens: 512, Seqs: 128, Rows: 128, PageTokens: gpuPageTokens, Cache: tensor.F16, Activations: tensor.F16}
			for range p.Groups {
				lim.Pages = append(lim.Pages, r.pages(sizes))
			}
			r.e = compiled(t, b, p, lim)
			for _, size := range sizes {
				if mode.copied && size[0]*size[1] > copiedTokens {
					times[mode.name] = append(times[mode.name], timed{})
					continue
				}
				r.fill(size[0], size[1])
				var x timed
				var all []time.Duration
				for range profileRuns {
					step, chosen := r.decode(size[0], size[1], false)
					all = append(all, step.Times.Total)
					if tokens[size] == nil {
						tokens[size] = chosen
					}
					if !slices.Equal(chosen, tokens[size]) {
						t.Errorf("%d sequences with %d tokens in common, %s: other tokens", size[0], size[1], mode.name)
					}
				}
				slices.Sort(all)
				x.step = all[len(all)/2]
				spans, _ := r.decode(size[0], size[1], true)
				for _, s := range spans.Spans {
					if kernel := s.Kernel; attends(kernel) {
						if x.attention += s.Time; !slices.Contains(x.kernels, kernel) {
							x.kernels = append(x.kernels, kernel)
						}
					}
				}
				times[mode.name] = append(times[mode.name], x)
			}
			if err := r.e.Close(); err != nil {
				t.Fatal(err)
			}
		}
		ms := func(d time.Duration) float64 { return float64(d) / 1e6 }
		for i, size := range sizes {
			once, each, copies := times["once"][i], times["each"][i], times["copies"][i]
			fmt.Printf("  %3d x %4d in common: a step %7.3f ms, each %7.3f, copies %7.3f; attention %7.3f ms, each %7.3f, copies %7.3f; %v\n", size[0], size[1],
				ms(once.step), ms(each.step), ms(copies.step), ms(once.attention), ms(each.attention), ms(copies.attention), once.kernels)
		}
	})
}

// copiedTokens bounds the common tokens of which each sequence has a copy.
const copiedTokens = 64 * 2048

// attends reports whether a kernel is one of attention in a decode step.
func attends(kernel string) bool {
	return slices.ContainsFunc([]string{"rope turn", "prefix", "decode"}, func(name string) bool {
		return len(kernel) >= len(name) && kernel[:len(name)] == name
	})
}

// A prefixReader runs sequences with a common beginning, and tokens of their own behind it.
type prefixReader struct {
	t      *testing.T
	p      *plan.Program
	e      *executable
	copied bool // each sequence has pages of its own for the beginning
}

const ownTokens = 128

// pages returns how many pages sequences of all sizes need.
func (r *prefixReader) pages(sizes [][2]int) (most int) {
	for _, size := range sizes {
		if r.copied && size[0]*size[1] > copiedTokens {
			continue
		}
		n := size[1]/gpuPageTokens + size[0]*(ownTokens/gpuPageTokens+1)
		if r.copied {
			n += (size[0] - 1) * size[1] / gpuPageTokens
		}
		most = max(most, n)
	}
	return most
}

// add adds n tokens of a sequence to a batch, the first at a position.
func (r *prefixReader) add(b *plan.Batch, sequence, prefix, position, n int) {
	for i := position; i < position+n; i++ {
		id := i * 31
		if i >= prefix {
			id += sequence * 7
		}
		b.Tokens, b.Positions = append(b.Tokens, int32(id%r.p.Vocab)), append(b.Positions, int32(i))
	}
	b.Start, b.Lengths = append(b.Start, int32(len(b.Tokens))), append(b.Lengths, int32(prefix+ownTokens))
	b.Rows = append(b.Rows, plan.Row{Token: int32(len(b.Tokens) - 1), Want: plan.WantToken})
	common, own := prefix/gpuPageTokens, ownTokens/gpuPageTokens+1
	var pages []int32
	for i := range (position+n-1)/gpuPageTokens + 1 {
		switch {
		case r.copied:
			pages = append(pages, int32(sequence*(common+own)+i))
		case i < common:
			pages = append(pages, int32(i))
		default:
			pages = append(pages, int32(common+sequence*own+i-common))
		}
	}
	for g := range b.Tables {
		b.Tables[g].Add(0, pages...)
	}
}

func (r *prefixReader) batch() *plan.Batch {
	b := &plan.Batch{Start: []int32{0}, Tables: make([]plan.PageTable, len(r.p.Groups))}
	for g := range b.Tables {
		b.Tables[g].Reset()
	}
	return b
}

// fill computes the keys and values of all tokens before those that decode decodes.
func (r *prefixReader) fill(seqs, prefix int) {
	r.t.Helper()
	for s := range seqs {
		position := 0
		if s > 0 && !r.copied {
			position = prefix
		}
		for position < prefix+ownTokens {
			n := min(512, prefix+ownTokens-position)
			b := r.batch()
			r.add(b, s, prefix, position, n)
			if err := run(r.e, b); err != nil {
				r.t.Fatal(err)
			}
			position += n
		}
	}
}

// decode runs a step of a token of each sequence.
func (r *prefixReader) decode(seqs, prefix int, spans bool) (plan.Result, []int32) {
	r.t.Helper()
	b := r.batch()
	b.Timed, b.Spans = true, spans
	for s := range seqs {
		r.add(b, s, prefix, prefix+ownTokens, 1)
	}
	s, res := done(r.t, r.e, b)
	defer s.Release()
	got := *res
	got.Spans = slices.Clone(res.Spans)
	return got, slices.Clone(res.Tokens)
}
