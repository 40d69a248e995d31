package main

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A layout is clang's description of a family: the argument structure of each kernel, and the
// layout of all structures.
type layout struct {
	family  string
	kernels map[string]string
	structs map[string]structure
}

type structure struct {
	fields      []field
	size, align int
}

type field struct {
	offset     int
	kind, name string
}

// kernelLine matches a kernel in LLVM assembly. Kernels are the only functions with external
// linkage.
var kernelLine = regexp.MustCompile(`(?m)^define dso_local void @(\w+)\((.*)\) #`)

var (
	parameter  = regexp.MustCompile(`^ptr noundef byval\(%struct\.(\w+)\) align 8 %0$`)
	structLine = regexp.MustCompile(`^ +0 \| struct (\w+)$`)
	fieldLine  = regexp.MustCompile(`^ +(\d+) \|   (\S.*?) (\w+)$`)
	sizeLine   = regexp.MustCompile(`^ +\| \[sizeof=(\d+), dsize=\d+, align=(\d+),$`)
)

// layout parses the record layouts that clang dumps for the family, and its kernels.
func (f *family) layout() (layout, error) {
	l := layout{family: f.name, kernels: map[string]string{}, structs: map[string]structure{}}
	text, err := f.clang(f.targets()[0], "-O0", "-S", "-emit-llvm", "-Xclang", "-disable-llvm-passes", "-Xclang", "-fdump-record-layouts-complete")
	if err != nil {
		return l, err
	}
	for _, m := range kernelLine.FindAllStringSubmatch(string(text), -1) {
		p := parameter.FindStringSubmatch(m[2])
		if p == nil {
			return l, fmt.Errorf("%s: the kernel %s takes %q; kernels take one structure, aligned to 8 bytes", f.name, m[1], m[2])
		}
		l.kernels[m[1]] = p[1]
	}
	for _, record := range strings.Split(string(text), "\n*** Dumping AST Record Layout\n")[1:] {
		lines := strings.Split(record, "\n")
		head := structLine.FindStringSubmatch(lines[0])
		if head == nil {
			continue // a template or a local structure
		}
		var s structure
		for _, line := range lines[1:] {
			if m := fieldLine.FindStringSubmatch(line); m != nil && !strings.HasPrefix(m[2], " ") {
				kind := strings.NewReplacer("const ", "", "struct ", "", " ", "").Replace(m[2])
				s.fields = append(s.fields, field{offset: number(m[1]), kind: kind, name: m[3]})
			}
			if m := sizeLine.FindStringSubmatch(line); m != nil {
				s.size, s.align = number(m[1]), number(m[2])
				break
			}
		}
		if s.size == 0 {
			return l, fmt.Errorf("%s: the structure %s has no size:\n%s", f.name, head[1], record)
		}
		l.structs[head[1]] = s
	}
	return l, nil
}

func number(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		panic(err) // the regular expression guarantees digits
	}
	return n
}

// layoutText lists the kernels of all families by their argument structure, and every structure
// that these arguments are, contain or point to.
func layoutText(all []layout) ([]byte, error) {
	var b bytes.Buffer
	structs := map[string]structure{}
	for _, l := range all {
		taken := map[string][]string{}
		for kernel, s := range l.kernels {
			taken[s] = append(taken[s], kernel)
		}
		wanted := slices.Sorted(maps.Keys(taken))
		for _, s := range wanted {
			slices.Sort(taken[s])
			fmt.Fprintf(&b, "kernels %s %s %s\n", l.family, s, strings.Join(taken[s], " "))
		}
		for i := 0; i < len(wanted); i++ {
			s, ok := l.structs[wanted[i]]
			if !ok {
				return nil, fmt.Errorf("%s: clang says nothing of the structure %s", l.family, wanted[i])
			}
			if same, ok := structs[wanted[i]]; ok && !reflect.DeepEqual(same, s) {
				return nil, fmt.Errorf("%s: the structure %s is not that of another family", l.family, wanted[i])
			}
			structs[wanted[i]] = s
			for _, f := range s.fields {
				inner, _, _ := strings.Cut(strings.TrimRight(f.kind, "*"), "[")
				if _, ok := l.structs[inner]; ok && !slices.Contains(wanted, inner) {
					wanted = append(wanted, inner)
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(structs)) {
		s := structs[name]
		fmt.Fprintf(&b, "\nstruct %s %d %d\n", name, s.size, s.align)
		for _, f := range s.fields {
			fmt.Fprintf(&b, "%d %s %s\n", f.offset, f.kind, f.name)
		}
	}
	return b.Bytes(), nil
}
