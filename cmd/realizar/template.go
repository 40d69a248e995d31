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
	Source string  `arg:"" name:"file|model" help:"A file that holds a template (.jinja), or a model that has one."`
	Vars   string  `placeholder:"FILE.json" common:"" help:"Variables of the template, as a JSON object; - is standard input."`
	Parse  *string `placeholder:"TEXT" common:"" help:"Parse the text of an assistant, as the model writes it, and write its message as JSON; - is standard input."`
	Tools  string  `placeholder:"FILE.json" common:"" help:"With --parse: tools that the text may call, as a JSON list in the form of the OpenAI API."`
	Now    string  `placeholder:"TIME" common:"" help:"Current time for the template, such as 2025-06-15T12:34:56. Default: now."`
}

// Help is shown below the command's line.
func (*templateCommand) Help() string {
	return `template writes the rendered text without changing a byte. An error that the template raises is a
failure with the message of the template.

Variables have the names of Hugging Face's transformers: messages, tools, add_generation_prompt and
others that the template reads. bos_token, eos_token and similar ones of a model are set unless the
variables name them.

Examples:

    realizar template chat_template.jinja --vars conversation.json
    realizar template model.gguf --tools tools.json --parse - < answer.txt
    echo '{"messages": [{"role": "user", "content": "Hi"}], "add_generation_prompt": true}' |
        realizar template model.gguf --vars -

--parse writes the message of an assistant: role, content, reasoning_content and tool_calls. If the
prompt has opened the reasoning, the text may begin inside it; with --vars the end of the rendered
prompt decides this.`
}

// timeFormat is the form of --now: local time without a zone.
const timeFormat = "2006-01-02T15:04:05"

// Validate implements the parser's interface.
func (c *templateCommand) Validate() error {
	switch {
	case c.Parse == nil && c.Vars == "":
		return errors.New("there is nothing to do; give --vars to render the template, or --parse to parse a text")
	case c.Parse == nil && c.Tools != "":
		return errors.New("--tools needs --parse; tools to render are a variable of --vars")
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
