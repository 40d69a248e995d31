package main

import (
	"fmt"

	"github.com/realizar/realizar/internal/fetch"
	"github.com/realizar/realizar/internal/names"
	"github.com/realizar/realizar/internal/push"
	"github.com/realizar/realizar/internal/store"
)

// pushCommand is `realizar push`.
type pushCommand struct {
	From string `arg:"" help:"Name or path of a model."`
	To   string `arg:"" optional:"" help:"Name in the registry: oci://registry/name:tag. Default: the name of the model, if it has this form."`
}

// Help is shown below the command's line.
func (*pushCommand) Help() string {
	return `push uploads a model to an OCI registry in the format of CNCF ModelPack, which Docker Model Runner
reads too. A model that came from a registry keeps its format. push writes the digest of the manifest
to standard output.

Examples:

    realizar push ./model.gguf oci://registry.example/team/model:1
    realizar push hf:org/repo:Q4_K_M oci://localhost:5000/model:q4

Credentials are those of docker login. The connection to a registry on localhost has no TLS.`
}

// Run pushes the model.
func (c *pushCommand) Run(a *app) error {
	if c.To == "" {
		c.To = c.From
	}
	to, err := names.Parse(c.To)
	if err != nil {
		return usageError{err}
	}
	if to.Kind != names.Registry || to.Tag == "" {
		return usagef("%s: want a name with a tag: oci://registry/name:tag", c.To)
	}
	m, err := modelOf(c.From)
	if err != nil {
		return err
	}
	bar := newBytesBar(a, "pushing "+shortName(m.Name), m.Size())
	defer bar.end()
	if m.Place != store.OwnLayout {
		bar.of = 2 * m.Size() // once to hash, once to send
	}
	client := fetch.NewClient(fetch.Options{})
	defer client.Close()
	digest, err := push.Model(a.ctx, client.HTTP, models(), m, to, bar.came, func(_ string, _, n int64) { bar.came(n) })
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.out, digest)
	return err
}
