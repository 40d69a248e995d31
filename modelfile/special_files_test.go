//go:build unix

package modelfile_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/realizar/realizar/modelfile"
)

// special creates files at a path that are not regular files, by kind. want is expected in the
// error.
var special = []struct {
	what string
	make func(t *testing.T, path string) error
	want string
}{
	{"folder", func(_ *testing.T, path string) error { return os.Mkdir(path, 0o700) }, "a folder"},
	{"named pipe", func(_ *testing.T, path string) error { return unix.Mkfifo(path, 0o600) }, "a named pipe"},
	{"socket", func(t *testing.T, path string) error {
		// A socket's path must be short, whatever the folder.
		t.Chdir(filepath.Dir(path))
		l, err := net.Listen("unix", filepath.Base(path))
		if err == nil {
			t.Cleanup(func() { l.Close() })
		}
		return err
	}, "a socket"},
	{"device", func(_ *testing.T, path string) error { return os.Symlink("/dev/zero", path) }, "a device"},
	{"link to nothing", func(_ *testing.T, path string) error { return os.Symlink("nothing", path) }, "target does not exist"},
	{"link to itself", func(_ *testing.T, path string) error { return os.Symlink(filepath.Base(path), path) }, "too many levels of symbolic links"},
	{"link to a folder", func(t *testing.T, path string) error { return os.Symlink(t.TempDir(), path) }, "a folder"},
	{"link to a named pipe", func(_ *testing.T, path string) error {
		if err := unix.Mkfifo(path+".pipe", 0o600); err != nil {
			return err
		}
		return os.Symlink(filepath.Base(path)+".pipe", path)
	}, "a named pipe"},
}

// A special file in place of any file of a model must not be opened: a named pipe would block
// forever without a writer, and /dev/zero has no end.
func TestSpecialFiles(t *testing.T) {
	hub := map[string]string{
		"model.safetensors": shard(t, nil), "config.json": "{}", "tokenizer.json": "{}", "chat_template.jinja": "",
		"1_Pooling/config.json": "{}", "additional_chat_templates/rag.jinja": "",
	}
	sharded := map[string]string{
		"model.safetensors.index.json": `{"weight_map":{"a":"s1.safetensors","b":"s2.safetensors"}}`,
		"s1.safetensors":               shard(t, map[string]byte{"a": 1}),
		"s2.safetensors":               shard(t, map[string]byte{"b": 2}),
	}
	split := splitModel(t)
	for _, test := range []struct {
		files  map[string]string
		name   string // the special file
		opened string // the path to open, within the folder
	}{
		{hub, "model.safetensors", ""},
		{hub, "model.safetensors", "model.safetensors"},
		{hub, "config.json", ""},
		{hub, "config.json", "model.safetensors"},
		{hub, "tokenizer.json", ""},
		{hub, "chat_template.jinja", ""},
		{hub, "1_Pooling/config.json", ""},
		{hub, "additional_chat_templates/rag.jinja", ""},
		{sharded, "model.safetensors.index.json", ""},
		{sharded, "s1.safetensors", ""},
		{sharded, "s2.safetensors", ""},
		{split, "m-00001-of-00003.gguf", ""},
		{split, "m-00001-of-00003.gguf", "m-00003-of-00003.gguf"},
		{split, "m-00002-of-00003.gguf", "m-00001-of-00003.gguf"},
		{map[string]string{"model.gguf": ""}, "model.gguf", "model.gguf"},
	} {
		for _, s := range special {
			if test.opened == test.name && s.want == "a folder" {
				continue // a folder is a valid path to open
			}
			t.Run(s.what+" "+test.name, func(t *testing.T) {
				dir := folder(t, test.files)
				path := filepath.Join(dir, filepath.FromSlash(test.name))
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
				if err := s.make(t, path); err != nil {
					t.Skipf("this system makes none: %v", err)
				}
				f, n, err := openMeasured(filepath.Join(dir, test.opened))
				if err == nil {
					f.Close()
					t.Fatal("no error")
				}
				kind := modelfile.ErrNotModel
				if errors.Is(err, unix.ELOOP) {
					kind = unix.ELOOP
				}
				wantError(t, err, kind, path, s.want)
				if n > maxHostileAlloc {
					t.Errorf("%d bytes allocated", n)
				}
			})
		}
	}
}

// A folder in which folders have the names of model files.
func TestFolderOfFolders(t *testing.T) {
	dir := folder(t, map[string]string{"a.gguf/x": "", "b.safetensors/x": ""})
	wantError(t, openHostile(t, dir), modelfile.ErrNotModel, dir, "a.gguf, b.safetensors")

	dir = folder(t, map[string]string{"model.safetensors": shard(t, nil), "additional_chat_templates": "a file"})
	_, err := modelfile.Open(dir)
	wantError(t, err, unix.ENOTDIR, filepath.Join(dir, "additional_chat_templates"))
}

func TestUnreadableFiles(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	files := splitModel(t)
	files["config.json"] = "{}"
	for name := range files {
		dir := folder(t, files)
		path := filepath.Join(dir, name)
		if err := os.Chmod(path, 0); err != nil {
			t.Fatal(err)
		}
		_, err := modelfile.Open(dir)
		wantError(t, err, fs.ErrPermission, path)
	}
	dir := folder(t, files)
	if err := os.Chmod(dir, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(dir, 0o700) }) //nolint:errcheck // that the folder can be removed
	_, err := modelfile.Open(dir)
	wantError(t, err, fs.ErrPermission, dir)
}
