package grammar

// Limits bound the size and work of a grammar. A zero field means its default, given last in its
// comment.
type Limits struct {
	Rules       int // rules, alternatives and their symbols together; 1 << 20
	Expressions int // expressions in the space; 1 << 20
	Derivatives int // expressions and states of the lexemes' automaton before it is rebuilt; 1 << 18
	Items       int // items in one set; 1 << 14
	Sets        int // items in all cached sets before the cache is dropped; 1 << 20
	Threads     int // ways to read lexemes at once; 256
}

func (l Limits) withDefaults() Limits {
	for _, d := range []struct {
		limit *int
		to    int
	}{
		{&l.Rules, 1 << 20}, {&l.Expressions, 1 << 20}, {&l.Derivatives, 1 << 18},
		{&l.Items, 1 << 14}, {&l.Sets, 1 << 20}, {&l.Threads, 256},
	} {
		if *d.limit <= 0 {
			*d.limit = d.to
		}
	}
	return l
}
