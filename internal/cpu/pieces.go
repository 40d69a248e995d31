package cpu

// A cut is how a job's items are handed out: in units of some items, many at first
// and one by one at the end, so that pieces are few, since taking one costs the
// workers a cache miss, and a slow worker still does not hold up the rest.
type cut struct {
	size, unit int // items
	workers    int
	large      int // units of the first piece of each worker: half of its share
	medium     int // units of the second piece of each: half of what is left then
	pieces     int
}

// unitsPerWorker is how many units each worker finds on average, at most.
const unitsPerWorker = 8

// cutFor cuts n > 0 items for workers into pieces of a multiple of grain, the last
// one aside.
func cutFor(n, grain, workers int) cut {
	grains := (n-1)/grain + 1
	c := cut{size: n, unit: ((grains-1)/(workers*unitsPerWorker) + 1) * grain, workers: workers}
	units := (n-1)/c.unit + 1
	c.large, c.medium = units/(2*workers), units/(4*workers)
	c.pieces = units - workers*(c.large+c.medium)
	if c.large > 0 {
		c.pieces += workers
	}
	if c.medium > 0 {
		c.pieces += workers
	}
	return c
}

// piece is the items of piece i.
func (c *cut) piece(i int) (lo, hi int) {
	units, at := 1, 0
	for _, u := range [2]int{c.large, c.medium} {
		if u == 0 {
			continue
		}
		if i < c.workers {
			units = u
			break
		}
		i -= c.workers
		at += u * c.workers
	}
	lo = (at + i*units) * c.unit
	if units*c.unit > c.size-lo {
		return lo, c.size
	}
	return lo, lo + units*c.unit
}
