package lower

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/realizar/realizar/tensor"
)

const (
	testDevice = "NVIDIA H100 80GB HBM3"
	testDigest = "abc"
)

func digest() (string, error) { return testDigest, nil }

// someTable returns a table of two products.
func someTable() *TableFile {
	f := &TableFile{Device: testDevice, Kernels: testDigest, Date: "2026-11-27"}
	f.Add([]ProductTimes{
		NewProductTimes(Product{Format: tensor.Q6_K, Rows: 4096, Cols: 14336}, []ChoiceTime{{1, Choice{Kernel: "linear_1"}, 10.25, 10.25}, {8, Choice{"wide_16", Cluster{8, 1}}, 12, 14}}),
		NewProductTimes(Product{Format: tensor.Q4_K, Gated: true, Rows: 14336, Cols: 4096}, []ChoiceTime{{512, Choice{"wide_gated_128", Cluster{1, 1}}, 200, 210}}),
	})
	return f
}

// A table that was written is read with the same choices, and is one of lines.
func TestTableText(t *testing.T) {
	want := someTable()
	text, err := want.Text()
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseTable("a.json", text)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s\nis read as %+v, %v, want %+v", text, got, err, want)
	}
	choices := Table{
		{Product{tensor.Q6_K, false, 4096, 14336}, 1}:  {Kernel: "linear_1"},
		{Product{tensor.Q6_K, false, 4096, 14336}, 8}:  {"wide_16", Cluster{8, 1}},
		{Product{tensor.Q4_K, true, 14336, 4096}, 512}: {"wide_gated_128", Cluster{1, 1}},
	}
	if !reflect.DeepEqual(got.Table(), choices) {
		t.Errorf("the choices are %v, want %v", got.Table(), choices)
	}
	const line = `      {"input":8,"kernel":"wide_16","cluster":"8x1","us":12,"estimated_us":14}`
	if !strings.Contains(string(text), "\n"+line+"\n") {
		t.Errorf("no line %s in\n%s", line, text)
	}
	empty := &TableFile{Device: "a", Kernels: "b", Date: "2026-11-27"}
	if text, err := empty.Text(); err != nil {
		t.Errorf("a table without products, %s: %v", text, err)
	}
}

// New choices of a product replace its old ones, and leave those of others.
func TestTableAdd(t *testing.T) {
	f := someTable()
	p := Product{Format: tensor.Q6_K, Rows: 4096, Cols: 14336}
	f.Add([]ProductTimes{NewProductTimes(p, []ChoiceTime{{2, Choice{Kernel: "linear_8"}, 3, 3}})})
	want := Table{{p, 2}: {Kernel: "linear_8"}, {Product{tensor.Q4_K, true, 14336, 4096}, 512}: {"wide_gated_128", Cluster{1, 1}}}
	if got := f.Table(); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A wrong table is refused by the names of the file and the field.
func TestWrongTables(t *testing.T) {
	text, err := someTable().Text()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ old, new, says string }{
		{`"device": "NVIDIA H100 80GB HBM3"`, `"device": ""`, "device is empty"},
		{`"device": "NVIDIA H100 80GB HBM3"`, `"device": 5`, "device"},
		{`"kernels": "abc"`, `"kernels": ""`, "kernels is empty"},
		{"2026-11-27", "2026-13-27", `date is "2026-13-27"`},
		{`"date"`, `"time": 1, "date"`, `unknown field "time"`},
		{`"Q4_K"`, `"Q4_Z"`, `products[0].format is "Q4_Z"`},
		{`"Q4_K"`, `"Q8_K"`, `products[0].format is "Q8_K"`},
		{`"rows":14336`, `"rows":0`, "products[0].rows is 0"},
		{`"rows":14336`, `"rows":99999999999`, "products[0].rows is 99999999999"},
		{`"rows":14336`, `"rows":1e400`, "rows"},
		{`"cols":14336`, `"cols":-1`, "products[1].cols is -1"},
		{`"input":8`, `"input":1`, "products[1].choices[1].input is 1"},
		{`"input":8`, `"input":9`, "products[1].choices[1].input is 9"},
		{`"input":8`, `"input":1073741824`, "products[1].choices[1].input is 1073741824"},
		{`"input":1,`, `"input":0,`, "products[1].choices[0].input is 0"},
		{`"input":1,`, `"input":2,`, `products[1].choices[0].kernel is "linear_1"; for 2 input rows there are linear_16`},
		{"wide_16", "wide_gated_16", `products[1].choices[1].kernel is "wide_gated_16"`},
		{"wide_gated_128", "wide_128", `products[0].choices[0].kernel is "wide_128"`},
		{"wide_16", "attend", `products[1].choices[1].kernel is "attend"`},
		{`"cluster":"8x1"`, `"cluster":"3x1"`, "products[1].choices[1].cluster is 3x1; the kernel wide_16 has [1x1 2x1 4x1 8x1]"},
		{`"cluster":"8x1"`, `"cluster":"16x1"`, "products[1].choices[1].cluster is 16x1"},
		{`"cluster":"8x1"`, `"cluster":"8"`, `cluster is "8"; it must be two numbers of blocks`},
		{`,"cluster":"8x1"`, ``, "products[1].choices[1].cluster is 0x0"},
		{`"kernel":"linear_1"`, `"kernel":"linear_1","cluster":"2x1"`, "products[1].choices[0].cluster is 2x1"},
		{`"us":12,`, `"us":-1,`, "products[1].choices[1].us is -1"},
		{`"format":"Q6_K","rows":4096,"cols":14336`, `"format":"Q4_K","gated":true,"rows":14336,"cols":4096`, `products[1].choices[0].kernel`},
		{"]\n}\n", "]\n}\n{}", "text after the object"},
		{"{\n", "", "a.json: "},
		{string(text), "", "a.json: "},
		{string(text), "null", "device is empty"},
		{string(text), strings.Repeat("[", 100000), "a.json: "},
	} {
		wrong := strings.Replace(string(text), test.old, test.new, 1)
		if wrong == string(text) {
			t.Fatalf("the table has no %s", test.old)
		}
		if f, err := ParseTable("a.json", []byte(wrong)); err == nil || !strings.Contains(err.Error(), test.says) || !strings.HasPrefix(err.Error(), "a.json: ") {
			t.Errorf("%.40q instead of %.40q: %v, %v; want %q", test.new, test.old, f, err, test.says)
		}
	}
	twice := someTable()
	twice.Products = append(twice.Products, twice.Products[0])
	if _, err := twice.Text(); err == nil || !strings.Contains(err.Error(), "products[2] is Q4_K 14336x4096 gated, which appears before") {
		t.Errorf("a product twice: %v", err)
	}
}

// A device's table is in the file with its name. A table of another device or of other kernels does
// not serve, and a wrong one is an error.
func TestFindTable(t *testing.T) {
	text, err := someTable().Text()
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(string(text), `"kernels": "abc"`, `"kernels": "old"`, 1)
	for _, test := range []struct {
		what   string
		file   string // "" for none
		device string
		found  bool
		says   string
	}{
		{"no file", "", testDevice, false, ""},
		{"the table", string(text), testDevice, true, ""},
		{"other kernels", other, testDevice, false, ""},
		{"another device with a name alike", string(text), "NVIDIA-H100 80GB-HBM3", false, `device is "NVIDIA H100 80GB HBM3"`},
		{"a wrong table", "{}", testDevice, false, "device is empty"},
		{"a large file", strings.Repeat(" ", maxTable+1), testDevice, false, "more than"},
	} {
		folder, name := t.TempDir(), "nvidia-h100-80gb-hbm3.json"
		files := fstest.MapFS{}
		if test.file != "" {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(test.file), 0o600); err != nil {
				t.Fatal(err)
			}
			files["tables/"+name] = &fstest.MapFile{Data: []byte(test.file)}
		}
		for where, find := range map[string]func() (*TableFile, error){
			"folder": func() (*TableFile, error) {
				return ReadTable(filepath.Join(folder, TableName(test.device)), test.device, digest)
			},
			"built in": func() (*TableFile, error) { return findBuiltIn(files, test.device, digest) },
		} {
			f, err := find()
			if (f != nil) != test.found || (err != nil) != (test.says != "") {
				t.Errorf("%s, %s: %v, %v", test.what, where, f, err)
			} else if err != nil && (!strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), name)) {
				t.Errorf("%s, %s: %v; want %q and %s", test.what, where, err, test.says, name)
			}
		}
	}
}

// The user's table comes before the built-in one, which serves where the user's cannot.
func TestFindTableOrder(t *testing.T) {
	const device = "A GPU without a table"
	folder := t.TempDir()
	if f, err := FindTable(folder, device, digest); f != nil || err != nil {
		t.Errorf("no table: %v, %v", f, err)
	}
	if f, err := FindTable("", device, digest); f != nil || err != nil {
		t.Errorf("no folder: %v, %v", f, err)
	}
	path := filepath.Join(folder, "a-gpu-without-a-table.json")
	text, err := (&TableFile{Device: device, Kernels: testDigest, Date: "2026-11-27"}).Text()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		text   string
		device string // of the table that is found
		failed bool
	}{{string(text), device, false}, {"{", "", true}} {
		if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := FindTable(folder, device, digest)
		got := ""
		if f != nil {
			got = f.Device
		}
		if got != test.device || (err != nil) != test.failed {
			t.Errorf("%.10q: a table of %q, %v", test.text, got, err)
		}
	}
}

func TestTableName(t *testing.T) {
	for device, want := range map[string]string{
		testDevice: "nvidia-h100-80gb-hbm3.json", "NVIDIA GeForce RTX 4090": "nvidia-geforce-rtx-4090.json",
		"../../etc/passwd": "etc-passwd.json", "": "gpu.json", "\x00/": "gpu.json", "α7": "7.json",
	} {
		if got := TableName(device); got != want {
			t.Errorf("%q: %s, want %s", device, got, want)
		}
	}
}

// The built-in tables are valid, and each is in the file with its device's name.
func TestBuiltInTables(t *testing.T) {
	entries, err := builtIn.ReadDir("tables")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == "README.md" {
			continue
		}
		data, err := builtIn.ReadFile("tables/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		f, err := ParseTable(e.Name(), data)
		if err != nil {
			t.Error(err)
		} else if want := TableName(f.Device); e.Name() != want {
			t.Errorf("the table of %s is in %s, want %s", f.Device, e.Name(), want)
		}
	}
}

func TestProductTimesString(t *testing.T) {
	for i, want := range []string{
		"Q4_K 14336x4096 gated: 1 of 1 choices are faster than estimated ones, by up to 5%",
		"Q6_K 4096x14336: 1 of 2 choices are faster than estimated ones, by up to 17%",
	} {
		if got := someTable().Products[i].String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// Candidates are all choices that a table may have, less those of hopeless sizes.
func TestCandidates(t *testing.T) {
	for _, test := range []struct {
		hopper, gated bool
		input         int
		want          string
	}{
		{true, false, 1, "[linear_1 linear_8 wide_16 cluster 1x1 wide_16 cluster 2x1 wide_16 cluster 4x1 wide_16 cluster 8x1]"},
		{true, true, 2048, "[wide_gated_64 cluster 1x1 wide_gated_64 cluster 2x1 wide_gated_64 cluster 4x1 wide_gated_64 cluster 8x1 wide_gated_128 cluster 1x1 wide_gated_128 cluster 2x1 wide_gated_128 cluster 4x1 wide_gated_128 cluster 8x1]"},
		{false, false, 1, "[linear_1 linear_8 linear_16]"},
		{false, false, 64, "[linear_8 linear_16 linear_32]"},
		{false, true, 2, "[gated_8 gated_16]"},
	} {
		var texts []string
		all := Candidates(test.hopper, Case{Product{Gated: test.gated}, test.input})
		for _, c := range all {
			texts = append(texts, c.String())
			if err := c.check(tensor.Q4_K, test.gated, test.input); err != nil {
				t.Errorf("%v cannot be in a table: %v", c, err)
			}
		}
		if got := "[" + strings.Join(texts, " ") + "]"; got != test.want {
			t.Errorf("%+v: %s", test, got)
		}
	}
	for _, hopper := range []bool{false, true} {
		for input := 1; input <= 1<<14; input *= 2 {
			if len(Candidates(hopper, Case{Input: input})) == 0 {
				t.Errorf("no candidate for %d rows", input)
			}
		}
	}
}
