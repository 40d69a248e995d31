package jinja

// Names are resolved before rendering, by jinja2's rules: a name that is
// assigned anywhere in a scope belongs to that scope from its start, with the
// value of the enclosing scope, if there is one by that name; a name that is
// only read belongs to the outermost scope that reads it, and is looked up
// when that scope is entered. Loops, macros, call blocks and the like make
// scopes; conditions do not.

// A function is a part of a template whose variables live in one frame: the
// template itself, a macro, the body of a recursive loop.
type function struct {
	parent *function
	depth  int
	slots  map[slotKey]*slot
	loops  int // loops around the code that is compiled now
}

func newFunction(parent *function) *function {
	f := &function{parent: parent, slots: map[slotKey]*slot{}}
	if parent != nil {
		f.depth = parent.depth + 1
	}
	return f
}

// A slot is the position of a variable in the frames of a function. Scopes of one level share
// slots, since at most one of them is active.
type slot struct {
	fn    *function
	index int
}

type slotKey struct {
	level int
	name  string
}

func (f *function) slot(level int, name string) *slot {
	k := slotKey{level, name}
	s, ok := f.slots[k]
	if !ok {
		s = &slot{f, len(f.slots)}
		f.slots[k] = s
	}
	return s
}

// A loadKind says how a variable is set when its scope is entered.
type loadKind byte

const (
	loadParameter loadKind = iota // what the entering code put there
	loadResolve                   // what the context has under the name
	loadAlias                     // what an outer variable holds
	loadUndefined                 // nothing
)

type loading struct {
	kind  loadKind
	name  string // for loadResolve
	alias *slot  // for loadAlias
}

// symbols are the names of one scope.
type symbols struct {
	level  int
	fn     *function
	parent *symbols
	base   *symbols // of a branch: the scope it is a branch of
	refs   map[string]*slot
	loads  map[*slot]loading
	stores map[string]bool
}

func newSymbols(parent *symbols, fn *function) *symbols {
	s := &symbols{
		fn: fn, parent: parent,
		refs: map[string]*slot{}, loads: map[*slot]loading{}, stores: map[string]bool{},
	}
	if parent != nil {
		s.level = parent.level + 1
	}
	return s
}

// branch returns the symbols for one branch of a condition in s.
func (s *symbols) branch() *symbols {
	b := newSymbols(s.parent, s.fn)
	b.level, b.base = s.level, s
	return b
}

// own finds a name in the scope itself.
func (s *symbols) own(name string) *slot {
	for ; s != nil; s = s.base {
		if ref, ok := s.refs[name]; ok {
			return ref
		}
	}
	return nil
}

// assigns reports whether the scope, so far, assigns the name.
func (s *symbols) assigns(name string) bool {
	for ; s != nil; s = s.base {
		if s.stores[name] {
			return true
		}
	}
	return false
}

func (s *symbols) merge(from *symbols) {
	for k, v := range from.refs {
		s.refs[k] = v
	}
	for k, v := range from.loads {
		s.loads[k] = v
	}
	for k := range from.stores {
		s.stores[k] = true
	}
}

func (s *symbols) define(name string, l loading) *slot {
	to := s.fn.slot(s.level, name)
	s.refs[name] = to
	s.loads[to] = l
	return to
}

func (s *symbols) find(name string) *slot {
	for ; s != nil; s = s.parent {
		if ref := s.own(name); ref != nil {
			return ref
		}
	}
	return nil
}

func (s *symbols) load(name string) {
	if s.find(name) == nil {
		s.define(name, loading{kind: loadResolve, name: name})
	}
}

func (s *symbols) declare(name string) *slot {
	s.stores[name] = true
	return s.define(name, loading{kind: loadParameter})
}

func (s *symbols) store(name string) {
	s.stores[name] = true
	if s.own(name) != nil {
		return
	}
	if outer := s.parent.find(name); outer != nil {
		s.define(name, loading{kind: loadAlias, alias: outer})
		return
	}
	s.define(name, loading{kind: loadUndefined})
}

// branches merges the effects of a condition's branches on the names. A name that only some
// branches assign keeps its outer value in the others.
func (s *symbols) branches(all ...*symbols) {
	var fresh []string
	for _, b := range all {
		for name := range b.stores {
			if !s.assigns(name) {
				fresh = append(fresh, name)
			}
		}
	}
	for _, b := range all {
		s.merge(b)
	}
	for _, name := range fresh {
		target := s.find(name)
		if outer := s.parent.find(name); outer != nil {
			s.loads[target] = loading{kind: loadAlias, alias: outer}
		} else {
			s.loads[target] = loading{kind: loadResolve, name: name}
		}
	}
}

// visit records the names that n reads and assigns in scope s itself, without those in nested
// scopes.
func (s *symbols) visit(n node) {
	switch n := n.(type) {
	case *nameExpr:
		switch n.ctx {
		case load:
			s.load(n.name)
		case store:
			s.store(n.name)
		case param:
			s.declare(n.name)
		}
	case *nsRefExpr:
		s.load(n.name)
	case *ifStmt:
		s.visit(n.test)
		branch := func(nodes []node) *symbols {
			b := s.branch()
			b.visitAll(nodes)
			return b
		}
		s.branches(branch(n.body), branch(n.elifs), branch(n.orElse))
	case *macroStmt:
		s.store(n.name)
	case *assignStmt:
		s.visit(n.value)
		s.visit(n.target)
	case *forStmt:
		s.visit(n.iter)
	case *callStmt:
		if n.call != nil {
			s.visit(n.call)
		}
	case *filterStmt:
		s.visit(n.filter)
	case *withStmt:
		s.visitAll(n.values)
	case *assignBlockStmt:
		s.visit(n.target)
	default:
		children(n, s.visit)
	}
}

func (s *symbols) visitAll(nodes []node) {
	for _, n := range nodes {
		s.visit(n)
	}
}

// parameters declares the names of a loop's target.
func (s *symbols) parameters(target node) {
	switch n := target.(type) {
	case *nameExpr:
		s.declare(n.name)
	case *tupleExpr:
		for _, item := range n.items {
			s.parameters(item)
		}
	default:
		s.visit(n)
	}
}

// reads returns which of the names the nodes read before they assign them.
func reads(nodes []node, names ...string) map[string]bool {
	open := map[string]bool{}
	for _, name := range names {
		open[name] = true
	}
	found := map[string]bool{}
	var visit func(node)
	visit = func(n node) {
		switch n := n.(type) {
		case *nameExpr:
			if n.ctx == load && open[n.name] {
				found[n.name] = true
			} else if n.ctx != load {
				delete(open, n.name)
			}
		default:
			children(n, visit)
		}
	}
	for _, n := range nodes {
		visit(n)
	}
	return found
}

// containsNode reports whether f holds for n or anything below it.
func containsNode(n node, f func(node) bool) bool {
	if f(n) {
		return true
	}
	found := false
	children(n, func(c node) { found = found || containsNode(c, f) })
	return found
}
