package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/synth"
)

// synthCommand is `realizar synth`.
type synthCommand struct {
	Shape string `arg:"" help:"The model to resemble, such as llama-3.2-1b; --help-all lists them."`
	Quant string `arg:"" help:"Formats of its weights, such as Q4_K_M; --help-all lists them."`
	Out   string `arg:"" help:"The GGUF file to write."`
	Seed  uint64 `default:"1" placeholder:"N" common:"" help:"Seed of the random weights. Default: ${default}."`
	Force bool   `common:"" help:"Replace an existing file OUT."`
}

// Help is shown below the command's line.
func (*synthCommand) Help() string {
	shapes, mixes := newTable(), newTable()
	for i := range synth.Shapes {
		s := &synth.Shapes[i]
		shapes.row("    "+s.Name, fmt.Sprintf("%.2f billion weights", float64(s.Params())/1e9))
	}
	// llama.cpp publishes its figures for this shape.
	const published = "llama-3.1-8b"
	s, _ := synth.FindShape(published)
	for i := range synth.Mixes {
		m := &synth.Mixes[i]
		mixes.row("    "+m.Name, fmt.Sprintf("%.2f", m.BitsPerWeight(s)))
	}
	return `The file takes the memory and the time of the real model, to measure a machine without a download.
The text that it generates has no meaning. The same shape, quant and seed give the same file on every
machine. OUT appears when it is complete.

Shapes:

` + shapes.text(1) + `
Quants, with the mixes of llama.cpp, and their bits per weight for ` + published + `:

` + mixes.text(1) + `
llama.cpp has MXFP4 for experts only; here all layers have it.

Examples:

    realizar synth llama-3.2-1b Q4_K_M synth.gguf
    realizar bench synth.gguf
    realizar run synth.gguf "hi" --max-tokens 8`
}

// Validate implements the parser's interface.
func (c *synthCommand) Validate() error {
	if _, ok := synth.FindShape(c.Shape); !ok {
		var names []string
		for i := range synth.Shapes {
			names = append(names, synth.Shapes[i].Name)
		}
		return fmt.Errorf("there is no shape %q; want one of %s", c.Shape, strings.Join(names, ", "))
	}
	if _, ok := synth.FindMix(c.Quant); !ok {
		var names []string
		for i := range synth.Mixes {
			names = append(names, synth.Mixes[i].Name)
		}
		return fmt.Errorf("there is no quant %q; want one of %s", c.Quant, strings.Join(names, ", "))
	}
	return nil
}

// Run writes the file.
func (c *synthCommand) Run(a *app) error {
	shape, _ := synth.FindShape(c.Shape)
	mix, _ := synth.FindMix(c.Quant)
	if err := c.free(); err != nil {
		return err
	}
	f, err := synth.New(shape, mix, c.Seed)
	if err != nil {
		return err
	}
	var bar progressBar
	if term.IsTerminal(int(a.stderr.Fd())) {
		bar = progressBar{a: a, label: "writing " + filepath.Base(c.Out), begun: time.Now()}
	}
	err = replaceFile(c.Out, func(w io.Writer) error {
		return f.Write(a.ctx, &progressWriter{w: w, bar: &bar, at: realizar.Progress{Total: f.Size()}}, runtime.GOMAXPROCS(0))
	})
	bar.end()
	if err != nil {
		return fmt.Errorf("writing %s to %s: %w", byteText(f.Size()), c.Out, err)
	}
	return nil
}

// free returns an error if the file exists and may not be replaced.
func (c *synthCommand) free() error {
	info, err := os.Stat(c.Out)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().IsRegular() && !c.Force:
		return fmt.Errorf("%s exists; --force replaces it", c.Out)
	}
	return nil
}

// A progressWriter shows how many bytes were written through it.
type progressWriter struct {
	w   io.Writer
	bar *progressBar
	at  realizar.Progress
}

func (p *progressWriter) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	p.at.Done += int64(n)
	p.bar.show(p.at)
	return n, err
}
