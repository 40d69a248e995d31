package lower

import (
	"os"

	"github.com/realizar/realizar/internal/plan"
)

// untriedVariable is the environment variable that admits operations whose kernels no GPU has run
// yet. The tests on devices set it.
const untriedVariable = "REALIZAR_UNTRIED_KERNELS"

// untried reports whether the kernels of n have run only on emulated devices. Check refuses such
// nodes, unless the environment admits them.
func untried(n *plan.Node) bool {
	if os.Getenv(untriedVariable) != "" {
		return false
	}
	switch n.Op {
	case plan.Concat, plan.Mul, plan.Mix, plan.Temper, plan.Rescale, plan.Sparsify, plan.HeadLinear, plan.Scan, plan.StateSpace, plan.Delta:
		return true
	case plan.Embed:
		return n.Attr != nil
	case plan.Attention:
		return anyForm(n)
	case plan.Experts:
		return expertForm(n)
	case plan.Rope:
		return anyRotation(n)
	}
	return false
}
