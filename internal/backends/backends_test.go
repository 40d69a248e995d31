package backends

import (
	"errors"
	"strings"
	"testing"
)

// numbered is a device of which only its number is known.
type numbered struct {
	Device
	index int
}

func opens(index int) (Device, error) { return &numbered{index: index}, nil }

func TestCheck(t *testing.T) {
	list := List{{Name: "abacus", Open: opens}}
	for _, name := range []string{"", "auto", "cpu", "abacus", "abacus:0", "abacus:17"} {
		if err := list.Check(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for name, says := range map[string]string{
		"tpu": `"tpu" is not in this build; use auto, cpu or abacus`, "cpu:1": `"cpu:1"`, "auto:0": `"auto:0"`,
		"abacus:": "abacus:1", "abacus:-1": "abacus:1", "abacus:x": "abacus:1", "abacus:1:2": "abacus:1",
	} {
		if err := list.Check(name); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", name, err, says)
		}
	}
	if err := List(nil).Check("abacus"); err == nil || !strings.Contains(err.Error(), "use auto or cpu") {
		t.Errorf("in a build without: %v", err)
	}
}

func TestOpen(t *testing.T) {
	broken, missing := errors.New("a bead is loose"), errors.New("no beads")
	fails := func(err error) func(int) (Device, error) {
		return func(int) (Device, error) { return nil, err }
	}
	for _, test := range []struct {
		what   string
		list   List
		name   string
		wanted bool
		index  int // of the device that is opened, or -1
		passed error
		err    error
	}{
		{"nothing in the build", nil, "auto", false, -1, nil, nil},
		{"the processor", List{{"a", opens}}, "cpu", false, -1, nil, nil},
		{"automatic", List{{"a", opens}}, "", false, 0, nil, nil},
		{"by number", List{{"a", fails(broken)}, {"b", opens}}, "b:3", false, 3, nil, nil},
		{"absent", List{{"a", fails(Absent(missing))}}, "auto", false, -1, nil, nil},
		{"absent and wanted by its options", List{{"a", fails(Absent(missing))}}, "auto", true, -1, missing, nil},
		{"broken beside one that is absent", List{{"a", fails(Absent(missing))}, {"b", fails(broken)}}, "auto", true, -1, broken, nil},
		{"nothing in the build, and wanted", nil, "auto", true, -1, ErrAbsent, nil},
		{"broken", List{{"a", fails(Absent(missing))}, {"b", fails(broken)}}, "auto", false, -1, broken, nil},
		{"another one works", List{{"a", fails(broken)}, {"b", opens}}, "auto", false, 0, nil, nil},
		{"absent and wanted", List{{"a", fails(Absent(missing))}}, "a", false, -1, nil, missing},
	} {
		d, passed, err := test.list.Open(test.name, test.wanted)
		got := -1
		if d != nil {
			got = d.(*numbered).index
		}
		if got != test.index || !errors.Is(passed, test.passed) || (passed == nil) != (test.passed == nil) || !errors.Is(err, test.err) || (err == nil) != (test.err == nil) {
			t.Errorf("%s: device %d, passed over for %v, error %v", test.what, got, passed, err)
		}
	}
	if err := Absent(missing); err.Error() != missing.Error() || !errors.Is(err, ErrAbsent) || !errors.Is(err, missing) {
		t.Errorf("%v is not what it says", err)
	}
}
