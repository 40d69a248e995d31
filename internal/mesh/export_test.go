package mesh

import "github.com/realizar/realizar/internal/plan"

// CutFrom makes a pipeline cut sequences in steps of that many tokens for each part.
func CutFrom(e plan.Executable, tokens int) {
	if p, several := e.(*pipeline); several {
		p.cut = tokens
	}
}
