package grammar

// Limits bound what a grammar may take. Zero is the default.
type Limits struct {
	Rules       int // rules, alternatives and their symbols, together; 1 << 20
	Expressions int // of the space; 1 << 20
	Derivatives int // expressions and states of the lexemes' automaton, before it begins anew; 1 << 18
	Items       int // of one set; 1 << 14
	Sets        int // items of all sets that are kept, before they begin anew; 1 << 20
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
