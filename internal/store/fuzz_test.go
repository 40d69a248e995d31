package store

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/realizar/realizar/internal/names"
)

// FuzzManifest checks that an accepted manifest has bounded sizes, digests that can be names of
// files, and names that can be in one folder.
func FuzzManifest(f *testing.F) {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for _, text := range []string{
		`{"schemaVersion":2,"config":{"digest":"` + digest + `","size":2},"layers":[{"mediaType":"application/vnd.docker.ai.gguf.v3","digest":"` + digest + `","size":3}]}`,
		`{"schemaVersion":2,"layers":[{"mediaType":"application/vnd.cncf.model.weight.v1.raw","digest":"` + digest + `","size":3,"annotations":{"org.cncf.model.filepath":"../x.gguf"}}]}`,
		`{"schemaVersion":2,"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha512:00","size":-1}]}`,
		`{"schemaVersion":2,"manifests":[{"digest":"` + digest + `"}]}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseManifest(data)
		if err != nil {
			return
		}
		_ = m.IsModel()
		files, err := m.Wanted(1 << 20)
		if err != nil {
			return
		}
		var sum int64
		for _, f := range files {
			if _, err := names.CheckDigest(string(f.Digest)); err != nil || f.Size < 0 || f.Size > maxLayerSize {
				t.Errorf("%+v: %v", f, err)
			}
			sum += f.Size
		}
		if sum > maxLayerSize {
			t.Errorf("%d bytes in all", sum)
		}
		layers, err := m.layers()
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, l := range layers {
			if l.kind == layerFile {
				list = append(list, l.name)
			}
		}
		if err := names.CheckFiles(list); err != nil {
			t.Error(err)
		}
	})
}

// FuzzUnpack checks that all that comes out of an archive is regular files within the folder.
func FuzzUnpack(f *testing.F) {
	for _, h := range []tar.Header{{Name: "a/b.json"}, {Name: "../x"}, {Name: "x", Typeflag: tar.TypeSymlink, Linkname: "/etc"}, {Name: "x", PAXRecords: map[string]string{"path": "y"}}} {
		f.Add(tarOf(f, h), uint8(layerTar))
	}
	f.Fuzz(func(t *testing.T, data []byte, kind uint8) {
		parent := t.TempDir()
		at, archive := filepath.Join(parent, "folder"), filepath.Join(parent, "archive")
		if err := os.WriteFile(archive, data, 0o600); err != nil {
			t.Fatal(err)
		}
		u, err := unpackAt(t, at, archive, layerTar+layerKind(kind%3))
		files := 0
		walkErr := filepath.WalkDir(parent, func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				files++
				if !d.Type().IsRegular() {
					t.Errorf("%s is no file", path)
				}
				if path != archive && !within(path, at) {
					t.Errorf("%s is outside of the folder", path)
				}
			}
			return err
		})
		if walkErr != nil {
			t.Fatal(walkErr)
		}
		if err == nil && files-1 != len(u.files) {
			t.Errorf("%d files are there of %q", files-1, u.files)
		}
	})
}

// unpackAt unpacks an archive into a new folder.
func unpackAt(tb testing.TB, at, archive string, kind layerKind) (*unpacking, error) {
	tb.Helper()
	if err := os.Mkdir(at, 0o700); err != nil {
		tb.Fatal(err)
	}
	root, err := os.OpenRoot(at)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	u := &unpacking{sync: func(interface{ Sync() error }) error { return nil }}
	return u, u.unpack(tb.Context(), root, archive, kind)
}

// tarOf returns an archive with one empty file.
func tarOf(tb testing.TB, h tar.Header) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&h); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}
