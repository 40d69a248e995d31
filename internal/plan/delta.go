package plan

import (
	"fmt"
	"math"

	"github.com/realizar/realizar/tensor"
)

// Delta is the gated delta rule (Yang, Kautz and Hatamizadeh, "Gated Delta Networks", 2024). A head
// has a matrix S [KeyDim, ValueDim], zero before its sequence's first token. A token with query q,
// key k, value v, rate β and gate g makes it
//
//	S = diag(exp(g)) S
//	u = β (v - Sᵀk)
//	S = S + k uᵀ
//
// and gives Sᵀq. q and k are divided by the root of their squared sum plus 1e-6, and q also by
// sqrt(KeyDim). g is one number for a head, or one for each row of its S (Kimi team, "Kimi Linear",
// 2025).
//
// With S at the beginning of a chunk (see [RecurrentChunk]) and the sum G of the chunk's g so far,
// rows i of the chunk are (Yang et al., "Parallelizing Linear Transformers with the Delta Rule over
// Sequence Length", 2024)
//
//	u_i = β_i (v_i - Sᵀ(exp(G_i) k_i) - the sum over j < i of (k_i · exp(G_i-G_j) k_j) u_j)
//	o_i = Sᵀ(exp(G_i) q_i) + the sum over j <= i of (q_i · exp(G_i-G_j) k_j) u_j
//
// added in this order, and S at its end is exp(G) S + the sum of (exp(G-G_j) k_j) u_jᵀ. The state
// per token holds k, -G and u.
var Delta = &Op{Name: "delta", Scope: BySequence}

// DeltaAttr holds the parameters of [Delta]. q and k are [T, KeyHeads*KeyDim], v is [T,
// Heads*ValueDim], β is [T, Heads] and g is [T, Heads] or with ByChannel [T, Heads*KeyDim]. Head h
// has query and key h / (Heads/KeyHeads), or with Tiled h % KeyHeads.
//
// The β and g of the inputs b and a are Beta*sigmoid(b) and rate*softplus(a+bias), or with a Floor
// Floor*sigmoid(-rate*(a+bias)).
type DeltaAttr struct {
	KeyHeads, Heads  int
	KeyDim, ValueDim int
	Tiled            bool
	ByChannel        bool
	Beta             float64 // 1, or 2 for negative eigenvalues (Grazzi et al., "Unlocking State-Tracking in Linear RNNs", 2024)
	Floor            float64 // least g, below 0; 0: none
	Rows             int     // the state per token
}

func (a DeltaAttr) second() int { return a.Rows }

func (a DeltaAttr) withSecond(state int) any {
	a.Rows = state
	return a
}

func (a DeltaAttr) String() string {
	s := fmt.Sprintf("{heads %d/%d, dim %d/%d", a.Heads, a.KeyHeads, a.KeyDim, a.ValueDim)
	if a.Tiled {
		s += ", tiled"
	}
	if a.ByChannel {
		s += ", gates by channel"
	}
	if a.Beta != 1 {
		s += fmt.Sprintf(", beta %.6g", a.Beta)
	}
	if a.Floor != 0 {
		s += fmt.Sprintf(", floor %.6g", a.Floor)
	}
	return s + fmt.Sprintf(", rows @%d}", a.Rows)
}

// Gates returns the number of gates of a head.
func (a *DeltaAttr) Gates() int {
	if a.ByChannel {
		return a.KeyDim
	}
	return 1
}

// Shared returns how many heads share a key.
func (a *DeltaAttr) Shared() int { return a.Heads / a.KeyHeads }

// Key returns the key that head h has, and which of the heads with that key it is.
func (a *DeltaAttr) Key(h int) (key, which int) {
	if a.Tiled {
		return h % a.KeyHeads, h / a.KeyHeads
	}
	return h / a.Shared(), h % a.Shared()
}

// States returns the states that the operation needs: the matrices, and the rows of a chunk. By key
// head, the rows have k and the -G of the heads that share it, and their u.
func (a *DeltaAttr) States() (matrices, rows State) {
	matrices = State{Kind: PerSequence, Size: a.Heads * a.KeyDim * a.ValueDim, Every: RecurrentChunk}
	rows = State{
		KVHeads: a.KeyHeads, HeadDim: a.KeyDim + a.Shared()*a.Gates(), ValueDim: a.Shared() * a.ValueDim,
		Chunk: RecurrentChunk, Exact: true,
	}
	return matrices, rows
}

// mostDelta bounds the lengths of heads, whose scratch memory backends plan.
const mostDelta = 256

// valid reports whether the numbers of a are possible.
func (a *DeltaAttr) valid() bool {
	return a.KeyHeads > 0 && a.Heads > 0 && a.Heads%a.KeyHeads == 0 && a.KeyDim > 0 && a.KeyDim <= mostDelta && a.ValueDim > 0 && a.ValueDim <= mostDelta &&
		a.Beta > 0 && a.Beta <= 2 && a.Floor <= 0 && a.Floor >= -math.MaxFloat32
}

// Delta adds the gated delta rule. beta and gate are the inputs b and a of [DeltaAttr]. rate is
// [Heads], not above 0, and bias [Heads] or with ByChannel [Heads*KeyDim]. state and a.Rows are as
// [DeltaAttr.States] returns them.
func (b *Builder) Delta(q, k, v, beta, gate Value, rate, bias *tensor.Tensor, state int, a DeltaAttr) Value {
	if !a.valid() {
		b.Failf("delta: cannot compute %v; heads have at most %d elements", a, mostDelta)
	}
	gates := a.Heads * a.Gates()
	for _, in := range []struct {
		what string
		x    Value
		cols int
	}{{"q", q, a.KeyHeads * a.KeyDim}, {"k", k, a.KeyHeads * a.KeyDim}, {"v", v, a.Heads * a.ValueDim}, {"beta", beta, a.Heads}, {"gate", gate, gates}} {
		if b.Cols(in.x) != in.cols || b.Rows(in.x) != Tokens {
			b.Failf("delta %v: %s has %v rows of %d columns, want %d of each token", a, in.what, b.Rows(in.x), b.Cols(in.x), in.cols)
		}
	}
	b.vector(rate, a.Heads)
	b.vector(bias, gates)
	matrices, rows := a.States()
	if s := b.p.States[state]; s.group() != matrices.group() || s.Size != matrices.Size {
		b.Failf("delta %v does not fit state %v", a, s)
	}
	if s := b.p.States[a.Rows]; s.group() != rows.group() || s.KVHeads != rows.KVHeads || s.HeadDim != rows.HeadDim || s.ValueDim != rows.ValueDim || !s.Exact {
		b.Failf("delta %v does not fit state %v", a, s)
	}
	return b.add(Node{Op: Delta, In: []Value{q, k, v, beta, gate}, Weight: rate, Bias: bias, State: state, Attr: a}, Tokens, Dim(a.Heads*a.ValueDim))
}
