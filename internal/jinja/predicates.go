package jinja

// A test is what stands behind "is": a predicate with arguments.
type test func(in *interp, v Value, a *callArgs) bool

// tests are the tests of jinja2 3.1.
var tests map[string]test

func init() {
	equalTest := binaryTest(func(in *interp, a, b Value) bool { return in.equal(a, b) })
	unequalTest := binaryTest(func(in *interp, a, b Value) bool { return !in.equal(a, b) })
	tests = map[string]test{
		"odd":         remainderTest(1),
		"even":        remainderTest(0),
		"divisibleby": testDivisibleby,
		"defined":     plainTest(func(_ *interp, v Value) bool { _, ok := v.(*undefined); return !ok }),
		"undefined":   plainTest(func(_ *interp, v Value) bool { _, ok := v.(*undefined); return ok }),
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
		"lower":       caseTest(isLower, isUpper),
		"upper":       caseTest(isUpper, isLower),
		"sameas":      binaryTest(func(in *interp, a, b Value) bool { return in.same(a, b) }),
		"in":          binaryTest(func(in *interp, a, b Value) bool { return in.contains(b, a) }),
		"==":          equalTest,
		"eq":          equalTest,
		"equalto":     equalTest,
		"!=":          unequalTest,
		"ne":          unequalTest,
	}
	for op, names := range map[string][]string{
		">": {"gt", "greaterthan"}, ">=": {"ge"}, "<": {"lt", "lessthan"}, "<=": {"le"},
	} {
		t := binaryTest(func(in *interp, a, b Value) bool { return in.order(op, a, b) })
		tests[op] = t
		for _, name := range names {
			tests[name] = t
		}
	}
}

// callTest applies a test that is named at run time.
func (in *interp) callTest(name Value, v Value, args []Value, kw *Dict) bool {
	t, text := lookupNamed(in, tests, "test", name)
	return t(in, v, &callArgs{name: text, args: args, kw: kw})
}

// plainTest makes a test without arguments.
func plainTest(f func(*interp, Value) bool) test {
	return func(in *interp, v Value, a *callArgs) bool {
		a.positional(0, 0)
		return f(in, v)
	}
}

// binaryTest makes a test with one argument.
func binaryTest(f func(in *interp, a, b Value) bool) test {
	return func(in *interp, v Value, a *callArgs) bool {
		return f(in, v, a.positional(1, 1)[0])
	}
}

// remainderTest makes odd and even.
func remainderTest(want int64) test {
	return func(in *interp, v Value, a *callArgs) bool {
		a.positional(0, 0)
		return in.equal(in.binary("%", v, Int{small: 2}), Int{small: want})
	}
}

func testDivisibleby(in *interp, v Value, a *callArgs) bool {
	args := a.bind("num")
	return in.equal(in.binary("%", v, args[0]), Int{})
}

func caseTest(wanted, other func(rune) bool) test {
	return func(in *interp, v Value, a *callArgs) bool {
		a.positional(0, 0)
		return in.hasCase(in.str(v).s, wanted, other)
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

// same is Python's "a is b", where values that are equal and of one type that
// never changes count as one, as most of Python's are.
func (in *interp) same(a, b Value) bool {
	switch a.(type) {
	case Int, Float, *Str:
		return a.typeName() == b.typeName() && in.equal(a, b)
	}
	return a == b
}
