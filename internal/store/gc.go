package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/realizar/realizar/internal/fetch"
	"github.com/realizar/realizar/internal/names"
)

// Garbage is a file or a folder that no model has.
type Garbage struct {
	Path string
	Size int64
	Why  string
}

// settled is how long ago a blob of the hub's cache must have come that no version has:
// other tools give it a name after that.
const settled = time.Hour

// Garbage finds what no model has: files that nothing names, and parts of files whose
// download was broken off. What somebody pulls at the moment is left out. With remove it
// is removed, too.
func (s *Store) Garbage(remove bool, now time.Time) (all []Garbage, err error) {
	repos, err := os.ReadDir(or(s.Hub, os.DevNull))
	if err != nil && !errors.Is(err, fs.ErrNotExist) && s.Hub != "" {
		return nil, err
	}
	var errs []error
	for _, d := range repos {
		if n, ok := repoOf(d.Name()); ok {
			garbage, err := s.withLock(s.hubLock(n, "realizar"), remove, func() ([]Garbage, error) { return s.repoGarbage(n, now) })
			all, errs = append(all, garbage...), append(errs, err)
		}
	}
	if _, err := os.Stat(s.layout()); err == nil {
		garbage, err := s.withLock(s.ownLock("realizar"), remove, func() ([]Garbage, error) { return s.ownGarbage(now) })
		all, errs = append(all, garbage...), append(errs, err)
	}
	return all, errors.Join(errs...)
}

// withLock finds garbage while nobody pulls; where somebody does, there is none.
func (s *Store) withLock(path string, remove bool, find func() ([]Garbage, error)) ([]Garbage, error) {
	lock, err := tryLock(path, false)
	if errors.Is(err, errLocked) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer lock.Release()
	all, err := find()
	if err != nil || !remove {
		return all, err
	}
	for _, g := range all {
		if err := os.RemoveAll(g.Path); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (s *Store) repoGarbage(n names.Name, now time.Time) (all []Garbage, err error) {
	repo := filepath.Join(s.Hub, repoFolder(n))
	named, err := s.namedBlobs(n)
	if err != nil {
		return nil, err
	}
	blobs, err := os.ReadDir(filepath.Join(repo, blobsFolder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, folder := range []string{refsFolder, snapshotsFolder} {
		all = append(all, unfinished(filepath.Join(repo, folder))...)
	}
	for _, b := range blobs {
		info, err := b.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		g := Garbage{Path: filepath.Join(repo, blobsFolder, b.Name()), Size: info.Size()}
		switch {
		case isPartial(b.Name()):
			g.Why = brokenOff
		case blobDigest(b.Name()) != "" && !named[b.Name()] && now.Sub(info.ModTime()) > settled && s.unlocked(n, b.Name()):
			g.Why = "of no version"
		default:
			continue
		}
		all = append(all, g)
	}
	return all, nil
}

// unlocked reports whether no other tool downloads a blob.
func (s *Store) unlocked(n names.Name, blob string) bool {
	lock, err := tryLock(s.hubLock(n, blob), false)
	if err != nil {
		return false
	}
	lock.Release()
	return true
}

// brokenOff is why a file is garbage that was to become one of a model.
const brokenOff = "of a download that was broken off"

// unfinished are the small files in a folder that were to replace others.
func unfinished(folder string) (all []Garbage) {
	_ = filepath.WalkDir(folder, func(at string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(d.Name(), temporary) {
			all = append(all, Garbage{Path: at, Why: brokenOff})
		}
		return nil //nolint:nilerr // what cannot be read is no garbage
	})
	return all
}

func isPartial(name string) bool {
	return strings.HasSuffix(name, fetch.PartialSuffix) || strings.HasSuffix(name, fetch.NotesSuffix) || strings.HasPrefix(name, temporary)
}

// ownGarbage is what no name of the own layout leads to, and uploads that are old.
func (s *Store) ownGarbage(now time.Time) (all []Garbage, err error) {
	index, err := s.readIndex()
	if err != nil {
		return nil, err
	}
	blobs, views := map[string]bool{}, map[string]bool{}
	for _, d := range index.Manifests {
		hex, err := names.CheckDigest(d.Digest)
		if err != nil {
			continue
		}
		blobs[hex], views[hex] = true, true
		data, err := s.readManifest(d.Digest)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		m, err := ParseManifest(data)
		if err != nil {
			return nil, err
		}
		for _, l := range append(m.Layers, m.Config) {
			if hex, err := names.CheckDigest(l.Digest); err == nil {
				blobs[hex] = true
			}
		}
	}
	all = s.oldUploads(now)
	entries, err := os.ReadDir(s.layout())
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if isPartial(e.Name()) {
			all = append(all, Garbage{Path: filepath.Join(s.layout(), e.Name()), Why: brokenOff})
		}
	}
	for folder, keep := range map[string]map[string]bool{filepath.Join(s.layout(), blobsFolder, "sha256"): blobs, filepath.Join(s.Own, viewsFolder): views} {
		entries, err := os.ReadDir(folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			info, err := e.Info()
			if err != nil || keep[e.Name()] {
				continue
			}
			g := Garbage{Path: filepath.Join(folder, e.Name()), Why: "of no model"}
			if isPartial(e.Name()) {
				g.Why = brokenOff
			}
			if info.Mode().IsRegular() {
				g.Size = info.Size()
			}
			all = append(all, g)
		}
	}
	return all, nil
}
