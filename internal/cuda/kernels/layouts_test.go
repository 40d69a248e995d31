package kernels_test

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/cuda/kernels"
)

// A structure is the layout of a C++ or Go structure: the fields, including those of nested
// structures, without padding.
type structure struct {
	fields []string
	size   int64
}

// layouts is the content of layouts.txt.
type layouts struct {
	kernels map[string]map[string]string // parameters of each kernel of a family
	fields  map[string][][3]string       // offset, kind and name
	size    map[string]int64
}

func readLayouts(t *testing.T) *layouts {
	t.Helper()
	text, err := os.ReadFile("layouts.txt")
	if err != nil {
		t.Fatal(err)
	}
	l := &layouts{kernels: map[string]map[string]string{}, fields: map[string][][3]string{}, size: map[string]int64{}}
	last := ""
	for _, line := range strings.Split(string(text), "\n") {
		switch words := strings.Fields(line); {
		case len(words) == 0:
		case words[0] == "kernels":
			family := words[1]
			if l.kernels[family] == nil {
				l.kernels[family] = map[string]string{}
			}
			for _, kernel := range words[3:] {
				l.kernels[family][kernel] = words[2]
			}
		case words[0] == "struct":
			last = words[1]
			l.size[last] = parsed(t, words[2])
		default:
			l.fields[last] = append(l.fields[last], [3]string(words))
		}
	}
	return l
}

func parsed(t *testing.T, digits string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// structure returns the C++ structure with this name.
func (l *layouts) structure(t *testing.T, name string) structure {
	t.Helper()
	s := structure{size: l.size[name]}
	if s.size == 0 {
		t.Fatalf("layouts.txt has no structure %s", name)
	}
	for _, f := range l.fields[name] {
		kind, count := f[1], int64(1)
		if one, n, array := strings.Cut(kind, "["); array {
			kind, count = one, parsed(t, strings.TrimSuffix(n, "]"))
		}
		if strings.HasSuffix(kind, "*") {
			kind = "pointer"
		}
		var in structure
		if l.size[kind] > 0 {
			in = l.structure(t, kind)
		}
		s.add(parsed(t, f[0]), kind, f[2], count, in)
	}
	return s
}

// kinds maps Go types to their C++ counterparts.
var kinds = map[types.BasicKind]string{
	types.Bool: "u8", types.Uint8: "u8", types.Int32: "s32", types.Uint32: "u32", types.Int64: "s64", types.Uint64: "u64",
	types.Float32: "float", types.Float64: "double",
}

var sizes = types.SizesFor("gc", "amd64")

// structureOf returns the layout of a Go structure.
func structureOf(of *types.Struct) structure {
	s := structure{size: sizes.Sizeof(of)}
	fields := slices.Collect(of.Fields())
	for i, offset := range sizes.Offsetsof(fields) {
		f, count := fields[i], int64(1)
		kind := f.Type()
		if a, ok := kind.Underlying().(*types.Array); ok {
			kind, count = a.Elem(), a.Len()
		}
		name, in := kind.String(), structure{}
		switch u := kind.Underlying().(type) {
		case *types.Struct:
			in = structureOf(u)
		case *types.Basic:
			if name = kinds[u.Kind()]; strings.HasSuffix(kind.String(), "driver.DevicePtr") {
				name = "pointer"
			}
		}
		s.add(offset, name, f.Name(), count, in)
	}
	return s
}

// add adds count fields, which are structures themselves if in has a size. Names may differ in the
// case of their first letter, which Go capitalizes to export. Padding is named pad or _.
func (s *structure) add(offset int64, kind, name string, count int64, in structure) {
	if name == "pad" || name == "_" {
		return
	}
	name = strings.ToLower(name[:1]) + name[1:]
	switch {
	case in.size == 0 && count == 1:
		s.fields = append(s.fields, fmt.Sprintf("%d: %s %s", offset, kind, name))
	case in.size == 0:
		s.fields = append(s.fields, fmt.Sprintf("%d: %s %s[%d]", offset, kind, name, count))
	default:
		for i := range count {
			for _, f := range in.fields {
				at, what, _ := strings.Cut(f, ": ")
				n, _ := strconv.ParseInt(at, 10, 64)
				kind, inner, _ := strings.Cut(what, " ")
				s.fields = append(s.fields, fmt.Sprintf("%d: %s %s[%d].%s", offset+i*in.size+n, kind, name, i, inner))
			}
		}
	}
}

const module = "github.com/realizar/realizar/"

// sources type-checks the packages of this module, each once. Other packages are empty: structures
// that kernels know have no fields of their types.
type sources struct {
	files *token.FileSet
	all   map[string]*types.Package
	info  *types.Info
}

func (s *sources) Import(name string) (*types.Package, error) {
	if p := s.all[name]; p != nil {
		return p, nil
	}
	if name == "unsafe" {
		return types.Unsafe, nil
	}
	p := types.NewPackage(name, path.Base(name))
	p.MarkComplete()
	if folder, ours := strings.CutPrefix(name, module); ours {
		folder = filepath.Join("../../..", filepath.FromSlash(folder))
		found, err := build.ImportDir(folder, 0)
		if err != nil {
			return nil, err
		}
		var parts []*ast.File
		for _, f := range found.GoFiles {
			part, err := parser.ParseFile(s.files, filepath.Join(folder, f), nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			parts = append(parts, part)
		}
		config := types.Config{Importer: s, Error: func(error) {}} // errors due to empty packages
		p, _ = config.Check(name, s.files, parts, s.info)
	}
	s.all[name] = p
	return p, nil
}

// shared returns the structures that Go passes to kernels as arguments, and those in memory that
// both read: the types used with the functions arguments and words. The keys are their names with
// the first letter in upper case.
func shared(t *testing.T) (arguments, memory map[string]structure) {
	t.Helper()
	s := &sources{files: token.NewFileSet(), all: map[string]*types.Package{}, info: &types.Info{Instances: map[*ast.Ident]types.Instance{}}}
	err := filepath.WalkDir("..", func(folder string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if d.Name() == "testdata" {
			return filepath.SkipDir
		}
		if files, err := filepath.Glob(filepath.Join(folder, "*.go")); err != nil || len(files) == 0 {
			return err
		}
		_, err = s.Import(module + path.Join("internal/cuda/kernels", filepath.ToSlash(folder)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	arguments, memory = map[string]structure{}, map[string]structure{}
	for id, instance := range s.info.Instances {
		var all map[string]structure
		switch strings.ToLower(id.Name) {
		case "arguments":
			all = arguments
		case "words":
			all = memory
		default:
			continue
		}
		of, named := instance.TypeArgs.At(0).(*types.Named)
		if !named {
			continue // a basic type or a type parameter
		}
		if u, ok := of.Underlying().(*types.Struct); ok {
			name := of.Obj().Name()
			all[strings.ToUpper(name[:1])+name[1:]] = structureOf(u)
		}
	}
	return arguments, memory
}

// ofTheDevice are structures without a Go counterpart.
var ofTheDevice = []string{"Active", "Fit", "Missing", "Packet", "SlotRange", "float2", "uint2", "uint4"}

// Go and the kernels agree on the layout of arguments and of records in memory. A Go structure and
// its C++ counterpart have the same name, and the same fields with the same names, kinds and
// offsets.
func TestLayouts(t *testing.T) {
	l := readLayouts(t)
	arguments, memory := shared(t)
	taken := map[string]bool{}
	for _, kernels := range l.kernels {
		for _, s := range kernels {
			taken[s] = true
		}
	}
	compare := func(name string, got structure) {
		t.Helper()
		want := l.structure(t, name)
		for i := range max(len(want.fields), len(got.fields)) {
			at := func(fields []string) string {
				if i < len(fields) {
					return fields[i]
				}
				return "nothing more"
			}
			if at(got.fields) != at(want.fields) {
				t.Errorf("%s is, in Go, %q and, in C++, %q", name, at(got.fields), at(want.fields))
				return
			}
		}
		if got.size != want.size {
			t.Errorf("%s has %d bytes in Go and %d in C++", name, got.size, want.size)
		}
	}
	for name := range taken {
		if s, ok := arguments[name]; ok {
			compare(name, s)
		} else {
			t.Errorf("kernels take %s, which Go gives to nobody", name)
		}
	}
	for name := range arguments {
		if !taken[name] {
			t.Errorf("Go gives kernels %s, which none takes", name)
		}
	}
	pointees := map[string]bool{}
	for _, fields := range l.fields {
		for _, f := range fields {
			if to := strings.TrimRight(f[1], "*"); to != f[1] && l.size[to] > 0 {
				pointees[to] = true
			}
		}
	}
	for name := range pointees {
		if s, ok := memory[name]; ok {
			compare(name, s)
		} else if !slices.Contains(ofTheDevice, name) {
			t.Errorf("kernels read or write %s in memory, which Go does not know", name)
		}
	}
	for name := range memory {
		if !pointees[name] {
			t.Errorf("Go reads or writes %s in memory, which no kernel knows", name)
		}
	}
}

// layouts.txt describes the kernels of the compiled files, with the same parameter sizes.
func TestLayoutsAreOfTheKernels(t *testing.T) {
	l := readLayouts(t)
	all := families(t)
	for _, family := range all {
		major := 8
		if only(family) == "sm_90a" {
			major = 9
		}
		text, err := kernels.PTX(family, major, 0)
		if err != nil {
			t.Fatal(err)
		}
		compiled := entries(string(text))
		for name, parameters := range compiled {
			of := l.kernels[family][name]
			if want := fmt.Sprintf("[%d]", l.size[of]); of == "" || !strings.HasSuffix(parameters, want) {
				t.Errorf("%s of %s takes %q, and in layouts.txt %q of %s bytes", name, family, parameters, of, want)
			}
		}
		for name := range l.kernels[family] {
			if _, ok := compiled[name]; !ok {
				t.Errorf("layouts.txt has a kernel %s of %s", name, family)
			}
		}
	}
	for family := range l.kernels {
		if !slices.Contains(all, family) {
			t.Errorf("layouts.txt has a family %s", family)
		}
	}
}
