package engine

import (
	"math"
	"slices"

	"github.com/realizar/realizar/internal/plan"
)

// A program with states per sequence continues a history where a slot of each of its groups is
// found: at a checkpoint. Slots are large, so checkpoints are where histories are likely to be
// continued:
//
//   - at the end of a prompt, where other answers to it begin, and the next turn of a conversation
//     whose template leaves out parts of the last answer;
//   - at the end of an answer, where the next turn begins: a sequence leaves a checkpoint at the end
//     of each chunk of its prompt and again and again while it decodes, and each is spare when the
//     next is there;
//   - where prompts have parted before, as the tree of histories shows, or are about to;
//   - at multiples of a grid, for the first prompt that parts from a long history, and for long
//     prompts that are preempted.
//
// A spare checkpoint is evicted before all others. So checkpoints that nobody needs take only slots
// that nobody needs.

// checkpointTokens is the distance of positions at which checkpoints can be.
const checkpointTokens = 64

// One of checkpointPart parts of the pools' memory is planned for checkpoints, beside the slots
// that running sequences need, and the grid takes at most one of gridPart parts of these.
const (
	checkpointPart = 10
	gridPart       = 2
)

// fewestCheckpoints is the least number of slots for checkpoints of a group whose slots are written
// in every step. A sequence alone has slots of other groups to spare.
const fewestCheckpoints = 2

// ownCheckpoints is how many checkpoints of a running sequence are likely to be used next: at the
// end of its prompt and of its answer so far.
const ownCheckpoints = 2

// fewestGridTokens is the least distance of the grid.
const fewestGridTokens = 256

// never is the distance of a grid without checkpoints.
const never = math.MaxInt32

// checkpoints say where sequences can leave checkpoints.
type checkpoints struct {
	groups []int // of states per sequence
	every  int   // checkpoints are at multiples of this; 0: there are none
	stops  bool  // a chunk must end at a checkpoint, since some states are those after a step's last token
	grid   int   // each history keeps a checkpoint at multiples of this
}

// newCheckpoints returns where p's sequences leave checkpoints. There is no grid.
func newCheckpoints(p *plan.Program) checkpoints {
	c := checkpoints{grid: never}
	for g, group := range p.Groups {
		if group.Kind != plan.PerSequence {
			continue
		}
		if c.groups = append(c.groups, g); c.every == 0 {
			c.every = checkpointTokens
		}
		if every := max(1, group.Every); every > 1 {
			c.every *= every / commonDivisor(c.every, every)
		} else {
			c.stops = true
		}
	}
	return c
}

func commonDivisor(a, b int) int {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}

// fewest returns the least number of all groups of states per sequence, or 0 if there are none. n
// has one for each group.
func (c *checkpoints) fewest(n []int) int {
	if len(c.groups) == 0 {
		return 0
	}
	fewest := math.MaxInt
	for _, g := range c.groups {
		fewest = min(fewest, n[g])
	}
	return fewest
}

// last returns the last multiple of every at or before pos.
func (c *checkpoints) last(pos int) int { return pos / c.every * c.every }

// reaches returns where a step that ends at position end can leave a checkpoint.
func (c *checkpoints) reaches(end int) int {
	if c.stops {
		return end
	}
	return c.last(end)
}

// next returns the first position after pos at which s must leave a checkpoint.
func (s *sequence) next(pos int) int {
	next := never
	if s.checks.grid < never {
		next = (pos/s.checks.grid + 1) * s.checks.grid
	}
	if end := s.checks.last(s.prompt()); end > pos {
		next = min(next, end)
	}
	for _, at := range s.forks {
		if at > pos {
			return min(next, at)
		}
	}
	return next
}

// cut returns how many of the next n tokens of s one step runs: up to the next checkpoint, or if
// that costs at most a quarter of them, to a position where it can leave one.
func (s *sequence) cut(n int) int {
	c := s.checks
	if c == nil {
		return n
	}
	end := s.sent + n
	if next := s.next(s.sent); next <= end && c.reaches(end) != next {
		return next - s.sent
	}
	if last := c.last(end); c.stops && end < len(s.tokens) && last > s.sent && end-last <= n/4 {
		return last - s.sent
	}
	return n
}

// checkpoint makes the state of s after pos tokens, which are the history n, a checkpoint, if all
// groups have it. step computes it.
func (e *Engine) checkpoint(s *sequence, n *node, pos int, step uint64) {
	c := s.checks
	if c == nil || pos%c.every != 0 {
		return
	}
	isNew := false
	for _, g := range c.groups {
		if s.tables[g].slot(pos) == none {
			return
		}
		isNew = isNew || n.places[g].page == none
	}
	for _, g := range c.groups {
		e.cache(n, g, s.tables[g].slot(pos), step)
	}
	if pos == c.last(s.prompt()) {
		for _, before := range s.path[1 : len(s.path)-1] {
			e.makeSpare(before)
		}
		e.revive(n)
	} else if s.trail > 0 {
		e.makeSpare(s.path[s.trail/pageTokens])
	}
	_, fork := slices.BinarySearch(s.forks, pos)
	n.lasts = n.lasts || fork || pos%c.grid == 0
	if s.trail = 0; isNew && pos != c.last(s.prompt()) {
		s.trail = pos
	}
}

// makeSpare makes the checkpoint of n, if there is one, the first to be evicted, unless it lasts.
func (e *Engine) makeSpare(n *node) {
	if n.lasts {
		return
	}
	for _, g := range e.checks.groups {
		if page := n.places[g].page; page != none {
			e.pools[g].spare(page)
		}
	}
}

// revive makes the checkpoint of n as valuable as others.
func (e *Engine) revive(n *node) {
	for _, g := range e.checks.groups {
		e.pools[g].revive(n.places[g].page)
	}
}

// reviveLast makes the last checkpoint of s as valuable as others. s releases its pages, and those
// that steps in flight fill are lost.
func (e *Engine) reviveLast(s *sequence) {
	for k := len(s.path) - 1; k > 0; k-- {
		if n := s.path[k]; e.isCheckpoint(n) {
			e.revive(n)
			return
		}
	}
}

// isCheckpoint reports whether the device has a checkpoint at n.
func (e *Engine) isCheckpoint(n *node) bool {
	for _, g := range e.checks.groups {
		if n.places[g].page == none {
			return false
		}
	}
	return len(e.checks.groups) > 0
}

// farTokens is the distance from one checkpoint to the one before it that makes it as valuable as
// any.
const farTokens = 8192

// distance returns how many tokens are run again if the checkpoint of n is lost, up to farTokens.
func (e *Engine) distance(n *node) int {
	g, tokens := e.checks.groups[0], pageTokens
	for n = n.parent; n.parent != nil && tokens < farTokens; n = n.parent {
		if at := &n.places[g]; at.page != none && !e.pools[g].pages[at.page].spare || at.host != none {
			break
		}
		tokens += pageTokens
	}
	return tokens
}

// cost returns the relative cost to recompute a page of group g that a sequence of that many tokens
// releases.
func (e *Engine) cost(g int, page int32, tokens int) float64 {
	n := e.pools[g].pages[page].node
	if n == nil || e.program.Groups[g].Kind == plan.PerToken {
		return costOf(tokens)
	}
	return float64(e.distance(n)<<(costs-1)) / farTokens
}

// evict removes n's page of group g, which is idle, from the device, after f has saved it if that
// pays. All slots of a checkpoint are evicted together, and with a page that their history cannot
// do without.
func (e *Engine) evict(f *flight, n *node, g int) {
	e.measures.Evictions++
	group := e.program.Groups[g]
	if group.Kind == plan.PerToken {
		if n.places[g].host == none && e.pace.saves(e.pageBytes[g], pageTokens) {
			e.save(f, n, g)
		}
		if group.KeepsAll() && n.places[g].host == none {
			e.loseCheckpoint(n)
		}
		e.losePage(n, g)
		return
	}
	if !e.pools[g].pages[n.places[g].page].spare && e.savesCheckpoint(n) {
		for _, g := range e.checks.groups {
			if n.places[g].host == none {
				e.save(f, n, g)
			}
		}
	}
	for _, other := range e.checks.groups {
		if other != g && n.places[other].page != none {
			e.losePage(n, other)
		}
	}
	e.losePage(n, g)
}

// savesCheckpoint reports whether the slots of n are to be saved: there is room for all of them, and
// it pays.
func (e *Engine) savesCheckpoint(n *node) bool {
	bytes := 0
	for _, g := range e.checks.groups {
		at := &n.places[g]
		switch {
		case at.host != none:
		case at.page == none || at.filled > e.done || e.host[g].available() == 0:
			return false
		default:
			bytes += e.pageBytes[g]
		}
	}
	return bytes > 0 && e.pace.saves(bytes, e.distance(n))
}

// loseCheckpoint removes the slots of n from the device and, unless a step is about to read them,
// from host memory. n has another page.
func (e *Engine) loseCheckpoint(n *node) {
	for _, g := range e.checks.groups {
		at := &n.places[g]
		if at.page != none {
			e.losePage(n, g)
		}
		if at.host != none && e.host[g].pages[at.host].holders == 0 {
			e.loseHost(n, g)
		}
	}
}

// findForks sets the positions at which s must leave checkpoints because prompts part there: the
// checkpoints that others have left on its way for that reason, and the place where it parts from
// the way of others. s continues after that many pages, and e.matched is what it has in common with
// others.
func (e *Engine) findForks(s *sequence, pages int) {
	s.trail, s.forks = 0, s.forks[:0]
	if s.checks == nil || len(e.matched) == 0 {
		return
	}
	for i, n := range e.matched[pages:] {
		if n.lasts {
			s.forks = append(s.forks, (pages+i+1)*pageTokens)
		}
	}
	if e.matched[len(e.matched)-1].children == 0 {
		return // it goes on where others have ended
	}
	at := s.checks.last(len(e.matched) * pageTokens)
	switch last := len(s.forks) - 1; {
	case at == 0 || last >= 0 && s.forks[last] == at:
	case at == pages*pageTokens:
		e.matched[pages-1].lasts = true
	case at > pages*pageTokens:
		s.forks = append(s.forks, at)
	}
}

// meet returns the last position up to end where s can continue from a checkpoint of o, which
// begins with the same tokens, and which has not done all of them: one that steps in flight leave,
// or one that o is still to leave.
func (e *Engine) meet(o *sequence, end int) int {
	c := o.checks
	if end = c.last(end); end > o.sent {
		return end
	}
	for ; end > o.done; end -= c.every {
		if k := end / pageTokens; k < len(o.path) && e.isCheckpoint(o.path[k]) {
			return end
		}
	}
	return 0
}

// fork makes s leave a checkpoint at position at, where another prompt parts from it.
func (s *sequence) fork(at int) {
	if i, found := slices.BinarySearch(s.forks, at); !found && at > s.sent {
		s.forks = slices.Insert(s.forks, i, at)
	}
}
