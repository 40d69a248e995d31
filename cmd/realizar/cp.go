package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/realizar/realizar/internal/names"
	"github.com/realizar/realizar/internal/store"
)

// cpCommand is `realizar cp`.
type cpCommand struct {
	From string `arg:"" help:"Name or path of a model."`
	To   string `arg:"" help:"A short name, a name such as oci://registry/name:tag, or the path of a folder."`
}

// Help is shown below the command's line.
func (*cpCommand) Help() string {
	return `A short name is one word. It is a line "name = model" in the file REALIZAR_ALIASES, and copies
nothing. A name oci://registry/name:tag is a second name for the same files, which realizar push
uploads. A copy to a folder is checked against the digests.

Examples:

    realizar cp hf:org/repo:Q4_K_M small
    realizar cp ./model.gguf oci://registry.example/m:1
    realizar cp hf:org/repo:Q4_K_M ./folder/`
}

// Run copies a model or makes a short name.
func (c *cpCommand) Run(a *app) error {
	if names.IsAlias(c.To) {
		return c.alias(a)
	}
	to, err := names.Parse(c.To)
	switch {
	case err != nil:
		return usageError{err}
	case to.Kind != names.Path && (to.Kind != names.Registry || to.Tag == ""):
		return usagef("%s: a model can be copied to a short name, to oci://registry/name:tag or to a folder", c.To)
	}
	m, err := modelOf(c.From)
	if err != nil {
		return err
	}
	s := models()
	bar := newBytesBar(a, "copying "+shortName(m.Name), 2*m.Size())
	defer bar.end()
	if to.Kind == names.Registry {
		return s.Copy(a.ctx, m, to, bar.came)
	}
	files := &store.Model{Files: m.Weights()}
	if err := store.WithDigests(a.ctx, files, bar.came); err != nil {
		return err
	}
	for _, f := range files.Files {
		if err := names.CheckFile(f.Name); err != nil {
			return err
		}
		at := filepath.Join(to.Path, filepath.FromSlash(f.Name))
		if _, err := os.Lstat(at); err == nil {
			return fmt.Errorf("%s exists; remove it, or name another folder", at)
		}
		if err := s.CopyFile(a.ctx, f, at, bar.came); err != nil {
			return err
		}
	}
	return nil
}

// alias makes a short name.
func (c *cpCommand) alias(a *app) error {
	if c.To == "demo" {
		return usagef("demo is the built-in model; choose another short name")
	}
	n, err := readName(c.From)
	if err != nil {
		return usageError{err}
	}
	target := n.String()
	if n.Kind == names.Path && target != "demo" {
		if target, err = filepath.Abs(target); err != nil {
			return err
		}
		if _, err := os.Stat(target); err != nil {
			return err
		}
	}
	if strings.ContainsAny(target, "\r\n") {
		return usagef("%q cannot have a short name", target)
	}
	aliases, err := readAliases()
	if err != nil {
		return err
	}
	aliases[c.To] = target
	if err := writeAliases(aliases); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "%s = %s\n", c.To, target)
	return err
}

// modelOf returns the model of a name or path.
func modelOf(text string) (*store.Model, error) {
	n, err := readName(text)
	if err != nil {
		return nil, err
	}
	if n.Kind == names.Path {
		return store.Local(n.Path)
	}
	return models().Find(n)
}
