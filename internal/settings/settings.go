// Package settings reads files of settings: keys and their values, in YAML.
//
// A value is text, whatever it looks like, or a list of texts: the caller, which knows the
// setting, converts it. Whatever else YAML has, anchors, tags and several documents, is an error,
// and so are tables, except those of [ParseTables].
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

// A Setting is a key with its value.
type Setting struct {
	Key  string
	Line int
	// Texts are the elements of the value where it is a list, or else it alone.
	Texts []string
	List  bool
}

// MaxFile is how many bytes a file may have.
const MaxFile = 64 << 10

// Read is what the file at path holds.
func Read(path string) ([]byte, error) {
	// Opening a pipe may wait for ever.
	switch info, err := os.Stat(path); {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file", path)
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

// Parse reads the settings of a file, in order. name is the file's, for errors.
func Parse(name string, data []byte) ([]Setting, error) {
	root, err := parse(name, data)
	if root == nil {
		return nil, err
	}
	return pairs(name, root.Content)
}

// A Table is a key of a file whose value is settings.
type Table struct {
	Key      string
	Line     int
	Settings []Setting
}

// ParseTables reads the tables of a file, in order. A key without a value is a table without
// settings.
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
			return fmt.Errorf("%s:%d: %.60q is no table; want keys with their values below it, indented", name, key.Line, key.Value)
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

// parse returns the mapping that a file is, or nil if the file has no values.
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
		return nil, nil // comments alone
	}
	if root.Kind != yaml.MappingNode || !plain(root) {
		return nil, fmt.Errorf("%s:%d: want a key with its value in each line, such as port: 9000", name, root.Line)
	}
	return root, nil
}

// pairs returns keys with the values that follow them.
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

// members calls each with the keys and values of a mapping.
func members(name string, nodes []*yaml.Node, each func(key, value *yaml.Node) error) error {
	lines := map[string]int{}
	for ; len(nodes) > 1; nodes = nodes[2:] {
		key, value := nodes[0], nodes[1]
		if key.Kind != yaml.ScalarNode || !plain(key) {
			return fmt.Errorf("%s:%d: a key is no text; want one such as port", name, key.Line)
		}
		if first, twice := lines[key.Value]; twice {
			return fmt.Errorf("%s:%d: %.60q is there twice, first in line %d; leave one out", name, key.Line, key.Value, first)
		}
		lines[key.Value] = key.Line
		if err := each(key, value); err != nil {
			return err
		}
	}
	return nil
}

// plain reports whether a node has no anchor and no tag.
func plain(n *yaml.Node) bool { return n.Anchor == "" && n.Style&yaml.TaggedStyle == 0 }

// read reads the value.
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

// syntax is an error of the YAML as this package writes errors.
func syntax(name string, err error) error {
	text := err.Error()
	if parts := syntaxForm.FindStringSubmatch(text); parts != nil {
		text = parts[2]
		switch {
		case parts[1] != "":
			name += ":" + parts[1]
		case !strings.Contains(text, "anchor"): // which the decoder never has a line for
			name += ":1" // which it leaves out
		}
	}
	return fmt.Errorf("%s: this is no YAML: %s; values that begin with a sign stand in quotes, such as \"*\"", name, text)
}

// checkText refuses what is no text in UTF-8.
func checkText(name string, data []byte) error {
	line := 1
	for rest := data; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		switch {
		case r == '\n':
			line++
		case r == utf8.RuneError && size == 1:
			return fmt.Errorf("%s:%d: a byte %#02x is no UTF-8; want text", name, line, rest[0])
		case unicode.IsControl(r) && r != '\t' && r != '\r':
			return fmt.Errorf("%s:%d: a character %U is no text; write it as \"\\u%04x\" if it is meant", name, line, r, r)
		}
		rest = rest[size:]
	}
	return nil
}
