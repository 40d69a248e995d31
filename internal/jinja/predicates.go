package jinja

// A test is what stands behind "is": a predicate with arguments.
type test func(in *interp, v Value, a *callArgs) (bool, error)

// tests are the tests of jinja2 3.1.
var tests map[string]test

func init() {
	equalTest := binaryTest(func(in *interp, a, b Value) (bool, error) { return in.equal(a, b), nil })
	unequalTest := binaryTest(func(in *interp, a, b Value) (bool, error) { return !in.equal(a, b), nil })
	tests = map[string]test{
		"odd":         remainderTest(1),
		"even":        remainderTest(0),
		"divisibleby": testDivisibleby,
		"defined":     plainTest(func(_ *interp, v Value) bool { _, ok := v.(*undefined); return !ok }),
		"undefined":   plainTest(func(_ *interp, v Value) bool { _, ok := v.(*undefined); return ok }),
		"filter":      nameTest(func(name string) bool { _, ok := filters[name]; return ok }),
		"test":        nameTest(func(name string) bool { _, ok := tests[name]; return ok }),
		"none":        plainTest(func(_ *interp, v Value) bool { return v == None }),
		"boolean":     plainTest(func(_ *interp, v Value) bool { _, ok := v.(Bool); return ok }),
		"false":       plainTest(func(_ *interp, v Value) bool { b, ok := v.(Bool); return ok && !bool(b) }),
		"true":        plainTest(func(_ *interp, v Value) bool { b, ok := v.(Bool); return ok && bool(b) }),
		"integer":     plainTest(func(_ *interp, v Value) bool { _, ok := v.(Int); return ok }),
		"float":       plainTest(func(_ *interp, v Value) bool { _, ok := v.(Float); return ok }),
		"number":      plainTest(func(_ *interp, v Value) bool { return isNumber(v) }),
		"string":      plainTest(func(_ *interp, v Value) bool { _, ok := v.(*Str); return ok }),
		"mapping":     plainTest(func(_ *interp, v Value) bool { _, ok := v.(*Dict); return ok }),
		"sequence":    plainTest(func(_ *interp, v Value) bool { return isSequence(v) }),
		"iterable":    plainTest(func(_ *interp, v Value) bool { return isIterable(v) }),
		"callable":    plainTest(func(_ *interp, v Value) bool { return isCallable(v) }),
		"escaped":     plainTest(func(_ *interp, v Value) bool { return isMarkup(v) }),
		"lower":       caseTest(isLower, isUpper),
		"upper":       caseTest(isUpper, isLower),
		"sameas":      binaryTest(func(in *interp, a, b Value) (bool, error) { return in.same(a, b), nil }),
		"in":          binaryTest(func(in *interp, a, b Value) (bool, error) { return in.contains(b, a) }),
		"==":          equalTest,
		"eq":          equalTest,
		"equalto":     equalTest,
		"!=":          unequalTest,
		"ne":          unequalTest,
	}
	for op, names := range map[string][]string{
		">": {"gt", "greaterthan"}, ">=": {"ge"}, "<": {"lt", "lessthan"}, "<=": {"le"},
	} {
		t := binaryTest(func(in *interp, a, b Value) (bool, error) { return in.order(op, a, b) })
		tests[op] = t
		for _, name := range names {
			tests[name] = t
		}
	}
}

// callTest applies a test that is named at run time.
func (in *interp) callTest(name Value, v Value, args []Value, kw *Dict) (bool, error) {
	t, text, err := lookupNamed(in, tests, "test", name)
	if err != nil {
		return false, err
	}
	return t(in, v, &callArgs{name: text, args: args, kw: kw})
}

// plainTest makes a test without arguments.
func plainTest(f func(*interp, Value) bool) test {
	return func(in *interp, v Value, a *callArgs) (bool, error) {
		if _, err := a.positional(0, 0); err != nil {
			return false, err
		}
		return f(in, v), nil
	}
}

// binaryTest makes a test with one argument.
func binaryTest(f func(in *interp, a, b Value) (bool, error)) test {
	return func(in *interp, v Value, a *callArgs) (bool, error) {
		if a.kw != nil && a.kw.Len() == 1 && len(a.args) == 0 {
			// The tests written in Python name their parameter.
			if e := a.kw.entries[0]; e.hash.text == "other" && a.name == "sameas" || e.hash.text == "seq" && a.name == "in" {
				return f(in, v, e.value)
			}
		}
		args, err := a.positional(1, 1)
		if err != nil {
			return false, err
		}
		return f(in, v, args[0])
	}
}

// remainderTest makes odd and even.
func remainderTest(want int64) test {
	return func(in *interp, v Value, a *callArgs) (bool, error) {
		if _, err := a.positional(0, 0); err != nil {
			return false, err
		}
		r, err := in.binary("%", v, Int{small: 2})
		if err != nil {
			return false, err
		}
		return in.equal(r, Int{small: want}), nil
	}
}

func testDivisibleby(in *interp, v Value, a *callArgs) (bool, error) {
	args, err := a.bind("num")
	if err != nil {
		return false, err
	}
	r, err := in.binary("%", v, args[0])
	if err != nil {
		return false, err
	}
	return in.equal(r, Int{}), nil
}

// nameTest makes the tests for the names of filters and tests.
func nameTest(known func(string) bool) test {
	return func(in *interp, v Value, a *callArgs) (bool, error) {
		if _, err := a.positional(0, 0); err != nil {
			return false, err
		}
		if _, err := in.hash(v); err != nil {
			return false, err
		}
		s, ok := v.(*Str)
		return ok && known(s.s), nil
	}
}

func caseTest(wanted, other func(rune) bool) test {
	return func(in *interp, v Value, a *callArgs) (bool, error) {
		if _, err := a.positional(0, 0); err != nil {
			return false, err
		}
		s, err := in.str(v)
		if err != nil {
			return false, err
		}
		return in.hasCase(s.s, wanted, other), nil
	}
}

func isSequence(v Value) bool {
	switch v.(type) {
	case *Str, *List, *Tuple, *Dict, *rangeValue, *undefined:
		return true
	}
	return false
}

func isIterable(v Value) bool {
	switch v.(type) {
	case *Str, *List, *Tuple, *Dict, *rangeValue, *dictView, *generator, *loopContext, *undefined:
		return true
	}
	return false
}

// same is Python's "a is b". Constants, small integers and containers have an
// identity; equal strings count as one, as most of Python's are.
func (in *interp) same(a, b Value) bool {
	switch x := a.(type) {
	case Int:
		y, ok := b.(Int)
		return ok && x.big == nil && y.big == nil && x.small == y.small
	case Float:
		y, ok := b.(Float)
		return ok && x.f == y.f
	case *Str:
		y, ok := b.(*Str)
		return ok && x.safe == y.safe && in.sameText(x.s, y.s)
	case *builtin:
		y, ok := b.(*builtin)
		return ok && x == y
	}
	return a == b
}
