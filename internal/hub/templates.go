package hub

import (
	"fmt"

	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/modelfile"
)

// Templates are a model's chat templates by name. Most models have one.
type Templates map[string]*chat.Template

// The names of templates.
const (
	DefaultTemplate = "default"
	ToolTemplate    = "tool_use" // for conversations with tools
)

// ReadTemplates reads the templates from chat_template.jinja, tokenizer_config.json or GGUF's
// metadata.
func ReadTemplates(f Source) (Templates, error) {
	sources := map[string]string{}
	if f.Format() == modelfile.GGUF {
		if s, ok := f.Meta().String("tokenizer.chat_template"); ok {
			sources[DefaultTemplate] = s
		}
		if s, ok := f.Meta().String("tokenizer.chat_template." + ToolTemplate); ok {
			sources[ToolTemplate] = s
		}
	} else if err := hubTemplates(f, sources); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoTemplate, err)
	}
	if len(sources) == 0 {
		return nil, fmt.Errorf("%w: %s has none", ErrNoTemplate, f.Path())
	}
	all := Templates{}
	for name, source := range sources {
		t, err := chat.ParseTemplate(source)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: template %q: %w", ErrNoTemplate, f.Path(), name, err)
		}
		all[name] = t
	}
	return all, nil
}

func hubTemplates(f Source, sources map[string]string) error {
	config, err := asset(f, "tokenizer_config.json")
	if err != nil {
		return err
	}
	if s, ok := config.String("chat_template"); ok {
		sources[DefaultTemplate] = s
	}
	if list, ok := config.Value("chat_template"); ok {
		if list, ok := list.([]any); ok {
			for _, e := range list {
				if m, ok := e.(*modelfile.Meta); ok {
					name, _ := m.String("name")
					if s, ok := m.String("template"); ok {
						sources[name] = s
					}
				}
			}
		}
	}
	if s, ok := f.Asset("chat_template.jinja"); ok {
		sources[DefaultTemplate] = string(s)
	}
	if s, ok := f.Asset("additional_chat_templates/" + ToolTemplate + ".jinja"); ok {
		sources[ToolTemplate] = string(s)
	}
	return nil
}

// Choose returns the template to use: the one for tools if tools is true and the model has one,
// else the default. Errors name the model's path.
func (t Templates) Choose(path string, tools bool) (*chat.Template, error) {
	if one, ok := t[ToolTemplate]; ok && tools {
		return one, nil
	}
	if one, ok := t[DefaultTemplate]; ok {
		return one, nil
	}
	return nil, fmt.Errorf("%w: %s has none called %q", ErrNoTemplate, path, DefaultTemplate)
}
