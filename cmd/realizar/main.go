// Command realizar runs open-weight language models from the command line.
//
// It answers a prompt or holds a chat (run), serves models over HTTP (serve), describes a model file
// (inspect), converts text to token ids and back (tokenize), manages models by name (pull, list,
// show, cp, rm, gc, verify, push), renders chat templates (template), computes logits (logits),
// measures how well a model predicts a text (eval) and how fast it is (bench), watches a running
// server (top), makes model files for measurements (synth) and checks the devices (doctor). Each
// command has a file of its own. Package realizar opens and runs models.
//
// Results go to standard output, everything else to standard error. The exit code is 0 for success,
// 1 for a failure, 2 for an invalid command line, and 130 after an interrupt.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/realizar/realizar"
	_ "github.com/realizar/realizar/cuda" // for NVIDIA GPUs; nothing with the tag nocuda
	"github.com/realizar/realizar/internal/cpu"
)

// The exit codes.
const (
	exitFailure     = 1
	exitUsage       = 2
	exitInterrupted = 130 // 128 and the number of SIGINT, as shells have it
)

// grammar is the command line.
type grammar struct {
	HelpAll wholeHelpFlag `help:"Show all flags and more help."`

	Run        runCommand        `cmd:"" help:"Answer a prompt, continue it, or hold a chat."`
	Serve      serveCommand      `cmd:"" help:"Serve models to clients of OpenAI, Anthropic, Ollama, llama.cpp."`
	Inspect    inspectCommand    `cmd:"" help:"Describe a model file and the memory that it needs."`
	Pull       pullCommand       `cmd:"" help:"Download a model by name."`
	List       listCommand       `cmd:"" help:"List the models on this machine."`
	Show       showCommand       `cmd:"" help:"Describe a model on this machine."`
	Cp         cpCommand         `cmd:"" help:"Give a model another name, or copy it."`
	Rm         rmCommand         `cmd:"" help:"Remove models."`
	Gc         gcCommand         `cmd:"" help:"Remove files that belong to no model."`
	Verify     verifyCommand     `cmd:"" help:"Check the files of models against their digests."`
	Push       pushCommand       `cmd:"" help:"Upload a model to an OCI registry."`
	Tokenize   tokenizeCommand   `cmd:"" help:"Convert text to token ids, or ids to text."`
	Template   templateCommand   `cmd:"" help:"Render a chat template, or parse an answer with it."`
	Grammar    grammarCommand    `cmd:"" help:"Check a JSON Schema, regular expression or grammar, and texts."`
	Logits     logitsCommand     `cmd:"" help:"Compute the logits after each token of a list."`
	Eval       evalCommand       `cmd:"" help:"Measure how well a model predicts a text."`
	Bench      benchGroup        `cmd:"" help:"Measure the speed of a model on this machine, or of a server."`
	Synth      synthCommand      `cmd:"" help:"Write a model file with random weights, for measurements."`
	Top        topCommand        `cmd:"" help:"Watch a running server: requests, KV cache, latencies, memory."`
	Doctor     doctorCommand     `cmd:"" help:"Check the GPUs and the CPU of this machine."`
	Completion completionCommand `cmd:"" help:"Write a script that completes commands and flags in a shell."`
	Man        manCommand        `cmd:"" help:"Write the manual page."`
	Version    versionCommand    `cmd:"" help:"Show the version."`
	Help       helpCommand       `cmd:"" help:"Show help for a command."`
}

const description = `realizar runs open-weight language models from GGUF and safetensors files.

MODEL is a GGUF or safetensors file, a folder with one, a name (hf:org/repo), or demo, the built-in model. Results go to standard output, messages to standard error. Exit codes: 0, 1 (failure), 2 (invalid command line), 130 (interrupt).`

// An app is what commands use in addition to their flags.
type app struct {
	ctx            context.Context // ends when the user interrupts
	stdin          io.Reader       // ends with ctx
	stdout, stderr *os.File
	out, err       io.Writer // the same two, for text
	parser         *kong.Kong
	args           []string // of the command line
	kernels        string   // value of REALIZAR_CPU, or empty
}

// kernelsVariable is the environment variable that selects the CPU instructions of the kernels, for
// tests and to find the cause of a difference.
const kernelsVariable = "REALIZAR_CPU"

// A usageError reports an invalid command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, a ...any) error { return usageError{fmt.Errorf(format, a...)} }

func main() { os.Exit(start(os.Args[1:])) }

// start runs the command of the arguments and returns the exit code.
func start(args []string) int {
	signals, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// stop comes before cancel, so that a second signal ends the process at once even if it arrives
	// before anything has reacted to the first.
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	context.AfterFunc(signals, func() {
		stop()
		cancel(context.Cause(signals))
	})
	a := &app{ctx: ctx, stdin: &contextReader{ctx: ctx, r: os.Stdin}, stdout: os.Stdout, stderr: os.Stderr, out: safely(os.Stdout), err: safely(os.Stderr)}
	command, err := a.parse(args)
	if err == nil {
		err = a.readEnvironment()
	}
	if err == nil {
		err = command.Run(a)
	}
	return a.report(command, err)
}

func (a *app) readEnvironment() error {
	a.kernels = os.Getenv(kernelsVariable)
	if a.kernels != "" && !slices.Contains(cpu.Tiers(), a.kernels) {
		return usagef("%s=%s: this processor has %s", kernelsVariable, a.kernels, strings.Join(cpu.Tiers(), ", "))
	}
	return nil
}

// makeRoom lets the process run two threads in addition to those that compute, which do not yield
// while a model runs: one to prepare and report the work, and one for the garbage collector.
// GOMAXPROCS in the environment has precedence. If it leaves no room, idle threads stop spinning
// sooner.
func makeRoom(threads int) {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(cpu.Threads(threads) + 2)
	}
}

func (a *app) parse(args []string) (*kong.Context, error) {
	if len(args) == 0 { // do nothing, as the user asked for nothing
		fmt.Fprint(a.err, firstSteps) //nolint:errcheck // there is nowhere else to report it
		os.Exit(exitUsage)
	}
	if len(args) == 1 && (args[0] == "--version" || args[0] == "-V") {
		args = []string{"version"}
	}
	a.args = args
	var err error
	if a.parser, err = newParser(&grammar{}, kong.Writers(a.stdout, a.stderr), kong.Exit(os.Exit)); err != nil {
		return nil, err
	}
	command, err := a.parser.Parse(args)
	var parse *kong.ParseError
	if errors.As(err, &parse) {
		return parse.Context, parseFailure(err)
	}
	return command, err
}

// newParser reads a command line into g.
func newParser(g *grammar, options ...kong.Option) (*kong.Kong, error) {
	parser, err := kong.New(g, append(options,
		kong.Name("realizar"), kong.Description(description),
		kong.Help(printHelp),
		kong.ExplicitGroups([]kong.Group{
			{Key: "network", Title: "Network:"}, {Key: "limits", Title: "Limits:"}, {Key: "log", Title: "Log:"},
			{Key: "answer", Title: "Answer:"}, {Key: "requests", Title: "Requests:"}, {Key: "model", Title: "Model and memory:"},
		}),
		kong.Vars{
			"model":  "A GGUF or safetensors file, a folder with one, a name such as hf:org/repo, or demo, the built-in model.",
			"models": "GGUF or safetensors files, folders with one, names such as hf:org/repo, or demo, the built-in model.",
		},
	)...)
	if err == nil {
		parser.Model.HelpFlag.Help = "Show help with the common flags."
	}
	return parser, err
}

// A helpError reports that help could not be written. The parser writes help while it parses, and
// returns this error like those about the arguments.
type helpError struct{ error }

func (e helpError) Unwrap() error { return e.error }

// parseFailure returns the error for a parser's error.
func parseFailure(err error) error {
	var help helpError
	if errors.As(err, &help) {
		return help.error
	}
	return usageError{err}
}

// errFails ends a command whose output already gives a negative answer.
var errFails = errors.New("no")

// report reports an error and returns the exit code.
func (a *app) report(command *kong.Context, err error) int {
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errFails):
		return exitFailure
	case errors.Is(err, syscall.EPIPE):
		return 0 // the reader has what it wanted
	case a.ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(a.ctx))):
		return exitInterrupted
	case errors.As(err, &usage), errors.Is(err, realizar.ErrOptions):
		a.notef("%s", message(err))
		help := "realizar --help"
		if command != nil && command.Selected() != nil {
			help = pathOf(command.Selected()) + " --help"
		}
		fmt.Fprintf(a.err, "See %s.\n", help) //nolint:errcheck // there is nowhere else to report it
		return exitUsage
	}
	a.notef("%s", message(err))
	return exitFailure
}

// pathOf returns a command as it is written, without a default subcommand.
func pathOf(command *kong.Node) string {
	if command.Parent.DefaultCmd == command {
		command = command.Parent
	}
	return command.FullPath()
}

// message returns an error's text without the prefix that notef writes.
func message(err error) string { return strings.TrimPrefix(err.Error(), "realizar: ") }

// notef writes a line to standard error.
func (a *app) notef(format string, args ...any) {
	text := fmt.Sprintf("realizar: "+format, args...)
	fmt.Fprintln(a.err, fitted(text, terminalWidth(a.stderr))) //nolint:errcheck // there is nowhere else to report it
}

// helpCommand is `realizar help`.
type helpCommand struct {
	Command []string `arg:"" optional:"" help:"The command to explain. Default: all commands."`
}

// Run shows what --help shows.
func (c *helpCommand) Run(a *app) error {
	_, err := a.parser.Parse(append(c.Command, "--help"))
	if err != nil {
		return parseFailure(err)
	}
	return nil
}

// A contextReader ends with its context, even while a read waits for a terminal or a pipe.
type contextReader struct {
	ctx context.Context
	r   io.Reader
	buf []byte
}

func (c *contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	type result struct {
		n   int
		err error
	}
	if c.buf == nil {
		c.buf = make([]byte, 64<<10)
	}
	done := make(chan result, 1)
	buf := c.buf[:min(len(p), len(c.buf))]
	go func() {
		n, err := c.r.Read(buf)
		done <- result{n, err}
	}()
	select {
	case r := <-done:
		copy(p, buf[:r.n])
		return r.n, r.err
	case <-c.ctx.Done():
		c.buf = nil // the read under way may still write to it
		return 0, context.Cause(c.ctx)
	}
}
