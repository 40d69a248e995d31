package backends

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"testing"
)

// numbered is a device with nothing but a number.
type numbered struct {
	Backend
	index int
	name  string
}

func (n *numbered) Description() string { return "Abacus " + n.name }
func (n *numbered) Close() error        { n.index = -n.index - 1; return nil }

func opens(o Options) (Backend, error) { return &numbered{index: o.Index}, nil }

// all returns a list that ends with the processor.
func all(kinds ...Kind) List { return append(kinds, Processor) }

func TestCheck(t *testing.T) {
	list := all(Kind{Name: "abacus", Open: opens})
	for _, name := range []string{"", "auto", "cpu", "abacus", "abacus:0", "abacus:17"} {
		if err := list.Check(Choice{Name: name}); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for name, says := range map[string]string{
		"tpu": `"tpu" is not in this build; use auto, cpu or abacus`, "cpu:1": `"cpu:1"`, "auto:0": `"auto:0"`,
		"abacus:": "abacus:1", "abacus:-1": "abacus:1", "abacus:x": "abacus:1", "abacus:1:2": "abacus:1",
		"abacus:3,4": `device "abacus:3,4": a model runs on one abacus device; use one of them, such as abacus:3`,
	} {
		if err := list.Check(Choice{Name: name}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", name, err, says)
		}
	}
	several := all(Kind{Name: "abacus", Several: 8, Open: opens})
	if err := several.Check(Choice{Name: "abacus:0,3"}); err != nil {
		t.Error(err)
	}
	for name, says := range map[string]string{"abacus:1,1": `"abacus:1,1": 1 appears twice`, "abacus:1,": "abacus:1"} {
		if err := several.Check(Choice{Name: name}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", name, err, says)
		}
	}
	if err := all().Check(Choice{Name: "abacus"}); err == nil || !strings.Contains(err.Error(), "use auto or cpu") {
		t.Errorf("in a build without: %v", err)
	}
}

func TestOpen(t *testing.T) {
	broken, missing := errors.New("a bead is loose"), errors.New("no beads")
	fails := func(err error) func(Options) (Backend, error) {
		return func(Options) (Backend, error) { return nil, err }
	}
	kind := func(name string, open func(Options) (Backend, error)) Kind { return Kind{Name: name, Open: open} }
	for _, test := range []struct {
		what   string
		list   List
		name   string
		wanted bool
		index  int // number of the opened device; -1: the processor, or -2
		passed error
		err    error
	}{
		{"nothing in the build", all(), "auto", false, -1, nil, nil},
		{"the processor", all(kind("a", opens)), "cpu", false, -1, nil, nil},
		{"automatic", all(kind("a", opens)), "", false, 0, nil, nil},
		{"by number", all(kind("a", fails(broken)), kind("b", opens)), "b:3", false, 3, nil, nil},
		{"absent", all(kind("a", fails(Absent(missing)))), "auto", false, -1, nil, nil},
		{"absent and wanted by its options", all(kind("a", fails(Absent(missing)))), "auto", true, -1, missing, nil},
		{"broken beside one that is absent", all(kind("a", fails(Absent(missing))), kind("b", fails(broken))), "auto", true, -1, broken, nil},
		{"nothing in the build, and wanted", all(), "auto", true, -1, ErrAbsent, nil},
		{"broken", all(kind("a", fails(Absent(missing))), kind("b", fails(broken))), "auto", false, -1, broken, nil},
		{"another one works", all(kind("a", fails(broken)), kind("b", opens)), "auto", false, 0, nil, nil},
		{"absent and wanted", all(kind("a", fails(Absent(missing)))), "a", false, -2, nil, missing},
	} {
		d, passed, err := test.list.Open(Choice{Name: test.name, Memory: test.wanted})
		got := -2
		if err == nil {
			got = -1
			if n, ok := d.Backend.(*numbered); ok {
				got = n.index
			}
			if d.Kind.Host != (got == -1) {
				t.Errorf("%s: the kind is %q", test.what, d.Kind.Name)
			}
		}
		if got != test.index || !errors.Is(passed, test.passed) || (passed == nil) != (test.passed == nil) || !errors.Is(err, test.err) || (err == nil) != (test.err == nil) {
			t.Errorf("%s: device %d, passed over for %v, error %v", test.what, got, passed, err)
		}
	}
	if err := Absent(missing); err.Error() != missing.Error() || !errors.Is(err, ErrAbsent) || !errors.Is(err, missing) {
		t.Errorf("%v is not what it says", err)
	}
}

// A device that fails is skipped if the choice is open and ctx is not done.
func TestUse(t *testing.T) {
	small := errors.New("too few beads")
	list := all(Kind{Name: "a", Open: opens}, Kind{Name: "b", Open: opens})
	ended, end := context.WithCancel(t.Context())
	end()
	for _, test := range []struct {
		what   string
		ctx    context.Context
		choice Choice
		fits   string // kind on which the model fits
		tried  string
		passed bool
		err    error
	}{
		{"the best", t.Context(), Choice{}, "a", "a", false, nil},
		{"the next", t.Context(), Choice{}, "b", "ab", false, nil},
		{"the host's", t.Context(), Choice{}, "cpu", "abcpu", true, nil},
		{"none", t.Context(), Choice{}, "", "abcpu", false, small},
		{"by name", t.Context(), Choice{Name: "a"}, "cpu", "a", false, small},
		{"the host's by name", t.Context(), Choice{Name: "cpu"}, "cpu", "cpu", false, nil},
		{"the host's by its kernels", t.Context(), Choice{Kernels: "generic"}, "cpu", "cpu", false, nil},
		{"kernels that the device has no use for", t.Context(), Choice{Name: "b", Kernels: "generic"}, "b", "b", false, nil},
		{"no time", ended, Choice{}, "cpu", "a", false, small},
	} {
		tried, refused := "", []*numbered(nil)
		passed, err := list.Use(test.ctx, test.choice, func(a Attempt) error {
			d := a.Devices[0]
			if tried += d.Kind.Name; d.Kind.Name == test.fits {
				return nil
			}
			if n, ok := d.Backend.(*numbered); ok {
				n.name = d.Kind.Name
				refused = append(refused, n)
			}
			return small
		})
		if tried != test.tried || !errors.Is(err, test.err) || (err == nil) != (test.err == nil) || (passed != nil) != test.passed {
			t.Errorf("%s: %s are tried, passed over for %v, error %v", test.what, tried, passed, err)
		}
		for _, n := range refused {
			if n.index != -1 {
				t.Errorf("%s: %s is not closed once", test.what, n.Description())
			}
		}
		if passed != nil && (!errors.Is(passed, small) || passed.Error() != "Abacus a: too few beads") {
			t.Errorf("%s: passed over for %v", test.what, passed)
		}
	}
	for _, test := range []struct {
		choice Choice
		host   bool
	}{{Choice{}, false}, {Choice{Name: "cpu"}, true}, {Choice{Name: "auto", Kernels: "generic"}, true}, {Choice{Name: "a", Kernels: "generic"}, false}, {Choice{Name: "c"}, false}} {
		if got := list.Host(test.choice); got != test.host {
			t.Errorf("%+v is the host's device: %v", test.choice, got)
		}
	}
}

// Without numbers, the fewest devices that have ample room are used, and else the first one alone.
func TestUseFewest(t *testing.T) {
	small, loose, odd := TooFew(errors.New("too few beads")), errors.New("a bead is loose"), errors.ErrUnsupported
	counted := func(n int) func() int { return func() int { return n } }
	for _, test := range []struct {
		what    string
		count   func() int
		several int // devices that run a model together; 0: 8
		choice  Choice
		uses    map[string]error // by attempt; small if it is not there
		broken  string           // devices that cannot be opened
		tried   string           // attempts; "!": with ample room
		chosen  string           // or "cpu"; "": none
		err     error
	}{
		{what: "one has room", count: counted(8), uses: map[string]error{"a:0!": nil}, tried: "a:0!", chosen: "a:0"},
		{what: "two have", count: counted(8), uses: map[string]error{"a:0,1!": nil}, tried: "a:0! a:0,1!", chosen: "a:0,1"},
		{what: "two have, by name", count: counted(8), choice: Choice{Name: "a"}, uses: map[string]error{"a:0,1!": nil}, tried: "a:0! a:0,1!", chosen: "a:0,1"},
		{what: "four have", count: counted(8), uses: map[string]error{"a:0,1,2,3!": nil}, tried: "a:0! a:0,1! a:0,1,2,3!", chosen: "a:0,1,2,3"},
		{what: "eight have", count: counted(8), uses: map[string]error{"a:0,1,2,3,4,5,6,7!": nil}, tried: "a:0! a:0,1! a:0,1,2,3! a:0,1,2,3,4,5,6,7!", chosen: "a:0,1,2,3,4,5,6,7"},
		{what: "none of seven have", count: counted(7), uses: map[string]error{"a:0": nil}, tried: "a:0! a:0,1! a:0,1,2,3! a:0", chosen: "a:0"},
		{what: "none of sixteen have", count: counted(16), several: 4, uses: map[string]error{"a:0": nil}, tried: "a:0! a:0,1! a:0,1,2,3! a:0", chosen: "a:0"},
		{what: "none can", count: counted(2), uses: map[string]error{"cpu": nil}, tried: "a:0! a:0,1! a:0 cpu", chosen: "cpu"},
		{what: "none can, by name", count: counted(2), choice: Choice{Name: "a"}, tried: "a:0! a:0,1! a:0", err: small},
		{what: "one device", count: counted(1), uses: map[string]error{"a:0": nil}, tried: "a:0", chosen: "a:0"},
		{what: "no device", count: counted(0), uses: map[string]error{"a:0": nil}, tried: "a:0", chosen: "a:0"},
		{what: "a number of devices that nobody knows", uses: map[string]error{"a:0": nil}, tried: "a:0", chosen: "a:0"},
		{what: "each alone", count: counted(8), several: 1, uses: map[string]error{"a:0": nil}, tried: "a:0", chosen: "a:0"},
		{what: "a single one is wanted", count: counted(8), choice: Choice{Single: true}, uses: map[string]error{"a:0": nil}, tried: "a:0", chosen: "a:0"},
		{what: "by number", count: counted(8), choice: Choice{Name: "a:0"}, uses: map[string]error{"a:0": nil}, tried: "a:0", chosen: "a:0"},
		{what: "by numbers", count: counted(8), choice: Choice{Name: "a:2,1", Single: true}, uses: map[string]error{"a:2,1": nil}, tried: "a:2,1", chosen: "a:2,1"},
		{what: "by number, without room", count: counted(8), choice: Choice{Name: "a:0"}, tried: "a:0", err: small},
		{what: "replicas", count: counted(8), choice: Choice{Replicas: 2}, uses: map[string]error{"a:0 a:1": nil}, tried: "a:0 a:1", chosen: "a:0 a:1"},
		{what: "one cannot run it", count: counted(8), choice: Choice{Name: "a"}, uses: map[string]error{"a:0!": loose}, tried: "a:0!", err: loose},
		{what: "two cannot run it", count: counted(8), uses: map[string]error{"a:0,1!": odd, "a:0": nil}, tried: "a:0! a:0,1! a:0", chosen: "a:0"},
		{what: "two cannot be opened", count: counted(8), broken: "a:0,1", uses: map[string]error{"a:0": nil}, tried: "a:0! a:0", chosen: "a:0"},
		{what: "none can be opened", count: counted(8), broken: "a:0", uses: map[string]error{"cpu": nil}, tried: "cpu", chosen: "cpu"},
		{what: "two cannot run it, and one has no room", count: counted(2), choice: Choice{Name: "a"}, uses: map[string]error{"a:0,1!": odd}, tried: "a:0! a:0,1! a:0", err: small},
	} {
		t.Run(test.what, func(t *testing.T) {
			test.several = cmp.Or(test.several, 8)
			var opened []*numbered
			list := all(Kind{Name: "a", Several: test.several, Count: test.count, Open: func(o Options) (Backend, error) {
				if (&Device{Kind: Kind{Name: "a"}, Numbers: append([]int{o.Index}, o.Others...)}).Selector() == test.broken {
					return nil, loose
				}
				n := &numbered{index: o.Index}
				opened = append(opened, n)
				return n, nil
			}})
			var tried []string
			chosen := ""
			passed, err := list.Use(t.Context(), test.choice, func(a Attempt) error {
				var names []string
				for _, d := range a.Devices {
					names = append(names, d.Selector())
				}
				name := strings.Join(names, " ")
				try := name
				if a.Ample {
					try += "!"
				}
				tried = append(tried, try)
				err, ok := test.uses[try]
				if !ok {
					return small
				}
				if err == nil {
					chosen = name
				}
				return err
			})
			if got := strings.Join(tried, " "); got != test.tried || chosen != test.chosen || !errors.Is(err, test.err) || (err == nil) != (test.err == nil) {
				t.Errorf("tried %q, want %q; on %q, want %q; error %v", got, test.tried, chosen, test.chosen, err)
			}
			if (passed != nil) != (chosen == "cpu") || passed != nil && errors.Is(passed, loose) != (test.broken != "") {
				t.Errorf("passed over for %v", passed)
			}
			open := 0
			for _, n := range opened {
				if n.index >= 0 {
					open++
				}
			}
			if want := strings.Count(chosen, "a:"); open != want {
				t.Errorf("%d devices are open, want %d", open, want)
			}
		})
	}
}

// The devices are counted only when they are to be opened.
func TestCount(t *testing.T) {
	counts := 0
	list := all(Kind{Name: "a", Several: 8, Open: opens, Count: func() int { counts++; return 2 }})
	for _, c := range []Choice{{}, {Name: "a"}, {Name: "a:0,1"}} {
		if err := list.Check(c); err != nil || list.Host(c) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, _, err := list.Open(Choice{Name: "cpu"}); err != nil || counts > 0 {
		t.Errorf("devices are counted %d times for the processor: %v", counts, err)
	}
	if d, _, err := list.Open(Choice{}); err != nil || d.Selector() != "a:0" || counts != 1 {
		t.Errorf("devices are counted %d times: %v", counts, err)
	}
}

// The processor stays the last kind when others are registered.
func TestRegister(t *testing.T) {
	before := All
	t.Cleanup(func() { All = before })
	Register(Kind{Name: "a"})
	Register(Kind{Name: "b"})
	names := ""
	for _, k := range All {
		names += k.Name
	}
	if names != "abcpu" || len(before) != 1 || !before[0].Host {
		t.Errorf("the kinds are %q after %v", names, before)
	}
}
