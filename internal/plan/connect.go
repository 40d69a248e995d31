package plan

import (
	"fmt"

	"github.com/realizar/realizar/tensor"
)

// Connect computes the coefficients of hyper-connections, see [ConnectAttr].
var Connect = &Op{Name: "connect"}

// ConnectAttr holds the parameters of [Connect]. A residual of N streams is collapsed to the input
// of a layer by N coefficients, and the layer's output y goes back to all of them: stream k becomes
// post_k y + the sum over j of comb_jk stream_j (Xie et al., "mHC: Manifold-Constrained
// Hyper-Connections", 2025). For logits z = scale*x + base, the coefficients are
//
//	pre_j   = sigmoid(z) + Eps
//	post_k  = 2 sigmoid(z)
//	comb_jk = softmax(z) over k, + Eps
//
// x has N of pre, N of post and N*N of comb, row by row; scale has one number for each of the three.
// comb is made doubly stochastic by Iterations steps (Sinkhorn and Knopp, "Concerning Nonnegative
// Matrices and Doubly Stochastic Matrices", 1967): divided by its sums over j + Eps and, before each
// step but the first, by its sums over k + Eps.
//
// The result has pre, then for each k post_k and comb_jk of all j, as [Mix] reads them. With Last
// there is only pre: x, base and the result have N columns, and scale has one number.
type ConnectAttr struct {
	Streams, Iterations int
	Eps                 float64
	Last                bool
}

func (a ConnectAttr) String() string {
	s := fmt.Sprintf("{%d streams", a.Streams)
	if a.Last {
		s += ", last"
	} else {
		s += fmt.Sprintf(", %d iterations", a.Iterations)
	}
	return s + fmt.Sprintf(", eps %.6g}", a.Eps)
}

// Columns returns the number of coefficients.
func (a *ConnectAttr) Columns() int {
	if a.Last {
		return a.Streams
	}
	return a.Streams * (2 + a.Streams)
}

// Of returns the first coefficient of stream k after the layer.
func (a *ConnectAttr) Of(k int) int { return a.Streams + k*(1+a.Streams) }

// mostStreams bounds the streams of a residual.
const mostStreams = 64

// Connect adds the coefficients of x, with scale and base as in [ConnectAttr].
func (b *Builder) Connect(x Value, scale, base *tensor.Tensor, a ConnectAttr) Value {
	if a.Streams < 1 || a.Streams > mostStreams || !a.Last && a.Iterations < 1 || a.Iterations > 1<<16 || !(a.Eps >= 0 && a.Eps < 1) || b.Cols(x) != a.Columns() {
		b.Failf("connect %v does not fit %d columns; there are at most %d streams", a, b.Cols(x), mostStreams)
	}
	if a.Last {
		b.vector(scale, 1)
	} else {
		b.vector(scale, 3)
	}
	b.vector(base, a.Columns())
	return b.add(Node{Op: Connect, In: []Value{x}, Weight: scale, Bias: base, State: NoState, Attr: a}, b.Rows(x), Dim(a.Columns()))
}
