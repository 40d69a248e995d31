//go:build gpu

package cuda

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/synth"
	"github.com/realizar/realizar/internal/synth/synthtest"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// openGPU opens the first GPU for a test.
func openGPU(t *testing.T, o Options) *Backend {
	t.Helper()
	b, err := Open(o)
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

// oneBillion returns a model of realistic size with random weights.
func oneBillion(t *testing.T) *plan.Program {
	t.Helper()
	s, ok := synth.FindShape("llama-3.2-1b")
	if !ok {
		t.Fatal("there is no such model")
	}
	file, err := modelfile.Open(synthtest.File(t, s, "Q4_K_M"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	model, err := arch.Build(file)
	if err != nil {
		t.Fatal(err)
	}
	return model.Program
}

const (
	gpuPageTokens = 32
	gpuContext    = 704 // tokens of a sequence
	gpuSequences  = 65
)

// A reader feeds sequences to a program.
type reader struct {
	t *testing.T
	p *plan.Program
	x plan.Executable
}

func newReader(t *testing.T, b *Backend, p *plan.Program) *reader {
	t.Helper()
	return &reader{t, p, compiled(t, b, p, readerLimits(p))}
}

func readerLimits(p *plan.Program) plan.Limits {
	lim := plan.Limits{Tokens: 704, Seqs: 64, Rows: 64, PageTokens: gpuPageTokens, Cache: tensor.F16, Activations: tensor.F16}
	for range p.Groups {
		lim.Pages = append(lim.Pages, gpuSequences*gpuContext/gpuPageTokens)
	}
	return lim
}

// A text is a sequence, in the pages with its number.
type text struct {
	number int
	ids    []int32
	fed    int
}

// textOf returns a text of n tokens, which differ from text to text.
func (r *reader) textOf(number, n int) *text {
	s := &text{number: number}
	for i := range n {
		s.ids = append(s.ids, int32((number*7919+i*i*31+i*17+11)%r.p.Vocab))
	}
	return s
}

// A portion is the number of tokens of a text in a step, and whether the last one's logits are
// wanted.
type portion struct {
	*text
	n    int
	want plan.Want
}

func (r *reader) batch(portions ...portion) *plan.Batch {
	b := &plan.Batch{Start: []int32{0}, Tables: make([]plan.PageTable, len(r.p.Groups))}
	for g := range b.Tables {
		b.Tables[g].Start = []int32{0}
	}
	for _, s := range portions {
		for i := range s.n {
			b.Tokens = append(b.Tokens, s.ids[s.fed+i])
			b.Positions = append(b.Positions, int32(s.fed+i))
		}
		b.Start = append(b.Start, int32(len(b.Tokens)))
		b.Lengths = append(b.Lengths, int32(len(s.ids)))
		b.Rows = append(b.Rows, plan.Row{Token: int32(len(b.Tokens) - 1), Want: s.want})
		for g := range b.Tables {
			t := &b.Tables[g]
			for i := range (s.fed + s.n + gpuPageTokens - 1) / gpuPageTokens {
				// Page numbers neither ascend nor are adjacent.
				t.Pages = append(t.Pages, int32(i*gpuSequences+(s.number*29+i)%gpuSequences))
			}
			t.Start, t.First = append(t.Start, int32(len(t.Pages))), append(t.First, 0)
		}
		s.fed += s.n
	}
	return b
}

func (r *reader) submit(b *plan.Batch) plan.Step {
	r.t.Helper()
	s, err := r.x.Submit(b)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func (r *reader) wait(s plan.Step) *plan.Result {
	r.t.Helper()
	res, err := s.Wait(context.Background())
	if err != nil {
		r.t.Fatal(err)
	}
	for _, err := range res.Err {
		if err != nil {
			r.t.Fatal(err)
		}
	}
	return res
}

// feed runs a step and returns the logits of each portion that wants them.
func (r *reader) feed(portions ...portion) [][]float32 {
	r.t.Helper()
	s := r.submit(r.batch(portions...))
	defer s.Release()
	var all [][]float32
	for _, row := range r.wait(s).Logits {
		all = append(all, slices.Clone(row))
	}
	return all
}

// read feeds a text from its beginning: in chunks up to the last few tokens, then those one by one.
// It returns the logits of the last chunk and of the tokens after it. Each step also decodes the
// texts beside, before and after the text in the batch.
func (r *reader) read(s *text, chunk, last int, beside ...*text) [][]float32 {
	r.t.Helper()
	s.fed = 0
	var all [][]float32
	for s.fed < len(s.ids) {
		n := min(chunk, len(s.ids)-last-s.fed)
		if n <= 0 {
			n = 1
		}
		var portions []portion
		at := 0
		for i, o := range beside {
			if i == (len(beside)+1)/2 {
				at, portions = len(portions), append(portions, portion{s, n, plan.WantLogits})
			}
			portions = append(portions, portion{o, 1, plan.WantToken})
		}
		if len(portions) == len(beside) {
			at, portions = len(portions), append(portions, portion{s, n, plan.WantLogits})
		}
		logits := r.feed(portions...)[at]
		if s.fed >= len(s.ids)-last {
			all = append(all, logits)
		}
	}
	return all
}

func sameLogits(t *testing.T, what string, got, want [][]float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d rows, want %d", what, len(got), len(want))
	}
	for i := range want {
		for j := range want[i] {
			if got[i][j] != want[i][j] {
				t.Errorf("%s: row %d has other bits, first of token %d: %v, want %v", what, i, j, got[i][j], want[i][j])
				return
			}
		}
	}
}

// The bits of a sequence of a large model depend neither on the rest of the batch, nor on the
// chunks of the prompt, nor on the use of graphs.
func TestGPUBits(t *testing.T) {
	p := oneBillion(t)
	b := openGPU(t, Options{})
	r := newReader(t, b, p)
	took := func(what string, begun time.Time) { fmt.Printf("%s: %.1f s\n", what, time.Since(begun).Seconds()) }

	const prompt, last = 300, 6
	s := r.textOf(0, prompt+last)
	want := r.read(s, prompt, last)
	begun := time.Now()
	for _, chunk := range []int{prompt, 128, 64, 33, 7, 1} {
		sameLogits(t, fmt.Sprintf("a prompt in chunks of %d", chunk), r.read(s, chunk, last), want)
	}
	took("chunks", begun)

	begun = time.Now()
	var others []*text
	for i := range gpuSequences - 2 {
		o := r.textOf(i+1, gpuContext)
		r.feed(portion{o, 1 + i*53%600, 0})
		others = append(others, o)
	}
	for _, n := range []int{2, 8, 16, 17, 32, 64} {
		sameLogits(t, fmt.Sprintf("in a batch of %d", n), r.read(s, prompt, last, others[:n-1]...), want)
		sameLogits(t, fmt.Sprintf("in a batch of %d, in chunks", n), r.read(s, 100, last, others[len(others)-n+1:]...), want)
	}
	took("neighbours", begun)

	begun = time.Now()
	short := r.textOf(0, 40)
	var first []int32
	for i := range 200 {
		if got := r.greedy(short, 24); i == 0 {
			first = got
		} else if !slices.Equal(got, first) {
			t.Fatalf("greedy run %d gives %v, the first gave %v", i, got, first)
		}
	}
	took("200 greedy runs", begun)

	begun = time.Now()
	eager := newReader(t, openGPU(t, Options{Eager: true}), p)
	sameLogits(t, "without graphs", eager.read(s, prompt, last), want)
	sameLogits(t, "without graphs, in chunks", eager.read(s, 64, last), want)
	if got := eager.greedy(short, 24); !slices.Equal(got, first) {
		t.Errorf("without graphs the greedy tokens are %v, want %v", got, first)
	}
	took("eager", begun)
}

// greedy continues a text by n tokens. Each token passes to the next step on the device, while that
// step is submitted.
func (r *reader) greedy(s *text, n int) []int32 {
	r.t.Helper()
	s.fed = 0
	more := &text{number: s.number, ids: slices.Concat(s.ids, make([]int32, n))}
	steps := []plan.Step{r.submit(r.batch(portion{more, len(s.ids), plan.WantToken}))}
	var tokens []int32
	take := func() {
		tokens = append(tokens, r.wait(steps[0]).Tokens[0])
		steps[0].Release()
		steps = steps[1:]
	}
	for range n - 1 {
		b := r.batch(portion{more, 1, plan.WantToken})
		b.From = []int32{0}
		steps = append(steps, r.submit(b))
		take()
	}
	take()
	return tokens
}
