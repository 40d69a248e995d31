package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/realizar/realizar/internal/store"
)

// rmCommand is `realizar rm`.
type rmCommand struct {
	Name []string `arg:"" help:"Models to remove, by the names that realizar list shows. A short name is removed without its model."`
	Yes  bool     `short:"y" help:"Do not ask."`
}

// Help is shown below the command's line.
func (*rmCommand) Help() string {
	return `rm removes models, except for files that other models share. On a terminal it asks first; elsewhere
it needs --yes. A model in the cache of the hub is removed for all tools that use it. Models of
Ollama are removed by Ollama.

Examples:

    realizar rm hf:org/repo:Q4_K_M
    realizar rm small --yes`
}

// Run removes the models.
func (c *rmCommand) Run(a *app) error {
	aliases, err := readAliases()
	if err != nil {
		return err
	}
	var found []*store.Model
	removed := 0
	for _, text := range c.Name {
		if _, ok := aliases[text]; ok {
			delete(aliases, text)
			removed++
			continue
		}
		m, err := findModel(text)
		if err != nil {
			return err
		}
		found = append(found, m)
	}
	for _, m := range found {
		if ok, err := c.confirmed(a, m); err != nil || !ok {
			return err
		}
	}
	if removed > 0 {
		if err := writeAliases(aliases); err != nil {
			return err
		}
	}
	s := models()
	for _, m := range found {
		freed, err := s.Remove(m)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(a.out, "removed %s: %s free\n", shortName(m.Name), byteText(freed)); err != nil {
			return err
		}
	}
	return nil
}

// confirmed asks the user whether to remove a model.
func (c *rmCommand) confirmed(a *app, m *store.Model) (bool, error) {
	if c.Yes {
		return true, nil
	}
	if !term.IsTerminal(int(os.Stdin.Fd())) || !term.IsTerminal(int(a.stderr.Fd())) {
		return false, usagef("there is no terminal to confirm the removal of %s; --yes removes it", shortName(m.Name))
	}
	if _, err := fmt.Fprintf(a.err, "remove %s, %s, from %s? [y/N] ", shortName(m.Name), byteText(m.Size()), m.Place); err != nil {
		return false, err
	}
	answer, err := bufio.NewReader(a.stdin).ReadString('\n')
	if err != nil {
		return false, err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return true, nil
	}
	a.notef("nothing was removed")
	return false, nil
}
