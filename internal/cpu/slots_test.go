package cpu

import (
	"fmt"
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

const (
	sumsVocab = 64
	sumsWidth = 32
)

// sums returns a program whose only operation returns the sum of a sequence's rows so far, which it
// keeps in a state. It stores column i at the mirrored place, so that writing to the slot that is
// read gives wrong results. A second state makes each only a part of its group.
func sums(t *testing.T) *plan.Program {
	t.Helper()
	table := &tensor.Tensor{Name: "embed", DType: tensor.F32, Shape: []int{sumsVocab, sumsWidth}, Data: make([]byte, 4*sumsVocab*sumsWidth)}
	for i, x := 0, words[float32](table.Data); i < len(x); i++ {
		x[i] = float32(i * 37 % 101)
	}
	one := &tensor.Tensor{Name: "head", DType: tensor.F32, Shape: []int{sumsWidth, sumsWidth}, Data: make([]byte, 4*sumsWidth*sumsWidth)}
	for i, x := 0, words[float32](one.Data); i < sumsWidth; i++ {
		x[i*sumsWidth+i] = 1
	}
	p, err := plan.Build(func(b *plan.Builder) {
		b.State(plan.State{Name: "other", Kind: plan.PerSequence, Size: 7})
		b.State(plan.State{Name: "sums", Kind: plan.PerSequence, Size: sumsWidth})
		x := b.Scale(b.Embed(table), 2)
		h := b.Pick(x)
		b.Output(h, b.Linear(h, one, nil))
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.Op == plan.Map {
			n.Op = summed
		}
	}
	return p
}

// summed is the operation of sums.
var summed = &plan.Op{Name: "sums", Scope: plan.BySequence}

func init() { operations[summed] = summing{} }

type summing struct{ ordinary }

func (o summing) kernels(e *executable, s *fuse.Stage) ([]kernel, error) {
	return o.reference(e, s.Node())
}

func (summing) reference(e *executable, n *plan.Node) ([]kernel, error) {
	return []kernel{{size: func() int { return e.batch.Seqs() }, run: func(_, lo, hi int) {
		for s := lo; s < hi; s++ {
			other, others := e.slots(0, int32(s))
			copy(others, other)
			others[6]++ // number of steps
			in, out := e.slots(1, int32(s))
			sum := slices.Clone(in)
			slices.Reverse(sum)
			for t := e.batch.Start[s]; t < e.batch.Start[s+1]; t++ {
				for i, x := range e.row(n.In[0], int(t)) {
					sum[i] += x
				}
				copy(e.row(n.Out, int(t)), sum)
			}
			for i, x := range sum {
				out[len(out)-1-i] = x
			}
		}
	}}}, nil
}

// A state continues from step to step however the sequence is cut into steps, with other sequences,
// and after it was saved and restored elsewhere.
func TestSlots(t *testing.T) {
	p := sums(t)
	list := make([]int32, 70)
	var want [][]float32
	sum := make([]float32, sumsWidth)
	for i := range list {
		list[i] = int32(i * 11 % sumsVocab)
		for c := range sum {
			sum[c] += float32((int(list[i])*sumsWidth + c) * 37 % 101)
		}
		want = append(want, slices.Clone(sum))
	}
	for _, b := range []*Backend{New(2), Reference()} {
		lim := plantest.LimitsFor(p, 200, 3, 100, 16, plan.Limits{Cache: tensor.F16})
		if lim.Pages[0] != 6 {
			t.Fatalf("%d slots for 3 sequences", lim.Pages[0])
		}
		r, err := plantest.NewRunner(b, p, lim)
		if err != nil {
			t.Fatal(err)
		}
		for _, chunk := range []int{70, 1, 7, 64} {
			t.Run(fmt.Sprintf("%s, steps of %d", b.Name(), chunk), func(t *testing.T) {
				beside := []*plantest.Seq{r.Add(list[3:], 5), r.Add(list[9:40], 31)}
				s := r.Add(list, chunk)
				if err := r.Run(); err != nil {
					t.Fatal(err)
				}
				for i := range want {
					if !slices.Equal(s.Logits[i], want[i]) {
						t.Fatalf("token %d: %v, want %v", i, s.Logits[i], want[i])
					}
				}
				for _, s := range append(beside, s) {
					r.Drop(s)
				}
			})
		}
		t.Run(b.Name()+", moved", func(t *testing.T) { movedSlot(t, r.Exe, &lim, p, list, want) })
		if err := r.Exe.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// movedSlot moves a sequence's state to host memory and back to another slot, and continues two
// sequences from it.
func movedSlot(t *testing.T, exe plan.Executable, lim *plan.Limits, p *plan.Program, list []int32, want [][]float32) {
	size, err := lim.PageBytes(p, 0)
	if err != nil || size != 4*(sumsWidth+7) {
		t.Fatalf("a slot has %d bytes (%v)", size, err)
	}
	host, err := exe.AllocHost(size)
	if err != nil {
		t.Fatal(err)
	}
	step := func(from, to int, slots []int32, ops ...plan.StateOp) {
		t.Helper()
		b := &plan.Batch{Start: []int32{0}, Tables: make([]plan.PageTable, 1), States: ops}
		b.Tables[0].Reset()
		for i := 0; i < len(slots); i += 2 {
			for pos := from; pos < to; pos++ {
				b.Rows = append(b.Rows, plan.Row{Token: int32(len(b.Tokens)), Want: plan.WantLogits})
				b.Tokens, b.Positions = append(b.Tokens, list[pos]), append(b.Positions, int32(pos))
			}
			b.Start, b.Lengths = append(b.Start, int32(len(b.Tokens))), append(b.Lengths, int32(to))
			b.Tables[0].AddSlots(slots[i], slots[i+1])
		}
		s, err := exe.Submit(b)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Release()
		res, err := s.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i, got := range res.Logits {
			if pos := from + i%(to-from); !slices.Equal(got, want[pos]) {
				t.Fatalf("slots %v, token %d: %v, want %v", slots, pos, got, want[pos])
			}
		}
	}
	save := func(page int32) plan.StateOp { return plan.StateOp{Kind: plan.SavePage, Page: page, Host: host} }
	restore := func(page int32) plan.StateOp {
		return plan.StateOp{Kind: plan.RestorePage, Page: page, Host: host}
	}
	step(0, 20, []int32{-1, 5})
	step(0, 3, []int32{-1, 1, -1, 0}, save(5))
	step(0, 9, []int32{-1, 5}) // another sequence uses the slot
	step(20, 22, []int32{2, 4, 2, 3}, restore(2))
	step(22, 23, []int32{3, 0})
	step(20, 21, []int32{2, 3}) // from the unchanged slot
}
