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
	Quiet       bool `short:"q" common:"" help:"Show no progress."`
	JSON        bool `name:"json" common:"" help:"Write progress to standard output as JSON, one object per line."`
	Connections int  `default:"8" placeholder:"N" common:"" help:"Number of parallel connections. Default: ${default}."`
}

// pullCommand is `realizar pull`.
type pullCommand struct {
	Name     string `arg:"" help:"hf:org/repo, ollama:model, oci://registry/name:tag, https://host/file.gguf#sha256=..., or a short name."`
	Revision string `placeholder:"REVISION" common:"" help:"Branch, tag or commit of a repository on the hub. Default: main."`

	pullFlags
}

// Help is shown below the command's line.
func (*pullCommand) Help() string {
	return `pull downloads a model and writes its path to standard output. Every command then takes the name.

Names:

    hf:org/repo               a repository of Hugging Face; org/repo alone means the same
    hf:org/repo:Q8_0          a quantization of it. Default: Q4_K_M, then Q8_0, then the first GGUF file, then safetensors
    hf:org/repo@revision      a branch, a tag or a commit
    ollama:model:tag          a model in the registry of Ollama
    oci://registry/name:tag   an OCI artifact of Docker Model Runner or CNCF ModelPack
    https://host/file.gguf#sha256=DIGEST
    small                     a short name of your own: realizar cp NAME small

Examples:

    realizar pull hf:Qwen/Qwen3-0.6B-GGUF:Q8_0
    realizar pull ollama:llama3.2:1b
    realizar run Qwen/Qwen3-0.6B-GGUF:Q8_0 "Why is the sky blue?"
    realizar serve hf:Qwen/Qwen3-0.6B-GGUF --pull

An interrupted pull resumes. Files get their names after a check of their digests. They are stored
where the tools of Hugging Face look for them (HF_HUB_CACHE, HF_HOME), and models from other places
in REALIZAR_HOME. Files of Ollama (OLLAMA_MODELS) and of the tools of Hugging Face are found without
a pull.

HF_TOKEN, or the file of the tools of Hugging Face, is the key for private and gated repositories;
HF_ENDPOINT is the address of a mirror; HTTPS_PROXY, HTTP_PROXY and NO_PROXY are proxies.
docs/models-by-name.md has more.`
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
			return usagef("--revision applies to repositories on the hub, and %s is not one", c.Name)
		case n.Revision != "" && n.Revision != c.Revision:
			return usagef("--revision %s: the name %s has another revision", c.Revision, c.Name)
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
		return fmt.Errorf("%s is built in: there is nothing to pull", path)
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
		a.notef("interrupted; realizar pull %s resumes the download", n)
		return nil, errors.Join(a.ctx.Err(), err)
	}
	return m, err
}
