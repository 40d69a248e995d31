package modelfile_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

type fataler interface {
	Helper()
	Fatal(args ...any)
}

func writeTo(t fataler, folder, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(folder, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// folder creates a folder with files by name.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		writeTo(t, dir, name, []byte(content))
	}
	return dir
}

// shard returns a safetensors file of one-byte tensors by name.
func shard(t testing.TB, values map[string]byte) string {
	t.Helper()
	var tensors []*tensor.Tensor
	for name, v := range values {
		tensors = append(tensors, &tensor.Tensor{Name: name, DType: tensor.U8, Shape: []int{1}, Data: []byte{v}})
	}
	var b bytes.Buffer
	if err := modelfile.WriteSafetensors(&b, tensors); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func values(f *modelfile.File) map[string]byte {
	got := make(map[string]byte)
	for _, x := range f.Tensors() {
		got[x.Name] = x.Data[0]
	}
	return got
}

func TestFolder(t *testing.T) {
	dir := folder(t, map[string]string{
		"model.safetensors":                     shard(t, map[string]byte{"a": 1}),
		"other.safetensors":                     "not looked at",
		"config.json":                           `{"model_type": "llama", "rope_scaling": {"type": "linear"}}`,
		"generation_config.json":                `{"eos_token_id": [1]}`,
		"tokenizer.json":                        `{}`,
		"tokenizer.model":                       "pieces",
		"tokenizer_config.json":                 `{"chat_template": "x"}`,
		"special_tokens_map.json":               `{}`,
		"chat_template.jinja":                   `{{ messages }}`,
		"1_Pooling/config.json":                 `{"pooling_mode_mean_tokens": true}`,
		"additional_chat_templates/rag.jinja":   `rag`,
		"additional_chat_templates/readme.md":   `no template`,
		"additional_chat_templates/sub/x.jinja": `not looked at`,
		"README.md":                             `no asset`,
	})
	want := map[string]string{
		"config.json":                         `{"model_type": "llama", "rope_scaling": {"type": "linear"}}`,
		"generation_config.json":              `{"eos_token_id": [1]}`,
		"tokenizer.json":                      `{}`,
		"tokenizer.model":                     "pieces",
		"tokenizer_config.json":               `{"chat_template": "x"}`,
		"special_tokens_map.json":             `{}`,
		"chat_template.jinja":                 `{{ messages }}`,
		"1_Pooling/config.json":               `{"pooling_mode_mean_tokens": true}`,
		"additional_chat_templates/rag.jinja": `rag`,
	}
	// The folder and the file in it are the same model.
	for _, path := range []string{dir, filepath.Join(dir, "model.safetensors")} {
		f := open(t, path)
		if f.Format() != modelfile.Safetensors || f.Path() != path {
			t.Errorf("%v at %s, want safetensors at %s", f.Format(), f.Path(), path)
		}
		if diff := cmp.Diff("model_type string = \"llama\"\nrope_scaling.type string = \"linear\"\n", describe(f.Meta())); diff != "" {
			t.Errorf("metadata (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]byte{"a": 1}, values(f)); diff != "" {
			t.Errorf("tensors (-want +got):\n%s", diff)
		}
		got := make(map[string]string)
		for _, name := range []string{"README.md", "additional_chat_templates/readme.md", "additional_chat_templates/sub/x.jinja"} {
			if _, ok := f.Asset(name); ok {
				t.Errorf("%s is an asset", name)
			}
		}
		for name := range want {
			if data, ok := f.Asset(name); ok {
				got[name] = string(data)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("assets (-want +got):\n%s", diff)
		}
	}
}

func TestFolderChoice(t *testing.T) {
	gguf := string(ggufBytes(t, nil, smallTensors()[:1]))
	one := shard(t, map[string]byte{"a": 1})
	for _, test := range []struct {
		name   string
		files  map[string]string
		format modelfile.Format
	}{
		{"only safetensors", map[string]string{"weights.safetensors": one, "x.gguf": gguf}, modelfile.Safetensors},
		{"only GGUF", map[string]string{"x.gguf": gguf, "README.md": ""}, modelfile.GGUF},
		{"by content", map[string]string{"model.safetensors": gguf}, modelfile.GGUF},
	} {
		t.Run(test.name, func(t *testing.T) {
			if f := open(t, folder(t, test.files)); f.Format() != test.format {
				t.Errorf("format %v, want %v", f.Format(), test.format)
			}
		})
	}
	for _, test := range []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"empty", nil, []string{"empty"}},
		{"no weights", map[string]string{"tokenizer.json": "", "pytorch_model.bin": ""}, []string{"tokenizer.json", "pytorch_model.bin"}},
		{"two safetensors", map[string]string{"a.safetensors": one, "b.safetensors": one}, []string{"a.safetensors", "b.safetensors"}},
		{"two GGUF", map[string]string{"a.gguf": gguf, "b.gguf": gguf}, []string{"a.gguf", "b.gguf"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := folder(t, test.files)
			_, err := modelfile.Open(dir)
			wantError(t, err, modelfile.ErrNotModel, append(test.want, dir)...)
		})
	}
}

func TestFolderWithoutConfig(t *testing.T) {
	f := open(t, folder(t, map[string]string{"model.safetensors": shard(t, map[string]byte{"a": 1})}))
	if f.Meta() == nil || len(f.Meta().Keys()) != 0 {
		t.Errorf("metadata %v of a folder without config.json", f.Meta())
	}
	dir := folder(t, map[string]string{"model.safetensors": shard(t, nil), "config.json": `{"a":`})
	_, err := modelfile.Open(dir)
	wantError(t, err, modelfile.ErrFormat, filepath.Join(dir, "config.json"), "at byte 5")
}

func TestShards(t *testing.T) {
	const index = `{"metadata": {"total_size": 3}, "weight_map": {"a": "s1.safetensors", "b": "s2.safetensors", "c": "s1.safetensors"}}`
	f := open(t, folder(t, map[string]string{
		"model.safetensors.index.json": index,
		"s1.safetensors":               shard(t, map[string]byte{"a": 1, "c": 3}),
		// This file's b counts, not its copy of a. The index does not list d.
		"s2.safetensors":    shard(t, map[string]byte{"a": 9, "b": 2, "d": 4}),
		"model.safetensors": "not looked at",
		"config.json":       `{"x": 1}`,
	}))
	if diff := cmp.Diff(map[string]byte{"a": 1, "b": 2, "c": 3, "d": 4}, values(f)); diff != "" {
		t.Errorf("tensors (-want +got):\n%s", diff)
	}
	if v, ok := f.Meta().Int("x"); !ok || v != 1 {
		t.Errorf("config.json is not read: %d, %v", v, ok)
	}
	if _, ok := f.Tensor("d"); !ok {
		t.Error("no tensor d")
	}
}

func TestShardsThatLie(t *testing.T) {
	s1 := shard(t, map[string]byte{"a": 1})
	for _, test := range []struct {
		name, index string
		want        []string
	}{
		{"file missing", `{"weight_map": {"a": "s1.safetensors", "b": "s3.safetensors"}}`, []string{"s3.safetensors", "index.json"}},
		{"tensor missing", `{"weight_map": {"a": "s1.safetensors", "b": "s1.safetensors"}}`, []string{`"b"`, "s1.safetensors", "index.json"}},
		{"tensor elsewhere", `{"weight_map": {"a": "s2.safetensors"}}`, []string{`"a"`, "s2.safetensors", "index.json"}},
		{"tensor in two", `{"weight_map": {"x": "s1.safetensors", "y": "s4.safetensors"}}`, []string{`"a"`, "s4.safetensors"}},
		{"GGUF", `{"weight_map": {"a": "s5.gguf"}}`, []string{"s5.gguf", "a GGUF file among the safetensors files", "index.json"}},
		{"parent folder", `{"weight_map": {"a": "../s1.safetensors"}}`, []string{`"a"`, `"../s1.safetensors"`}},
		{"sub-folder", `{"weight_map": {"a": "sub/s1.safetensors"}}`, []string{`"a"`, `"sub/s1.safetensors"`}},
		{"root", `{"weight_map": {"a": "/etc/passwd"}}`, []string{`"a"`, `"/etc/passwd"`}},
		{"other system's path", `{"weight_map": {"a": "..\\s1.safetensors"}}`, []string{`"a"`}},
		{"other system's drive", `{"weight_map": {"a": "c:s1.safetensors"}}`, []string{`"a"`}},
		{"dots", `{"weight_map": {"a": ".."}}`, []string{`"a"`}},
		{"no name", `{"weight_map": {"a": ""}}`, []string{`"a"`}},
		{"shard is a number", `{"weight_map": {"a": 1}}`, []string{"'1'"}},
		{"no tensors", `{"weight_map": {}}`, []string{"weight_map"}},
		{"no weight_map", `{"metadata": {}}`, []string{"weight_map"}},
		{"no JSON", `weight_map`, []string{"'w'"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := folder(t, map[string]string{
				"model.safetensors.index.json": test.index,
				"s1.safetensors":               s1,
				"s2.safetensors":               shard(t, nil),
				"s4.safetensors":               shard(t, map[string]byte{"a": 4, "y": 5}),
				"s5.gguf":                      string(ggufBytes(t, nil, nil)),
				"sub/s1.safetensors":           s1,
			})
			_, err := modelfile.Open(dir)
			if err == nil {
				t.Fatal("no error")
			}
			wantError(t, err, err, append(test.want, dir)...)
		})
	}
}

// A hub's cache contains links into a folder of blobs.
func TestSymlinks(t *testing.T) {
	root := t.TempDir()
	blobs := map[string]string{
		"model.safetensors": shard(t, map[string]byte{"a": 1}),
		"config.json":       `{"x": 1}`,
		"tokenizer.json":    `{}`,
	}
	snapshot := filepath.Join(root, "snapshots", "main")
	if err := os.MkdirAll(snapshot, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range blobs {
		blob := writeTo(t, root, "blobs/"+name+".blob", []byte(content))
		if err := os.Symlink(blob, filepath.Join(snapshot, name)); err != nil {
			t.Skipf("this system makes no links: %v", err)
		}
	}
	for _, path := range []string{snapshot, filepath.Join(snapshot, "model.safetensors")} {
		f := open(t, path)
		if v, ok := f.Meta().Int("x"); !ok || v != 1 {
			t.Errorf("%s: config.json beside the link is not read", path)
		}
		if _, ok := f.Asset("tokenizer.json"); !ok {
			t.Errorf("%s: tokenizer.json beside the link is not read", path)
		}
	}
	// An interrupted download leaves links without blobs.
	if err := os.Remove(filepath.Join(root, "blobs", "tokenizer.json.blob")); err != nil {
		t.Fatal(err)
	}
	_, err := modelfile.Open(snapshot)
	wantError(t, err, modelfile.ErrNotModel, filepath.Join(snapshot, "tokenizer.json"), "link")
}

func TestAssetTooLarge(t *testing.T) {
	dir := folder(t, map[string]string{"model.safetensors": shard(t, nil), "tokenizer.json": ""})
	path := filepath.Join(dir, "tokenizer.json")
	if err := os.Truncate(path, 1<<40); err != nil {
		t.Skipf("this system makes no sparse files: %v", err)
	}
	_, n, err := openMeasured(dir)
	wantError(t, err, modelfile.ErrFormat, path, "1099511627776 bytes")
	if n > maxHostileAlloc {
		t.Errorf("%d bytes allocated", n)
	}
}

func TestNotModels(t *testing.T) {
	for _, test := range []struct{ name, content, want string }{
		{"empty.gguf", "", "empty"},
		{"text.gguf", "Hello, world", "Hello, w"},
		{"short", "GG", "GG"},
		{"pointer.gguf", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "git lfs pull"},
		{"pointer.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "git lfs pull"},
		{"pytorch_model.bin", "PK\x03\x04aaaaaaaaaaaa", "PyTorch"},
	} {
		path := write(t, test.name, []byte(test.content))
		_, err := modelfile.Open(path)
		wantError(t, err, modelfile.ErrNotModel, path, test.want)
	}
	missing := filepath.Join(t.TempDir(), "missing.gguf")
	_, err := modelfile.Open(missing)
	wantError(t, err, os.ErrNotExist, missing)
}

func TestCloseTwice(t *testing.T) {
	f, err := modelfile.Open(write(t, "model.gguf", ggufBytes(t, nil, smallTensors())))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
