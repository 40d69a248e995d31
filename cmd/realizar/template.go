package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/modelfile"
)

// templateCommand is `realizar template`.
type templateCommand struct {
	Source string  `arg:"" name:"file|model" help:"A file that holds a template (.jinja), or a model, whose own is taken."`
	Vars   string  `placeholder:"FILE.json" help:"A JSON object with the template's variables; - is standard input."`
	Parse  *string `placeholder:"TEXT" help:"Take an assistant's text apart, as the model writes it, and write its message as JSON; - is standard input."`
	Tools  string  `placeholder:"FILE.json" help:"With --parse: a JSON list of the tools that the text may call, as OpenAI's API has them."`
	Now    string  `placeholder:"TIME" help:"What the template takes for the present, as 2025-06-15T12:34:56. Default: now."`
}

// Help is shown below the command's line.
func (*templateCommand) Help() string {
	return `Writes the rendered text to the byte. What the template refuses is a failure with the template's own
message.

Variables have the names that Hugging Face's transformers gives them: messages, tools, add_generation_prompt
and whatever else the template reads. A model's own bos_token, eos_token and so on are there where the
variables do not name them.

Examples:

    realizar template chat_template.jinja --vars conversation.json
    echo '{"messages": [{"role": "user", "content": "Hi"}], "add_generation_prompt": true}' |
        realizar template model.gguf --vars -
    realizar template model.gguf --tools tools.json --parse - < answer.txt

With --parse it writes the message that an assistant's text is: role, content, reasoning_content and tool_calls. A text
that goes on from a prompt which has opened its thought may begin inside the thought; with --vars the end of the
rendered prompt says so.`
}

// timeFormat is the form of --now: local time without a zone.
const timeFormat = "2006-01-02T15:04:05"

// Validate implements the parser's interface.
func (c *templateCommand) Validate() error {
	switch {
	case c.Parse == nil && c.Vars == "":
		return errors.New("there is nothing to do: give --vars to render the template, or --parse to take a text apart")
	case c.Parse == nil && c.Tools != "":
		return errors.New("--tools is for --parse; tools to render are a variable")
	}
	if c.Now == "" {
		return nil
	}
	if _, err := time.ParseInLocation(timeFormat, c.Now, time.Local); err != nil {
		return fmt.Errorf("--now=%s: want a time as 2025-06-15T12:34:56", c.Now)
	}
	return nil
}

// Run renders the template, or parses a text.
func (c *templateCommand) Run(a *app) error {
	if c.Parse != nil {
		return c.parse(a)
	}
	vars, err := c.variables(a)
	if err != nil {
		return err
	}
	if c.Source, err = a.modelPath(c.Source, false); err != nil {
		return err
	}
	template, special, err := c.open(hasTools(vars))
	if err != nil {
		return err
	}
	text, err := c.render(a, vars, template, special)
	if err != nil {
		return err
	}
	_, err = io.WriteString(a.out, text.String())
	return err
}

// render renders the template with the variables, and with the special tokens that the variables
// lack.
func (c *templateCommand) render(a *app, vars map[string]json.RawMessage, t *chat.Template, special map[string]string) (chat.Text, error) {
	var err error
	for name, text := range special {
		if _, ok := vars[name]; !ok {
			if vars[name], err = json.Marshal(text); err != nil {
				return nil, err
			}
		}
	}
	data, err := json.Marshal(vars)
	if err != nil {
		return nil, err
	}
	now := time.Now
	if c.Now != "" {
		fixed, err := time.ParseInLocation(timeFormat, c.Now, time.Local)
		if err != nil {
			return nil, err
		}
		now = func() time.Time { return fixed }
	}
	return t.RenderJSON(a.ctx, data, now)
}

// variables reads the object as raw members, so that members can be added and the others stay as
// written.
func (c *templateCommand) variables(a *app) (map[string]json.RawMessage, error) {
	data, err := a.read(c.Vars)
	if err != nil {
		return nil, fmt.Errorf("--vars: %w", err)
	}
	name := c.Vars
	if name == "-" {
		name = "standard input"
	}
	var vars map[string]json.RawMessage
	if err := unmarshal(data, &vars); err != nil {
		return nil, fmt.Errorf("--vars: %s: want a JSON object: %w", name, err)
	}
	return vars, nil
}

// hasTools reports whether the variables include tools.
func hasTools(vars map[string]json.RawMessage) bool {
	var tools []json.RawMessage
	return json.Unmarshal(vars["tools"], &tools) == nil && len(tools) > 0
}

// open reads the template. For a model's own template it also returns the texts of the special
// tokens.
func (c *templateCommand) open(tools bool) (*chat.Template, map[string]string, error) {
	model, err := isModel(c.Source)
	if err != nil {
		return nil, nil, err
	}
	if model {
		return realizar.OpenTemplate(c.Source, tools)
	}
	source, err := os.ReadFile(c.Source)
	if err != nil {
		return nil, nil, err
	}
	t, err := chat.ParseTemplate(string(source))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", c.Source, err)
	}
	return t, nil, nil
}

// isModel reports whether path is a model and not a template: a folder, a GGUF file, a registered
// name, or a file whose name ends in .safetensors or .json.
func isModel(path string) (bool, error) {
	if modelfile.Registered(path) {
		return true, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return false, err
	}
	switch strings.ToLower(filepath.Ext(path)) {
	case ".safetensors", ".json":
		return true, nil
	}
	if !info.Mode().IsRegular() {
		return info.IsDir(), nil
	}
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	magic := make([]byte, 4)
	n, _ := io.ReadFull(f, magic)
	return bytes.Equal(magic[:n], []byte("GGUF")), nil
}
