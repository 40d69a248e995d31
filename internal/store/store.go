// Package store keeps the models of this machine in three places: the cache that the tools of
// Hugging Face's hub share; Ollama's folders, which it only reads; and for all others a folder of
// its own in the form of an OCI image layout. It finds a model by its name, lists, verifies and
// removes models, and stores complete files. It fetches nothing.
//
// A name leads to a model only when all of its files are present: a file gets its name when all of
// its bytes have been verified, and a model when all of its files have names.
package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/realizar/realizar/internal/fetch"
	"github.com/realizar/realizar/internal/names"
)

// A Store is the folders with models. Folders may be empty strings or missing.
type Store struct {
	Hub    string   // the cache of the hub's tools
	Ollama []string // Ollama's folders of models
	Own    string   // realizar's folder: models, locks, and times of use

	// Sync makes a file durable; nil means its Sync method.
	Sync func(interface{ Sync() error }) error
}

// FromEnvironment returns the store that the environment variables select. home is the user's home
// folder. getenv returns "" for a variable that is not set.
func FromEnvironment(getenv func(string) string, home string) *Store {
	cache := or(expand(getenv("XDG_CACHE_HOME"), home), filepath.Join(home, ".cache"))
	s := &Store{
		Hub: or(expand(getenv("HF_HUB_CACHE"), home), expand(getenv("HUGGINGFACE_HUB_CACHE"), home), filepath.Join(HubHome(getenv, home), "hub")),
		Own: or(expand(getenv("REALIZAR_HOME"), home), filepath.Join(cache, "realizar")),
	}
	if models := expand(getenv("OLLAMA_MODELS"), home); models != "" {
		s.Ollama = []string{models}
	} else {
		// The second folder is that of Ollama's service on Linux.
		s.Ollama = []string{filepath.Join(home, ".ollama", "models"), "/usr/share/ollama/.ollama/models"}
	}
	return s
}

// HubHome returns the folder in which the hub's tools keep their files.
func HubHome(getenv func(string) string, home string) string {
	cache := or(expand(getenv("XDG_CACHE_HOME"), home), filepath.Join(home, ".cache"))
	return or(expand(getenv("HF_HOME"), home), filepath.Join(cache, "huggingface"))
}

// expand replaces a leading ~ of a path by home.
func expand(path, home string) string {
	if path == "~" {
		return home
	}
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(home, rest)
	}
	return path
}

func or(paths ...string) string {
	for _, p := range paths {
		if p != "" {
			return p
		}
	}
	return ""
}

// A Place is one of a store's folders.
type Place string

// The places.
const (
	HubCache    Place = "hub"
	OllamaStore Place = "ollama"
	OwnLayout   Place = "realizar"
)

// A Model is a model with all of its files on this machine.
type Model struct {
	Name     names.Name
	Place    Place
	Path     string // the file or folder that opens the model
	Quant    string // from the file's name; may be empty
	Commit   string // of a model in the hub's cache
	Manifest string // digest of the manifest, for the other places
	Files    []File
	Modified time.Time // time of the download
}

// A File is a file of a model.
type File struct {
	Name   string // within the model
	Path   string // of its bytes
	Size   int64
	Digest fetch.Digest // empty if unknown
}

// Size returns the bytes of a model's files.
func (m *Model) Size() (n int64) {
	for _, f := range m.Files {
		n += f.Size
	}
	return n
}

// ErrAbsent reports that a model is not on this machine.
var ErrAbsent = errors.New("is not on this machine")

// absent returns the error that a model is not on this machine, with the way to get it.
func absent(n names.Name, why error) error {
	hint := fmt.Sprintf("realizar pull %s fetches it", n)
	if why != nil {
		return fmt.Errorf("%s %w (%w); %s", n, ErrAbsent, why, hint)
	}
	return fmt.Errorf("%s %w; %s", n, ErrAbsent, hint)
}

// Find returns the model with a name, or an error that wraps [ErrAbsent].
func (s *Store) Find(n names.Name) (*Model, error) {
	switch n.Kind {
	case names.Hub:
		return s.findHub(n)
	case names.Ollama:
		if m, err := s.findOllama(n); err == nil || !errors.Is(err, ErrAbsent) {
			return m, err
		}
		return s.findOwn(n)
	case names.Registry, names.URL:
		return s.findOwn(n)
	}
	return nil, fmt.Errorf("%s is a path, and no name of a model", n)
}

// List returns all models. Models that cannot be read are left out, and the error joins the
// reasons.
func (s *Store) List() ([]*Model, error) {
	hub, err1 := s.listHub()
	ollama, err2 := s.listOllama()
	own, err3 := s.listOwn()
	return append(append(hub, ollama...), own...), errors.Join(err1, err2, err3)
}

// sync makes a file durable.
func (s *Store) sync(f interface{ Sync() error }) error {
	if s.Sync != nil {
		return s.Sync(f)
	}
	return f.Sync()
}

// replace writes a small file. Readers see either the old file or the complete new one.
func (s *Store) replace(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), temporary+"*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(0o644), s.sync(f), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return fetch.SyncFolder(filepath.Dir(path), s.sync)
}

// temporary is the prefix of files and folders that a crash may leave behind.
const temporary = ".realizar-tmp-"

// readSmall reads a file of at most most bytes.
func readSmall(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s: more than the %d bytes that such a file may have", path, most)
	}
	return data, err
}
