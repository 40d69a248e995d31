package main

import (
	"encoding/json"
	"fmt"
	"time"
)

// gcCommand is `realizar gc`.
type gcCommand struct {
	DryRun bool `help:"Only list what would be removed."`
	JSON   bool `name:"json" help:"Write one JSON object for each file, one per line."`
}

// Help is shown below the command's line.
func (*gcCommand) Help() string {
	return `gc removes incomplete downloads, and files in the cache of the hub and in the folder of realizar that
no revision and no name refers to. Downloads in progress stay, and so does what other tools have put
into the cache of the hub within the last hour.

Examples:

    realizar gc
    realizar gc --dry-run`
}

// Run removes the garbage.
func (c *gcCommand) Run(a *app) error {
	all, err := models().Garbage(!c.DryRun, time.Now())
	var sum int64
	for _, g := range all {
		sum += g.Size
		if c.JSON {
			line, err := json.Marshal(struct {
				Path string `json:"path"`
				Size int64  `json:"size"`
				Why  string `json:"why"`
			}{g.Path, g.Size, g.Why})
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(a.out, "%s\n", line); err != nil {
				return err
			}
		} else if _, err := fmt.Fprintf(a.out, "%s  %s  %s\n", g.Path, byteText(g.Size), g.Why); err != nil {
			return err
		}
	}
	if err == nil && !c.JSON {
		what := "are free"
		if c.DryRun {
			what = "would be free"
		}
		_, err = fmt.Fprintf(a.out, "%s %s\n", byteText(sum), what)
	}
	return err
}
