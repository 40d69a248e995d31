package jinja

// A node is a statement or an expression of a parsed template.
type node interface{}

// The statements.
type (
	outputStmt struct {
		line  int
		nodes []node
		lines []int // of the nodes
	}
	forStmt struct {
		line         int
		target, iter node
		body, orElse []node
		test         node // or nil
		recursive    bool
	}
	ifStmt struct {
		line   int
		test   node
		body   []node
		elifs  []node // each an *ifStmt without branches of its own
		orElse []node
	}
	macroStmt struct {
		line     int
		name     string
		args     []node // of *nameExpr
		defaults []node // of the last args
		body     []node
	}
	callStmt struct {
		line     int
		call     *callExpr // nil in a generation block
		args     []node
		defaults []node
		body     []node
	}
	filterStmt struct {
		line   int
		body   []node
		filter *filterExpr
	}
	withStmt struct {
		line            int
		targets, values []node
		body            []node
	}
	assignStmt struct {
		line          int
		target, value node
	}
	assignBlockStmt struct {
		line   int
		target node
		filter *filterExpr // or nil
		body   []node
	}
	breakStmt    struct{ line int }
	continueStmt struct{ line int }
)

// An access says how an expression uses a name.
type access byte

const (
	load access = iota
	store
	param
)

// The expressions.
type (
	nameExpr struct {
		line int
		name string
		ctx  access
	}
	// An nsRefExpr is the target of an assignment to an attribute.
	nsRefExpr struct {
		line       int
		name, attr string
	}
	constExpr struct{ value Value }
	textExpr  struct{ text *Str }
	tupleExpr struct {
		line  int
		items []node
	}
	listExpr struct{ items []node }
	dictExpr struct{ keys, values []node }
	condExpr struct {
		line              int
		test, then, other node // other may be nil
	}
	filterExpr struct {
		line int
		node node // nil for the text of a block
		name string
		arguments
	}
	testExpr struct {
		line int
		node node
		name string
		arguments
	}
	callExpr struct {
		line int
		node node
		arguments
	}
	getitemExpr struct {
		line      int
		node, arg node
	}
	getattrExpr struct {
		line int
		node node
		attr string
	}
	sliceExpr  struct{ start, stop, step node } // nil where left out
	concatExpr struct{ nodes []node }
	// A compareExpr is a chain of comparisons: each operator compares its two neighbors.
	compareExpr struct {
		first    node
		ops      []string // with "in" and "notin"
		operands []node
	}
	// A binaryExpr is an arithmetic operator, "and" or "or".
	binaryExpr struct {
		op          string
		left, right node
	}
	// A unaryExpr is "+", "-" or "not".
	unaryExpr struct {
		op   string
		node node
	}
)

// arguments are the arguments in the brackets of a call, a filter or a test.
type arguments struct {
	args      []node
	kwargs    []keyword
	dynArgs   node // after *, or nil
	dynKwargs node // after **, or nil
}

type keyword struct {
	name  string
	value node
}

// children calls visit with the direct children of n, in the order of jinja2's nodes. The analysis
// of names depends on that order.
func children(n node, visit func(node)) {
	all := func(lists ...[]node) {
		for _, list := range lists {
			for _, c := range list {
				visit(c)
			}
		}
	}
	some := func(nodes ...node) {
		for _, c := range nodes {
			if c != nil {
				visit(c)
			}
		}
	}
	call := func(a *arguments) {
		all(a.args)
		for _, kw := range a.kwargs {
			visit(kw.value)
		}
		some(a.dynArgs, a.dynKwargs)
	}
	switch n := n.(type) {
	case *outputStmt:
		all(n.nodes)
	case *forStmt:
		some(n.target, n.iter)
		all(n.body, n.orElse)
		some(n.test)
	case *ifStmt:
		some(n.test)
		all(n.body, n.elifs, n.orElse)
	case *macroStmt:
		all(n.args, n.defaults, n.body)
	case *callStmt:
		if n.call != nil {
			visit(n.call)
		}
		all(n.args, n.defaults, n.body)
	case *filterStmt:
		all(n.body)
		visit(n.filter)
	case *withStmt:
		all(n.targets, n.values, n.body)
	case *assignStmt:
		some(n.target, n.value)
	case *assignBlockStmt:
		some(n.target)
		if n.filter != nil {
			visit(n.filter)
		}
		all(n.body)
	case *tupleExpr:
		all(n.items)
	case *listExpr:
		all(n.items)
	case *dictExpr:
		for i := range n.keys {
			some(n.keys[i], n.values[i])
		}
	case *condExpr:
		some(n.test, n.then, n.other)
	case *filterExpr:
		some(n.node)
		call(&n.arguments)
	case *testExpr:
		some(n.node)
		call(&n.arguments)
	case *callExpr:
		some(n.node)
		call(&n.arguments)
	case *getitemExpr:
		some(n.node, n.arg)
	case *getattrExpr:
		some(n.node)
	case *sliceExpr:
		some(n.start, n.stop, n.step)
	case *concatExpr:
		all(n.nodes)
	case *compareExpr:
		some(n.first)
		all(n.operands)
	case *binaryExpr:
		some(n.left, n.right)
	case *unaryExpr:
		some(n.node)
	}
}
