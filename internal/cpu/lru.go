package cpu

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// lru is the real-gated linear recurrent unit, each column by itself.
type lru struct{ ordinary }

const (
	// lruBlock is the number of columns that a work item computes together.
	lruBlock = 64
	// lruExponents is the length of a row of exponents: those of the columns, and zeros, so that the
	// largest is 0 and the kernel of attention's weights computes exp(x) for negative x.
	lruExponents = lruBlock + headUnit
)

// An lruDesk is the scratch memory of one worker.
type lruDesk struct {
	input, gate [lruBlock]float32
	decay       [lruExponents]float32
	top, total  [1]float32
}

var lruWork = &space{
	bytes: func(b *Backend, _ *plan.Program, _ *plan.Limits) int {
		return b.threads * int(unsafe.Sizeof(lruDesk{}))
	},
	make: func(e *executable) any { return make([]lruDesk, len(e.desks)) },
}

func (lru) spaces() []*space { return []*space{lruWork} }

func (lru) pieces(*plan.Node) int { return lruBlock }

func (lru) moved(e *executable, n *plan.Node) int {
	return 2 * 4 * e.batch.Seqs() * e.p.States[n.State].Size
}

// numbers returns the biases of the gates, and what the sigmoid of the recurrence gate multiplies.
func (lru) numbers(n *plan.Node) (rate, input, decay []float32, err error) {
	a := n.Attr.(plan.LRUAttr)
	if rate, err = floats(a.Rate); err == nil {
		if input, err = floats(a.InputBias); err == nil {
			decay, err = floats(a.DecayBias)
		}
	}
	for i, v := range rate {
		if rate[i] = float32(-8 * softplus(float64(v))); math.IsInf(float64(rate[i]), 0) {
			return nil, nil, nil, fmt.Errorf("%s[%d] is %v, want a smaller number", a.Rate.Name, i, v)
		}
	}
	return rate, input, decay, err
}

func (o lru) kernels(e *executable, s *fuse.Stage) ([]kernel, error) {
	n := s.Node()
	rate, input, decay, err := o.numbers(n)
	if err != nil {
		return nil, err
	}
	blocks := (len(rate) + lruBlock - 1) / lruBlock
	desks := e.space(lruWork).([]lruDesk)
	return []kernel{{
		size: func() int { return e.batch.Seqs() * blocks },
		run: func(worker, lo, hi int) {
			for i := lo; i < hi; i++ {
				first := i % blocks * lruBlock
				end := min(first+lruBlock, len(rate))
				desks[worker].columns(e, n, i/blocks, first, rate[first:end], input[first:end], decay[first:end])
			}
		},
	}}, nil
}

// columns computes the columns from first on of all rows of a sequence.
func (k *lruDesk) columns(e *executable, n *plan.Node, seq, first int, rate, input, decay []float32) {
	width, v := len(rate), e.tier.vector
	in, gate := k.input[:width], k.gate[:width]
	before, after := e.slots(n.State, int32(seq))
	h := before[first:][:width]
	for r := int(e.batch.Start[seq]); r < int(e.batch.Start[seq+1]); r++ {
		part := func(x plan.Value) []float32 { return e.row(x, r)[first:][:width] }
		y := part(n.Out)
		v.add(gate, part(n.In[1]), input)
		v.glu(in, gate, part(n.In[0]), plan.Sigmoid)
		if e.batch.Positions[r] == 0 {
			copy(y, in)
		} else {
			clear(k.decay[:])
			v.add(gate, part(n.In[2]), decay)
			v.glu(k.decay[:width], gate, rate, plan.Sigmoid)
			copy(gate, k.decay[:width])
			e.tier.attention.softWeights(k.decay[:], lruExponents, 1, k.top[:], k.total[:])
			for i, g := range gate {
				in[i] *= shareOf(g, k.decay[i])
			}
			v.center(y, h, k.decay[:width], in, 0, 1) // h*a + in
		}
		e.wrote(n.Out, r, first, first+width)
		h = y
	}
	copy(after[first:][:width], h)
}

// shareOf returns sqrt(1-a²) for a = exp(x) and x not above 0. Near 0, 1-a² is a series, of which
// eight terms leave 2e-8.
func shareOf(x, a float32) float32 {
	rest := 1 - float64(a)*float64(a)
	if v := 2 * float64(x); v > -0.5 {
		rest = -v * (1 + v*(1./2+v*(1./6+v*(1./24+v*(1./120+v*(1./720+v*(1./5040+v/40320)))))))
	}
	return float32(math.Sqrt(rest))
}

// reference rounds the state to float32 after each token, as the state is kept in. It also writes
// bounds: the error of a column is that of the token before, which decays, and those of the decay and
// of what was added. The state before the step is exact: it is equal in both runs.
func (o lru) reference(e *executable, n *plan.Node) ([]kernel, error) {
	rate, input, decay, err := o.numbers(n)
	if err != nil {
		return nil, err
	}
	sigmoid := activations[plan.Sigmoid]
	return []kernel{{size: func() int { return e.batch.Seqs() * len(rate) }, grain: 16, run: func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			seq, c := i/len(rate), i%len(rate)
			before, after := e.slots(n.State, int32(seq))
			h, off := float64(before[c]), 0.0
			for r := int(e.batch.Start[seq]); r < int(e.batch.Start[seq+1]); r++ {
				value := func(x plan.Value) (v, off float64) { return float64(e.row(x, r)[c]), at(e.bound(x, r), c) }
				x, xOff := value(n.In[0])
				gate, gateOff := value(n.In[1])
				raw, rawOff := value(n.In[2])
				open := func(v float64) float64 { return sigmoid(v + float64(input[c])) }
				added := open(gate) * x
				addedOff := max(open(gate+gateOff)-open(gate), open(gate)-open(gate-gateOff))*(math.Abs(x)+xOff) + open(gate)*xOff + roundings*math.Abs(added)
				a, share := 0.0, 1.0
				aOff, shareOff := 0.0, 0.0
				if e.batch.Positions[r] > 0 {
					decayed := func(v float64) (a, share float64) {
						exponent := float64(rate[c]) * sigmoid(v+float64(decay[c]))
						return math.Exp(exponent), math.Sqrt(-math.Expm1(2 * exponent))
					}
					a, share = decayed(raw)
					for _, v := range []float64{raw - rawOff - roundings, raw + rawOff + roundings} {
						b, s := decayed(v)
						aOff, shareOff = max(aOff, math.Abs(b-a)), max(shareOff, math.Abs(s-share))
					}
					aOff, shareOff = aOff+roundings*a, shareOff+roundings*share
				}
				off = (a+aOff)*off + aOff*math.Abs(h) + (share+shareOff)*addedOff + shareOff*math.Abs(added)
				h = float64(float32(a*h + share*added))
				off += roundings * math.Abs(h)
				e.row(n.Out, r)[c] = float32(h)
				if to := e.bound(n.Out, r); to != nil {
					to[c] = float32(off)
				}
			}
			after[c] = float32(h)
		}
	}}}, nil
}
