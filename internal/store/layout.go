package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/realizar/realizar/internal/fetch"
	"github.com/realizar/realizar/internal/names"
)

// The parts of the own folder. models is an OCI image layout; views has a folder for
// each of its manifests, in which the model's files bear their names.
const (
	modelsFolder = "models"
	viewsFolder  = "views"
	usedFolder   = "used"
	indexFile    = "index.json"
	layoutFile   = "oci-layout"
	maxIndex     = 16 << 20
)

func (s *Store) layout() string { return filepath.Join(s.Own, modelsFolder) }

func (s *Store) ownBlob(hex string) string {
	return filepath.Join(s.layout(), blobsFolder, "sha256", hex)
}

func (s *Store) view(hex string) string { return filepath.Join(s.Own, viewsFolder, hex) }

func (s *Store) ownLock(what string) string {
	return filepath.Join(s.Own, "locks", what+".lock")
}

// readIndex is the names of the layout and the manifests that they mean.
func (s *Store) readIndex() (*Manifest, error) {
	data, err := readSmall(filepath.Join(s.layout(), indexFile), maxIndex)
	if errors.Is(err, fs.ErrNotExist) {
		return &Manifest{SchemaVersion: 2, MediaType: MediaIndex}, nil
	}
	if err != nil {
		return nil, err
	}
	index := new(Manifest)
	if err := json.Unmarshal(data, index); err != nil {
		return nil, fmt.Errorf("%s: %w; move it away and pull the models again: files that are there are not fetched twice", filepath.Join(s.layout(), indexFile), err)
	}
	return index, nil
}

// indexed is the form of an index, without what manifests have.
type indexed struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []Descriptor `json:"manifests"`
}

func (s *Store) writeIndex(manifests []Descriptor) error {
	if manifests == nil {
		manifests = []Descriptor{}
	}
	data, err := json.MarshalIndent(indexed{2, MediaIndex, manifests}, "", "  ")
	if err != nil {
		return err
	}
	if err := s.replace(filepath.Join(s.layout(), layoutFile), []byte(`{"imageLayoutVersion":"1.0.0"}`)); err != nil {
		return err
	}
	return s.replace(filepath.Join(s.layout(), indexFile), data)
}

func (s *Store) findOwn(n names.Name) (*Model, error) {
	index, err := s.readIndex()
	if err != nil {
		return nil, err
	}
	for _, d := range index.Manifests {
		if d.Annotations[annotationName] == n.String() || n.Digest != "" && d.Digest == n.Digest {
			return s.ownModel(n, d)
		}
	}
	return nil, absent(n, nil)
}

// readManifest is the bytes of a manifest of the layout.
func (s *Store) readManifest(digest string) ([]byte, error) {
	hex, err := names.CheckDigest(digest)
	if err != nil {
		return nil, err
	}
	return readSmall(s.ownBlob(hex), MaxManifest)
}

// ownModel is the model of a manifest, whose view has all of its files.
func (s *Store) ownModel(n names.Name, d Descriptor) (*Model, error) {
	hex, err := names.CheckDigest(d.Digest)
	if err != nil {
		return nil, err
	}
	data, err := s.readManifest(d.Digest)
	if err != nil {
		return nil, absent(n, err)
	}
	manifest, err := ParseManifest(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", n, err)
	}
	layers, err := manifest.layers()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", n, err)
	}
	m := &Model{Name: n, Place: OwnLayout, Manifest: d.Digest}
	for _, l := range layers {
		if l.kind == layerIgnored {
			continue
		}
		hex, _ := names.CheckDigest(l.Digest) // ParseManifest has seen to it
		info, err := os.Stat(s.ownBlob(hex))
		if err != nil || info.Size() != l.Size {
			return nil, absent(n, fmt.Errorf("the file %.12s is not whole", hex))
		}
		if info.ModTime().After(m.Modified) {
			m.Modified = info.ModTime()
		}
		m.Files = append(m.Files, File{Name: or(l.name, "archive"), Path: s.ownBlob(hex), Size: l.Size, Digest: fetch.SHA256(hex)})
	}
	main, quant, err := mainOf(s.view(hex))
	if err != nil {
		return nil, absent(n, err)
	}
	m.Path, m.Quant = main, quant
	return m, nil
}

// mainOf is what opens the model in a view: its GGUF file, or the folder.
func mainOf(view string) (path, quant string, err error) {
	var files []string
	err = filepath.WalkDir(view, func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if _, err := os.Stat(at); err != nil {
			return err
		}
		name, err := filepath.Rel(view, at)
		files = append(files, filepath.ToSlash(name))
		return err
	})
	if err != nil {
		return "", "", err
	}
	c, err := names.Choose(files, "")
	if errors.Is(err, names.ErrNoModel) && slices.ContainsFunc(files, func(f string) bool { return strings.HasSuffix(f, ".safetensors") }) {
		return view, "", nil // what is missing, opening it says
	}
	return filepath.Join(view, filepath.FromSlash(c.Main)), c.Quant, err
}

func (s *Store) listOwn() (all []*Model, err error) {
	index, err := s.readIndex()
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, d := range index.Manifests {
		n, err := names.Parse(d.Annotations[annotationName])
		if err != nil || n.Kind == names.Path {
			continue // another program's
		}
		m, err := s.ownModel(n, d)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, m)
	}
	return all, errors.Join(errs...)
}

// An OwnPull is a pull into the own layout: nothing is removed from it meanwhile.
type OwnPull struct {
	s    *Store
	lock *Lock
}

// PullOwn begins one.
func (s *Store) PullOwn(ctx context.Context) (*OwnPull, error) {
	lock, err := takeLock(ctx, s.ownLock("realizar"), true, nil)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(s.layout(), blobsFolder, "sha256"), 0o777); err != nil {
		lock.Release()
		return nil, err
	}
	return &OwnPull{s, lock}, nil
}

// Release ends the pull.
func (p *OwnPull) Release() { p.lock.Release() }

// Blob is where a file's bytes belong.
func (p *OwnPull) Blob(d fetch.Digest) string { return p.s.ownBlob(d.Hex()) }

// Lock waits until no other process downloads the file.
func (p *OwnPull) Lock(ctx context.Context, d fetch.Digest, waiting func()) (*Lock, error) {
	return takeLock(ctx, p.s.ownLock(d.Hex()), false, waiting)
}

// CheckSpace refuses to begin what the disk has no room for.
func (p *OwnPull) CheckSpace(want int64) error { return checkSpace(p.s.Own, want, "REALIZAR_HOME") }

// WriteBlob puts a small file there by its digest, which it returns.
func (p *OwnPull) WriteBlob(data []byte) (string, error) {
	h := fetch.SHA256("").New(0)
	h.Write(data)
	d := fetch.SHA256("").Of(h)
	return string(d), p.s.replace(p.Blob(d), data)
}

// Finish gives a manifest, whose files are all there, a name. manifest are its bytes.
func (p *OwnPull) Finish(ctx context.Context, n names.Name, manifest []byte) error {
	return p.finish(ctx, n, manifest, nil)
}

// finish is Finish of a model that check, which may be nil, can refuse by what opens it.
func (p *OwnPull) finish(ctx context.Context, n names.Name, manifest []byte, check func(path string) error) error {
	m, err := ParseManifest(manifest)
	if err != nil {
		return err
	}
	digest, err := p.WriteBlob(manifest)
	if err != nil {
		return err
	}
	hex, err := names.CheckDigest(digest)
	if err != nil {
		return err
	}
	lock, err := takeLock(ctx, p.s.ownLock("index"), false, nil)
	if err != nil {
		return err
	}
	defer lock.Release()
	if _, _, err := mainOf(p.s.view(hex)); err != nil {
		if err := p.s.makeView(ctx, hex, m); err != nil {
			return err
		}
	}
	if check != nil {
		path, _, err := mainOf(p.s.view(hex))
		if err == nil {
			err = check(path)
		}
		if err != nil {
			return err
		}
	}
	index, err := p.s.readIndex()
	if err != nil {
		return err
	}
	d := Descriptor{MediaType: or(m.MediaType, MediaManifest), Digest: digest, Size: int64(len(manifest)), Annotations: map[string]string{annotationName: n.String()}}
	return p.s.writeIndex(append(without(index.Manifests, n), d))
}

// without are the entries that bear another name.
func without(manifests []Descriptor, n names.Name) []Descriptor {
	return slices.DeleteFunc(slices.Clone(manifests), func(d Descriptor) bool { return d.Annotations[annotationName] == n.String() })
}

// makeView makes the folder in which a manifest's files bear their names, all at once.
func (s *Store) makeView(ctx context.Context, hex string, m *Manifest) (err error) {
	layers, err := m.layers()
	if err != nil {
		return err
	}
	parent := filepath.Join(s.Own, viewsFolder)
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return err
	}
	made, err := os.MkdirTemp(parent, temporary+"*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(made)
		}
	}()
	if err := os.Chmod(made, 0o755); err != nil { //nolint:gosec // models are for all to read, as files are
		return err
	}
	root, err := os.OpenRoot(made) // nothing leads out of it
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	unpacked := unpacking{sync: s.sync}
	for _, l := range layers {
		if l.kind == layerFile {
			unpacked.files = append(unpacked.files, l.name)
		}
	}
	for _, l := range layers {
		blob, _ := names.CheckDigest(l.Digest) // ParseManifest has seen to it
		switch l.kind {
		case layerFile:
			err = s.linkView(root, l.name, blob)
		case layerTar, layerGzip, layerZstd:
			err = unpacked.unpack(ctx, root, s.ownBlob(blob), l.kind)
		}
		if err != nil {
			return err
		}
	}
	if _, _, err := mainOf(made); err != nil {
		return err
	}
	if err := os.RemoveAll(s.view(hex)); err != nil {
		return err
	}
	if err := os.Rename(made, s.view(hex)); err != nil {
		return err
	}
	return fetch.SyncFolder(parent, s.sync)
}

// linkView makes one name of a view.
func (s *Store) linkView(root *os.Root, name, blob string) error {
	if dir := filepath.Dir(filepath.FromSlash(name)); dir != "." {
		if err := root.MkdirAll(dir, 0o777); err != nil {
			return err
		}
	}
	target := strings.Repeat("../", 2+strings.Count(name, "/")) + modelsFolder + "/" + blobsFolder + "/sha256/" + blob
	err := root.Symlink(filepath.FromSlash(target), filepath.FromSlash(name))
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.Link(s.ownBlob(blob), filepath.Join(root.Name(), filepath.FromSlash(name))) // where there are no such links
}
