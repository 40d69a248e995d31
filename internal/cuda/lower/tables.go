package lower

import (
	"bytes"
	"cmp"
	embedded "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/realizar/realizar/tensor"
)

//go:embed tables
var builtIn embedded.FS

// maxTable is the maximum size of a table's file in bytes, and maxInput that of a case's number of
// input rows.
const (
	maxTable = 4 << 20
	maxInput = 1 << 20
)

// A TableFile is the file of a [Table].
type TableFile struct {
	Device   string         `json:"device"`  // name of the GPU
	Kernels  string         `json:"kernels"` // digest of the kernels that were measured
	Date     string         `json:"date"`    // of the last measurement, as 2006-01-02
	Products []ProductTimes `json:"products"`
}

// ProductTimes are the choices for a product, by ascending number of input rows.
type ProductTimes struct {
	Format  string       `json:"format"`
	Gated   bool         `json:"gated,omitempty"`
	Rows    int          `json:"rows"`
	Cols    int          `json:"cols"`
	Choices []ChoiceTime `json:"choices"`
}

// A ChoiceTime is a choice with its time.
type ChoiceTime struct {
	Input int `json:"input"` // rows
	Choice
	Time      float64 `json:"us"`           // of a launch, in microseconds
	Estimated float64 `json:"estimated_us"` // time of the choice without a table
}

// NewProductTimes returns choices for a product.
func NewProductTimes(p Product, choices []ChoiceTime) ProductTimes {
	return ProductTimes{Format: p.Format.String(), Gated: p.Gated, Rows: p.Rows, Cols: p.Cols, Choices: choices}
}

// String says how many of the choices are faster than estimated ones, and by how much the fastest.
func (t *ProductTimes) String() string {
	faster, most := 0, 1.0
	for _, c := range t.Choices {
		if c.Time < c.Estimated {
			faster++
		}
		if c.Time > 0 {
			most = max(most, c.Estimated/c.Time)
		}
	}
	text := fmt.Sprintf("%v: %d of %d choices are faster than estimated ones", t.product(), faster, len(t.Choices))
	if faster > 0 {
		text += fmt.Sprintf(", by up to %.0f%%", 100*(most-1))
	}
	return text
}

// product returns the product; its format is zero if it is unknown.
func (t *ProductTimes) product() Product {
	d, _ := tensor.ParseDType(t.Format)
	return Product{Format: d, Gated: t.Gated, Rows: t.Rows, Cols: t.Cols}
}

// ParseTable reads the file of a table. The error names the file and the field that is wrong.
func ParseTable(name string, data []byte) (*TableFile, error) {
	f := &TableFile{}
	in := json.NewDecoder(bytes.NewReader(data))
	in.DisallowUnknownFields()
	err := in.Decode(f)
	if err == nil {
		if _, more := in.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("text after the object")
		}
	}
	if err == nil {
		err = f.check()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w; remove the file, or let realizar doctor --tune write it again", name, err)
	}
	return f, nil
}

// check returns an error for the first field that is wrong.
func (f *TableFile) check() error {
	if f.Device == "" {
		return errors.New("device is empty")
	}
	if f.Kernels == "" {
		return errors.New("kernels is empty")
	}
	if _, err := time.Parse(time.DateOnly, f.Date); err != nil {
		return fmt.Errorf("date is %q; want one such as 2006-01-02", f.Date)
	}
	seen := map[Product]bool{}
	for i := range f.Products {
		t := &f.Products[i]
		if err := t.check(); err != nil {
			return fmt.Errorf("products[%d].%w", i, err)
		}
		if seen[t.product()] {
			return fmt.Errorf("products[%d] is %v, which appears before", i, t.product())
		}
		seen[t.product()] = true
	}
	return nil
}

func (t *ProductTimes) check() error {
	format, err := tensor.ParseDType(t.Format)
	if err != nil || !format.Weight() {
		return fmt.Errorf("format is %q, which is no format of weights", t.Format)
	}
	if t.Rows < 1 || t.Rows > math.MaxInt32 {
		return fmt.Errorf("rows is %d; want 1 to %d", t.Rows, math.MaxInt32)
	}
	if t.Cols < 1 || t.Cols > math.MaxInt32 {
		return fmt.Errorf("cols is %d; want 1 to %d", t.Cols, math.MaxInt32)
	}
	last := 0
	for i := range t.Choices {
		c := &t.Choices[i]
		at := fmt.Sprintf("choices[%d].", i)
		if c.Input != Power(c.Input) || c.Input <= last || c.Input > maxInput {
			return fmt.Errorf("%sinput is %d; want a power of two that is more than %d, and at most %d", at, c.Input, last, maxInput)
		}
		last = c.Input
		if err := c.check(format, t.Gated, c.Input); err != nil {
			return fmt.Errorf("%s%w", at, err)
		}
		if c.Time < 0 || c.Estimated < 0 {
			return fmt.Errorf("%sus is %v and estimated_us %v; want 0 or more", at, c.Time, c.Estimated)
		}
	}
	return nil
}

// check returns an error unless c is possible for a product of that many input rows.
func (c *Choice) check(format tensor.DType, gated bool, input int) error {
	var names []string
	for _, v := range slices.Concat(variantsOf(true, gated), variantsOf(false, gated)) {
		if v.kind == ofRow && input > 1 {
			continue
		}
		if v.name != c.Kernel {
			names = append(names, v.name)
			continue
		}
		if sizes := v.clusters(format); !slices.Contains(sizes, c.Cluster) {
			return fmt.Errorf("cluster is %v; the kernel %s has %v", c.Cluster, v.name, sizes)
		}
		return nil
	}
	slices.Sort(names)
	return fmt.Errorf("kernel is %q; for %d input rows there are %s", c.Kernel, input, strings.Join(slices.Compact(names), ", "))
}

// Table returns the choices of f, none if f is nil.
func (f *TableFile) Table() Table {
	if f == nil {
		return nil
	}
	all := Table{}
	for i := range f.Products {
		p := f.Products[i].product()
		for _, c := range f.Products[i].Choices {
			all[Case{p, c.Input}] = c.Choice
		}
	}
	return all
}

// Add adds choices. Those of a product replace all that f has for it.
func (f *TableFile) Add(all []ProductTimes) {
	for _, t := range all {
		of := t.product()
		f.Products = slices.DeleteFunc(f.Products, func(o ProductTimes) bool { return o.product() == of })
		f.Products = append(f.Products, t)
	}
	slices.SortFunc(f.Products, func(a, b ProductTimes) int {
		return cmp.Or(cmp.Compare(a.Format, b.Format), cmp.Compare(a.Cols, b.Cols), cmp.Compare(a.Rows, b.Rows), cmp.Compare(fmt.Sprint(a.Gated), fmt.Sprint(b.Gated)))
	})
}

// Text returns the content of the file, with a line for each choice.
func (f *TableFile) Text() ([]byte, error) {
	var b bytes.Buffer
	out := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			panic(err) // times are finite
		}
		return string(text)
	}
	fmt.Fprintf(&b, "{\n  \"device\": %s,\n  \"kernels\": %s,\n  \"date\": %s,\n  \"products\": [", out(f.Device), out(f.Kernels), out(f.Date))
	for i, t := range f.Products {
		head := t
		head.Choices = []ChoiceTime{}
		start, _ := strings.CutSuffix(out(head), "]}")
		fmt.Fprintf(&b, "%s\n    %s", separator(i), start)
		for k, c := range t.Choices {
			fmt.Fprintf(&b, "%s\n      %s", separator(k), out(c))
		}
		b.WriteString("\n    ]}")
	}
	b.WriteString("\n  ]\n}\n")
	_, err := ParseTable("the table", b.Bytes())
	return b.Bytes(), err
}

func separator(i int) string {
	if i == 0 {
		return ""
	}
	return ","
}

// TableName returns the name of a device's file: its letters and digits in lower case, with dashes
// in place of what is between them.
func TableName(device string) string {
	words := strings.FieldsFunc(strings.ToLower(device), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	return cmp.Or(strings.Join(words, "-"), "gpu") + ".json"
}

// FindTable returns the table for a device whose kernels have the given digest: that of the folder,
// which may be empty, or else the built-in one, or nil if there is none. A table of other kernels is
// ignored. The error says what is wrong with the folder's table.
func FindTable(folder, device string, kernels func() (string, error)) (*TableFile, error) {
	var failed error
	if folder != "" {
		f, err := ReadTable(filepath.Join(folder, TableName(device)), device, kernels)
		if f != nil {
			return f, nil
		}
		failed = err
	}
	f, err := findBuiltIn(builtIn, device, kernels)
	return f, errors.Join(failed, err)
}

// ReadTable returns the table in a file, or nil if there is no file or the table is of other
// kernels.
func ReadTable(path, device string, kernels func() (string, error)) (*TableFile, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return readTable(f, path, device, kernels)
}

// findBuiltIn returns the table of a device in the folder of tables of files.
func findBuiltIn(files fs.FS, device string, kernels func() (string, error)) (*TableFile, error) {
	name := "tables/" + TableName(device)
	f, err := files.Open(name)
	if err != nil {
		return nil, nil //nolint:nilerr // there is no table for the device
	}
	defer func() { _ = f.Close() }()
	return readTable(f, name, device, kernels)
}

func readTable(in io.Reader, path, device string, kernels func() (string, error)) (*TableFile, error) {
	data, err := io.ReadAll(io.LimitReader(in, maxTable+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxTable {
		return nil, fmt.Errorf("%s: more than %d bytes; remove the file", path, maxTable)
	}
	table, err := ParseTable(path, data)
	if err != nil {
		return nil, err
	}
	if table.Device != device {
		return nil, fmt.Errorf("%s: device is %q; the device is %q", path, table.Device, device)
	}
	digest, err := kernels()
	if err != nil {
		return nil, err
	}
	if table.Kernels != digest {
		slog.Debug("a table of other kernels is ignored; realizar doctor --tune measures anew", slog.String("file", path), slog.String("kernels", table.Kernels), slog.String("want", digest))
		return nil, nil
	}
	return table, nil
}
