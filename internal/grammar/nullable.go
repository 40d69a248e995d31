package grammar

import "fmt"

const maxNullable = 100_000 // rules examined for one answer

// isNullable reports whether s matches "".
func (s *symbol) isNullable() (bool, error) {
	if s.kind != ruleKind {
		return s.empty, nil
	}
	if known := s.nullable.Load(); known != unknown {
		return known == yes, nil
	}
	return findNullable(s)
}

// findNullable reports whether s matches "". It also settles the rules on which the answer depends,
// and expands no other lazy rules. A rule matches "" if one of its alternatives does. An
// alternative does not as soon as one of its symbols is known not to. Rules that only refer to each
// other in a cycle do not.
func findNullable(s *symbol) (bool, error) {
	asked := []*symbol{s}
	seen := map[*symbol]bool{s: true}
	for changed := true; changed; {
		changed = false
		for i := 0; i < len(asked); i++ {
			rule := asked[i]
			if rule.nullable.Load() != unknown {
				continue
			}
			alternatives, err := rule.define()
			if err != nil {
				return false, err
			}
			open := false
			for _, a := range alternatives {
				answer, asks := a.nullable()
				if answer == yes {
					rule.nullable.Store(yes)
					changed, open = true, true
					break
				}
				if answer == unknown {
					open = true
					if !seen[asks] {
						seen[asks] = true
						asked = append(asked, asks)
						changed = true
					}
				}
			}
			if !open {
				rule.nullable.Store(no)
				changed = true
			}
			if len(asked) > maxNullable {
				return false, fmt.Errorf("grammar: rule %s hangs on more than %d others: %w", s, maxNullable, ErrLimit)
			}
		}
	}
	for _, rule := range asked {
		if rule.nullable.Load() == unknown {
			rule.nullable.Store(no)
		}
	}
	return s.nullable.Load() == yes, nil
}

// nullable returns what is known about a. If that is unknown, asks is the first undecided rule.
func (a *alternative) nullable() (answer int32, asks *symbol) {
	for _, s := range a.symbols {
		if s.kind != ruleKind && !s.empty || s.kind == ruleKind && s.nullable.Load() == no {
			return no, nil
		}
	}
	for _, s := range a.symbols {
		if s.kind == ruleKind && s.nullable.Load() == unknown {
			return unknown, s
		}
	}
	return yes, nil
}
