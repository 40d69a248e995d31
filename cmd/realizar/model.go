package main

import (
	"cmp"
	"context"
	"path/filepath"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/demo"
	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/tokenizer"
)

// modelFlags are the flags of every command that runs a model.
type modelFlags struct {
	Activations string `default:"auto" enum:"auto,f32" placeholder:"auto|f32" group:"model" help:"Numbers to compute with. auto is the fastest that keeps the model's quality, f32 is float32 throughout."`
	Threads     int    `short:"t" default:"0" placeholder:"N" group:"model" help:"Threads that share the work. Default: one for each processor core that the process may use."`
	Device      string `default:"auto" placeholder:"auto|cpu|cuda" group:"model" help:"Where the model runs. cuda is an NVIDIA GPU, cuda:1 the one with the number 1. auto is a GPU that works and that has room for the model, or for what must lie there while the rest streams, or else the processor."`
	Context     int    `short:"c" default:"0" placeholder:"N" group:"model" help:"Tokens that a prompt and its answer may have together. Default: what the model was made for, or the largest power of two that memory allows."`
	Parallel    int    `default:"0" placeholder:"N" group:"model" help:"Answers under way at one time, at most. Default: as many as are asked for; serve: 64 on a GPU, 16 on the CPU."`

	memoryFlags
	checkFlags
	tokenizerFlags
}

// tokenizerFlags are the flags of every command that reads a model's tokenizer.
type tokenizerFlags struct {
	PreTokenizer string `placeholder:"NAME" group:"model" help:"How text is cut before the tokenizer, by its name in tokenizer.ggml.pre, for a GGUF file that names none or one that is not known. Default: what the file names."`
}

// Validate returns an error for an invalid value. A command that has a Validate method itself must
// call it there.
func (f *modelFlags) Validate() error {
	if f.Threads < 0 {
		return wrongFlag("threads", f.Threads, "1 or more, or 0 for one for each processor core")
	}
	if f.Context < 0 {
		return wrongFlag("context", f.Context, "1 or more, or 0 for what the model was made for")
	}
	if f.Parallel < 0 {
		return wrongFlag("parallel", f.Parallel, "1 or more, or 0 for as many as are asked for")
	}
	if err := f.checkFlags.Validate(); err != nil {
		return err
	}
	return checkDevice(f.Device)
}

// checkDevice returns an error for an invalid device name.
func checkDevice(name string) error {
	if err := backends.All.Check(backends.Choice{Name: name}); err != nil {
		return &flagError{flag: "device", err: err}
	}
	return nil
}

// noteDevice reports why a GPU was skipped, if one was.
func (a *app) noteDevice(problem error) {
	if problem != nil {
		a.notef("on the CPU: %s", oneLine(problem.Error()))
	}
}

// noteTokenizer reports that a file does not say how text is split.
func (a *app) noteTokenizer(tok *tokenizer.Tokenizer) {
	if tok.Guessed() {
		a.notef("the file names no pre-tokenizer: text is cut by %q, and the model may read it worse than it could; --pre-tokenizer names another", tok.Name())
	}
}

// options returns the options of the flags, with one answer at a time by default.
func (f *modelFlags) options() realizar.Options {
	activations, _ := realizar.ParseActivations(f.Activations) // the parser knows the values
	o := realizar.Options{
		Device: f.Device, Threads: f.Threads, Context: f.Context, Activations: activations, Parallel: cmp.Or(f.Parallel, 1),
		PreTokenizer: f.PreTokenizer, Speculative: realizar.SpeculativeOff,
	}
	f.memoryFlags.apply(&o)
	f.checkFlags.apply(&o)
	return o
}

// orDemo returns the named model, or else the built-in one, which it reports.
func (a *app) orDemo(model, command string) string {
	if model != "" {
		return model
	}
	a.notef("no model was named, so this is %s, the small one in the program; realizar %s MODEL runs another: a GGUF file, a safetensors file, or a folder with one",
		demo.Name, command)
	return demo.Name
}

// open opens the model with the flags' options, and shows progress on a terminal.
func (a *app) open(path string, f *modelFlags) (*realizar.Model, error) {
	return a.openWith(a.ctx, path, f.options())
}

// openWith is open with other options. It stops when ctx ends.
func (a *app) openWith(ctx context.Context, path string, o realizar.Options) (*realizar.Model, error) {
	makeRoom(o.Threads)
	o.Kernels = a.kernels
	path, err := a.modelPath(path, false)
	if err != nil {
		return nil, err
	}
	var bar progressBar
	if term.IsTerminal(int(a.stderr.Fd())) {
		bar = progressBar{a: a, label: "loading " + filepath.Base(path), begun: time.Now()}
		o.Progress = bar.show
	}
	m, err := realizar.Open(ctx, path, o)
	bar.end()
	if err == nil {
		a.noteDevice(m.DeviceProblem())
		if ids := m.StrayEnds(); len(ids) > 0 {
			a.notef("the files end answers with token %d too, which the model does not have: its vocabulary has %d", ids[0], m.Vocab())
		}
		if tok, err := m.Tokenizer(); err == nil {
			a.noteTokenizer(tok)
		}
	}
	return m, err
}

// A progressBar shows the progress of something that takes a while. It removes itself at the end. The
// zero bar shows nothing.
type progressBar struct {
	a     *app
	label string
	begun time.Time
	bars  *mpb.Progress
	bar   *mpb.Bar
}

// noticeable is how long something may take before a bar appears.
const noticeable = 300 * time.Millisecond

func (b *progressBar) show(p realizar.Progress) {
	if b.a == nil {
		return
	}
	if b.bar == nil {
		if time.Since(b.begun) < noticeable {
			return
		}
		b.bars = mpb.NewWithContext(b.a.ctx, mpb.WithOutput(b.a.stderr), mpb.WithWidth(40))
		b.bar = b.bars.AddBar(p.Total, mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Name(b.label+" ")),
			mpb.AppendDecorators(decor.CountersKibiByte("% .1f of % .1f")))
	}
	b.bar.SetCurrent(p.Done)
}

func (b *progressBar) end() {
	if b.bar != nil {
		b.bar.Abort(true)
		b.bars.Wait()
	}
}
