package modelfile_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/realizar/realizar/modelfile"
)

// proportion runs read and checks that it allocates at most four bytes for each of n bytes, plus a
// fixed amount.
func proportion(t *testing.T, n int, read func()) {
	t.Helper()
	const fixed = 33 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	read()
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > fixed+4*uint64(n) {
		t.Errorf("%d bytes of text made %d, %.1f times as many", n, used, float64(used)/float64(n))
	}
}

// numbered returns n formatted numbers, joined.
func numbered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// dense returns JSON values of a few megabytes in which a few bytes of text expand to a much larger
// value.
func dense() map[string]string {
	const size = 4 << 20
	array := func(element string) string {
		return "[" + strings.Repeat(element+",", size/(len(element)+1)) + element + "]"
	}
	nested := func(name string, depth int, inner string) string {
		return strings.Repeat(`{"`+name+`":`, depth) + inner + strings.Repeat("}", depth)
	}
	return map[string]string{
		"empty objects":       array("{}"),
		"empty arrays":        array("[]"),
		"arrays of one":       array("[1]"),
		"arrays of arrays":    array("[[],[],[]]"),
		"arrays of strings":   array(`["a"]`),
		"objects of one":      array(`{"a":{}}`),
		"objects of nine":     array("{" + numbered(9, `"%d":0`) + "}"),
		"escapes":             array(`"\n"`),
		"digits":              array("1"),
		"numbers":             array("4096"),
		"fractions":           array("0.5"),
		"truths":              array("true"),
		"nothings":            array("null"),
		"empty strings":       array(`""`),
		"letters":             array(`"a"`),
		"mixed":               array(`1,"a"`),
		"late to be mixed":    strings.TrimSuffix(array("1"), "1]") + "null]",
		"members":             "{" + numbered(size/10, `"%d":0`) + "}",
		"members of one name": "{" + strings.Repeat(`"a":0,`, size/6) + `"a":1}`,
		"empty members":       "{" + numbered(size/10, `"%d":{}`) + "}",
		"objects in members":  "{" + numbered(size/14, `"%d":{"a":0}`) + "}",
		"long names, deep":    nested(strings.Repeat("x", 10_000), 50, "{"+numbered(100_000, `"%d":0`)+"}"),
		"deep":                array(nested("a", 50, "0")),
		"deep arrays":         array(strings.Repeat("[", 50) + strings.Repeat("]", 50)),
		"one long string":     `"` + strings.Repeat("x", size) + `"`,
		"one escaped string":  `"` + strings.Repeat(`\n`, size/2) + `"`,
		"one escaped name":    `{"` + strings.Repeat(`\n`, size/2) + `":{"a":0,"b":1}}`,
		"one long number":     strings.Repeat("7", 300) + "." + strings.Repeat("7", size),
	}
}

func TestJSONInProportion(t *testing.T) {
	for name, value := range dense() {
		t.Run(name, func(t *testing.T) {
			for _, text := range []string{`{"a":` + value + `}`, `{"a":[` + value + `]}`} {
				data := []byte(text)
				proportion(t, len(data), func() {
					_, err := modelfile.ParseJSON("config.json", data)
					var formatError *modelfile.FormatError
					if err != nil && (!errors.As(err, &formatError) || formatError.File != "config.json" || formatError.Offset < 0) {
						t.Errorf("error %#v does not name the place", err)
					}
				})
			}
		})
	}
}

// Unused parts of a header or an index are skipped, whatever they are.
func TestUnwantedJSONTakesNothing(t *testing.T) {
	for name, value := range dense() {
		t.Run(name, func(t *testing.T) {
			header := `{"__metadata__":{"a":` + value + `},"w":{"x":` + value + `,"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`
			index := `{"metadata":` + value + `,"weight_map":{"w":"a.safetensors"}}`
			dir := folder(t, map[string]string{
				"a.safetensors":                string(rawSafetensors(header, 0)),
				"model.safetensors.index.json": index,
			})
			proportion(t, len(index), func() {
				f, err := modelfile.Open(dir)
				if err != nil {
					t.Fatal(err)
				}
				if len(f.Tensors()) != 1 {
					t.Errorf("%d tensors", len(f.Tensors()))
				}
				if err := f.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A header and an index full of the shortest tensors stay in proportion too.
func TestManyTensors(t *testing.T) {
	const n = 80_000
	header := "{" + numbered(n, `"%d":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`) + "}"
	index := `{"weight_map":{` + numbered(n, `"%d":"a"`) + "}}"
	dir := folder(t, map[string]string{"a": string(rawSafetensors(header, 0)), "model.safetensors.index.json": index})
	proportion(t, len(header)+len(index), func() {
		f, err := modelfile.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Tensors()) != n {
			t.Errorf("%d tensors, want %d", len(f.Tensors()), n)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	short := `{"weight_map":{` + numbered(1_000_000, `"%d":""`) + "}}"
	dir = folder(t, map[string]string{"model.safetensors.index.json": strings.ReplaceAll(short, `""`, `"a"`)})
	proportion(t, len(short)+len(short)/4, func() { // the file is also read into memory
		_, err := modelfile.Open(dir)
		wantError(t, err, modelfile.ErrFormat, "model.safetensors.index.json", "out of proportion")
	})
	deep := rawSafetensors(`{"w":{"dtype":"U8","shape":[`+strings.Repeat("0,", 1<<20)+`0],"data_offsets":[0,0]}}`, 0)
	proportion(t, len(deep), func() {
		_, err := modelfile.Open(write(t, "deep.safetensors", deep))
		wantError(t, err, modelfile.ErrUnsupported, "deep.safetensors", `"w"`, "64 dimensions")
	})
}

// The files with the most members on hubs are tokenizer_config.json files with thousands of added
// tokens.
func TestLargeConfigs(t *testing.T) {
	const n = 20_000
	text := `{"added_tokens_decoder":{` + numbered(n, `"%d": {
      "content": "<unused>",
      "lstrip": false,
      "normalized": false,
      "rstrip": false,
      "single_word": false,
      "special": true
    }`) + `},"id2label":{` + numbered(n, `"%[1]d": "LABEL_%[1]d"`) + `},"ids":[` + numbered(200_000, "%d") + `]}`
	m, err := modelfile.ParseJSON("tokenizer_config.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if got := len(m.Keys()); got != 7*n+1 {
		t.Errorf("%d keys, want %d", got, 7*n+1)
	}
	if got, _ := m.String(fmt.Sprintf("id2label.%d", n-1)); got != fmt.Sprintf("LABEL_%d", n-1) {
		t.Errorf("the last label is %q", got)
	}
}

func TestConfigTooLarge(t *testing.T) {
	dir := folder(t, map[string]string{"model.safetensors": shard(t, nil), "config.json": "{}"})
	path := filepath.Join(dir, "config.json")
	if err := os.Truncate(path, 17<<20); err != nil {
		t.Skipf("this system makes no sparse files: %v", err)
	}
	_, err := modelfile.Open(dir)
	wantError(t, err, modelfile.ErrFormat, path, "17825792 bytes")
}

// Large objects treat duplicates like small ones.
func TestParseJSONManyDuplicates(t *testing.T) {
	text := `{"first":0,` + numbered(20, `"k%d":1`) + `,"first":2,` + numbered(20, `"k%d":{"x":3}`) + `,"first":{"y":4}}`
	m, err := modelfile.ParseJSON("config.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Keys()) != 21 || m.Keys()[0] != "first.y" || m.Keys()[20] != "k19.x" {
		t.Errorf("keys %q", m.Keys())
	}
	if v, ok := m.Int("first.y"); !ok || v != 4 {
		t.Errorf("first.y = %d, %t", v, ok)
	}
}
