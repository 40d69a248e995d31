package cuda

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// decodingAt returns a batch in which each of n sequences decodes the token at a position and has the
// given number of pages in common with the others.
func decodingAt(p *plan.Program, n, position, common, pageTokens int) *plan.Batch {
	b := &plan.Batch{Start: []int32{0}, Tables: make([]plan.PageTable, len(p.Groups))}
	for g := range b.Tables {
		b.Tables[g].Reset()
	}
	pages := position/pageTokens + 1
	for s := range n {
		b.Tokens, b.Positions = append(b.Tokens, 1), append(b.Positions, int32(position))
		b.Start, b.Lengths = append(b.Start, int32(len(b.Tokens))), append(b.Lengths, int32(position))
		b.Rows = append(b.Rows, plan.Row{Token: int32(s), Want: plan.WantToken})
		var own []int32
		for i := range pages {
			if i < common {
				own = append(own, int32(i))
			} else {
				own = append(own, int32(pages+s*pages+i))
			}
		}
		for g := range b.Tables {
			b.Tables[g].Add(0, own...)
		}
	}
	return b
}

// A decode step attends to a common prefix in a launch of its own if that saves enough and there is a
// kernel. Other steps have the launches that they have without prefixes.
func TestPrefixLaunches(t *testing.T) {
	const seqs, position = 8, 600
	one := []string{"decode"}
	for _, c := range []struct {
		name   string
		bytes  int // that must be saved
		cache  tensor.DType
		common int // pages
		want   []string
	}{
		{"a common prefix", 1, tensor.F16, 33, []string{"turn", "attend", "decode"}},
		{"in a cache of bytes", 1, tensor.Q8_0, 33, []string{"turn", "attend", "decode"}},
		{"as many bytes as must be saved", 7 * 2 * 256 * 2 * 2 * 64 * 2, tensor.F16, 33, []string{"turn", "attend", "decode"}},
		{"fewer bytes", 7*2*256*2*2*64*2 + 1, tensor.F16, 33, one},
		{"the usual bound", 0, tensor.F16, 33, one},
		{"no prefix", 1, tensor.F16, 15, one},
		{"no prefixes", math.MaxInt, tensor.F16, 33, one},
		{"no kernel", 1, tensor.F32, 33, one},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, f := openFake(t, drivertest.Options{}, Options{Eager: true, PrefixBytes: c.bytes})
			p := decoder(t, tensor.F16)
			e := compiled(t, b, p, plantest.LimitsFor(p, 16, seqs, 2*position, testPageTokens, plan.Limits{Cache: c.cache}))
			launches := func(x *plan.Batch) (names []string) {
				before := len(f.Launches())
				if err := run(e, x); err != nil {
					t.Fatal(err)
				}
				for _, l := range f.Launches()[before:] {
					if name, _, _ := strings.Cut(l.Kernel, "_"); slices.Contains([]string{"turn", "attend", "decode"}, name) {
						names = append(names, name)
					}
				}
				return names
			}
			if got := launches(decodingAt(p, seqs, position, c.common, testPageTokens)); !slices.Equal(got, c.want) {
				t.Errorf("attention launches %v, want %v", got, c.want)
			}
			if got := launches(decodingAt(p, 1, position, c.common, testPageTokens)); !slices.Equal(got, one) {
				t.Errorf("attention of one sequence launches %v, want %v", got, one)
			}
			if m := f.Misfits(); len(m) > 0 {
				t.Errorf("arguments of the kernels %v", m)
			}
		})
	}
}

// Spans of a step with a prefix count its keys and values once.
func TestPrefixSpans(t *testing.T) {
	const seqs, position, common = 8, 600, 33
	b, _ := openFake(t, drivertest.Options{}, Options{PrefixBytes: 1})
	p := decoder(t, tensor.F16)
	e := compiled(t, b, p, plantest.LimitsFor(p, 16, seqs, 2*position, testPageTokens, plan.Limits{Cache: tensor.F16}))
	const kept = 2 * 2 * 64 * 2 // bytes of a position
	attention := func(common int) (bytes int) {
		x := decodingAt(p, seqs, position, common, testPageTokens)
		x.Timed, x.Spans = true, true
		s, err := e.Submit(x)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Release()
		r, err := s.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, span := range r.Spans {
			if strings.Contains(span.Kernel, "decode") || strings.Contains(span.Kernel, "prefix") {
				bytes += span.Bytes
			}
		}
		return bytes
	}
	const q = seqs * 4 * 64 * 4 // the queries, which both launches read
	if got, want := attention(common), attention(0)-(seqs-1)*512*kept+q; got != want {
		t.Errorf("attention reads and writes %d bytes, want %d", got, want)
	}
}
