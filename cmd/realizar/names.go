package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/realizar/realizar/internal/fetch"
	"github.com/realizar/realizar/internal/names"
	"github.com/realizar/realizar/internal/pull"
	"github.com/realizar/realizar/internal/store"
	"github.com/realizar/realizar/modelfile"
)

// home returns the user's folder, or "" if there is none.
func home() string {
	h, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return h
}

// models returns the store of this machine's models.
func models() *store.Store { return store.FromEnvironment(os.Getenv, home()) }

// aliasFile returns the file of the user's short names.
func aliasFile() string {
	if path := os.Getenv("REALIZAR_ALIASES"); path != "" {
		return path
	}
	folder, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(folder, "realizar", "aliases")
}

func readAliases() (names.Aliases, error) {
	path := aliasFile()
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return names.Aliases{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, names.MaxAliases+1))
	if err != nil {
		return nil, err
	}
	return names.ParseAliases(path, data)
}

// readName parses a name with a prefix, a short name of the user, a path, or a plain repository of
// the hub. A path need not exist.
func readName(text string) (names.Name, error) {
	if modelfile.Registered(text) {
		return names.Name{Kind: names.Path, Path: text}, nil
	}
	n, err := names.Parse(text)
	if err != nil || n.Kind != names.Path {
		return n, err
	}
	if names.IsAlias(text) {
		aliases, err := readAliases()
		if err != nil {
			return n, err
		}
		if target, ok := aliases[text]; ok {
			return readTarget(target)
		}
	}
	return readTarget(text)
}

// readTarget is readName without short names.
func readTarget(text string) (names.Name, error) {
	n, err := names.Parse(text)
	if err != nil || n.Kind != names.Path {
		return n, err
	}
	if _, err := os.Lstat(text); err == nil {
		return n, nil
	}
	// In an existing folder, a missing file is probably a typing error.
	if _, err := os.Lstat(filepath.Dir(text)); err == nil {
		return n, nil
	}
	switch filepath.Ext(text) {
	case ".gguf", ".safetensors", ".json", ".model", ".jinja":
		return n, nil
	}
	if hub, ok := names.ParsePlain(text); ok {
		return hub, nil
	}
	return n, nil
}

// modelPath returns the path of the model of a name. If the model is missing, modelPath fetches it
// if fetchIt is set, and else returns an error that says how to get it.
func (a *app) modelPath(text string, fetchIt bool) (string, error) {
	n, err := readName(text)
	if err != nil {
		return "", err
	}
	if n.Kind == names.Path {
		if _, err := os.Lstat(text); errors.Is(err, fs.ErrNotExist) && names.IsAlias(text) && !modelfile.Registered(text) {
			return "", noName(text)
		}
		if _, err := os.Lstat(n.Path); errors.Is(err, fs.ErrNotExist) && !modelfile.Registered(text) {
			return "", noFile(text)
		}
		return n.Path, nil
	}
	s := models()
	m, err := s.Find(n)
	if errors.Is(err, store.ErrAbsent) && fetchIt {
		m, err = a.pull(n, pullFlags{})
	}
	if err != nil {
		return "", err
	}
	s.Used(m, time.Now())
	return m.Path, nil
}

// noName returns an error that says what a model's name looks like.
func noName(text string) error {
	return fmt.Errorf("%s is neither a file nor the name of a model; want a name such as hf:org/repo, ollama:model, oci://registry/name:tag, or a short name (realizar cp); realizar list shows the models on this machine", text)
}

// A noFileError is a path that does not exist. It is [fs.ErrNotExist].
type noFileError string

func (e noFileError) Error() string { return string(e) }

// Is reports whether target is [fs.ErrNotExist].
func (e noFileError) Is(target error) bool { return target == fs.ErrNotExist }

// noFile returns an error for a path that does not exist, with a name that may have been meant.
func noFile(path string) error {
	for _, address := range []string{"https://huggingface.co/", "http://huggingface.co/", "huggingface.co/", "https://hf.co/", "hf.co/"} {
		if repo, ok := strings.CutPrefix(path, address); ok {
			return noFileError(fmt.Sprintf("there is no file %s; a repository on Hugging Face is named hf:%s", path, repo))
		}
	}
	return noFileError(fmt.Sprintf("there is no file %s; want a file, or a name such as hf:org/repo (realizar pull)", path))
}

// pullFlag is for commands that fetch a missing model on request.
type pullFlag struct {
	Pull bool `help:"Pull the model first if it is not on this machine."`
}

// puller returns a puller with the settings of the environment.
func puller(connections int) (*pull.Puller, error) {
	p := &pull.Puller{Store: models(), Client: fetch.NewClient(fetch.Options{Connections: connections})}
	if err := p.HubEnvironment(os.Getenv, home()); err != nil {
		return nil, err
	}
	return p, nil
}

// findModel returns the model of a name.
func findModel(text string) (*store.Model, error) {
	n, err := readName(text)
	if err != nil {
		return nil, err
	}
	if n.Kind == names.Path {
		return nil, fmt.Errorf("realizar keeps no model %s; realizar list shows the names", text)
	}
	return models().Find(n)
}

// writeAliases replaces the file of short names.
func writeAliases(aliases names.Aliases) error {
	path := aliasFile()
	if path == "" {
		return errors.New("there is no folder for the file of short names; set REALIZAR_ALIASES to a file's path")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return replaceFile(path, func(w io.Writer) error {
		_, err := w.Write(aliases.Format())
		return err
	})
}

// shortName returns a name without the prefix hf:.
func shortName(n names.Name) string { return strings.TrimPrefix(n.String(), "hf:") }
