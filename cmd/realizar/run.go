package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/demo"
)

// runCommand is `realizar run`.
type runCommand struct {
	Model  string  `arg:"" optional:"" help:"${model} Default: demo."`
	Prompt *string `arg:"" optional:"" help:"The prompt; piped input is appended to it. Default: standard input, or a chat on a terminal."`

	System  *string `placeholder:"TEXT" common:"" help:"System message, before the conversation."`
	N       int     `name:"n" default:"1" placeholder:"N" group:"answer" help:"Generate N answers and write them one after the other, each below its number."`
	Raw     bool    `common:"" help:"Continue the prompt without the chat template of the model; special tokens in it match."`
	JSON    bool    `name:"json" common:"" help:"Write one JSON object for each answer, one per line, when all are complete."`
	Verbose bool    `short:"v" common:"" help:"Report timings and the seed on standard error."`

	pullFlag
	Tools string `placeholder:"FILE" group:"answer" help:"Tools that the model may call, as a JSON list in the form of the OpenAI API. Each call is written as a line of JSON."`

	grammarFlags
	traceFlags
	generationFlags
	modelFlags
	speculativeFlags
}

// Help is shown below the command's line.
func (*runCommand) Help() string {
	return `With a prompt, as an argument or on standard input, run writes the answer as the model generates it.
Standard input follows the argument. On a terminal without a prompt, run opens a chat that remembers
the conversation.

Examples:

    realizar run demo "How do I serve a model?"
    realizar run model.gguf "Why is the sky blue?"
    git diff | realizar run model.gguf "Explain this change."
    realizar run model.gguf --raw "Once upon a time" --max-tokens 64 --temperature 0.8
    realizar run model.gguf "Name a colour." --n 3 --temperature 1 --presence-penalty 0.5
    realizar run ./Qwen3-0.6B
    realizar run model.gguf "Why is the sky blue?" --max-tokens 64 --profile steps.json

The prompt is one message in the chat template of the model. A model without a template continues the
prompt, as with --raw. A last line feed on standard input is not part of the message; with --raw every
byte counts. Sampling without flags is what the model recommends, or temperature 0.

The answer ends with a line feed even if the model writes none. --json writes choice (the number of
the answer, from 0), text, tokens, finish_reason ("stop" or "length"), stop_string, usage, timings
and seed.

Penalties and --logit-bias also apply at temperature 0. Answers of --n share the prefill of the
prompt and differ by sampling, so --n needs a --temperature above 0.

--trace-timing writes two tables on standard error: the parts of the time to the first token, and for
each token the milliseconds before the first layer (embed), on the device, in sampling (sample), and
of wall-clock time since the previous token. With --json they are the member trace.

--profile FILE runs the steps kernel by kernel and writes tables by kernel and by layer: calls, time,
the least bytes to read and write, and the share of the memory bandwidth measured at the end. Prefill
and decode are separate. ui.perfetto.dev opens FILE, and so does chrome://tracing where it is
enabled. It has a track for each of several GPUs; the tables are those of one of them if all work at
the same time.

In the chat, Enter sends and Alt-Enter or Ctrl-J begins a new line; the cursor keys recall earlier
messages. Ctrl-C stops the answer, Ctrl-D leaves. /help lists the commands: /clear, /set, /show,
/save, /load and /bye. """ begins and ends a message of several lines. Messages are kept for the next
chat in the file that REALIZAR_HISTORY names, unless it is off.`
}

// maxAnswers is the most answers that one request may ask for.
const maxAnswers = 1024

// Validate implements the parser's interface.
func (c *runCommand) Validate() error {
	if c.Raw && c.System != nil {
		return errors.New("--system needs the chat template, which --raw skips; remove --raw, or write the text into the prompt")
	}
	if c.N < 1 || c.N > maxAnswers {
		return fmt.Errorf("--n=%d: want 1 to %d", c.N, maxAnswers)
	}
	if c.Raw && c.Tools != "" {
		return errors.New("--tools needs the chat template, which --raw skips; remove --raw")
	}
	if err := c.grammarFlags.Validate(); err != nil {
		return err
	}
	if err := c.traceFlags.Validate(); err != nil {
		return err
	}
	if err := c.generationFlags.Validate(); err != nil {
		return err
	}
	if err := c.validSpeculative(); err != nil {
		return err
	}
	return c.modelFlags.Validate()
}

// Run answers a prompt or opens a chat.
func (c *runCommand) Run(a *app) error {
	prompt, interactive, err := c.prompt(a)
	if err != nil {
		return err
	}
	if interactive && c.Tools != "" {
		return usagef("--tools is not supported in a chat, which cannot answer calls; give a prompt")
	}
	if interactive && c.N > 1 {
		return usagef("--n %d is not supported in a chat, which continues from one answer; give a prompt", c.N)
	}
	if err := c.allow(c.N, interactive); err != nil {
		return err
	}
	c.Parallel = cmp.Or(c.Parallel, min(c.N, defaultTogether))
	c.Model = a.orDemo(c.Model, "run")
	t, err := c.startTracing(c.Model)
	if err != nil {
		return err
	}
	return t.end(a, c, c.answer(a, t, prompt, interactive))
}

// answer opens the model, and answers a prompt or holds a chat. It reports the model to t.
func (c *runCommand) answer(a *app, t *tracing, prompt string, interactive bool) error {
	bound, err := c.compile(c.jsonOptions())
	if err != nil {
		return err
	}
	tools, err := readTools(a, c.Tools)
	if err != nil {
		return err
	}
	path, err := a.modelPath(c.Model, c.Pull)
	if err != nil {
		return c.maybePrompt(err)
	}
	c.Model = path
	begun := time.Now()
	o := c.options()
	c.setSpeculative(&o)
	t.watch(&o)
	m, err := a.openWith(a.ctx, c.Model, o)
	if err != nil {
		return c.maybePrompt(err)
	}
	loaded := time.Since(begun)
	t.opened(m)
	defer func() { _ = m.Close() }()
	if !interactive && !c.Raw && strings.TrimSpace(prompt) == "" {
		return usagef("no prompt: standard input is empty; give the prompt there or as an argument")
	}
	g := c.generation(m)
	g.Choices, g.Grammar = c.N, bound
	if idle := c.idle(&g); len(idle) > 0 {
		a.notef("no effect at temperature 0, which takes the likeliest token: %s; add --temperature", strings.Join(idle, ", "))
	}
	if interactive {
		return c.chat(a, m, g)
	}
	events, err := c.events(a, m, g, prompt, tools)
	if err != nil {
		return err
	}
	w := &answerWriter{out: a.out, thoughts: a.err, json: c.JSON, answers: make([]writtenAnswer, c.N), timings: t.timings}
	if err := w.write(events, g.Seed); err != nil {
		return err
	}
	if c.Verbose {
		writeTimings(a.err, loaded, w.answers, &g)
	}
	return nil
}

// maybePrompt replaces err if the argument for the model is probably the prompt.
func (c *runCommand) maybePrompt(err error) error {
	if c.Prompt == nil && errors.Is(err, fs.ErrNotExist) && strings.ContainsRune(c.Model, ' ') {
		return fmt.Errorf("%q is neither a file nor the name of a model; the model comes before the prompt: realizar run %s %q", c.Model, demo.Name, c.Model)
	}
	return err
}

// defaultTogether is the most answers that run at a time if no flag says how many.
const defaultTogether = 16

// prompt returns the argument followed by standard input, unless that is a terminal.
func (c *runCommand) prompt(a *app) (text string, interactive bool, err error) {
	if c.Prompt != nil && !piped(os.Stdin) {
		return *c.Prompt, false, nil
	}
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		waiting := time.AfterFunc(2*time.Second, func() {
			a.notef("waiting for the end of standard input; </dev/null skips it")
		})
		data, err := io.ReadAll(a.stdin)
		waiting.Stop()
		if err != nil {
			return "", false, fmt.Errorf("standard input: %w", err)
		}
		text = string(data)
		if !c.Raw {
			text = strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
		}
		switch {
		case c.Prompt == nil:
			return text, false, nil
		case text == "":
			return *c.Prompt, false, nil
		case c.Raw:
			return *c.Prompt + text, false, nil
		}
		return *c.Prompt + "\n\n" + text, false, nil
	}
	if c.Raw || c.JSON || !term.IsTerminal(int(a.stdout.Fd())) {
		return "", false, usagef("no prompt; give one as an argument or on standard input")
	}
	return "", true, nil
}

// piped reports whether a file is a pipe or a regular file, which was given to the command.
func piped(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && (info.Mode()&os.ModeNamedPipe != 0 || info.Mode().IsRegular())
}

// events returns the answer to the prompt as a message, or if the model has no chat template, the
// continuation of the prompt.
func (c *runCommand) events(a *app, m *realizar.Model, g realizar.Generation, prompt string, tools []chat.Tool) (iter.Seq2[realizar.Event, error], error) {
	raw := c.Raw
	if !raw {
		_, err := m.ChatTemplate()
		switch {
		case err == nil:
		case errors.Is(err, realizar.ErrNoTemplate) && !errors.Is(err, chat.ErrTemplate):
			if c.System != nil || len(tools) > 0 {
				return nil, usagef("--system and --tools need a chat template, and the model has none")
			}
			raw = true
			a.notef("the model has no chat template; it continues the prompt, as with --raw")
		default:
			return nil, fmt.Errorf("%w; --raw does without it", err)
		}
	}
	if raw {
		return m.Generate(a.ctx, &realizar.Request{Prompt: prompt, Special: true, Generation: g}), nil
	}
	return m.Chat(a.ctx, &realizar.ChatRequest{Messages: append(c.opening(), chat.Message{Role: "user", Content: prompt}), Tools: tools, Generation: g}), nil
}

// opening returns the messages before the user's first one.
func (c *runCommand) opening() []chat.Message {
	if c.System == nil {
		return nil
	}
	return []chat.Message{{Role: "system", Content: *c.System}}
}
