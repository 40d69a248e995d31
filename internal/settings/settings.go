// Package settings reads settings files: keys and values, in YAML.
//
// A value is text, whatever its look, or a list of texts. The caller knows the setting and converts
// the text. Every other feature of YAML is an error: anchors, tags, several documents, and tables
// except those of [ParseTables].
package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// A Setting is a key and its value.
type Setting struct {
	Key  string
	Line int
	// Texts are the elements of a list, or a single value.
	Texts []string
	List  bool
}

// MaxFile is the maximum size of a settings file, in bytes.
const MaxFile = 64 << 10

// Read reads the file at path.
func Read(path string) ([]byte, error) {
	// Opening a pipe may block forever.
	switch info, err := os.Stat(path); {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err == nil && len(data) > MaxFile {
		err = fmt.Errorf("%s is too large; want %d bytes at most", path, MaxFile)
	}
	return data, err
}

// Parse parses the settings of a file, in order. Errors begin with name.
func Parse(name string, data []byte) ([]Setting, error) {
	root, err := parse(name, data)
	if root == nil {
		return nil, err
	}
	return pairs(name, root.Content)
}

// A Table is a key whose value is a group of settings.
type Table struct {
	Key      string
	Line     int
	Settings []Setting
}

// ParseTables parses the tables of a file, in order. A key without a value is a table without
// settings. Errors begin with name.
func ParseTables(name string, data []byte) ([]Table, error) {
	root, err := parse(name, data)
	if root == nil {
		return nil, err
	}
	var all []Table
	err = members(name, root.Content, func(key, value *yaml.Node) error {
		t := Table{Key: key.Value, Line: key.Line}
		switch {
		case value.Kind == yaml.ScalarNode && value.Tag == "!!null" && plain(value):
		case value.Kind != yaml.MappingNode || !plain(value):
			return fmt.Errorf("%s:%d: %.60q is not a table; want keys with their values below it, indented", name, key.Line, key.Value)
		default:
			var err error
			if t.Settings, err = pairs(name, value.Content); err != nil {
				return err
			}
		}
		all = append(all, t)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// parse returns the top-level mapping of a file, or nil if the file has no values.
func parse(name string, data []byte) (*yaml.Node, error) {
	if err := checkText(name, data); err != nil {
		return nil, err
	}
	documents := yaml.NewDecoder(bytes.NewReader(data))
	var document, more yaml.Node
	switch err := documents.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, syntax(name, err)
	}
	switch err := documents.Decode(&more); {
	case err == nil:
		return nil, fmt.Errorf("%s:%d: a second document begins here; want one", name, more.Line)
	case !errors.Is(err, io.EOF):
		return nil, syntax(name, err)
	}
	root := document.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil, nil // only comments
	}
	if root.Kind != yaml.MappingNode || !plain(root) {
		return nil, fmt.Errorf("%s:%d: want a key with its value in each line, such as port: 9000", name, root.Line)
	}
	return root, nil
}

// pairs parses a mapping's alternating keys and values.
func pairs(name string, nodes []*yaml.Node) ([]Setting, error) {
	var all []Setting
	err := members(name, nodes, func(key, value *yaml.Node) error {
		s := Setting{Key: key.Value, Line: key.Line}
		if err := s.read(value); err != nil {
			return fmt.Errorf("%s:%d: %.60q %w", name, key.Line, key.Value, err)
		}
		all = append(all, s)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// members calls each for every key and value of a mapping.
func members(name string, nodes []*yaml.Node, each func(key, value *yaml.Node) error) error {
	lines := map[string]int{}
	for ; len(nodes) > 1; nodes = nodes[2:] {
		key, value := nodes[0], nodes[1]
		if key.Kind != yaml.ScalarNode || !plain(key) {
			return fmt.Errorf("%s:%d: a key is not text; want one such as port", name, key.Line)
		}
		if first, twice := lines[key.Value]; twice {
			return fmt.Errorf("%s:%d: %.60q appears twice, first in line %d; remove one", name, key.Line, key.Value, first)
		}
		lines[key.Value] = key.Line
		if err := each(key, value); err != nil {
			return err
		}
	}
	return nil
}

// plain reports whether a node has neither an anchor nor a tag.
func plain(n *yaml.Node) bool { return n.Anchor == "" && n.Style&yaml.TaggedStyle == 0 }

// read sets the value from n.
func (s *Setting) read(n *yaml.Node) error {
	elements := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode && plain(n) {
		s.List, elements = true, n.Content
	}
	for _, e := range elements {
		switch {
		case e.Kind != yaml.ScalarNode || !plain(e):
			return errors.New("is neither a value nor a list of values")
		case e.Tag == "!!null":
			return errors.New("has no value; give it one, or leave it out")
		}
		s.Texts = append(s.Texts, e.Value)
	}
	if len(s.Texts) == 0 {
		return errors.New("is an empty list; leave it out")
	}
	return nil
}

var syntaxForm = regexp.MustCompile(`^yaml: (?:line (\d+): )?(?s:(.*))$`)

// syntax converts an error of the YAML decoder to the form of this package's errors.
func syntax(name string, err error) error {
	text := err.Error()
	if parts := syntaxForm.FindStringSubmatch(text); parts != nil {
		text = parts[2]
		switch {
		case parts[1] != "":
			name += ":" + parts[1]
		case !strings.Contains(text, "anchor"): // the decoder has no line for these errors
			name += ":1" // the decoder omits line 1
		}
	}
	return fmt.Errorf("%s: not valid YAML: %s; quote a value that begins with a special character, such as \"*\"", name, text)
}

// checkText returns an error if data is not text in UTF-8.
func checkText(name string, data []byte) error {
	line := 1
	for rest := data; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		switch {
		case r == '\n':
			line++
		case r == utf8.RuneError && size == 1:
			return fmt.Errorf("%s:%d: the byte %#02x is not UTF-8; want text", name, line, rest[0])
		case unicode.IsControl(r) && r != '\t' && r != '\r':
			return fmt.Errorf("%s:%d: the character %U is not text; write it as \"\\u%04x\" if it is meant", name, line, r, r)
		}
		rest = rest[size:]
	}
	return nil
}
