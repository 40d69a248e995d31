package plan

import "github.com/realizar/realizar/tensor"

// Scan is the selective scan of Mamba (Gu and Dao, "Mamba: Linear-Time Sequence Modeling with
// Selective State Spaces", 2023), for each column c of x by itself. For each token in order, with
// s = log(1 + exp(dt[c])),
//
//	h[n] = exp(s*A[c, n])*h[n] + s*x[c]*B[n]
//	y[c] = h[0]*C[0] + h[1]*C[1] + … + D[c]*x[c]
//
// Before the sequence's first token h is 0. A state per sequence keeps h after its last token, [N,
// d], in float32. A must not be positive, so that h does not grow by itself.
var Scan = &Op{Name: "scan", Scope: BySequence}

// Scan adds the scan of x [T, d] with steps dt [T, d], inputs in and outputs out [T, N] (B and C in
// the formula), decays a [d, N], and weights skip [d] of x. state holds N*d values.
func (b *Builder) Scan(x, dt, in, out Value, a, skip *tensor.Tensor, state int) Value {
	b.matrix(a)
	d, n := b.Cols(x), a.Shape[1]
	b.same("scan: x and its steps", x, dt)
	b.same("scan: inputs and outputs", in, out)
	if a.Shape[0] != d || n < 1 || b.Cols(in) != n || b.Rows(in) != b.Rows(x) {
		b.Failf("%s: %v does not fit x of %d columns, and inputs and outputs of %d", a.Name, a.Shape, d, b.Cols(in))
	}
	if s := b.p.States[state]; s.Kind != PerSequence || s.Every != 0 || s.Size != n*d {
		b.Failf("%s: %d values for each of %d columns do not fit state %v", a.Name, n, d, s)
	}
	b.vector(skip, d)
	return b.add(Node{Op: Scan, In: []Value{x, dt, in, out}, Weight: a, Bias: skip, State: state}, Tokens, Dim(d))
}
