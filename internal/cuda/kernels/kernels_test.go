package kernels_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/cuda/kernels"
	"github.com/realizar/realizar/tensor"
)

// families returns the names of the families that gen compiles: one for each .cu file, and those of
// formats and caches.
func families(t *testing.T) []string {
	t.Helper()
	all := slices.Sorted(maps.Keys(readLayouts(t).kernels))
	if len(all) == 0 {
		t.Fatal("layouts.txt has no kernels")
	}
	return all
}

// Every .cu file is a family. So are the products and tables of every format with kernels: the
// formats that products read as bytes, E4M3 numbers in blocks, and the float formats.
func TestEveryFormatHasKernels(t *testing.T) {
	all := families(t)
	has := func(name string) {
		t.Helper()
		if !slices.Contains(all, name) {
			t.Errorf("there is no family %s: run go generate", name)
		}
	}
	files, err := filepath.Glob("*.cu")
	if err != nil || len(files) == 0 {
		t.Fatalf("no file in CUDA C++: %v", err)
	}
	for _, f := range files {
		has(strings.TrimSuffix(f, ".cu"))
	}
	for _, f := range tensor.Formats() {
		name := strings.ToLower(f.Name)
		switch {
		case f.E4M3:
			has("experts_" + name)
			has("weights_" + name)
		case f.DType == tensor.F16, f.DType == tensor.BF16, f.InBytes:
			has("experts_" + name)
			fallthrough
		case f.DType == tensor.F32:
			has("weights_" + name)
			has("floats_" + name)
			has("experts_floats_" + name)
		}
	}
}

// entries returns the kernels in a PTX text with their parameters.
func entries(text string) map[string]string {
	all := map[string]string{}
	for _, after := range strings.Split(text, "\n.visible .entry ")[1:] {
		head, _, _ := strings.Cut(after, ")")
		name, parameters, _ := strings.Cut(head, "(")
		all[name] = strings.TrimSpace(parameters)
	}
	return all
}

// only returns the only target of a family, or "" for any.
func only(family string) string {
	switch {
	case strings.HasPrefix(family, "wide_"):
		return "sm_90a"
	case strings.HasPrefix(family, "several_"):
		return "sm_80"
	}
	return ""
}

// Every family is compiled for each of its targets, with the same kernels for all.
func TestFamilies(t *testing.T) {
	for _, family := range families(t) {
		var first map[string]string
		for _, c := range []struct {
			major, minor int
			target       string
		}{{8, 0, "sm_80"}, {8, 9, "sm_80"}, {9, 0, "sm_90a"}, {10, 0, "sm_80"}} {
			text, err := kernels.PTX(family, c.major, c.minor)
			if of := only(family); of != "" && of != c.target {
				if err == nil {
					t.Errorf("%s is there for %d.%d", family, c.major, c.minor)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s for %d.%d: %v", family, c.major, c.minor, err)
				continue
			}
			if !strings.Contains(string(text), "\n.target "+c.target+"\n") {
				t.Errorf("%s for %d.%d is not made for %s", family, c.major, c.minor, c.target)
			}
			all := entries(string(text))
			if n := strings.Count(string(text), ".entry"); len(all) == 0 || len(all) != n {
				t.Errorf("%s for %d.%d: %d kernels are read of %d", family, c.major, c.minor, len(all), n)
			}
			if first == nil {
				first = all
			}
			if !maps.Equal(all, first) {
				t.Errorf("%s has kernels %v for %d.%d and %v for 8.0", family, all, c.major, c.minor, first)
			}
		}
		for name, parameters := range first {
			if !strings.HasPrefix(parameters, ".param .align 8 .b8 ") || strings.Contains(parameters, "\n") {
				t.Errorf("%s of %s takes %q; kernels take one structure, aligned to 8 bytes", name, family, parameters)
			}
		}
	}
}

// Every compiled file has a source.
func TestNothingIsLeftOver(t *testing.T) {
	all := families(t)
	files, err := os.ReadDir("ptx")
	if err != nil {
		t.Fatal(err)
	}
	want := 0
	for _, family := range all {
		want++
		if only(family) == "" {
			want++
		}
	}
	if len(files) != want {
		t.Errorf("%d compiled files of %d families, not %d", len(files), len(all), want)
	}
	for _, f := range files {
		if family, _, _ := strings.Cut(f.Name(), "."); !slices.Contains(all, family) {
			t.Errorf("%s is of no file here", f.Name())
		}
	}
}

func TestNoFamily(t *testing.T) {
	if _, err := kernels.PTX("weights_q9", 9, 0); err == nil || err.Error() != `kernels: there is no family "weights_q9"` {
		t.Errorf("got %v", err)
	}
}

// No module has constants or variables of its own, because they slow down each of its launches.
func TestModulesHoldCodeAlone(t *testing.T) {
	for _, family := range families(t) {
		for target, capability := range map[string][2]int{"sm_80": {8, 0}, "sm_90a": {9, 0}} {
			if of := only(family); of != "" && of != target {
				continue
			}
			text, err := kernels.PTX(family, capability[0], capability[1])
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				words := strings.Fields(line)
				if i := slices.IndexFunc(words, func(w string) bool { return w == ".const" || w == ".global" }); i >= 0 && strings.HasPrefix(line, ".") {
					t.Errorf("%s for %v has %s", family, capability, strings.TrimSpace(line))
				}
			}
		}
	}
}

// A digest changes with the target and the families, and with nothing else.
func TestDigest(t *testing.T) {
	of := func(major, minor int, patterns ...string) string {
		t.Helper()
		d, err := kernels.Digest(major, minor, patterns...)
		if err != nil || len(d) != 32 {
			t.Fatalf("%q, %v", d, err)
		}
		return d
	}
	base := of(8, 0, "weights_q*")
	if other := of(8, 6, "weights_q*"); other != base {
		t.Errorf("capability 8.6 has other kernels than 8.0: %s, %s", other, base)
	}
	for what, other := range map[string]string{"9.0": of(9, 0, "weights_q*"), "more families": of(8, 0, "weights_q*", "weights_bf16"), "one family": of(8, 0, "weights_q4_k"), "none": of(8, 0)} {
		if other == base {
			t.Errorf("%s: the digest is the same", what)
		}
	}
	if _, err := kernels.Digest(8, 0, "["); err == nil {
		t.Error("a pattern that is wrong has a digest")
	}
}
