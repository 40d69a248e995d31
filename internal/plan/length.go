package plan

// LengthClass returns a number that is equal for lengths of sequences with equal rotary
// frequencies, see [Batch.Lengths]. Tokens of equal histories have equal states if their lengths
// have the same class. The class does not fall as the length grows. It is 0 for every length if no
// frequencies depend on it.
func (p *Program) LengthClass(length int) int {
	class := 0
	for i := range p.Nodes {
		if a, ok := p.Nodes[i].Attr.(interface{ LengthClass(length int) int }); ok {
			class = max(class, a.LengthClass(length))
		}
	}
	return class
}
