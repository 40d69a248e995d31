package modelfile_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// maxFuzzed is the largest file to try, in bytes. Longer files cover nothing new.
const maxFuzzed = 1 << 12

// oneOfEach returns a tensor of one block in every format that takes accepts.
func oneOfEach(takes func(*tensor.Tensor) error) []*tensor.Tensor {
	var tensors []*tensor.Tensor
	for d := tensor.DType(0); d.BlockBytes() > 0; d++ {
		x := &tensor.Tensor{Name: d.String(), DType: d, Shape: []int{d.BlockLen()}, Data: make([]byte, d.BlockBytes())}
		if takes(x) == nil {
			tensors = append(tensors, x)
		}
	}
	return tensors
}

// FuzzGGUF reads a file as a whole model and as the second part of a split one, opened by its own
// name and by that of the first part.
func FuzzGGUF(f *testing.F) {
	parts := splitModel(f)
	const first, second = "m-00001-of-00003.gguf", "m-00002-of-00003.gguf"
	for _, content := range parts {
		f.Add([]byte(content))
	}
	for _, kv := range allValues {
		f.Add(ggufBytes(f, []modelfile.KeyValue{kv}, nil))
	}
	for _, alignment := range []uint32{1, 2, 8, 24, 64} {
		f.Add(ggufBytes(f, []modelfile.KeyValue{{Key: "general.alignment", Value: alignment}}, smallTensors()))
	}
	f.Add(ggufBytes(f, allValues, smallTensors()))
	f.Add(ggufBytes(f, nil, oneOfEach(func(x *tensor.Tensor) error {
		return modelfile.WriteGGUF(new(bytes.Buffer), nil, []*tensor.Tensor{x})
	})))
	f.Add(newRawGGUF(1, 0).tensor("w", 2, 0, 32).data(32))
	f.Add(newRawGGUF(2, 0).tensor("b", 24, 64, 2).tensor("a", 24, 0, 3).data(66))
	dir := f.TempDir()
	for name, content := range parts {
		writeTo(f, dir, name, []byte(content))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > maxFuzzed {
			return
		}
		path := writeTo(t, dir, second, data)
		_ = openHostile(t, path)
		_ = openHostile(t, filepath.Join(dir, first))
	})
}

func FuzzSafetensors(f *testing.F) {
	var b bytes.Buffer
	if err := modelfile.WriteSafetensors(&b, oneOfEach(func(x *tensor.Tensor) error {
		return modelfile.WriteSafetensors(new(bytes.Buffer), []*tensor.Tensor{x})
	})); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(small(f)["small.safetensors"].data)
	for _, seed := range []struct {
		header string
		n      int
	}{
		{`{}`, 0},
		{`{"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}`, 4},
		{`{"__metadata__":{"format":"pt","x":"\u00e9\ud83d\ude00"},"w":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]}}  `, 12},
		{`{"scalar":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"none":{"dtype":"I64","shape":[0,7],"data_offsets":[4,4]}}`, 4},
		{`{"e4m3":{"data_offsets":[2,4],"shape":[1,2],"dtype":"F8_E4M3"},"e5m2":{"dtype":"F8_E5M2","shape":[2],"data_offsets":[0,2],"new":[{"x":null}]}}`, 4},
		{`{"w":{"dtype":"B\ud83d","shape":[1],"data_offsets":[0,1]}}`, 1},
		{`{"a\nb":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}}`, 1},
	} {
		f.Add(rawSafetensors(seed.header, seed.n))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > maxFuzzed {
			return
		}
		_ = openHostile(t, writeTo(t, dir, "fuzz.safetensors", data))
	})
}

// FuzzIndex reads an index beside two shards, with files outside the folder that must not be read.
func FuzzIndex(f *testing.F) {
	for _, seed := range []string{
		`{"metadata": {"total_size": 3}, "weight_map": {"a": "s1.safetensors", "b": "s2.safetensors", "c": "s1.safetensors"}}`,
		`{"weight_map": {"a": "s1.safetensors"}}`,
		`{"weight_map": {"a": "s1.safetensors", "a": "s2.safetensors"}}`,
		`{"weight_map": {"a": "s2.safetensors"}, "weight_map": {"b": "s2.safetensors"}}`,
		`{"weight_map": {"x": "../outside.safetensors"}}`,
		`{"weight_map": {"x": "outside.gguf"}}`,
		`{"weight_map": {"\u0061": "s1\u002esafetensors", "d": "s3.safetensors"}}`,
		`{"weight_map": {}}`,
		`{"weight_map": [1.5, NaN, {"x": null}]}`,
		`{"weight_map": {"x": "` + strings.Repeat("[", 600) + `"}}`,
	} {
		f.Add([]byte(seed))
	}
	root := f.TempDir()
	dir := filepath.Join(root, "model")
	outside := []byte(shard(f, map[string]byte{"x": 9}))
	writeTo(f, root, "outside.safetensors", outside)
	writeTo(f, dir, "sub/outside.safetensors", outside)
	writeTo(f, dir, "outside.gguf", ggufBytes(f, nil, smallTensors()))
	writeTo(f, dir, "s1.safetensors", []byte(shard(f, map[string]byte{"a": 1, "c": 3})))
	writeTo(f, dir, "s2.safetensors", []byte(shard(f, map[string]byte{"a": 1, "b": 2})))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > maxFuzzed {
			return
		}
		writeTo(t, dir, "model.safetensors.index.json", data)
		if err := openHostile(t, dir); err != nil {
			return
		}
		m, err := modelfile.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if _, ok := m.Tensor("x"); ok {
			t.Fatal("a file outside the folder is read")
		}
	})
}

func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"a": {"b": [1, 2.5, "x\u00e9\ud83d\ude00", null, {"c": NaN}]}, "a.b": -Infinity, "d": 1e-5}`))
	f.Add([]byte(`{"a":`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := modelfile.ParseJSON("fuzz.json", data)
		if err != nil {
			var formatError *modelfile.FormatError
			if !errors.As(err, &formatError) || formatError.File != "fuzz.json" || formatError.Offset > int64(len(data)) {
				t.Fatalf("error %#v", err)
			}
			return
		}
		for _, key := range m.Keys() {
			if _, ok := m.Value(key); !ok || m.Type(key) == "" {
				t.Fatalf("key %q has no value", key)
			}
			m.Ints(key)
			m.Floats(key)
			m.Strings(key)
			m.Bools(key)
		}
	})
}
