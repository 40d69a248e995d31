package main

import (
	"bytes"
	"encoding/json"
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
	Source string `arg:"" name:"file|model" help:"A file that holds a template (.jinja), or a model, whose own is taken."`
	Vars   string `required:"" placeholder:"FILE.json" help:"A JSON object with the template's variables; - is standard input."`
	Now    string `placeholder:"TIME" help:"What the template takes for the present, as 2025-06-15T12:34:56. Default: now."`
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
        realizar template model.gguf --vars -`
}

// timeFormat is how --now is written: local time without a zone.
const timeFormat = "2006-01-02T15:04:05"

// Validate is called by the parser.
func (c *templateCommand) Validate() error {
	if c.Now == "" {
		return nil
	}
	if _, err := time.ParseInLocation(timeFormat, c.Now, time.Local); err != nil {
		return fmt.Errorf("--now=%s: want a time as 2025-06-15T12:34:56", c.Now)
	}
	return nil
}

// Run renders the template.
func (c *templateCommand) Run(a *app) error {
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
	for name, text := range special {
		if _, ok := vars[name]; !ok {
			if vars[name], err = json.Marshal(text); err != nil {
				return err
			}
		}
	}
	data, err := json.Marshal(vars)
	if err != nil {
		return err
	}
	now := time.Now
	if c.Now != "" {
		fixed, err := time.ParseInLocation(timeFormat, c.Now, time.Local)
		if err != nil {
			return err
		}
		now = func() time.Time { return fixed }
	}
	text, err := template.RenderJSON(a.ctx, data, now)
	if err != nil {
		return err
	}
	_, err = io.WriteString(a.out, text.String())
	return err
}

// variables reads the object by its members, so that members can be added and
// the rest stays as it is written.
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

// hasTools reports whether the variables name tools.
func hasTools(vars map[string]json.RawMessage) bool {
	var tools []json.RawMessage
	return json.Unmarshal(vars["tools"], &tools) == nil && len(tools) > 0
}

// open reads the template, and for a model's own the texts of its special
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

// isModel reports whether path leads to a model and not to a template: a
// folder, a GGUF file, one in the program, or by its name a safetensors or a JSON file.
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
