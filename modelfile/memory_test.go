package modelfile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/realizar/realizar/modelfile"
)

// headerMemory is how many bytes opening a model may allocate: the limit for headers, and some more
// for everything else.
const headerMemory = 90<<20 + 4<<20

// openWithin opens path and checks that at most most bytes are allocated.
func openWithin(t *testing.T, most uint64, path string) (*modelfile.File, error) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f, err := modelfile.Open(path)
	runtime.ReadMemStats(&after)
	used := after.TotalAlloc - before.TotalAlloc
	t.Logf("%.1f MB allocated", float64(used)/1e6)
	if used > most {
		t.Errorf("%d bytes were allocated, more than %d", used, most)
	}
	return f, err
}

// sparse writes a file that begins with data and continues with zeros.
func sparse(t *testing.T, name string, data []byte, size int64) string {
	t.Helper()
	path := write(t, name, data)
	if err := os.Truncate(path, size); err != nil {
		t.Skipf("this system makes no sparse files: %v", err)
	}
	return path
}

// GGUF headers in which a few bytes expand to many, or which are large and complete.
func TestGGUFHeaderMemory(t *testing.T) {
	const size = 256 << 20
	value := func(typ uint32) *rawGGUF { return newRawGGUF(0, 1).string("k").u32(typ) }
	array := func(element uint32, n uint64) *rawGGUF { return value(9).u32(element).u64(n) }
	row := func(n int, element string) []byte { return []byte(strings.Repeat(element, n)) }
	pairs := newRawGGUF(0, 600_000)
	for i := range 600_000 {
		pairs.string(fmt.Sprint(i)).u32(7).bytes(1)
	}
	tensors := newRawGGUF(250_000, 0)
	for i := range 250_000 {
		tensors.tensor(fmt.Sprint(i), 24, uint64(i)*32, 1)
	}
	deep := row(2_000_000, "\x09\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00"+strings.Repeat("\x00", 12))
	for name, header := range map[string]*rawGGUF{
		"empty strings":       array(8, size/8-8),
		"strings of a page":   array(8, 60_000).bytes(row(60_000, "\xf8\x0f"+strings.Repeat("\x00", 4094))...),
		"empty arrays":        array(9, size/12-8),
		"arrays of an array":  array(9, 2_000_000).bytes(deep...),
		"bytes":               array(0, size-100),
		"numbers":             array(12, size/8-8),
		"truths":              array(7, size-100),
		"one string":          value(8).u64(size - 100),
		"one key":             newRawGGUF(0, 1).u64(size - 100),
		"one name":            newRawGGUF(1, 0).u64(size - 100),
		"pairs":               pairs,
		"tensors":             tensors,
		"a claim of pairs":    newRawGGUF(0, size/13-8),
		"a claim of tensors":  newRawGGUF(size/24-8, 0),
		"a claim of elements": array(9, 200_000).u32(9).u64(size/12 - 300_000),
	} {
		t.Run(name, func(t *testing.T) {
			path := sparse(t, "model.gguf", header.b, size)
			_, err := openWithin(t, headerMemory, path)
			want := "out of proportion"
			switch {
			case strings.HasPrefix(name, "a claim of pairs"), strings.HasPrefix(name, "a claim of tensors"):
				want = "twice" // all names are empty, so the second is a duplicate
			}
			wantError(t, err, modelfile.ErrFormat, path, "at byte", want)
		})
	}
}

// The largest vocabularies are far below the limit.
func TestLargestVocabulary(t *testing.T) {
	tokens := make([]string, 262_144)
	for i := range tokens {
		tokens[i] = fmt.Sprintf("a token %d", i)
	}
	merges := make([]string, 1_000_000)
	for i := range merges {
		merges[i] = fmt.Sprintf("left %d", i)
	}
	data := ggufBytes(t, []modelfile.KeyValue{
		{Key: "tokenizer.ggml.tokens", Value: tokens},
		{Key: "tokenizer.ggml.merges", Value: merges},
		{Key: "tokenizer.ggml.scores", Value: make([]float32, len(tokens))},
		{Key: "tokenizer.ggml.token_type", Value: make([]int32, len(tokens))},
	}, nil)
	f, err := openWithin(t, headerMemory/2, write(t, "model.gguf", data))
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := f.Meta().Strings("tokenizer.ggml.merges"); len(got) != len(merges) || got[len(got)-1] != merges[len(merges)-1] {
		t.Errorf("%d merges, want %d", len(got), len(merges))
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// The limit applies to the model, not to each of its files.
func TestShardsShareMemory(t *testing.T) {
	files := map[string]string{}
	var index []string
	for i := range 4 {
		name := fmt.Sprintf("s%d.safetensors", i)
		files[name] = string(rawSafetensors("{"+numbered(100_000, `"`+fmt.Sprint(i)+`.%d":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`)+"}", 0))
		index = append(index, fmt.Sprintf(`"%d.0":%q`, i, name))
	}
	files["model.safetensors.index.json"] = `{"weight_map":{` + strings.Join(index, ",") + `}}`
	dir := folder(t, files)
	_, err := openWithin(t, headerMemory, dir)
	wantError(t, err, modelfile.ErrFormat, dir, "s2.safetensors", "out of proportion")
}

// Safetensors headers in which a few bytes expand to many.
func TestSafetensorsHeaderMemory(t *testing.T) {
	const few, many = 4 << 20, 40 << 20
	fill := func(size int, before, element, after string) string {
		return before + strings.Repeat(element, (size-len(before)-len(after))/len(element)) + after
	}
	short := `"%d":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`
	for _, test := range []struct{ name, header, want string }{
		{"tensors", "{" + numbered(450_000, short) + "}", "out of proportion"},
		{"what looks like tensors", fill(many, `{"__metadata__":{"a":[`, `"data_offsets",`, `""]},"w":[]}`), "out of proportion"},
		{"escaped name", fill(few, `{"`, `\n`, `":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`), "not printable"},
		{"long name", fill(few, `{"`, `n`, `":{"dtype":"U7","shape":[0],"data_offsets":[0,0]}}`), "U7"},
		{"escaped dtype", fill(few, `{"w":{"dtype":"`, `\n`, `","shape":[0],"data_offsets":[0,0]}}`), "dtype"},
		{"long dtype", fill(few, `{"w":{"dtype":"`, `U`, `","shape":[0],"data_offsets":[0,0]}}`), "dtype"},
		{"long number", fill(many, `{"w":{"dtype":"U8","shape":[`, `1`, `],"data_offsets":[0,0]}}`), "out of proportion"},
		{"long fraction", fill(many, `{"w":{"dtype":"U8","shape":[0.`, `1`, `],"data_offsets":[0,0]}}`), "out of proportion"},
		{"many members", fill(few, `{"w":{`, `"x":[{}],`, `"dtype":"U7","shape":[0],"data_offsets":[0,0]}}`), "U7"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := write(t, "model.safetensors", rawSafetensors(test.header, 0))
			_, err := openWithin(t, headerMemory, path)
			if err == nil {
				t.Fatal("no error")
			}
			wantError(t, err, err, path, "at byte", test.want)
		})
	}
}

// The index of shards is subject to the same limit.
func TestIndexMemory(t *testing.T) {
	const name = "model.safetensors.index.json"
	dir := folder(t, map[string]string{name: `{"weight_map":{` + numbered(2_000_000, `"%d":"aa"`) + "}}"})
	_, err := openWithin(t, headerMemory, dir)
	wantError(t, err, modelfile.ErrFormat, dir, name, "at byte", "out of proportion")

	dir = filepath.Dir(sparse(t, name, []byte(`{"weight_map":{`), 32<<20+1))
	_, err = openWithin(t, maxHostileAlloc, dir)
	wantError(t, err, modelfile.ErrFormat, dir, name, "33554433 bytes")
}
