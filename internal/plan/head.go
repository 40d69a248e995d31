package plan

import "slices"

// A Head is the second part of a program: it predicts the token after the next one, for speculative
// decoding. Its nodes run only in steps with [Batch.Head], which run no others.
//
// Row p of a head has the token at position p and the hidden state of position p-1, which a
// [Recall] returns. What the head predicts is the token at position p+1. A step without [Batch.Head]
// stores the hidden states of its tokens, and the head's keys and values for them. So a sequence that
// has done p positions and knows the token at position p can run the head there. A step of the head
// stores the head's own hidden state at position p, so that the head can go on at position p+1 with
// the token that it has predicted. The next step without [Batch.Head] overwrites these rows.
//
// (Gloeckle et al., "Better & Faster Large Language Models via Multi-token Prediction", 2024;
// DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024, section 2.2; Li et al., "EAGLE-3", 2025.)
type Head struct {
	First    int   // its first node
	Residual Value // [T, d]: the last hidden state of every token, before Pick
	Hidden   Value // [R, d]: the input of the last product
	Logits   Value // [R, vocab]
}

// Head ends the program's first part, which has an output, and begins its head, which needs an output
// of its own. The nodes of the head read no values of the first part.
func (b *Builder) Head() {
	if b.p.Logits < 0 || b.p.Head != nil || b.p.Whole {
		b.Failf("head: it follows the output of a program that continues texts, and there is one")
	}
	b.p.Head = &Head{First: len(b.p.Nodes), Residual: -1, Hidden: -1, Logits: -1}
}

// outputs returns where the part being built has its residual, hidden state and logits.
func (b *Builder) outputs() (residual, hidden, logits *Value) {
	if h := b.p.Head; h != nil {
		return &h.Residual, &h.Hidden, &h.Logits
	}
	return &b.p.Residual, &b.p.Hidden, &b.p.Logits
}

// Outputs returns the values that a step with that [Batch.Head] leaves.
func (p *Program) Outputs(head bool) (residual, hidden, logits Value) {
	if head {
		return p.Head.Residual, p.Head.Hidden, p.Head.Logits
	}
	return p.Residual, p.Hidden, p.Logits
}

// Runs reports whether node i runs in a step with that [Batch.Head].
func (p *Program) Runs(i int, head bool) bool { return head == (p.Head != nil && i >= p.Head.First) }

// Uses reports whether a step with that [Batch.Head] reads or writes states of group g. Pages of
// other groups need not be in the batch.
func (p *Program) Uses(g int, head bool) bool {
	for i := range p.Nodes {
		uses := func(state int) bool { return p.States[state].Group == g }
		if p.Runs(i, head) && slices.ContainsFunc(p.Nodes[i].States(), uses) {
			return true
		}
	}
	return !head
}

// prune removes the nodes of a program with a head that compute nothing that is read: what the first
// part needs of the head's layers are keys and values alone. An attention whose result is not read
// only stores.
func (b *Builder) prune() {
	p := &b.p
	read := make([]bool, len(p.Shapes))
	for _, v := range p.Kept() {
		read[v] = true
	}
	keep := make([]bool, len(p.Nodes))
	for i := len(p.Nodes) - 1; i >= 0; i-- {
		n := &p.Nodes[i]
		if n.Op == Attention && !read[n.Out] {
			if a := n.Attr.(AttentionAttr); a.Top == 0 && a.Rate == 0 && len(n.In) > 1 {
				p.Shapes[n.Out] = [2]Dim{Tokens, 0}
				*n = Node{Op: Store, In: n.In[1:], State: n.State, Layer: n.Layer, Out: n.Out}
			}
		}
		if keep[i] = read[n.Out] || n.State != NoState && n.Op != Recall; keep[i] {
			for _, v := range n.In {
				read[v] = true
			}
		}
	}
	nodes, first := p.Nodes[:0], p.Head.First
	for i, n := range p.Nodes {
		if keep[i] {
			nodes = append(nodes, n)
		} else if i < first {
			p.Head.First--
		}
	}
	p.Nodes = nodes
}
