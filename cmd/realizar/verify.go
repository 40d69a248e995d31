package main

import (
	"errors"
	"fmt"

	"github.com/realizar/realizar/internal/store"
)

// verifyCommand is `realizar verify`.
type verifyCommand struct {
	Name []string `arg:"" optional:"" help:"Models to check, by the names that realizar list shows. Default: all."`
}

// Help is shown below the command's line.
func (*verifyCommand) Help() string {
	return `verify reads all files of the models and compares them with the digests from the download. It names
damaged files, and the exit code is then 1.

Examples:

    realizar verify hf:org/repo:Q4_K_M
    realizar verify`
}

// errDamaged reports that files, which were listed, are damaged.
var errDamaged = errors.New("files are damaged; realizar rm and realizar pull download their models again")

// Run checks the models.
func (c *verifyCommand) Run(a *app) error {
	s := models()
	var all []*store.Model
	for _, text := range c.Name {
		m, err := findModel(text)
		if err != nil {
			return err
		}
		all = append(all, m)
	}
	if len(c.Name) == 0 {
		var err error
		if all, err = s.List(); err != nil {
			return err
		}
	}
	var failed error
	for _, m := range all {
		bar := newBytesBar(a, "checking "+shortName(m.Name), m.Size())
		damaged, unknown, err := s.Verify(a.ctx, m, bar.came)
		bar.end()
		if err != nil {
			return err
		}
		state := "whole"
		switch {
		case len(damaged) > 0:
			state, failed = "damaged", errDamaged
		case len(unknown) == len(m.Files):
			state = "unknown: nothing says what its bytes should be"
		}
		if _, err := fmt.Fprintf(a.out, "%s  %s\n", shortName(m.Name), state); err != nil {
			return err
		}
		for _, f := range damaged {
			if _, err := fmt.Fprintf(a.out, "    %s: %s\n", f.File.Path, f.Problem); err != nil {
				return err
			}
		}
	}
	return failed
}
