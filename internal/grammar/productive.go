package grammar

import (
	"fmt"

	"github.com/realizar/realizar/internal/rx"
)

// check returns an error if start reaches a rule that is undefined or matches no finite text, or a
// lexeme without strings. It does not expand lazy rules.
func check(start *symbol) error {
	rules := []*symbol{}
	seen := map[*symbol]bool{}
	spaces := map[*Builder]bool{}
	type use struct {
		rule *symbol
		left *int // symbols of the alternative not yet known to match a finite text
	}
	uses := map[*symbol][]use{}
	var ready []*symbol
	done := map[*symbol]bool{}
	visit := func(s *symbol) error {
		if seen[s] {
			return nil
		}
		seen[s] = true
		switch {
		case s.kind == ruleKind && s.expand == nil && s.rest == nil:
			rules = append(rules, s)
			return nil
		case s.kind == lexemeKind || s.kind == specialKind:
			spaces[s.builder] = true
			if s.builder.space.IsEmpty(s.expr) && s.builder.space.Err() == nil {
				return fmt.Errorf("grammar: a lexeme has no strings: %w", ErrGrammar)
			}
		}
		done[s] = true
		return nil
	}
	if err := visit(start); err != nil {
		return err
	}
	for i := 0; i < len(rules); i++ {
		alternatives, err := rules[i].define()
		if err != nil {
			return err
		}
		for _, a := range alternatives {
			left := len(a.symbols)
			for _, s := range a.symbols {
				if err := visit(s); err != nil {
					return fmt.Errorf("%w (in rule %s)", err, rules[i])
				}
				if done[s] && s.kind != ruleKind || s.kind == ruleKind && (s.expand != nil || s.rest != nil) {
					left--
				} else {
					uses[s] = append(uses[s], use{rules[i], &left})
				}
			}
			if left == 0 && !done[rules[i]] {
				done[rules[i]] = true
				ready = append(ready, rules[i])
			}
		}
	}
	for len(ready) > 0 {
		s := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		for _, u := range uses[s] {
			if *u.left--; *u.left == 0 && !done[u.rule] {
				done[u.rule] = true
				ready = append(ready, u.rule)
			}
		}
	}
	for _, rule := range rules {
		if !done[rule] {
			return fmt.Errorf("grammar: rule %s has no end: each of its alternatives needs itself: %w", rule, ErrGrammar)
		}
	}
	for b := range spaces {
		if b.space.Err() != nil {
			return fmt.Errorf("grammar: the lexemes take more than %d expressions: %w (%w)", b.limits.Expressions, ErrLimit, rx.ErrTooLarge)
		}
	}
	return nil
}
