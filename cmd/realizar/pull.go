package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/realizar/realizar/internal/names"
	"github.com/realizar/realizar/internal/store"
	"github.com/realizar/realizar/modelfile"
)

// pullFlags say how a model is downloaded, and how progress is shown.
type pullFlags struct {
	Quiet       bool `short:"q" help:"Show no progress."`
	JSON        bool `name:"json" help:"Write progress as JSON, an object a line, to standard output."`
	Connections int  `default:"8" placeholder:"N" help:"Connections at one time. Default: ${default}."`
}

// pullCommand is `realizar pull`.
type pullCommand struct {
	Name     string `arg:"" help:"What to fetch: hf:org/repo, ollama:model, oci://registry/name:tag, https://host/file.gguf#sha256=..., or a short name."`
	Revision string `placeholder:"REVISION" help:"The branch, tag or commit of a repository of the hub. Default: main."`

	pullFlags
}

// Help is shown below the command's line.
func (*pullCommand) Help() string {
	return `pull fetches a model and writes the path of it to standard output. Every command takes the name from then on.

Names:

    hf:org/repo               a repository of Hugging Face's hub; org/repo alone means the same
    hf:org/repo:Q8_0          a quantisation of it. Default: Q4_K_M, then Q8_0, then the first GGUF file, then safetensors
    hf:org/repo@revision      a branch, a tag or a commit
    ollama:model:tag          a model of Ollama's registry
    oci://registry/name:tag   an OCI artifact as Docker's Model Runner and CNCF's ModelPack write them
    https://host/file.gguf#sha256=DIGEST
    small                     a short name of your own: realizar cp NAME small

Examples:

    realizar pull hf:Qwen/Qwen3-0.6B-GGUF:Q8_0
    realizar pull ollama:llama3.2:1b
    realizar run Qwen/Qwen3-0.6B-GGUF:Q8_0 "Why is the sky blue?"
    realizar serve hf:Qwen/Qwen3-0.6B-GGUF --pull

A pull that was broken off goes on where it was. Files are checked by the digests of the listing before they have their
names, and lie where the hub's own tools look for them (HF_HUB_CACHE, HF_HOME), those of other places in REALIZAR_HOME.
Files of Ollama's (OLLAMA_MODELS) and of the hub's tools are found without a pull.

HF_TOKEN, or the file that the hub's tools keep, is for private and gated repositories; HF_ENDPOINT is the address of a
mirror; HTTPS_PROXY, HTTP_PROXY and NO_PROXY are proxies. docs/models-by-name.md has more.`
}

// Validate implements the parser's interface.
func (c *pullCommand) Validate() error {
	if c.Connections < 1 || c.Connections > 64 {
		return fmt.Errorf("--connections=%d: want 1 to 64", c.Connections)
	}
	return nil
}

// Run fetches the model.
func (c *pullCommand) Run(a *app) error {
	n, err := readName(c.Name)
	if err != nil {
		return usageError{err}
	}
	if n.Kind == names.Path {
		return nothingToPull(n.Path)
	}
	if c.Revision != "" {
		switch {
		case n.Kind != names.Hub:
			return usagef("--revision is for repositories of the hub, and %s is none", c.Name)
		case n.Revision != "" && n.Revision != c.Revision:
			return usagef("--revision %s: the name %s has another one", c.Revision, c.Name)
		}
		if err := names.CheckRevision(c.Revision); err != nil {
			return usagef("--revision: %w", err)
		}
		n.Revision = c.Revision
	}
	m, err := a.pull(n, c.pullFlags)
	if err != nil {
		return err
	}
	if c.JSON {
		return nil
	}
	_, err = fmt.Fprintln(a.out, m.Path)
	return err
}

// nothingToPull returns the error for a text that is a path and not the name of a model to pull.
func nothingToPull(path string) error {
	if modelfile.Registered(path) {
		return fmt.Errorf("%s is in the program: there is nothing to pull", path)
	}
	if _, err := os.Stat(path); err == nil {
		return fmt.Errorf("%s is on this machine: there is nothing to pull", path)
	}
	return noName(path)
}

// pull fetches a model and shows the progress.
func (a *app) pull(n names.Name, f pullFlags) (*store.Model, error) {
	p, err := puller(f.Connections)
	if err != nil {
		return nil, err
	}
	defer p.Client.Close()
	var shown pullProgress
	switch {
	case f.JSON:
		shown = newPullLines(a, n)
	case f.Quiet:
		shown = silentPull{}
	case term.IsTerminal(int(a.stderr.Fd())):
		shown = newPullBars(a)
	default:
		shown = &pullNotes{a: a, name: n, begun: time.Now()}
	}
	p.Watcher = shown
	m, err := p.Pull(a.ctx, n)
	shown.end(m, err)
	if err != nil && a.ctx.Err() != nil && !f.Quiet {
		a.notef("interrupted: what has come is kept, and realizar pull %s goes on with it", n)
		return nil, errors.Join(a.ctx.Err(), err)
	}
	return m, err
}
