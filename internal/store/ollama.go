package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/realizar/realizar/internal/fetch"
	"github.com/realizar/realizar/internal/names"
)

const manifestsFolder = "manifests"

// findOllama finds a model in Ollama's folders.
func (s *Store) findOllama(n names.Name) (*Model, error) {
	for _, root := range s.Ollama {
		m, err := s.ollamaModel(root, n)
		if err == nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			return m, err
		}
	}
	return nil, absent(n, nil)
}

func (s *Store) ollamaModel(root string, n names.Name) (*Model, error) {
	at := filepath.Join(root, manifestsFolder, n.Host, filepath.FromSlash(n.Repository), n.Tag)
	data, err := readSmall(at, MaxManifest)
	if err != nil {
		return nil, err
	}
	manifest, err := ParseManifest(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; ollama pull %s fetches it anew", at, err, strings.TrimPrefix(n.String(), "ollama:"))
	}
	m := &Model{Name: n, Place: OllamaStore}
	for _, d := range manifest.Layers {
		hex, err := names.CheckDigest(d.Digest)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
		f := File{Name: nameByMedia(d.MediaType), Path: filepath.Join(root, blobsFolder, "sha256-"+hex), Size: d.Size, Digest: fetch.SHA256(hex)}
		info, err := os.Stat(f.Path)
		if err != nil || !info.Mode().IsRegular() || info.Size() != d.Size {
			return nil, absent(n, fmt.Errorf("Ollama's blob %.12s is not whole", hex)) //nolint:staticcheck // a name
		}
		if d.MediaType == mediaOllama+"model" && m.Path == "" {
			m.Path, m.Modified = f.Path, info.ModTime()
		}
		m.Files = append(m.Files, f)
	}
	if m.Path == "" {
		return nil, fmt.Errorf("%s: %w", n, manifest.IsModel())
	}
	return m, nil
}

// nameByMedia returns the name of a layer's file in Ollama's models.
func nameByMedia(media string) string {
	if ext := weightsOf(media); ext != "" {
		return "model" + ext
	}
	return or(besideName(media), strings.TrimPrefix(media, mediaOllama))
}

// listOllama returns the models in Ollama's folders.
func (s *Store) listOllama() (all []*Model, err error) {
	var errs []error
	seen := map[string]bool{}
	for _, root := range s.Ollama {
		manifests := filepath.Join(root, manifestsFolder)
		count := 0
		err := filepath.WalkDir(manifests, func(at string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			if count++; count > maxSnapshotFiles {
				return fs.SkipAll
			}
			rel, err := filepath.Rel(manifests, at)
			if err != nil {
				return err
			}
			parts := strings.Split(filepath.ToSlash(rel), "/")
			if len(parts) != 4 || strings.HasPrefix(parts[3], ".") {
				return nil
			}
			n, err := names.Parse("ollama:" + strings.Join(parts[:3], "/") + ":" + parts[3])
			if err != nil || seen[n.String()] {
				return nil //nolint:nilerr // not the manifest of a model
			}
			seen[n.String()] = true
			m, err := s.ollamaModel(root, n)
			if err != nil {
				errs = append(errs, err)
				return nil
			}
			all = append(all, m)
			return nil
		})
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			errs = append(errs, err)
		}
	}
	return all, errors.Join(errs...)
}
