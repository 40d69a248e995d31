package engine

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/realizar/realizar/internal/plan"
)

// A Kept keeps the cache of a model from the end of one engine to the start of the next: the most
// recently used pages, as many as fit into [Config.Host]. Engines that share a Kept must run the
// same program with the same weights and arithmetic on the same kind of device, one at a time. The
// zero Kept is empty.
type Kept struct {
	mu    sync.Mutex
	sizes []int // bytes of a page, by group
	nodes []keptNode
	pages []keptPage // the least recently used first
}

// A keptNode is a node of the tree. Parents come before their children.
type keptNode struct {
	root   beginning
	parent int // index into nodes, or -1 for the root
	tokens [pageTokens]int32
	lasts  bool
}

// A keptPage is a node's page of one group.
type keptPage struct {
	node, group int
	data        []byte
}

// Bytes returns the size of the pages in bytes.
func (k *Kept) Bytes() (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.pages {
		n += len(p.data)
	}
	return n
}

// Clear drops the pages.
func (k *Kept) Clear() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sizes, k.nodes, k.pages = nil, nil, nil
}

// recall moves the pages of k into host memory, as far as they fit, and empties k.
func (e *Engine) recall(k *Kept) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !slices.Equal(k.sizes, e.pageBytes) { // they are of another program
		return
	}
	nodes := make([]*node, len(k.nodes))
	for i, n := range k.nodes {
		parent := e.tree.begin
		if n.parent >= 0 {
			parent = func(beginning) *node { return nodes[n.parent] }
		}
		nodes[i] = e.tree.grow(parent(n.root), n.tokens[:])
		nodes[i].uses++ // until its pages are added
		nodes[i].lasts = n.lasts
	}
	skip := make([]int, len(k.sizes)) // by group: the least recently used pages that do not fit
	for _, p := range k.pages {
		skip[p.group]++
	}
	for g, host := range e.host {
		skip[g] = max(0, skip[g]-host.size())
	}
	for _, p := range k.pages {
		if skip[p.group]--; skip[p.group] >= 0 {
			continue
		}
		if i := e.takeHost(p.group); i != none {
			copy(e.memory[p.group][i], p.data)
			n := nodes[p.node]
			n.places[p.group].host = i
			e.host[p.group].pages[i].node = n
			n.uses++
			e.host[p.group].let(i, 1)
			e.event(PageStored, n, p.group, true)
		}
	}
	for _, n := range nodes {
		e.tree.unuse(n)
	}
	k.sizes, k.nodes, k.pages = nil, nil, nil
}

// keepCache saves the most recently used pages of the device to host memory and copies all pages of
// host memory to the configured [Kept]. No step is in flight. The caller holds e.mu.
func (e *Engine) keepCache() {
	if e.config.Kept == nil {
		return
	}
	e.saveIdle()
	k := e.config.Kept
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sizes, k.nodes, k.pages = e.pageBytes, nil, nil
	at := map[*node]int{}
	var add func(n *node) int
	add = func(n *node) int {
		if n.parent == nil {
			return -1
		}
		i, ok := at[n]
		if !ok {
			parent := add(n.parent)
			root := n.parent
			for root.parent != nil {
				root = root.parent
			}
			i = len(k.nodes)
			k.nodes = append(k.nodes, keptNode{root.root, parent, n.key.tokens, n.lasts})
			at[n] = i
		}
		return i
	}
	for g, host := range e.host {
		for _, i := range host.recent() {
			k.pages = append(k.pages, keptPage{add(host.pages[i].node), g, slices.Clone(e.memory[g][i])})
		}
	}
}

// recent returns the idle pages, the least valuable first.
func (p *pool) recent() []int32 {
	var all []int32
	for cost := range int32(costs) {
		end := p.end(cost)
		for i := p.pages[end].next; i != end; i = p.pages[i].next {
			all = append(all, i)
		}
	}
	slices.SortStableFunc(all, func(i, j int32) int { return cmp.Compare(p.pages[i].worth, p.pages[j].worth) })
	return all
}

// level gives all idle pages the same cost, in their order.
func (p *pool) level() {
	for _, i := range p.recent() {
		p.relist(i)
	}
}

// savedInStep is the most pages that one step saves when an engine ends.
const savedInStep = 256

// saveIdle saves the most recently used pages of the device, as many as fit into host memory.
func (e *Engine) saveIdle() {
	ok := e.takeScratch()
	defer e.letScratch()
	type idle struct {
		n *node
		g int
	}
	var recent, missing []idle
	for g, host := range e.host {
		host.level()
		pages := e.pools[g].recent()
		for _, i := range pages[max(0, len(pages)-host.size()):] {
			n := e.pools[g].pages[i].node
			recent = append(recent, idle{n, g})
			if n.places[g].host == none {
				missing = append(missing, idle{n, g})
			} else { // keep saves of the missing pages from evicting it
				host.touch(n.places[g].host)
			}
		}
	}
	for batch := range slices.Chunk(missing, savedInStep) {
		if !ok {
			break
		}
		f := e.newFlight()
		f.number = e.steps + 1
		for _, m := range batch {
			e.save(f, m.n, m.g)
		}
		if len(f.saves) > 0 {
			if ok = e.runSaves(f); !ok {
				e.lost(f, nil)
			}
		}
		e.keep(f)
	}
	for _, r := range recent {
		if i := r.n.places[r.g].host; i != none {
			e.host[r.g].touch(i)
		}
	}
}

// takeScratch takes one page of each group for runSaves, evicting idle pages if needed. It reports
// whether every group had one.
func (e *Engine) takeScratch() bool {
	for g, p := range e.pools {
		if len(p.free) == 0 {
			if p.idle == 0 {
				return false
			}
			e.losePage(p.pages[p.least()].node, g)
		}
		e.scratch = append(e.scratch, p.take())
	}
	return true
}

func (e *Engine) letScratch() {
	for g, page := range e.scratch {
		e.pools[g].let(page, 1)
	}
	e.scratch = e.scratch[:0]
}

// runSaves runs f, which only saves pages, and reports whether that succeeded. A step must have a
// token, so f runs one of no sequence, in the scratch pages. No other step is in flight.
func (e *Engine) runSaves(f *flight) bool {
	b := &f.batch
	b.Tokens, b.Positions, b.Lengths, b.Start = append(b.Tokens, 0), append(b.Positions, 0), append(b.Lengths, 1), append(b.Start, 1)
	if e.program.Axes[0] > 0 {
		f.axes = append(f.axes, 0, 0)
		b.Axes = f.axes
	}
	for g, group := range e.program.Groups {
		t := table{group: group}
		if t.lacks(1) > 0 {
			t.append(e.scratch[g], 1)
		}
		t.add(&b.Tables[g], 0, 1)
	}
	e.begins = f
	err := e.runScratch(b)
	if e.begins = nil; err != nil {
		return false
	}
	e.steps = f.number
	e.done = f.number
	return true
}

// runScratch runs a step without the lock.
func (e *Engine) runScratch(b *plan.Batch) error {
	e.mu.Unlock()
	defer e.mu.Lock()
	step, err := e.exe.Submit(b)
	if err != nil {
		return err
	}
	defer step.Release()
	_, err = step.Wait(context.Background())
	return err
}

// relist makes idle page i the most recently used one of the lowest cost.
func (p *pool) relist(i int32) {
	p.hold(i)
	p.pages[i].found, p.pages[i].cost = 0, 0
	p.let(i, 1)
}

// touch makes idle page i the most recently used.
func (p *pool) touch(i int32) {
	if p.pages[i].holders == 0 {
		p.relist(i)
	}
}
