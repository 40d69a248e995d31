package realizar

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tokenizer"
)

// OpenTokenizer reads a tokenizer alone. path is what [Open] takes, or a GGUF
// file that holds only a vocabulary, a tokenizer.json or tokenizer.model (a
// tokenizer_config.json beside it is read with it), or a folder with one. The error wraps
// [ErrNoTokenizer] where the file has none that can be used.
func OpenTokenizer(path string) (*tokenizer.Tokenizer, error) { return OpenTokenizerWith(path, "") }

// OpenTokenizerWith is [OpenTokenizer] with a pre-tokenizer as in [Options].
func OpenTokenizerWith(path, preTokenizer string) (*tokenizer.Tokenizer, error) {
	var tok *tokenizer.Tokenizer
	err := withText(path, "tokenizer.json", func(f textSource) (err error) {
		tok, err = readTokenizer(f, preTokenizer)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("realizar: %w", err)
	}
	return tok, nil
}

// OpenTemplate reads a chat template alone, and the texts of the special tokens
// that it may name ("bos_token" and so on). path is what [OpenTokenizer] takes,
// or a tokenizer_config.json. With tools it is the template for conversations
// with tools where the model has one of its own for them. The error wraps
// [ErrNoTemplate] where there is none that can be used.
func OpenTemplate(path string, tools bool) (*chat.Template, map[string]string, error) {
	var template *chat.Template
	var special map[string]string
	err := withText(path, "tokenizer_config.json", func(f textSource) error {
		all, err := readTemplates(f)
		if err != nil {
			return err
		}
		if template, err = all.choose(path, tools); err != nil {
			return err
		}
		tok, err := readTokenizer(f, "")
		if errors.Is(err, tokenizer.ErrPreTokenizer) {
			tok, err = readTokenizer(f, "default") // its special tokens are the same
		}
		if err == nil {
			special = specialTexts(tok)
		} else {
			special = configTexts(f) // a template works without a tokenizer
		}
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("realizar: %w", err)
	}
	return template, special, nil
}

// configTexts reads the texts of special tokens from tokenizer_config.json,
// where a token is a string or an object with its content.
func configTexts(f textSource) map[string]string {
	texts := map[string]string{}
	config, err := asset(f, "tokenizer_config.json")
	if err != nil {
		return texts // readTemplates has reported it
	}
	for _, name := range []string{"bos_token", "eos_token", "pad_token", "unk_token"} {
		for _, key := range []string{name, name + ".content"} {
			if s, ok := config.String(key); ok {
				texts[name] = s
			}
		}
	}
	return texts
}

// withText calls use with what is at path. A JSON file stands for the file
// called role of its folder, and where that is tokenizer.json a file like
// tokenizer.model for that.
func withText(path, role string, use func(textSource) error) error {
	if filepath.Ext(path) == ".model" && role == "tokenizer.json" {
		return useFolder(&hubFolder{path: path, dir: filepath.Dir(path), role: "tokenizer.model"}, use)
	}
	if filepath.Ext(path) == ".json" {
		return useFolder(&hubFolder{path: path, dir: filepath.Dir(path), role: role}, use)
	}
	f, err := modelfile.Open(path)
	if err == nil {
		return errors.Join(use(f), f.Close())
	}
	// Without its weights, or with some of them, a folder still has its texts.
	if info, statErr := os.Stat(path); statErr == nil && info.IsDir() {
		folder := &hubFolder{path: path, dir: path}
		for _, name := range []string{"tokenizer.json", "tokenizer.model", "tokenizer_config.json", "chat_template.jinja"} {
			if _, ok := folder.Asset(name); ok {
				return useFolder(folder, use)
			}
		}
	} else if errors.Is(err, modelfile.ErrNotModel) && beginsAsJSON(path) {
		return useFolder(&hubFolder{path: path, dir: filepath.Dir(path), role: role}, use)
	}
	return err
}

// useFolder reports what kept a file from being read before what the lack of it
// led to.
func useFolder(f *hubFolder, use func(textSource) error) error {
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

// A hubFolder is a folder as model hubs lay it out, of which only the files
// beside the weights are read.
type hubFolder struct {
	path string // as the user wrote it
	dir  string
	role string // the name that path itself stands for; empty when it is the folder
	err  error  // the first that is not the absence of a file
}

// Path is the path as the user wrote it.
func (h *hubFolder) Path() string { return h.path }

// Format is that of hubs.
func (h *hubFolder) Format() modelfile.Format { return modelfile.Safetensors }

// Meta is config.json.
func (h *hubFolder) Meta() *modelfile.Meta {
	m, err := asset(h, "config.json")
	if h.err == nil {
		h.err = err
	}
	return m
}

// maxText is the most bytes that a file beside the weights may have; the largest
// tokenizer.json of known models have about 40 MB.
const maxText = 128 << 20

// Asset is the content of a file, and whether there is one.
func (h *hubFolder) Asset(name string) ([]byte, bool) {
	path := filepath.Join(h.dir, filepath.FromSlash(name))
	if name == h.role {
		path = h.path
	} else if h.role == "tokenizer.model" && name == "tokenizer.json" {
		return nil, false // the other one was asked for
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

// readAtMost reads a file that has no more than limit bytes.
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
		return nil, fmt.Errorf("%s: more than the %d bytes that such a file may have", path, limit)
	}
	return data, nil
}
