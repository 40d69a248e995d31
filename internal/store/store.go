// Package store keeps the models of this machine in three places: the cache that the
// tools of Hugging Face's hub share, the models of Ollama, which it only reads, and for
// all others a folder of its own in the form of an OCI image layout. It finds a model by
// its name, lists, checks and removes models, and stores whole files. It fetches nothing.
//
// A name leads to a model only when every file of it is there: files get their names
// when all of their bytes have been checked, and a model when all of its files have
// names.
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

// A Store is the folders with models. Those that are empty or not there have none.
type Store struct {
	Hub    string   // the cache of the hub's tools
	Ollama []string // Ollama's models
	Own    string   // realizar's: models, locks, and when models were used

	// Sync makes a file durable; nil: as the system does it.
	Sync func(interface{ Sync() error }) error
}

// FromEnvironment is where the environment says that models lie. home is the user's
// folder; a variable that is not set is empty.
func FromEnvironment(getenv func(string) string, home string) *Store {
	cache := or(expand(getenv("XDG_CACHE_HOME"), home), filepath.Join(home, ".cache"))
	s := &Store{
		Hub: or(expand(getenv("HF_HUB_CACHE"), home), expand(getenv("HUGGINGFACE_HUB_CACHE"), home), filepath.Join(HubHome(getenv, home), "hub")),
		Own: or(expand(getenv("REALIZAR_HOME"), home), filepath.Join(cache, "realizar")),
	}
	if models := expand(getenv("OLLAMA_MODELS"), home); models != "" {
		s.Ollama = []string{models}
	} else {
		// The second one is that of Ollama's service on Linux.
		s.Ollama = []string{filepath.Join(home, ".ollama", "models"), "/usr/share/ollama/.ollama/models"}
	}
	return s
}

// HubHome is where the hub's tools keep their files.
func HubHome(getenv func(string) string, home string) string {
	cache := or(expand(getenv("XDG_CACHE_HOME"), home), filepath.Join(home, ".cache"))
	return or(expand(getenv("HF_HOME"), home), filepath.Join(cache, "huggingface"))
}

// expand reads a path that may begin with ~.
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

// Place is which of a store's folders a model lies in.
type Place string

// The places.
const (
	HubCache    Place = "hub"
	OllamaStore Place = "ollama"
	OwnLayout   Place = "realizar"
)

// A Model is one that is there with all of its files.
type Model struct {
	Name     names.Name
	Place    Place
	Path     string // of the file or folder that opens it
	Quant    string // by the file's name; may be empty
	Commit   string // of the hub's
	Manifest string // of the others: its digest
	Files    []File
	Modified time.Time // when it came
}

// A File is one of a model's.
type File struct {
	Name   string // in the model
	Path   string // where its bytes lie
	Size   int64
	Digest fetch.Digest // empty where nothing says it
}

// Size is what a model's files take.
func (m *Model) Size() (n int64) {
	for _, f := range m.Files {
		n += f.Size
	}
	return n
}

// ErrAbsent says that a model is not on this machine.
var ErrAbsent = errors.New("is not on this machine")

// absent says so of a name, and how it comes.
func absent(n names.Name, why error) error {
	hint := fmt.Sprintf("realizar pull %s fetches it", n)
	if why != nil {
		return fmt.Errorf("%s %w (%w); %s", n, ErrAbsent, why, hint)
	}
	return fmt.Errorf("%s %w; %s", n, ErrAbsent, hint)
}

// Find returns the model of a name, or an error that wraps [ErrAbsent].
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

// List returns all models that are there. What cannot be read is left out and part of
// the error.
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

// replace writes a small file that is whole at every moment.
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

// temporary is how files and folders begin that a crash may leave.
const temporary = ".realizar-tmp-"

// readSmall reads a file that has no more than most bytes.
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
