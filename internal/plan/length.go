package plan

// LengthClass tells apart the lengths of sequences, see [Batch.Lengths], that turn
// by unlike rotary frequencies: tokens of equal histories have equal states where
// their lengths have one class. It does not fall as the length grows, and is 0 for
// every length where no frequencies depend on it.
func (p *Program) LengthClass(length int) int {
	class := 0
	for i := range p.Nodes {
		rope, ok := p.Nodes[i].Attr.(RopeAttr)
		switch {
		case !ok || !rope.ByLength() || length <= rope.LongFrom:
		case rope.Dynamic != nil:
			return length
		default:
			// Programs have few lengths from which sequences are long.
			class = max(class, rope.LongFrom+1)
		}
	}
	return class
}
