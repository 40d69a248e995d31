package lower

import (
	"os"

	"github.com/realizar/realizar/internal/plan"
)

// untriedVariable is the environment variable that admits nodes whose kernels no GPU has run. Tests
// on GPUs and on emulated devices set it.
const untriedVariable = "REALIZAR_UNTRIED_KERNELS"

// untried reports whether [Check] refuses n because only emulated devices have run its kernels.
func untried(n *plan.Node) bool {
	if os.Getenv(untriedVariable) != "" {
		return false
	}
	switch n.Op {
	case plan.Store, plan.Recall, plan.Spread, plan.Gather:
		return true
	case plan.Attention:
		return n.Attr.(plan.AttentionAttr).First > 0
	}
	return false
}
