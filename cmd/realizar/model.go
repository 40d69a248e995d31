package main

import (
	"cmp"
	"context"
	"path/filepath"
	"time"

	"github.com/charmbracelet/x/ansi"
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
	Context     int    `short:"c" default:"0" placeholder:"N" group:"model" common:"" help:"Most tokens of prompt and answer together. Default: what the model supports, or the largest power of two that fits in memory."`
	Device      string `default:"auto" placeholder:"auto|cpu|cuda" group:"model" common:"" help:"Where the model runs. cuda is as few NVIDIA GPUs as hold it, cuda:1 number 1, cuda:0,1 both. auto is cuda if it fits (or streams), else the CPU."`
	Threads     int    `short:"t" default:"0" placeholder:"N" group:"model" common:"" help:"Compute threads. Default: one per available core."`
	Activations string `default:"auto" enum:"auto,f32,f8" placeholder:"auto|f32|f8" group:"model" help:"Arithmetic. auto is the fastest that keeps the quality of the model, f32 is float32 throughout, f8 rounds to FP8 (GPUs of capability 9.0): long prompts are faster, decoding is slower."`
	Parallel    int    `default:"0" placeholder:"N" group:"model" help:"Most running requests. Default: as many as the command sends; for serve 64 on a GPU, 16 on the CPU."`

	splitFlag
	memoryFlags
	checkFlags
	tokenizerFlags
}

// tokenizerFlags are the flags of every command that reads a model's tokenizer.
type tokenizerFlags struct {
	PreTokenizer string `placeholder:"NAME" group:"model" help:"Pre-tokenizer for a GGUF file whose tokenizer.ggml.pre is missing or unknown, by a name that the key could have. Default: what the file names."`
}

// Validate returns an error for an invalid value. A command that has a Validate method itself must
// call it there.
func (f *modelFlags) Validate() error {
	if f.Threads < 0 {
		return wrongFlag("threads", f.Threads, "1 or more, or 0 for one per core")
	}
	if f.Context < 0 {
		return wrongFlag("context", f.Context, "1 or more, or 0 for what the model supports")
	}
	if f.Parallel < 0 {
		return wrongFlag("parallel", f.Parallel, "1 or more, or 0 for as many as the command sends")
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
		a.notef("the file names no pre-tokenizer, so %q is used, and answers may be worse; --pre-tokenizer names another", tok.Name())
	}
}

// options returns the options of the flags, with one answer at a time by default.
func (f *modelFlags) options() realizar.Options {
	activations, _ := realizar.ParseActivations(f.Activations) // the parser knows the values
	o := realizar.Options{
		Device: f.Device, Threads: f.Threads, Context: f.Context, Activations: activations, Parallel: cmp.Or(f.Parallel, 1),
		PreTokenizer: f.PreTokenizer, Speculative: realizar.SpeculativeOff,
	}
	f.splitFlag.apply(&o)
	f.memoryFlags.apply(&o)
	f.checkFlags.apply(&o)
	return o
}

// orDemo returns the named model, or else the built-in one, which it reports.
func (a *app) orDemo(model, command string) string {
	if model != "" {
		return model
	}
	a.notef("no model was named, so this is %s, the small built-in model; realizar %s MODEL runs another: a GGUF or safetensors file, or a folder with one",
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
	if err := a.findDraft(&o); err != nil {
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
			a.notef("the files name token %d as an end of answers, which is outside the vocabulary of %d tokens", ids[0], m.Vocab())
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
		b.bars = mpb.NewWithContext(b.a.ctx, mpb.WithOutput(b.a.stderr), mpb.WithWidth(progressWidth(b.label, textWidth(b.a.stderr))))
		b.bar = b.bars.AddBar(p.Total, mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Name(b.label+" ")),
			mpb.AppendDecorators(decor.CountersKibiByte("% .1f of % .1f")))
	}
	b.bar.SetCurrent(p.Done)
}

// progressWidth returns the width of a bar, so that its line has at most so many columns: the label,
// the bar, and counters, apart.
func progressWidth(label string, columns int) int {
	const counters, least, most = 28, 5, 40
	return max(least, min(most, columns-ansi.StringWidth(label)-counters-4))
}

func (b *progressBar) end() {
	if b.bar != nil {
		b.bar.Abort(true)
		b.bars.Wait()
	}
}
