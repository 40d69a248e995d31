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

// The parts of the own folder. models is an OCI image layout. views has a folder for each manifest,
// in which the model's files have their names.
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

// readIndex reads the layout's index: names, and the manifests that they denote.
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

// indexed is the JSON of an index. A [Manifest] would add the members of manifests.
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

// readManifest reads a manifest of the layout.
func (s *Store) readManifest(digest string) ([]byte, error) {
	hex, err := names.CheckDigest(digest)
	if err != nil {
		return nil, err
	}
	return readSmall(s.ownBlob(hex), MaxManifest)
}

// ownModel returns the model of a manifest if all of its files are present.
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
		hex, _ := names.CheckDigest(l.Digest) // ParseManifest has checked it
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

// mainOf returns the path that opens the model in a view: its GGUF file, or the folder.
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
		return view, "", nil // opening the model reports what is missing
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
			continue // of another program
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

// An OwnPull is a pull into the own layout. No other process removes files of the layout until
// Release.
type OwnPull struct {
	s    *Store
	lock *Lock
}

// PullOwn begins a pull.
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

// Blob returns the path of a file's bytes.
func (p *OwnPull) Blob(d fetch.Digest) string { return p.s.ownBlob(d.Hex()) }

// Lock waits until no other process downloads the file. It calls waiting, unless nil, if it has to
// wait.
func (p *OwnPull) Lock(ctx context.Context, d fetch.Digest, waiting func()) (*Lock, error) {
	return takeLock(ctx, p.s.ownLock(d.Hex()), false, waiting)
}

// CheckSpace returns an error if the disk has no room for want bytes.
func (p *OwnPull) CheckSpace(want int64) error { return checkSpace(p.s.Own, want, "REALIZAR_HOME") }

// WriteBlob writes a small file under its digest, which it returns.
func (p *OwnPull) WriteBlob(data []byte) (string, error) {
	h := fetch.SHA256("").New(0)
	h.Write(data)
	d := fetch.SHA256("").Of(h)
	return string(d), p.s.replace(p.Blob(d), data)
}

// Finish gives a manifest a name. manifest is its bytes; all files that it lists must be present.
func (p *OwnPull) Finish(ctx context.Context, n names.Name, manifest []byte) error {
	return p.finish(ctx, n, manifest, nil)
}

// finish is Finish with a check of the new model, which may be nil. check gets the path that opens
// the model; if it fails, the model gets no name.
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

// without returns the entries with names other than n.
func without(manifests []Descriptor, n names.Name) []Descriptor {
	return slices.DeleteFunc(slices.Clone(manifests), func(d Descriptor) bool { return d.Annotations[annotationName] == n.String() })
}

// makeView makes the folder in which a manifest's files have their names. The folder appears
// complete or not at all.
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
	if err := os.Chmod(made, 0o755); err != nil { //nolint:gosec // all users may read models
		return err
	}
	root, err := os.OpenRoot(made) // no link leads out of it
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
		blob, _ := names.CheckDigest(l.Digest) // ParseManifest has checked it
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
	return os.Link(s.ownBlob(blob), filepath.Join(root.Name(), filepath.FromSlash(name))) // without symbolic links
}
