package cpu

import (
	"sync/atomic"

	"github.com/realizar/realizar/internal/plan"
)

// An operand holds the rows that a product of experts reads, consecutively, in one or both forms.
type operand struct {
	floats       []float32
	records      []byte
	width, bytes int // distance between rows
}

// from returns the rows from r on.
func (o operand) from(r int) operand {
	if o.floats != nil {
		o.floats = o.floats[r*o.width:]
	}
	if o.records != nil {
		o.records = o.records[r*o.bytes:]
	}
	return o
}

// An expertSpace is the scratch memory of mixtures of experts, shared by all nodes of a program. A
// place is a pair of a token and one of its experts. The places of an expert are consecutive, in
// the order of tokens.
type expertSpace struct {
	desks []routeDesk // by worker

	chosen  []int32   // [T, Used] experts
	weights []float32 // [T, Used]
	place   []int32   // [T, Used]
	token   []int32   // by place
	weight  []float32 // by place
	start   []int32   // [experts+1] first place of each expert
	next    []int32   // [experts]
	active  []int32   // experts with tokens, in order, without identities
	shared  int       // number of places of these experts with several tokens

	// The first expert of active, for workers that prefetch while others still compute.
	first atomic.Int32

	in, hidden       []float32 // by place: inputs of gate and up; inputs of down
	inRec, hiddenRec []byte
}

// expertWork is the space of a program's mixtures.
var expertWork = &space{
	bytes: func(b *Backend, p *plan.Program, lim *plan.Limits) int { return b.expertRoom(p, lim).bytes(b.threads) },
	make: func(e *executable) any {
		return newExpertSpace(e.backend.expertRoom(e.p, &e.lim), len(e.desks))
	},
}

// expertSizes are the sizes of an expertSpace.
type expertSizes struct {
	experts, groups, choices, in, hidden, inRec, hiddenRec int
}

// expertRoom returns the sizes that the mixtures of p need for any step within lim: each token has
// one input row of gate and up, and one of down, for each of its experts.
func (b *Backend) expertRoom(p *plan.Program, lim *plan.Limits) (z expertSizes) {
	for i := range p.Nodes {
		a, ok := p.Nodes[i].Attr.(plan.ExpertsAttr)
		if !ok {
			continue
		}
		choices, d, ffn := lim.Size(p.Shapes[p.Nodes[i].Out][0])*a.Route.Used, a.Gate[0].Cols(), a.Down[0].Cols()
		z.experts, z.groups, z.choices = max(z.experts, len(a.Gate)+a.Identity), max(z.groups, a.Route.Groups), max(z.choices, choices)
		records, floats := b.reads(&p.Nodes[i], lim)
		if records {
			z.inRec = max(z.inRec, choices*recordStride(d))
		}
		if floats {
			z.in = max(z.in, choices*rowStride(d))
		}
		if b.inRecords(a.Down[0], lim) {
			z.hiddenRec = max(z.hiddenRec, choices*recordStride(ffn))
		} else {
			z.hidden = max(z.hidden, choices*rowStride(ffn))
		}
	}
	return z
}

func (z expertSizes) bytes(workers int) int {
	desk := (2*8+2)*z.experts + 8*z.groups
	return workers*desk + 4*(5*z.choices+3*z.experts+1+z.in+z.hidden) + z.inRec + z.hiddenRec
}

func newExpertSpace(z expertSizes, workers int) *expertSpace {
	s := &expertSpace{
		desks:  make([]routeDesk, workers),
		chosen: make([]int32, z.choices), weights: make([]float32, z.choices), place: make([]int32, z.choices), token: make([]int32, z.choices), weight: make([]float32, z.choices),
		start: make([]int32, z.experts+1), next: make([]int32, z.experts), active: make([]int32, 0, z.experts),
		in: make([]float32, z.in), hidden: make([]float32, z.hidden), inRec: make([]byte, z.inRec), hiddenRec: make([]byte, z.hiddenRec),
	}
	for i := range s.desks {
		s.desks[i] = newRouteDesk(z.experts, z.groups)
	}
	return s
}

// group assigns places to the first choices; each token has used of them. Experts from identity on
// are identities.
func (s *expertSpace) group(choices, used, identity int) {
	clear(s.start)
	for _, e := range s.chosen[:choices] {
		s.start[e+1]++
	}
	s.active, s.shared = s.active[:0], 0
	for e := range s.next {
		n := s.start[e+1]
		if n > 0 && e < identity {
			s.active = append(s.active, int32(e))
		}
		if n > 1 && e < identity {
			s.shared += int(n)
		}
		s.start[e+1] += s.start[e]
		s.next[e] = s.start[e]
	}
	if len(s.active) > 0 {
		s.first.Store(s.active[0])
	}
	for i, e := range s.chosen[:choices] {
		s.place[i], s.token[s.next[e]], s.weight[s.next[e]] = s.next[e], int32(i/used), s.weights[i]
		s.next[e]++
	}
}

// tokens returns the first place of an expert and the number of its places.
func (s *expertSpace) tokens(expert int32) (first, n int) {
	return int(s.start[expert]), int(s.start[expert+1] - s.start[expert])
}
