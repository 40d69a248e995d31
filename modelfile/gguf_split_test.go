package modelfile_test

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// splitKeys returns the metadata of part no, counted from 0, of a split model.
func splitKeys(no, count uint16, tensors int32) []modelfile.KeyValue {
	return []modelfile.KeyValue{
		{Key: "split.no", Value: no},
		{Key: "split.count", Value: count},
		{Key: "split.tensors.count", Value: tensors},
	}
}

// splitModel returns a model of four tensors in three files, as gguf-split writes it, with two
// tensors in the last file.
func splitModel(t testing.TB) map[string]string {
	t.Helper()
	all := smallTensors()
	first := append([]modelfile.KeyValue{{Key: "general.alignment", Value: uint32(64)}, {Key: "general.name", Value: "whole"}}, splitKeys(0, 3, 4)...)
	second := append(splitKeys(1, 3, 4), modelfile.KeyValue{Key: "general.name", Value: "part"})
	return map[string]string{
		"m-00001-of-00003.gguf": string(ggufBytes(t, first, all[:1])),
		"m-00002-of-00003.gguf": string(ggufBytes(t, second, all[1:2])),
		"m-00003-of-00003.gguf": string(ggufBytes(t, splitKeys(2, 3, 4), all[2:])),
	}
}

// checkSplit checks that f is all of splitModel.
func checkSplit(t *testing.T, f *modelfile.File, files map[string]string) {
	t.Helper()
	sameTensors(t, f.Tensors(), smallTensors())
	if name, _ := f.Meta().String("general.name"); name != "whole" {
		t.Errorf("general.name is %q, want that of the first file", name)
	}
	var size int64
	for _, content := range files {
		size += int64(len(content))
	}
	if f.Size() != size || f.Format() != modelfile.GGUF {
		t.Errorf("%v of %d bytes, want GGUF of %d", f.Format(), f.Size(), size)
	}
	for _, want := range smallTensors() {
		if got, ok := f.Tensor(want.Name); !ok || got.Name != want.Name {
			t.Errorf("Tensor(%q) = %v, %v", want.Name, got, ok)
		}
	}
}

// Each of the files, and the folder, opens as the whole model.
func TestSplit(t *testing.T) {
	files := splitModel(t)
	dir := folder(t, files)
	for _, name := range []string{"m-00001-of-00003.gguf", "m-00002-of-00003.gguf", "m-00003-of-00003.gguf", ""} {
		path := filepath.Join(dir, name)
		f := open(t, path)
		if f.Path() != path {
			t.Errorf("path %s, want %s", f.Path(), path)
		}
		checkSplit(t, f, files)
	}
}

// Relative paths within the folder find the other files too.
func TestSplitInWorkingFolder(t *testing.T) {
	files := splitModel(t)
	t.Chdir(folder(t, files))
	checkSplit(t, open(t, "m-00002-of-00003.gguf"), files)
	checkSplit(t, open(t, "."), files)
}

// The names of links count, not those of the blobs they point to.
func TestSplitOfLinks(t *testing.T) {
	files := splitModel(t)
	root := t.TempDir()
	snapshot := filepath.Join(root, "snapshot")
	if err := os.Mkdir(snapshot, 0o700); err != nil {
		t.Fatal(err)
	}
	for i, name := range slices.Sorted(maps.Keys(files)) {
		blob := writeTo(t, root, "blobs/"+string(rune('a'+i)), []byte(files[name]))
		if err := os.Symlink(blob, filepath.Join(snapshot, name)); err != nil {
			t.Skipf("this system makes no links: %v", err)
		}
	}
	checkSplit(t, open(t, filepath.Join(snapshot, "m-00003-of-00003.gguf")), files)
	checkSplit(t, open(t, snapshot), files)
	_, err := modelfile.Open(filepath.Join(root, "blobs", "a"))
	wantError(t, err, modelfile.ErrFormat, filepath.Join(root, "blobs", "a"), "split.count", "3 files", "PREFIX-00001-of-00003.gguf")
}

// A model that is not split has a count of 0 or 1, whatever its name.
func TestSplitOfOne(t *testing.T) {
	for _, count := range []uint16{0, 1} {
		data := ggufBytes(t, splitKeys(0, count, 4), smallTensors())
		for _, name := range []string{"model.gguf", "m-00001-of-00001.gguf", "m-00002-of-00003.gguf"} {
			path := write(t, name, data)
			sameTensors(t, open(t, path).Tensors(), smallTensors())
			sameTensors(t, open(t, filepath.Dir(path)).Tensors(), smallTensors())
		}
	}
}

// Files that are parts only by their names are separate models.
func TestSplitByNameAlone(t *testing.T) {
	one := string(ggufBytes(t, nil, smallTensors()[:1]))
	dir := folder(t, map[string]string{"m-00001-of-00002.gguf": one, "m-00002-of-00002.gguf": one})
	_, err := modelfile.Open(dir)
	wantError(t, err, modelfile.ErrNotModel, dir, "m-00001-of-00002.gguf, m-00002-of-00002.gguf")
}

func TestSplitThatLies(t *testing.T) {
	all := smallTensors()
	part := func(no, count uint16, tensors int32, of []*tensor.Tensor) string {
		return string(ggufBytes(t, splitKeys(no, count, tensors), of))
	}
	keys := func(pairs ...modelfile.KeyValue) string { return string(ggufBytes(t, pairs, all[1:2])) }
	const m1, m2, m3 = "m-00001-of-00003.gguf", "m-00002-of-00003.gguf", "m-00003-of-00003.gguf"
	const missing = ""
	for _, test := range []struct {
		name   string
		change map[string]string
		opened string // the file to open, if it is not each of the three
		kind   error
		want   []string
	}{
		{"a part is missing", map[string]string{m2: missing}, "", fs.ErrNotExist, []string{m2, "download part 2 of 3, " + m2 + ", into the same folder"}},
		{"the first is missing", map[string]string{m1: missing}, "", fs.ErrNotExist, []string{m1, "download part 1 of 3, " + m1}},
		{"a part is empty", map[string]string{m2: "\x00"}, m1, modelfile.ErrNotModel, []string{m2, "part 2 of 3"}},
		{"a part is a pointer", map[string]string{m2: "version https://git-lfs.github.com/spec/v1\n"}, m1, modelfile.ErrNotModel, []string{m2, "git lfs pull"}},
		{"a part is safetensors", map[string]string{m2: shard(t, nil)}, m1, modelfile.ErrFormat, []string{m2, "a safetensors file among the GGUF files", "part 2 of 3"}},
		{"a part is cut short", map[string]string{m3: part(2, 3, 4, all[2:])[:220]}, m1, modelfile.ErrFormat, []string{m3, "part 3 of 3"}},
		{"a part of a format that is not read", map[string]string{m2: string(newRawGGUF(1, 0).tensor("w", 15, 0, 256).data(320))}, m1,
			modelfile.ErrUnsupported, []string{m2, `"w"`, "Q8_K", "(part 2 of 3, " + m2 + ")"}},
		{"a part is another one", map[string]string{m2: part(2, 3, 4, all[1:2])}, "", modelfile.ErrFormat, []string{m2, "split.no", "part 3", "part 2"}},
		{"a part of more files", map[string]string{m2: part(1, 4, 4, all[1:2])}, "", modelfile.ErrFormat, []string{m2, "split.count", "4 files", "says 3"}},
		{"a part of one file", map[string]string{m2: part(1, 1, 4, all[1:2])}, m1, modelfile.ErrFormat, []string{m2, "split.count", "1 files", "says 3"}},
		{"a part is not split", map[string]string{m2: keys()}, m1, modelfile.ErrFormat, []string{m2, "split.count", "missing"}},
		{"a tensor in two parts", map[string]string{m3: part(2, 3, 4, all[1:3])}, "", modelfile.ErrFormat, []string{m3, `"blk.0.attn_q.weight"`, "another file"}},
		{"too few tensors", map[string]string{m3: part(2, 3, 4, all[2:3])}, "", modelfile.ErrFormat, []string{m1, "split.tensors.count", "4 tensors", "3 files have 3"}},
		{"too many tensors", map[string]string{m1: part(0, 3, 3, all[:1])}, "", modelfile.ErrFormat, []string{m1, "split.tensors.count", "3 tensors", "3 files have 4"}},
		{"no count of tensors", map[string]string{m1: string(ggufBytes(t, splitKeys(0, 3, 0)[:2], all[:1]))}, "", modelfile.ErrFormat, []string{m1, "split.tensors.count", "missing"}},
		{"count of tensors below zero", map[string]string{m1: part(0, 3, -1, all[:1])}, "", modelfile.ErrFormat, []string{m1, "split.tensors.count", "-1, want"}},
		{"no number", map[string]string{m2: keys(splitKeys(1, 3, 4)[1:]...)}, "", modelfile.ErrFormat, []string{m2, "split.no", "missing"}},
		{"number of text", map[string]string{m2: keys(modelfile.KeyValue{Key: "split.no", Value: "1"}, splitKeys(1, 3, 4)[1])}, "", modelfile.ErrFormat, []string{m2, "split.no", "of type string"}},
		{"number at the end of integers", map[string]string{m2: keys(modelfile.KeyValue{Key: "split.no", Value: int64(1<<63 - 1)}, splitKeys(1, 3, 4)[1])}, "", modelfile.ErrFormat, []string{m2, "split.no", "9223372036854775807"}},
		{"count of text", map[string]string{m2: keys(modelfile.KeyValue{Key: "split.count", Value: "3"})}, "", modelfile.ErrFormat, []string{m2, "split.count", "of type string"}},
		{"count below zero", map[string]string{m2: keys(modelfile.KeyValue{Key: "split.count", Value: int32(-3)})}, "", modelfile.ErrFormat, []string{m2, "split.count", "-3, want"}},
		{"no name of a part", map[string]string{"model.gguf": part(0, 3, 4, all[:1])}, "model.gguf", modelfile.ErrFormat, []string{"model.gguf", "split.count", "PREFIX-00001-of-00003.gguf"}},
		{"part 4 of 3", map[string]string{"m-00004-of-00003.gguf": part(3, 3, 4, nil)}, "m-00004-of-00003.gguf", modelfile.ErrFormat, []string{"m-00004-of-00003.gguf", "split.count", "PREFIX-00001-of-00003.gguf"}},
		{"part 0 of 3", map[string]string{"m-00000-of-00003.gguf": part(0, 3, 4, nil)}, "m-00000-of-00003.gguf", modelfile.ErrFormat, []string{"m-00000-of-00003.gguf", "split.count"}},
		{"short numbers", map[string]string{"m-0001-of-0003.gguf": part(0, 3, 4, nil)}, "m-0001-of-0003.gguf", modelfile.ErrFormat, []string{"m-0001-of-0003.gguf", "split.count"}},
		{"a name of 65535", map[string]string{"m-00001-of-65535.gguf": part(0, 65535, 4, nil)}, "m-00001-of-65535.gguf", fs.ErrNotExist, []string{"part 2 of 65535"}},
		{"a name of 99999", map[string]string{"m-00001-of-99999.gguf": part(0, 3, 4, nil)}, "m-00001-of-99999.gguf", modelfile.ErrFormat, []string{"split.count", "3 files", "99999"}},
		{"one GGUF more in the folder", map[string]string{"other.gguf": part(0, 1, 0, nil)}, ".", modelfile.ErrNotModel, []string{"4 files", "other.gguf", m1}},
		{"two models in the folder", map[string]string{"n-00001-of-00001.gguf": part(0, 1, 0, nil)}, ".", modelfile.ErrNotModel, []string{"4 files", "n-00001-of-00001.gguf", m1}},
		{"part 4 of 3 in the folder", map[string]string{"m-00004-of-00003.gguf": part(3, 3, 4, nil)}, ".", modelfile.ErrNotModel, []string{"4 files", "m-00004-of-00003.gguf"}},
		{"parts of two models", map[string]string{m2: missing, m3: missing, "n-00002-of-00003.gguf": part(1, 3, 4, nil)}, ".",
			modelfile.ErrNotModel, []string{"2 files", m1 + ", n-00002-of-00003.gguf"}},
		{"parts of two counts", map[string]string{m2: missing, m3: missing, "m-00002-of-00004.gguf": part(1, 4, 4, nil)}, ".",
			modelfile.ErrNotModel, []string{"2 files", m1 + ", m-00002-of-00004.gguf"}},
		{"part 4 and not all of 3", map[string]string{m2: missing, m3: missing, "m-00004-of-00003.gguf": part(3, 3, 4, nil)}, ".",
			modelfile.ErrNotModel, []string{"2 files", m1 + ", m-00004-of-00003.gguf"}},
		{"a part is missing in the folder", map[string]string{m1: missing, m3: missing}, ".", fs.ErrNotExist, []string{"download part 1 of 3, " + m1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			files := splitModel(t)
			maps.Copy(files, test.change)
			maps.DeleteFunc(files, func(_, content string) bool { return content == missing })
			dir := folder(t, files)
			opened := []string{test.opened}
			if test.opened == "" {
				opened = slices.Sorted(maps.Keys(files))
			}
			for _, name := range opened {
				path := filepath.Join(dir, name)
				f, n, err := openMeasured(path)
				wantError(t, err, test.kind, append(test.want, dir)...)
				if f != nil {
					t.Errorf("%s: a file is returned beside the error", name)
				}
				if n > maxHostileAlloc {
					t.Errorf("%s: %d bytes allocated", name, n)
				}
				var formatError *modelfile.FormatError
				if errors.Is(test.kind, modelfile.ErrFormat) && !errors.As(err, &formatError) {
					t.Errorf("%s: error %#v is no FormatError", name, err)
				}
			}
		})
	}
}

// Every number in the keys of a split, in every file, takes wrong values of every GGUF type.
func TestSplitNumbersThatLie(t *testing.T) {
	values := []any{
		uint8(0), uint8(1), uint16(2), int32(-1), uint32(1 << 31), int64(1<<63 - 1), int64(-1 << 63), uint64(1<<64 - 1), float32(0.5), true, "1", []uint16{1},
	}
	all := smallTensors()
	tensors := [][]*tensor.Tensor{all[:1], all[1:2], all[2:]}
	names := slices.Sorted(maps.Keys(splitModel(t)))
	for part := range tensors {
		for which := range 3 {
			for _, v := range values {
				keys := splitKeys(uint16(part), 3, 4)
				key := keys[which].Key
				if same := cmp.Equal(toInt(v), toInt(keys[which].Value)); same || which == 2 && part > 0 {
					continue
				}
				keys[which].Value = v
				files := splitModel(t)
				files[names[part]] = string(ggufBytes(t, keys, tensors[part]))
				path := filepath.Join(folder(t, files), names[part])
				_, err := modelfile.Open(path)
				if key == "split.count" && (v == uint8(0) || v == uint8(1)) {
					if err != nil { // a model of its own
						t.Errorf("part %d with %s = %v: %v", part+1, key, v, err)
					}
					continue
				}
				wantError(t, err, modelfile.ErrFormat, path, key)
			}
		}
	}
}

// toInt returns a number of a split as int64. It returns any other value as it is.
func toInt(v any) any {
	switch v := v.(type) {
	case uint8:
		return int64(v)
	case uint16:
		return int64(v)
	case int32:
		return int64(v)
	}
	return v
}
