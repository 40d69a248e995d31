package arch_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/tensor"
)

// A goldenPlan is a file of testdata: a head, which describes a tiny model, and the model's
// program. docs/add-an-architecture.md describes the format.
type goldenPlan struct {
	head    string // including the line that ends it
	model   tiny
	program string
}

// plans returns the names of all golden plans.
func plans(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(planPath("*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) < 60 {
		t.Fatalf("testdata has %d plans, want at least 60", len(paths))
	}
	for i, path := range paths {
		paths[i] = strings.TrimSuffix(filepath.Base(path), ".plan")
	}
	return paths
}

func planPath(name string) string { return filepath.Join("testdata", name+".plan") }

func readPlan(t *testing.T, name string) goldenPlan {
	t.Helper()
	data, err := os.ReadFile(planPath(name))
	if err != nil {
		t.Fatal(err)
	}
	p, err := parsePlan(string(data))
	if err != nil {
		t.Fatalf("%s: %v", planPath(name), err)
	}
	return p
}

// goldenModel returns the tiny model of a plan.
func goldenModel(t *testing.T, name string) tiny {
	t.Helper()
	return readPlan(t, name).model
}

var tensorLine = regexp.MustCompile(`^(\S+) \[(\d+(?: \d+)*)\](?: (\S+))?$`)

func parsePlan(text string) (goldenPlan, error) {
	const tensors, program = "\ntensors\n", "\nprogram\n"
	if strings.HasSuffix(text, "\nprogram") { // no program written yet
		text += "\n"
	}
	head, rest, ok := strings.Cut(text, program)
	kind, head2, _ := strings.Cut(head+"\n", "\n")
	config, list, ok2 := strings.Cut(head2, tensors)
	p := goldenPlan{head: head + program, program: rest, model: tiny{
		gguf: kind == "config gguf", tensors: map[string][]int{}, dtypes: map[string]tensor.DType{},
	}}
	if !ok || !ok2 || !p.model.gguf && kind != "config" {
		return goldenPlan{}, errors.New("want the lines config or config gguf, tensors, and program, each followed by what it says")
	}
	d := json.NewDecoder(strings.NewReader(config))
	d.UseNumber()
	if err := d.Decode(&p.model.config); err != nil {
		return goldenPlan{}, fmt.Errorf("config: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return goldenPlan{}, errors.New("config: want one JSON object")
	}
	if p.model.gguf {
		for key, value := range p.model.config {
			typed, err := ggufTyped(value)
			if err != nil {
				return goldenPlan{}, fmt.Errorf("config: %s: %w", key, err)
			}
			p.model.config[key] = typed
		}
	}
	for line := range strings.Lines(list) {
		part := tensorLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if part == nil {
			return goldenPlan{}, fmt.Errorf("tensors: %q is not a name, a shape such as [32 16], and a format where it is not F32", line)
		}
		if _, twice := p.model.tensors[part[1]]; twice {
			return goldenPlan{}, fmt.Errorf("tensors: %s is listed twice", part[1])
		}
		for n := range strings.FieldsSeq(part[2]) {
			size, err := strconv.Atoi(n)
			if err != nil {
				return goldenPlan{}, fmt.Errorf("tensors: %s: %w", part[1], err)
			}
			p.model.tensors[part[1]] = append(p.model.tensors[part[1]], size)
		}
		dtype, err := tensor.ParseDType(cmp.Or(part[3], "F32"))
		if err != nil {
			return goldenPlan{}, fmt.Errorf("tensors: %s: %w", part[1], err)
		}
		p.model.dtypes[part[1]] = dtype
	}
	return p, nil
}

// ggufTyped converts a JSON value to a type of GGUF: a number without a point or an exponent is an
// integer, and the elements of a list have one type.
func ggufTyped(value any) (any, error) {
	switch v := value.(type) {
	case string, bool:
		return v, nil
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return int(n), nil
		}
		return v.Float64()
	case []any:
		var list []any
		for _, element := range v {
			typed, err := ggufTyped(element)
			if err != nil {
				return nil, err
			}
			list = append(list, typed)
		}
		if len(list) == 0 {
			return nil, errors.New("a list of nothing has no type")
		}
		switch list[0].(type) {
		case string:
			return listOf(list, func(s string) string { return s })
		case bool:
			return listOf(list, func(b bool) bool { return b })
		case int:
			return listOf(list, func(n int) int32 { return int32(n) })
		case float64:
			return listOf(list, func(f float64) float32 { return float32(f) })
		}
	}
	return nil, fmt.Errorf("%v is not what GGUF has", value)
}

func listOf[From, To any](list []any, convert func(From) To) ([]To, error) {
	var all []To
	for _, element := range list {
		from, ok := element.(From)
		if !ok {
			return nil, fmt.Errorf("%v is a list of %T and %T", list, list[0], element)
		}
		all = append(all, convert(from))
	}
	return all, nil
}

// The program of each architecture equals the reviewed one.
func TestPrograms(t *testing.T) {
	for _, name := range plans(t) {
		t.Run(name, func(t *testing.T) {
			p := readPlan(t, name)
			m, err := buildFile(t, p.model.write(t))
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				if err := os.WriteFile(planPath(name), []byte(p.head+m.Program.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			sameAsGolden(t, name, m)
		})
	}
}

// sameAsGolden compares a program with that in testdata.
func sameAsGolden(t *testing.T, name string, m *arch.Model) {
	t.Helper()
	if d := gocmp.Diff(readPlan(t, name).program, m.Program.String()); d != "" {
		t.Errorf("the program differs from that of %s; if it should, run the test with -update\n%s", planPath(name), d)
	}
}

// alsoNamed maps further class names of an architecture to the plan that covers them.
var alsoNamed = map[string]string{
	"CamembertForSequenceClassification": "xlm-roberta-rank",
	"CamembertModel":                     "roberta",
	"Ernie4_5_ForCausalLM":               "ernie4-5",
	"Gemma3nForCausalLM":                 "gemma3n",
	"RobertaForSequenceClassification":   "xlm-roberta-rank",
	"XLMRobertaModel":                    "roberta",
}

// Every name of an architecture is covered by a plan.
func TestPlanOfEachArchitecture(t *testing.T) {
	var named []string
	for _, name := range plans(t) {
		named = append(named, goldenModel(t, name).architecture())
	}
	for _, a := range arch.Architectures() {
		for _, name := range []string{a.Class, a.GGUF} {
			if name == "" || slices.Contains(named, name) || alsoNamed[name] != "" {
				continue
			}
			t.Errorf("%s: no plan's head names %s; write the head of a tiny model of it into testdata, and run the test with -update", a.Title, name)
		}
	}
	for name, golden := range alsoNamed {
		m, err := buildFile(t, goldenModel(t, golden).with(map[string]any{"architectures": []string{name}}, nil).write(t))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		sameAsGolden(t, golden, m)
	}
}

// A head describes a model file, including the types of its values.
func TestHead(t *testing.T) {
	p, err := parsePlan("config gguf\n{\"a\": 1000, \"b\": 1000.0, \"c\": 1e3,\n \"d\": [true, false], \"e\": [1, 2], \"f\": [1.0, 0.5], \"g\": \"tensors\"}\ntensors\nx.#.w [2 32] Q8_0\ny [3]\nprogram")
	if err != nil {
		t.Fatal(err)
	}
	if d := gocmp.Diff(map[string]any{"a": 1000, "b": 1000.0, "c": 1000.0, "d": []bool{true, false}, "e": []int32{1, 2}, "f": []float32{1, 0.5}, "g": "tensors"}, p.model.config); d != "" {
		t.Error(d)
	}
	if d := gocmp.Diff(map[string][]int{"x.#.w": {2, 32}, "y": {3}}, p.model.tensors); d != "" {
		t.Error(d)
	}
	if d := gocmp.Diff(map[string]tensor.DType{"x.#.w": tensor.Q8_0, "y": tensor.F32}, p.model.dtypes); d != "" {
		t.Error(d)
	}
	hub, err := parsePlan("config\n{\"a\": 1000, \"b\": 1000.0, \"c\": null}\ntensors\nprogram\n%0\n")
	if err != nil {
		t.Fatal(err)
	}
	if d := gocmp.Diff(map[string]any{"a": json.Number("1000"), "b": json.Number("1000.0"), "c": nil}, hub.model.config); d != "" || hub.program != "%0\n" {
		t.Errorf("the program is %q\n%s", hub.program, d)
	}
	for text, says := range map[string]string{
		"": "want the lines config",
		"config safetensors\n{}\ntensors\nprogram\n":           "want the lines config",
		"config\n{}\nprogram\n":                                "want the lines config",
		"config\n{}\ntensors\nx [1]\n":                         "want the lines config",
		"config\n{\"a\": }\ntensors\nprogram\n":                "config: invalid character",
		"config\n{} {}\ntensors\nprogram\n":                    "one JSON object",
		"config gguf\n{\"a\": null}\ntensors\nprogram\n":       "config: a: <nil> is not what GGUF has",
		"config gguf\n{\"a\": [1, 2.0]}\ntensors\nprogram\n":   "config: a: [1 2] is a list of int and float64",
		"config gguf\n{\"a\": []}\ntensors\nprogram\n":         "no type",
		"config\n{}\ntensors\nx 1 2\nprogram\n":                "is not a name, a shape",
		"config\n{}\ntensors\nx [1 2] Q9\nprogram\n":           "tensors: x: ",
		"config\n{}\ntensors\nx [1 2]\nx [1 2] F16\nprogram\n": "tensors: x is listed twice",
	} {
		if _, err := parsePlan(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: error %v, want %q", text, err, says)
		}
	}
}
