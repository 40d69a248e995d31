package plan

// LengthClass tells apart the lengths of sequences, see [Batch.Lengths], that turn
// by unlike rotary frequencies: tokens of equal histories have equal states if
// their lengths have one class. It does not fall as the length grows, and is 0 for
// every length if no frequencies depend on it.
func (p *Program) LengthClass(length int) int {
	class := 0
	for i := range p.Nodes {
		if a, ok := p.Nodes[i].Attr.(interface{ LengthClass(length int) int }); ok {
			class = max(class, a.LengthClass(length))
		}
	}
	return class
}
