// Package hub reads the files that accompany a model's weights: its tokenizer, its chat templates,
// the recommended sampling, and how hidden states become vectors and scores. They are in GGUF's
// metadata, or in a folder with the layout of model hubs.
//
// The package only reads files; it runs no model.
package hub

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tokenizer"
)

// A Source provides the files from which a model's tokenizer, templates and sampling are read: an
// opened model, or a folder without its weights.
type Source interface {
	Path() string
	Format() modelfile.Format
	Meta() *modelfile.Meta
	Asset(name string) ([]byte, bool)
}

// OpenTokenizer reads the tokenizer of a model, of a GGUF file that holds only a vocabulary, of a
// folder, or of a tokenizer file. pre is as in [ReadTokenizer].
func OpenTokenizer(path, pre string) (tok *tokenizer.Tokenizer, err error) {
	err = withSource(path, "tokenizer.json", func(f Source) error {
		tok, err = ReadTokenizer(f, pre)
		return err
	})
	return tok, err
}

// OpenTemplate reads a chat template from any path that [OpenTokenizer] accepts, or from a
// tokenizer_config.json. It also returns the texts of the special tokens that the template may use,
// by name. With tools, it prefers the template for conversations with tools.
func OpenTemplate(path string, tools bool) (template *chat.Template, special map[string]string, err error) {
	err = withSource(path, "tokenizer_config.json", func(f Source) error {
		all, err := ReadTemplates(f)
		if err != nil {
			return err
		}
		if template, err = all.Choose(path, tools); err != nil {
			return err
		}
		tok, err := ReadTokenizer(f, "")
		if errors.Is(err, tokenizer.ErrPreTokenizer) {
			tok, err = ReadTokenizer(f, "default") // its special tokens are the same
		}
		if err == nil {
			special = SpecialTexts(tok)
		} else {
			special = configTexts(f) // a template works without a tokenizer
		}
		return nil
	})
	return template, special, err
}

// asset parses a JSON file that accompanies the weights. It returns nil if there is none.
func asset(f Source, name string) (*modelfile.Meta, error) {
	data, ok := f.Asset(name)
	if !ok {
		return nil, nil
	}
	m, err := modelfile.ParseJSON(name, data)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", arch.ErrConfig, f.Path(), err)
	}
	return m, nil
}

// withSource calls use with the source at path. A JSON file takes the place of the file called role
// in its folder. A .model file takes the place of tokenizer.model if role is tokenizer.json.
func withSource(path, role string, use func(Source) error) error {
	if filepath.Ext(path) == ".model" && role == "tokenizer.json" {
		return useFolder(&folder{path: path, dir: filepath.Dir(path), role: "tokenizer.model"}, use)
	}
	if filepath.Ext(path) == ".json" {
		return useFolder(&folder{path: path, dir: filepath.Dir(path), role: role}, use)
	}
	f, err := modelfile.Open(path)
	if err == nil {
		return errors.Join(use(f), f.Close())
	}
	// A folder whose weights are missing or incomplete still has its texts.
	if info, statErr := os.Stat(path); statErr == nil && info.IsDir() {
		folder := &folder{path: path, dir: path}
		for _, name := range []string{"tokenizer.json", "tokenizer.model", "tokenizer_config.json", "chat_template.jinja"} {
			if _, ok := folder.Asset(name); ok {
				return useFolder(folder, use)
			}
		}
	} else if errors.Is(err, modelfile.ErrNotModel) && beginsAsJSON(path) {
		return useFolder(&folder{path: path, dir: filepath.Dir(path), role: role}, use)
	}
	return err
}

// useFolder calls use. An error from reading a file takes precedence over the error that its
// absence leads to.
func useFolder(f *folder, use func(Source) error) error {
	if f.role != "" {
		if _, ok := f.Asset(f.role); !ok {
			return f.err
		}
	}
	err := use(f)
	if f.err != nil {
		return f.err
	}
	return err
}

func beginsAsJSON(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	start := make([]byte, 64)
	n, _ := io.ReadFull(f, start)
	return bytes.HasPrefix(bytes.TrimLeft(start[:n], " \t\r\n"), []byte("{"))
}

// A folder is a Source for a folder with the layout of model hubs. It reads only the files that
// accompany the weights.
type folder struct {
	path string // as the user wrote it
	dir  string
	role string // the file name that path replaces; empty if path is the folder
	err  error  // the first error other than a missing file
}

// Path returns the path as the user wrote it.
func (h *folder) Path() string { return h.path }

// Format returns modelfile.Safetensors.
func (h *folder) Format() modelfile.Format { return modelfile.Safetensors }

// Meta returns the contents of config.json, or nil.
func (h *folder) Meta() *modelfile.Meta {
	m, err := asset(h, "config.json")
	if h.err == nil {
		h.err = err
	}
	return m
}

// maxText is the maximum size in bytes of a file that accompanies the weights. The largest known
// tokenizer.json files have about 40 MB.
const maxText = 128 << 20

// Asset returns the content of a file and whether the file exists.
func (h *folder) Asset(name string) ([]byte, bool) {
	path := filepath.Join(h.dir, filepath.FromSlash(name))
	if name == h.role {
		path = h.path
	} else if h.role == "tokenizer.model" && name == "tokenizer.json" {
		return nil, false // the caller asked for tokenizer.model
	}
	data, err := readAtMost(path, maxText)
	switch {
	case err == nil:
		return data, true
	case name != h.role && errors.Is(err, fs.ErrNotExist):
	case h.err == nil:
		h.err = err
	}
	return nil, false
}

// readAtMost reads a file. A file of more than limit bytes is an error.
func readAtMost(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s: the file exceeds the limit of %d bytes", path, limit)
	}
	return data, nil
}
