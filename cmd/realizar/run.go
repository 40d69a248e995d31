package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/chat"
)

// runCommand is `realizar run`.
type runCommand struct {
	Model  string  `arg:"" help:"A GGUF file, a safetensors file, or a folder with one."`
	Prompt *string `arg:"" optional:"" help:"What to answer. Without it: standard input, or a chat on a terminal."`

	System  *string `placeholder:"TEXT" help:"Instructions that come before the conversation."`
	Raw     bool    `help:"Continue the prompt as it is, without the model's chat template; special tokens in it count."`
	JSON    bool    `name:"json" help:"Write one JSON object when the answer is complete."`
	Verbose bool    `short:"v" help:"Say on standard error how long it took."`

	generationFlags
	modelFlags
}

// Help is shown below the command's line.
func (*runCommand) Help() string {
	return `With a prompt, as an argument or on standard input, run writes the answer as it comes. On a terminal
without a prompt it opens a chat that remembers the conversation.

Examples:

    realizar run model.gguf "Why is the sky blue?"
    git diff | realizar run model.gguf --system "Explain this change."
    realizar run model.gguf --raw "Once upon a time" --max-tokens 64 --temperature 0.8
    realizar run ./Qwen3-0.6B

The prompt is one message in the form of the model's own chat template. A model without a template continues
the prompt, as with --raw. From standard input, a last line feed is not part of the message; with --raw every
byte counts. What is not chosen with a flag is what the model's makers recommend; where they say nothing, the
likeliest token is taken.

The answer ends with a line feed even where the model writes none. --json writes text, tokens, finish_reason
("stop" or "length"), stop_string, usage, timings and seed.

In the chat, Enter sends and Alt-Enter or Ctrl-J begins a new line; the cursor keys bring earlier messages
back. Ctrl-C stops the answer, Ctrl-D leaves, /clear forgets the conversation.`
}

// Validate is called by the parser.
func (c *runCommand) Validate() error {
	if c.Raw && c.System != nil {
		return errors.New("--system has no place in a prompt that is taken as it is; leave out --raw or write it into the prompt")
	}
	if err := c.generationFlags.Validate(); err != nil {
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
	begun := time.Now()
	m, err := a.open(c.Model, &c.modelFlags)
	if err != nil {
		return err
	}
	loaded := time.Since(begun)
	defer func() { _ = m.Close() }()
	g := c.generation(m)
	if idle := c.idle(&g); len(idle) > 0 {
		a.notef("%s changes nothing at temperature 0, which takes the likeliest token; add --temperature", strings.Join(idle, ", "))
	}
	if interactive {
		return c.chat(a, m, g)
	}
	events, err := c.events(a, m, g, prompt)
	if err != nil {
		return err
	}
	finish, err := c.write(a, events, g.Seed)
	if err == nil && c.Verbose {
		writeTimings(a.err, loaded, finish, &g)
	}
	return err
}

// prompt is the argument, or standard input where that is no terminal.
func (c *runCommand) prompt(a *app) (text string, interactive bool, err error) {
	if c.Prompt != nil {
		return *c.Prompt, false, nil
	}
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		data, err := io.ReadAll(a.stdin)
		if err != nil {
			return "", false, fmt.Errorf("standard input: %w", err)
		}
		text = string(data)
		if !c.Raw {
			text = strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
		}
		return text, false, nil
	}
	if c.Raw || c.JSON || !term.IsTerminal(int(a.stdout.Fd())) {
		return "", false, usagef("there is no prompt: give one as an argument or on standard input")
	}
	return "", true, nil
}

// events is the answer: to a message where the model has a chat template, or
// the continuation of the prompt.
func (c *runCommand) events(a *app, m *realizar.Model, g realizar.Generation, prompt string) (iter.Seq2[realizar.Event, error], error) {
	raw := c.Raw
	if !raw {
		_, err := m.ChatTemplate()
		switch {
		case err == nil:
		case errors.Is(err, realizar.ErrNoTemplate) && !errors.Is(err, chat.ErrTemplate):
			if c.System != nil {
				return nil, usagef("--system has no place: the model has no chat template")
			}
			raw = true
			a.notef("the model has no chat template; the prompt is continued as it is")
		default:
			return nil, fmt.Errorf("%w; --raw goes without it", err)
		}
	}
	if raw {
		return m.Generate(a.ctx, &realizar.Request{Prompt: prompt, Special: true, Generation: g}), nil
	}
	return m.Chat(a.ctx, &realizar.ChatRequest{Messages: append(c.opening(), chat.Message{Role: "user", Content: prompt}), Generation: g}), nil
}

// opening is what comes before the user's first message.
func (c *runCommand) opening() []chat.Message {
	if c.System == nil {
		return nil
	}
	return []chat.Message{{Role: "system", Content: *c.System}}
}

// write writes the answer as it comes, or as an object when it is there.
func (c *runCommand) write(a *app, events iter.Seq2[realizar.Event, error], seed uint64) (*realizar.Finish, error) {
	var text strings.Builder
	tokens := []int32{}
	var finish *realizar.Finish
	written := byte('\n') // the last byte on standard output
	put := func(s string) error {
		if c.JSON || s == "" {
			return nil
		}
		written = s[len(s)-1]
		_, err := io.WriteString(a.out, s)
		return err
	}
	for e, err := range events {
		if err != nil {
			if written != '\n' {
				_ = put("\n") // the error matters more
			}
			return nil, err
		}
		if c.JSON {
			text.WriteString(e.Text)
			tokens = append(tokens, e.Tokens...)
		}
		if err := put(e.Text); err != nil {
			return nil, err
		}
		finish = e.Finish
	}
	if !c.JSON {
		if written != '\n' {
			return finish, put("\n")
		}
		return finish, nil
	}
	out := json.NewEncoder(a.out)
	out.SetEscapeHTML(false)
	return finish, out.Encode(newAnswer(text.String(), tokens, finish, seed))
}

// An answer is what --json writes.
type answer struct {
	Text         string  `json:"text"`
	Tokens       []int32 `json:"tokens"`
	FinishReason string  `json:"finish_reason"`
	StopString   string  `json:"stop_string,omitempty"`
	Usage        struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
	} `json:"usage"`
	Timings struct {
		Queue       float64 `json:"queue_ms"`
		Prefill     float64 `json:"prefill_ms"`
		Decode      float64 `json:"decode_ms"`
		PrefillRate float64 `json:"prefill_tok_s"`
		DecodeRate  float64 `json:"decode_tok_s"`
	} `json:"timings"`
	Seed uint64 `json:"seed"`
}

func newAnswer(text string, tokens []int32, f *realizar.Finish, seed uint64) *answer {
	a := &answer{Text: text, Tokens: tokens, FinishReason: string(f.Reason), StopString: f.StopString, Seed: seed}
	a.Usage.Prompt, a.Usage.Completion = f.Usage.PromptTokens, f.Usage.CompletionTokens
	a.Timings.Queue, a.Timings.Prefill, a.Timings.Decode = milliseconds(f.Timings.Queue), milliseconds(f.Timings.Prefill), milliseconds(f.Timings.Decode)
	a.Timings.PrefillRate, a.Timings.DecodeRate = f.PrefillRate(), f.DecodeRate()
	return a
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// writeTimings says how long an answer took.
func writeTimings(w io.Writer, loaded time.Duration, f *realizar.Finish, g *realizar.Generation) {
	reason := string(f.Reason)
	if f.StopString != "" {
		reason += fmt.Sprintf(" at %q", f.StopString)
	}
	sampling := "greedy"
	if g.Temperature > 0 {
		sampling = fmt.Sprintf("temperature %g, top-k %d, top-p %g, min-p %g, seed %d", g.Temperature, g.TopK, g.TopP, g.MinP, g.Seed)
	}
	_, _ = fmt.Fprintf(w, "\nload      %36.3f s\nprompt    %7d tokens %9.1f tok/s %9.3f s\nanswer    %7d tokens %9.1f tok/s %9.3f s\nended     %s\nsampling  %s\n",
		loaded.Seconds(), f.Usage.PromptTokens, f.PrefillRate(), f.Timings.Prefill.Seconds(),
		f.Usage.CompletionTokens, f.DecodeRate(), f.Timings.Decode.Seconds(), reason, sampling)
}
